"""A packing problem in integers: which members of unlike shapes may share which nodes, and an answer to it.

`Packing` is what rules say of nodes and shapes, `Problem` adds which members there are and which must be
placed where, `Answer` is what a search came to.  Checking an answer is arithmetic on integers and trusts no
solver.  In come rows of a snapshot and one pod per shape; next: `patterns.py` and `exact.py`, which solve.
Axes: S shapes, L lots, N nodes (the rows asked about), Q columns of amounts.
"""

from collections.abc import Sequence
from enum import Enum

import numpy as np
from msgspec import Struct

from muster.base.arrays import Bool, Int64
from muster.placement import neighbours, parts
from muster.placement.neighbours import Rule
from muster.placement.parts import Part


class Packing(Struct, frozen=True):
    """What members may share a node: amounts they use up, and shapes that exclude each other there.

    Members are allowed together on a node where each of them is `feasible` alone if and only if they need no
    more than there is `room`, and no two of them are of shapes in `conflict` (on the diagonal: one at most).
    `rules` are about whole domains.

    Shapes   room [N, Q]; need [S, Q]; conflict [S, S], symmetric; feasible [S, N].
    Units    whatever the rule counts; int64, never floats.
    """

    room: Int64
    need: Int64
    conflict: Bool
    feasible: Bool
    rules: tuple[Rule, ...] = ()


class Problem(Struct, frozen=True):
    """Place what the root part needs; of each lot (members of one shape in one group) at most `available`.

    Shapes   shape_of_lot, available [L].
    `is_exact`: the packing states every rule; else it leaves some out, and only "impossible" follows from it.
    """

    packing: Packing
    shape_of_lot: Int64
    available: Int64
    root: Part
    is_exact: bool

    @property
    def available_of_shape(self) -> Int64:
        """[S] members of each shape in all lots."""
        total = np.zeros(len(self.packing.need), dtype=np.int64)
        np.add.at(total, self.shape_of_lot, self.available)
        return total


def group_problem(
    packing: Packing, available: Int64, *, needed: int, domains: tuple[Int64, ...], is_exact: bool
) -> Problem:
    """Place at least `needed` members of one group, all in one of the domains, those preferred first.

    Shapes   available [S]; each domain an array of indices into N, ascending.
    """
    lots = np.arange(len(available))
    root = Part(needed, domains, (0,) * len(domains), lots=tuple(lots.tolist()))
    return Problem(packing, lots, available, root, is_exact)


class Verdict(Enum):
    """What a search can come to."""

    FOUND = "found"
    IMPOSSIBLE = "impossible"
    GAVE_UP = "gave up"


class Answer(Struct, frozen=True):
    """A verdict; where one was found, members of each lot on each node.

    Shapes   counts [L, N].
    `effort` says after how much a search was given up, for people: "250 ms".
    """

    verdict: Verdict
    counts: Int64 | None = None
    effort: str = ""


def no_rule(shape_count: int, node_count: int) -> Packing:
    """A packing that allows everything."""
    return Packing(
        room=np.zeros((node_count, 0), dtype=np.int64),
        need=np.zeros((shape_count, 0), dtype=np.int64),
        conflict=np.zeros((shape_count, shape_count), dtype=np.bool_),
        feasible=np.ones((shape_count, node_count), dtype=np.bool_),
    )


def combine(packings: Sequence[Packing]) -> Packing:
    """All of these rules at once; at least one is given."""
    return Packing(
        room=np.concatenate([packing.room for packing in packings], axis=1),
        need=np.concatenate([packing.need for packing in packings], axis=1),
        conflict=np.logical_or.reduce([packing.conflict for packing in packings]),
        feasible=np.logical_and.reduce([packing.feasible for packing in packings]),
        rules=tuple(rule for packing in packings for rule in packing.rules),
    )


def copies_alone(packing: Packing, available: Int64) -> Int64:
    """[S, N] how many members of one shape a node takes when it takes no other shape."""
    room = np.maximum(packing.room, 0)
    copies = np.where(packing.feasible, available[:, np.newaxis], 0)
    for shape, need in enumerate(packing.need):
        asked = np.flatnonzero(need > 0)
        if asked.size:
            copies[shape] = np.minimum(copies[shape], (room[:, asked] // need[asked]).min(axis=1))
    alone = np.diag(packing.conflict)
    copies[alone] = np.minimum(copies[alone], 1)
    return copies


def may_hold(problem: Problem, domain: int) -> bool:
    """Whether this domain of the root is enough by mere counting; False: there is no placement in it."""
    copies = copies_alone(problem.packing, problem.available_of_shape)[problem.shape_of_lot]
    return parts.may_hold(problem.root, domain, copies, problem.available)


def is_placement(problem: Problem, counts: Int64) -> bool:
    """Tell whether these counts [L, N] break no rule of the problem and are what the root needs."""
    packing = problem.packing
    if (counts < 0).any() or (counts.sum(axis=1) > problem.available).any():
        return False
    of_shape = np.zeros(packing.feasible.shape, dtype=np.int64)
    np.add.at(of_shape, problem.shape_of_lot, counts)
    if (of_shape[~packing.feasible] > 0).any():
        return False
    used = of_shape.T @ packing.need
    over = (used > packing.room) & (used > 0)
    if over.any():
        return False
    there = of_shape > 0
    together = there.astype(np.int64) @ there.T.astype(np.int64) > 0
    np.fill_diagonal(together, (of_shape > 1).any(axis=1))
    if (together & packing.conflict).any():
        return False
    if not all(neighbours.allows(rule, of_shape) for rule in packing.rules):
        return False
    return parts.is_placed(problem.root, counts)


def is_no_easier(problem: Problem, than: Problem) -> bool:
    """Tell whether every placement for `problem` would be one for `than`: what was impossible then is now.

    Both speak of the same nodes, shapes and lots in the same order.
    """
    new, old = problem.packing, than.packing
    if new.room.shape != old.room.shape or new.need.shape != old.need.shape:
        return False
    if not np.array_equal(problem.shape_of_lot, than.shape_of_lot):
        return False
    return (
        bool((new.need == old.need).all())
        and bool((np.maximum(new.room, 0) <= np.maximum(old.room, 0)).all())
        and bool((old.conflict <= new.conflict).all())
        and len(new.rules) == len(old.rules)
        and all(map(neighbours.is_equal, new.rules, old.rules))
        and bool((new.feasible <= old.feasible).all())
        and bool((problem.available <= than.available).all())
        and parts.is_no_easier(problem.root, than.root)
    )
