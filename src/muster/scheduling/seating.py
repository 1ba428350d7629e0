"""From counts per node to members on nodes: what an exact search found, put on a board and looked at again.

In come the question as it is now and the counts; out comes a board with the members placed, or None where
the world has changed meanwhile or a rule that the search did not know speaks against it.  Members that keep
rules about each other are tried in other orders here, too.  Next: `search.py`.
"""

from collections.abc import Iterator, Sequence
from itertools import islice, permutations

import numpy as np

from muster.base.arrays import Int64
from muster.cluster.snapshot import Snapshot
from muster.framework.runner import Runner
from muster.placement.packing import is_placement
from muster.scheduling.board import Board, Outcome
from muster.scheduling.leaf import LeafTrial
from muster.scheduling.members import Cast, Member
from muster.scheduling.searches import Lot, Question
from muster.scheduling.tree import TreeTrial

ORDERS_MAX = 24
FIRSTS_MAX = 24

Seats = dict[Lot, list[tuple[Member, int]]]


def seat(question: Question, counts: Int64, cast: Cast, snapshot: Snapshot, runner: Runner) -> Outcome | None:
    """Place members as counted [L, N], and after them the others that find room; None if that cannot be."""
    if not is_placement(question.problem, counts):
        return None
    board = Board(snapshot.fork())
    if question.problem.is_exact:
        placed: Seats | None = _place_at_once(question, counts, board.fork)
    else:
        board, placed = _place_in_turn(question, counts, snapshot, runner)
    if placed is None:
        return None
    leaves = {leaf.group.key: leaf for leaf in cast.leaves() if leaf.group is not None}
    for lot, seats in placed.items():
        board.add(leaves[lot.group], seats)
    occupied = np.flatnonzero(counts.any(axis=0))
    domain = next(d for d in question.problem.root.domains if np.isin(occupied, d).all())
    outcome = TreeTrial(runner).place_others(cast, board, question.rows[domain])
    return outcome if outcome.ok else None


def _place_at_once(question: Question, counts: Int64, fork: Snapshot) -> Seats:
    """The integers are all there is to check."""
    placed: Seats = {}
    for lot, members, here in zip(question.lots, question.members, counts, strict=True):
        rows = np.repeat(question.rows, here)
        chosen = members[: len(rows)]
        fork.place_many(tuple(member.pod for member in chosen), rows)
        placed[lot] = list(zip(chosen, rows.tolist(), strict=True))
    return placed


def _place_in_turn(
    question: Question, counts: Int64, snapshot: Snapshot, runner: Runner
) -> tuple[Board, Seats | None]:
    """Place one after the other; who is first may matter, so one of every lot and node is tried as that."""
    to_place: list[tuple[Lot, Member, int]] = []
    for lot, members, here in zip(question.lots, question.members, counts, strict=True):
        rows = np.repeat(question.rows, here).tolist()
        to_place += [(lot, member, row) for member, row in zip(members, rows, strict=False)]
    firsts = {(lot, row): index for index, (lot, _, row) in reversed(list(enumerate(to_place)))}
    board, placed = Board(snapshot.fork()), None
    for index in islice(sorted(firsts.values()), FIRSTS_MAX):
        board = Board(snapshot.fork())
        turns = [to_place[index], *to_place[:index], *to_place[index + 1 :]]
        placed = _place_one_by_one(question, turns, board.fork, runner)
        if placed is not None:
            break
    return board, placed


def _place_one_by_one(
    question: Question, to_place: Sequence[tuple[Lot, Member, int]], fork: Snapshot, runner: Runner
) -> Seats | None:
    """Ask the filters about each member; one that is refused is asked again after the others are there."""
    placed: Seats = {lot: [] for lot in question.lots}
    while to_place:
        refused = []
        for lot, member, row in to_place:
            if runner.filter(member.pod, fork, np.array([row], dtype=np.int32)).feasible[0]:
                fork.place(member.pod, row)
                placed[lot].append((member, row))
            else:
                refused.append((lot, member, row))
        if len(refused) == len(to_place):
            return None
        to_place = refused
    return placed


def try_other_orders(question: Question, cast: Cast, snapshot: Snapshot, runner: Runner) -> Outcome | None:
    """Place a pod group shape by shape in every order but that of creation; the first that goes well.

    For members that keep rules about each other: the first may need the second to be there before it.
    """
    created = cast.waiting()
    for waiting, domain in islice(_orders(question, created), 0 if cast.is_composite else ORDERS_MAX):
        board = Board(snapshot.fork())
        outcome = LeafTrial(cast, waiting, board, runner, question.rows[domain]).run()
        if outcome.ok and board.placed(cast):
            return outcome
    return None


def _orders(question: Question, created: Sequence[Member]) -> Iterator[tuple[list[Member], Int64]]:
    """The members in every order of their shapes, that of the last first, in every domain.

    Not in the order of creation, if they were created shape by shape.
    """
    for order in permutations(reversed(range(len(question.lots)))):
        members = [member for index in order for member in question.members[index]]
        if members != list(created):
            for domain in question.problem.root.domains:
                yield members, domain
