"""A complete search with a bound: who goes where, for gangs with claims for volumes and devices.

The integer program does not know which volumes and devices there are for whom.  But rules about them only
narrow: whoever is refused stays refused when others are placed, so a part of a placement is one, too, and the
order does not matter.  Of a tree every choice of groups and their domains is tried, but for pod groups that
find no place alone.  In come a question and its cast; out comes a board with the minimum on it, that there is
none, or that nobody knows.  Next: `search.py`.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from muster.base.arrays import Bool, Int32
from muster.cluster.snapshot import Snapshot
from muster.framework.runner import Runner
from muster.placement.packing import Verdict
from muster.placement.parts import Part
from muster.scheduling.board import Board, Outcome
from muster.scheduling.members import Cast, Member
from muster.scheduling.searches import Question
from muster.scheduling.tree import TreeTrial

WORK_MAX = 250_000  # rows judged
WORK_EACH = 100  # what a judgement of few rows costs, in rows

Places = tuple[tuple[int, Member, int], ...]  # lot, member, row


class _Quota(NamedTuple):
    """So many members of these lots are needed on these rows: one pod group in one of its domains."""

    needed: int
    lots: tuple[int, ...]
    rows: Int32


Plan = tuple[_Quota, ...]


class _GaveUp(Exception):
    """The work that may be done is done."""


def backtrack(question: Question, cast: Cast, snapshot: Snapshot, runner: Runner) -> Outcome | Verdict:
    """Place the minimum of a pod group, or of a tree of them, then whoever else finds room.

    IMPOSSIBLE or GAVE_UP where that is what it comes to.
    """
    found = _descend(question, snapshot, runner)
    if isinstance(found, Verdict):
        return found
    leaves = {leaf.group.key: leaf for leaf in cast.leaves() if leaf.group is not None}
    board = Board(snapshot.fork())
    for lot, member, row in found.places:
        board.fork.place(member.pod, row)
        board.add(leaves[question.lots[lot].group], [(member, row)])
    outcome = TreeTrial(runner).place_others(cast, board, found.rows)
    return outcome if outcome.ok else Verdict.GAVE_UP


def judge(question: Question, snapshot: Snapshot, runner: Runner) -> Verdict:
    """Whether the minimum has a place, on a snapshot that may be another than the one asked about."""
    found = _descend(question, snapshot, runner)
    return found if isinstance(found, Verdict) else Verdict.FOUND


class _Found(NamedTuple):
    """Places for the minimum, and the rows of the domain of the root."""

    places: Places
    rows: Int32


def _descend(question: Question, snapshot: Snapshot, runner: Runner) -> _Found | Verdict:
    """The first placement of the minimum; IMPOSSIBLE or GAVE_UP where there is none to be had."""
    descent = _Descent(question, snapshot, runner)
    try:
        for rows, plan in descent.plans():
            places = descent.place(plan)
            if places is not None:
                return _Found(places, rows)
    except _GaveUp:
        return Verdict.GAVE_UP
    return Verdict.GAVE_UP if descent.is_unsure else Verdict.IMPOSSIBLE


class _Descent:
    """Depth first: the lot with the fewest rows left goes next, the row with the best score first.

    A row that was tried for a lot in vain is out of the question for the whole lot from there on: its members
    are alike, and one of them would be there in any placement that has one there.
    """

    def __init__(self, question: Question, snapshot: Snapshot, runner: Runner) -> None:
        self.is_unsure = False  # some filter did not get to the end of its own search
        self._question = question
        self._snapshot = snapshot
        self._runner = runner
        self._work_left = WORK_MAX
        self._alone: dict[tuple[int, int], bool] = {}  # by first lot and domain of a pod group in a tree

    def plans(self) -> Iterator[tuple[Int32, Plan]]:
        """Which groups of a tree are placed, and each in which domain, with the rows of the root's.

        Raises   _GaveUp.
        """
        root = self._question.problem.root
        for index, domain in enumerate(root.domains):
            for plan in self._plans_in(root, index):
                yield self._question.rows[domain], plan

    def _plans_in(self, part: Part, index: int) -> Iterator[Plan]:
        """Every way to have what a part needs in this domain of its own."""
        if part.parts:
            yield from self._choose(part.parts, part.needed, index)
        elif part.needed <= 0:
            yield ()
        else:
            yield (_Quota(part.needed, part.lots, self._question.rows[part.domains[index]]),)

    def _choose(self, parts: Sequence[Part], needed: int, above: int) -> Iterator[Plan]:
        """Every way to have so many of these parts inside this domain of the part above."""
        if needed <= 0:
            yield ()
        if not 0 < needed <= len(parts):
            return
        self._pay(WORK_EACH)
        first, *others = parts
        for index in first.domains_in(above):
            if self._may_be_in(first, index):
                for plan in self._plans_in(first, index):
                    yield from ((*plan, *rest) for rest in self._choose(others, needed - 1, above))
        yield from self._choose(others, needed, above)

    def _may_be_in(self, part: Part, index: int) -> bool:
        """Whether a pod group could be placed in this domain if it were alone."""
        if part.parts or part.needed <= 0:
            return True
        if not part.lots:
            return False
        key = (part.lots[0], index)
        if key not in self._alone:
            self._alone[key] = any(self.place(plan) is not None for plan in self._plans_in(part, index))
        return self._alone[key]

    def place(self, plan: Plan) -> Places | None:
        """Places for all that a plan needs; None: there are none.  Raises   _GaveUp."""
        self._pay(WORK_EACH)
        rows_of = {lot: quota.rows for quota in plan for lot in quota.lots}
        return self._place(self._snapshot.fork(), plan, rows_of, dict.fromkeys(rows_of, 0))

    def _place(
        self, fork: Snapshot, plan: Plan, rows_of: Mapping[int, Int32], placed: Mapping[int, int]
    ) -> Places | None:
        plan = tuple(quota for quota in plan if sum(placed[lot] for lot in quota.lots) < quota.needed)
        if not plan:
            return ()
        rows_of = {
            lot: self._feasible(fork, lot, placed[lot], rows_of[lot])
            for quota in plan
            for lot in quota.lots
            if lot in rows_of
        }
        while True:
            rows_of = {lot: rows for lot, rows in rows_of.items() if rows.size}
            if any(self._is_short(quota, rows_of, placed) for quota in plan):
                return None
            lot = min(rows_of, key=lambda each: (len(rows_of[each]), each))
            member = self._question.members[lot][placed[lot]]
            row = self._best(fork, member, rows_of[lot])
            trial = fork.fork()
            trial.place(member.pod, row)
            found = self._place(trial, plan, rows_of, {**placed, lot: placed[lot] + 1})
            if found is not None:
                return ((lot, member, row), *found)
            rows_of[lot] = rows_of[lot][rows_of[lot] != row]

    def _is_short(self, quota: _Quota, rows_of: Mapping[int, Int32], placed: Mapping[int, int]) -> bool:
        """Whether there are too few members left that could be anywhere."""
        members = self._question.members
        most = (len(members[lot]) if lot in rows_of else placed[lot] for lot in quota.lots)
        return sum(most) < quota.needed

    def _feasible(self, fork: Snapshot, lot: int, placed: int, rows: Int32) -> Int32:
        """Those of the rows that take one more of the lot; none when all of it is placed."""
        members = self._question.members[lot]
        if placed == len(members):
            return rows[:0]
        self._pay(len(rows))
        filtered = self._runner.filter(members[placed].pod, fork, rows)
        self.is_unsure |= any(named.reason.is_unsure for named in filtered.reasons)
        feasible: Bool = filtered.feasible
        return rows[feasible]

    def _best(self, fork: Snapshot, member: Member, rows: Int32) -> int:
        self._pay(len(rows))
        judgment = self._runner.judge(member.pod, fork, rows)
        return int(rows[np.argmax(judgment.score)])

    def _pay(self, rows: int) -> None:
        self._work_left -= max(rows, WORK_EACH)
        if self._work_left < 0:
            raise _GaveUp


def is_small_enough(members: Sequence[Sequence[Member]], rows: Int32) -> bool:
    """Whether there is work enough for a single way down, so that it is worth while to begin."""
    depth = sum(len(alike) for alike in members)
    return depth * (len(members) + 1) * max(len(rows), WORK_EACH) <= WORK_MAX
