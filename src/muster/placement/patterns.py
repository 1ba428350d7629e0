"""Nodes that are alike, and what each of them can hold at most: the columns of the exact search.

A pattern is how many members of each shape one node takes together.  Only maximal ones are kept: fewer
members always fit where more do, so whoever places too many is trimmed afterwards.  Nodes with the same
patterns form one class.  In comes a packing; next: `exact.py`.  Axes: S shapes, N nodes, Q columns.
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np
from msgspec import Struct

from muster.base.arrays import Int64
from muster.placement.packing import Packing, copies_alone

Pattern = tuple[int, ...]


class NodeClass(Struct, frozen=True):
    """Nodes (indices into N, ascending) of one region with the same maximal patterns."""

    nodes: tuple[int, ...]
    patterns: tuple[Pattern, ...]
    region: int = 0


def find_classes(
    packing: Packing, available: Int64, regions: Sequence[Int64], *, steps_max: int
) -> tuple[NodeClass, ...] | None:
    """Classes of the nodes of each region that take some member, in order of their first node.

    None when listing the patterns would take more than `steps_max` steps: then there are too many.
    """
    copies = copies_alone(packing, available)
    need, room = _scale(packing.need, packing.room)
    budget = _Steps(steps_max)
    known: dict[bytes, tuple[Pattern, ...]] = {}
    nodes_of: dict[tuple[int, tuple[Pattern, ...]], list[int]] = {}
    for region, node in ((region, node) for region, nodes in enumerate(regions) for node in nodes.tolist()):
        limits = copies[:, node]
        if not limits.any():
            continue
        signature = limits.tobytes() + room[node].tobytes()
        if signature not in known:
            found = _maximal_patterns(need, room[node], limits, packing.conflict.tolist(), budget)
            if found is None:
                return None
            known[signature] = found
        nodes_of.setdefault((region, known[signature]), []).append(node)
    return tuple(NodeClass(tuple(nodes), patterns, region) for (region, patterns), nodes in nodes_of.items())


def _scale(need: Int64, room: Int64) -> tuple[Int64, Int64]:
    """Count each column in the largest unit that all needs are whole multiples of; room is rounded down.

    That makes nodes alike which differ by less than anybody asks for.  Columns nobody needs are dropped.
    """
    asked = np.flatnonzero((need > 0).any(axis=0))
    units = np.array([math.gcd(*need[:, column].tolist()) for column in asked.tolist()], dtype=np.int64)
    if not asked.size:
        return need[:, :0], room[:, :0]
    most = need[:, asked].max(axis=0) * 2**20  # beyond any count of members on one node
    return need[:, asked] // units, np.minimum(np.maximum(room[:, asked], 0), most) // units


class _Steps:
    """How many steps the listing may still take."""

    __slots__ = ("left",)

    def __init__(self, steps_max: int) -> None:
        self.left = steps_max


def _maximal_patterns(
    need: Int64, room: Int64, limits: Int64, conflict: Sequence[Sequence[bool]], budget: _Steps
) -> tuple[Pattern, ...] | None:
    """List the maximal patterns of one node, in lexicographic order; None when the budget is spent."""
    found = []
    needs = need.tolist()
    for pattern, left in _fill(needs, room.tolist(), limits.tolist(), conflict, budget):
        if budget.left < 0:
            return None
        if not _takes_more(pattern, left, needs, limits.tolist(), conflict):
            found.append(pattern)
    return None if budget.left < 0 else tuple(found)


def _fill(
    needs: Sequence[Sequence[int]],
    room: Sequence[int],
    limits: Sequence[int],
    conflict: Sequence[Sequence[bool]],
    budget: _Steps,
) -> Iterator[tuple[Pattern, Sequence[int]]]:
    """Every pattern in which the last shape takes all that the others leave, with what is left over."""
    last = len(needs) - 1
    stack: list[tuple[Pattern, Sequence[int]]] = [((), room)]
    while stack:
        pattern, left = stack.pop()
        shape = len(pattern)
        if shape > last:
            yield pattern, left
            continue
        most = limits[shape]
        if any(count and conflict[other][shape] for other, count in enumerate(pattern)):
            most = 0
        for amount, each in zip(left, needs[shape], strict=True):
            if each:
                most = min(most, amount // each)
        for count in range(most if shape == last else 0, most + 1):
            budget.left -= 1
            if budget.left < 0:
                return
            rest = [amount - count * each for amount, each in zip(left, needs[shape], strict=True)]
            stack.append(((*pattern, count), rest))


def _takes_more(
    pattern: Pattern,
    left: Sequence[int],
    needs: Sequence[Sequence[int]],
    limits: Sequence[int],
    conflict: Sequence[Sequence[bool]],
) -> bool:
    """Whether one more member of some shape would still fit."""
    return any(
        pattern[shape] < limits[shape]
        and not any(
            count and conflict[other][shape] and other != shape for other, count in enumerate(pattern)
        )
        and all(each <= amount for each, amount in zip(needs[shape], left, strict=True))
        for shape in range(len(pattern))
    )
