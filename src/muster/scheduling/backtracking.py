"""A complete search with a bound: who goes where, for gangs with claims for volumes and devices.

The integer program does not know which volumes and devices there are for whom.  But rules about them only
narrow: whoever is refused stays refused when others are placed, so a part of a placement is one, too, and the
order does not matter.  In come a question and its cast; out comes a board with the minimum on it, that there
is none, or that nobody knows.  Next: `search.py`.
"""

from collections.abc import Sequence

import numpy as np

from muster.base.arrays import Bool, Int32
from muster.cluster.snapshot import Snapshot
from muster.framework.runner import Runner
from muster.placement.packing import Verdict
from muster.scheduling.board import Board, Outcome
from muster.scheduling.members import Cast, Member
from muster.scheduling.searches import Question
from muster.scheduling.tree import TreeTrial

WORK_MAX = 250_000  # rows judged
WORK_EACH = 100  # what a judgement of few rows costs, in rows

Places = tuple[tuple[int, Member, int], ...]  # lot, member, row


class _GaveUp(Exception):
    """The work that may be done is done."""


def backtrack(question: Question, cast: Cast, snapshot: Snapshot, runner: Runner) -> Outcome | Verdict:
    """Place the minimum of a pod group in one of its domains, then whoever else finds room.

    IMPOSSIBLE or GAVE_UP where that is what it comes to.
    """
    descent = _Descent(question, runner)
    for domain in question.problem.root.domains:
        rows = question.rows[domain]
        try:
            places = descent.place(snapshot.fork(), rows, question.problem.root.needed)
        except _GaveUp:
            return Verdict.GAVE_UP
        if places is not None:
            board = Board(snapshot.fork())
            for _, member, row in places:
                board.fork.place(member.pod, row)
            board.add(cast, ((member, row) for _, member, row in places))
            outcome = TreeTrial(runner).place_others(cast, board, rows)
            return outcome if outcome.ok else Verdict.GAVE_UP
    return Verdict.GAVE_UP if descent.is_unsure else Verdict.IMPOSSIBLE


class _Descent:
    """Depth first: the lot with the fewest rows left goes next, the row with the best score first.

    A row that was tried for a lot in vain is out of the question for the whole lot from there on: its members
    are alike, and one of them would be there in any placement that has one there.
    """

    def __init__(self, question: Question, runner: Runner) -> None:
        self.is_unsure = False  # some filter did not get to the end of its own search
        self._question = question
        self._runner = runner
        self._work_left = WORK_MAX

    def place(self, fork: Snapshot, rows: Int32, needed: int) -> Places | None:
        """Places for so many members inside these rows; None: there are none.  Raises   _GaveUp."""
        lots = range(len(self._question.members))
        return self._place(fork, dict.fromkeys(lots, rows), dict.fromkeys(lots, 0), needed)

    def _place(
        self, fork: Snapshot, rows_of: dict[int, Int32], placed: dict[int, int], needed: int
    ) -> Places | None:
        if needed <= 0:
            return ()
        rows_of = {lot: self._feasible(fork, lot, placed[lot], rows) for lot, rows in rows_of.items()}
        while True:
            rows_of = {lot: rows for lot, rows in rows_of.items() if rows.size}
            if sum(len(self._question.members[lot]) - placed[lot] for lot in rows_of) < needed:
                return None
            lot = min(rows_of, key=lambda each: (len(rows_of[each]), each))
            member = self._question.members[lot][placed[lot]]
            row = self._best(fork, member, rows_of[lot])
            trial = fork.fork()
            trial.place(member.pod, row)
            found = self._place(trial, rows_of, {**placed, lot: placed[lot] + 1}, needed - 1)
            if found is not None:
                return ((lot, member, row), *found)
            rows_of[lot] = rows_of[lot][rows_of[lot] != row]

    def _feasible(self, fork: Snapshot, lot: int, placed: int, rows: Int32) -> Int32:
        """Those of the rows that take one more of the lot; none when all of it is placed."""
        members = self._question.members[lot]
        if placed == len(members):
            return rows[:0]
        self._pay(rows)
        filtered = self._runner.filter(members[placed].pod, fork, rows)
        self.is_unsure |= any(named.reason.is_unsure for named in filtered.reasons)
        feasible: Bool = filtered.feasible
        return rows[feasible]

    def _best(self, fork: Snapshot, member: Member, rows: Int32) -> int:
        self._pay(rows)
        judgment = self._runner.judge(member.pod, fork, rows)
        return int(rows[np.argmax(judgment.score)])

    def _pay(self, rows: Int32) -> None:
        self._work_left -= max(len(rows), WORK_EACH)
        if self._work_left < 0:
            raise _GaveUp


def is_small_enough(members: Sequence[Sequence[Member]], rows: Int32) -> bool:
    """Whether there is work enough for a single way down, so that it is worth while to begin."""
    depth = sum(len(alike) for alike in members)
    return depth * (len(members) + 1) * max(len(rows), WORK_EACH) <= WORK_MAX
