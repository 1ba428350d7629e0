"""Groups of a tree that are alike, counted instead of told apart; and who is who when they have been placed.

Equal parts of one composite (same needs, same domains, same lots) are one `Kind` with a count: whoever has
forty equal groups asks for forty of one kind, and no solver tries which of them goes first.  `Placed` is one
group of a kind with its members on nodes.  In comes a problem; next: `program.py`, which chooses numbers.
Axes: K lots of one part of a kind, L lots of the problem, N nodes.
"""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from muster.base.arrays import Int64
from muster.placement.packing import Problem
from muster.placement.parts import Part

Key = tuple[object, ...]


class Kind(Struct, frozen=True):
    """Parts that are alike: `part` is one of them, `count` how many there are in each part of the kind above.

    Shapes   shapes, available [K] of one part.
    """

    part: Part
    count: int
    shapes: tuple[int, ...]
    available: tuple[int, ...]
    kinds: tuple["Kind", ...]


class Placed(Struct, frozen=True):
    """One group: of a pod group the nodes by lot [K], of a composite its groups by kind."""

    nodes: Sequence[Sequence[int]] = ()
    groups: Sequence[Sequence["Placed"]] = ()


def kind_of(problem: Problem, part: Part, count: int = 1) -> Kind:
    """The part as a kind, and what is below it."""
    alike = _alike(problem, part.parts)
    lots = _sorted_lots(problem, part)
    return Kind(
        part=part,
        count=count,
        shapes=tuple(int(problem.shape_of_lot[lot]) for lot in lots),
        available=tuple(int(problem.available[lot]) for lot in lots),
        kinds=tuple(kind_of(problem, parts[0], len(parts)) for parts in alike),
    )


def seat_counts(problem: Problem, placed: Placed) -> Int64:
    """[L, N] members of each lot on each node, when the root is placed like this."""
    counts = np.zeros((len(problem.available), problem.packing.feasible.shape[1]), dtype=np.int64)
    _seat(problem, problem.root, placed, counts)
    return counts


def _seat(problem: Problem, part: Part, placed: Placed, counts: Int64) -> None:
    for lot, nodes in zip(_sorted_lots(problem, part), placed.nodes, strict=False):
        np.add.at(counts[lot], np.array(nodes, dtype=np.int64), 1)
    for parts, groups in zip(_alike(problem, part.parts), placed.groups, strict=False):
        for child, group in zip(parts, groups, strict=False):
            _seat(problem, child, group, counts)


def share_out(counts: Sequence[int], most: Sequence[int], total: int, groups: int) -> list[list[int]]:
    """Give each of so many groups `total` of these things at least, of each kind at most `most`.

    There are `counts` of each kind, at most `most` times as many as there are groups, and enough in all.
    Returns  a row for each group; nothing is left over.
    """
    left, shares = list(counts), []
    for others in range(groups - 1, -1, -1):
        share = [max(0, have - each * others) for have, each in zip(left, most, strict=True)]
        for index, have in enumerate(left):
            more = min(have, most[index]) - share[index]
            share[index] += max(0, min(more, total - sum(share)))
        left = [have - given for have, given in zip(left, share, strict=True)]
        shares.append(share)
    return shares


def _alike(problem: Problem, parts: Sequence[Part]) -> list[list[Part]]:
    """Parts by kind, in the order of their first."""
    found: dict[Key, list[Part]] = defaultdict(list)
    for part in parts:
        found[_key(problem, part)].append(part)
    return list(found.values())


def _key(problem: Problem, part: Part) -> Key:
    """Equal for parts that are alike."""
    return (
        part.needed,
        part.inside,
        tuple(domain.tobytes() for domain in part.domains),
        tuple(
            (int(problem.shape_of_lot[lot]), int(problem.available[lot]))
            for lot in _sorted_lots(problem, part)
        ),
        tuple((_key(problem, parts[0]), len(parts)) for parts in _alike(problem, part.parts)),
    )


def _sorted_lots(problem: Problem, part: Part) -> list[int]:
    return sorted(part.lots, key=lambda lot: int(problem.shape_of_lot[lot]))
