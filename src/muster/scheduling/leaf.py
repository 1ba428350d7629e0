"""One pod group (or lone pod) in one placement: members tried in their order, each on the best node.

One that does not fit does not stop the others, unless the group can no longer reach its minimum
(`PlacementFeasible`, KEP-4671).  In come the members still to place, a board and the rows of the placement;
the board has them placed afterwards.  Next: `tree.py`, which chooses among placements.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np

from muster.api.core import Pod
from muster.base.arrays import Float64, Int32
from muster.cluster.snapshot import Snapshot
from muster.framework.runner import Runner
from muster.framework.status import Status, Verdict
from muster.placement.assignment import UNPLACED, Assigner
from muster.placement.memory import Judgment
from muster.placement.shapes import ShapeKey
from muster.scheduling.board import Board, Findings, Outcome
from muster.scheduling.members import Cast, Member
from muster.scheduling.reasons import Shortfall, shortfall_of_fields, shortfall_of_filters

BIAS_WEIGHT = 1e6  # more than all scores of a node together


class Biased:
    """The judge, but for a bias by row that weighs more than any score.  Shapes: bias [N]."""

    def __init__(self, runner: Runner, bias: Float64) -> None:
        self._runner = runner
        self._bias = bias * BIAS_WEIGHT
        self.rows_changed = runner.rows_changed
        self.lay = runner.lay

    def judge(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> Judgment:
        """What the plugins say, the bias on top of the scores."""
        return self._biased(self._runner.judge(pod, snapshot, rows), rows)

    def recall(self, pod: Pod, shape: ShapeKey, snapshot: Snapshot, rows: Int32) -> Judgment:
        """The same by memory."""
        return self._biased(self._runner.recall(pod, shape, snapshot, rows), rows)

    def _biased(self, judgment: Judgment, rows: Int32) -> Judgment:
        return judgment._replace(score=judgment.score + np.where(judgment.feasible, self._bias[rows], 0.0))


class LeafTrial:
    """Places members of one leaf on a board that nobody else uses.

    `limit`: place no more than so many; None: all that fit.  `bias` [N] goes before the scores of nodes.
    `explain`: whether one that finds no room is told why, which costs as much as looking for it.
    `being_tried` is who is asked about when a plugin raises.
    """

    def __init__(
        self,
        cast: Cast,
        waiting: Sequence[Member],
        board: Board,
        runner: Runner,
        rows: Int32,
        *,
        limit: int | None = None,
        bias: Float64 | None = None,
        explain: bool = True,
    ) -> None:
        self.being_tried: Sequence[Member] = ()
        self._cast = cast
        self._waiting = waiting
        self._board = board
        self._runner = runner
        self._rows = rows
        self._explain = explain
        self._limit = len(waiting) if limit is None else min(limit, len(waiting))
        judge = runner if bias is None else Biased(runner, bias)
        self._assigner = Assigner(board.fork, judge, rows)
        self._before = cast.placed_count + len(board.placed(cast))
        self._placed: list[tuple[Member, int]] = []
        self._findings = Findings()

    def run(self) -> Outcome:
        """Try run after run of like neighbours, until all are tried, the limit is reached or hope is gone."""
        remaining = len(self._waiting)
        status = self._feasible(remaining)
        for alike in self._runs():
            if status.verdict is Verdict.UNSCHEDULABLE or len(self._placed) >= self._limit:
                break
            self.being_tried = alike
            for member, row in zip(alike, self._assign(alike).tolist(), strict=False):
                remaining -= 1
                if row != UNPLACED:
                    self._placed.append((member, row))
                    continue
                if self._explain:
                    self._findings.own_texts[member.key] = self._shortfall_of(member).text
                status = self._feasible(remaining)
                if status.verdict is Verdict.UNSCHEDULABLE:
                    break
            else:
                status = self._feasible(remaining)
        return self._conclude(status)

    def _runs(self) -> Iterator[list[Member]]:
        for _, run in groupby(
            self._waiting, key=lambda member: (self._shape(member), member.pod.status.nominated_node_name)
        ):
            yield list(run)

    def _shape(self, member: Member) -> ShapeKey:
        labels = self._runner.labels_read(self._board.fork.label_keys_read)
        return member.shape(metadata=self._runner.reads_metadata, labels=labels)

    def _assign(self, alike: Sequence[Member]) -> Int32:
        """A row for each of these like members; where one finds none, those after it find none either.

        Only as many as the limit still allows are looked at.
        """
        pod, shape = alike[0].pod, self._shape(alike[0])
        alike = alike[: self._limit - len(self._placed)]
        rows = np.full(len(alike), UNPLACED, dtype=np.int32)
        unsupported = self._runner.unsupported(pod)
        if unsupported:
            self._findings.shortfalls[shape] = shortfall_of_fields(pod, unsupported)
            return rows
        fork = self._board.fork
        prefer = fork.row_of_node.get(pod.status.nominated_node_name)
        if len(alike) > 1 and prefer is None and self._runner.can_count(pod, fork, self._rows):
            return self._assigner.assign_alike([member.pod for member in alike], shape)
        for index, member in enumerate(alike):
            row = self._assigner.assign_one(member.pod, shape, prefer=prefer)
            if row is None:
                break
            rows[index] = row
        return rows

    def _shortfall_of(self, member: Member) -> Shortfall:
        shape = self._shape(member)
        known = self._findings.shortfalls.get(shape)
        if known is None:
            filtered = self._runner.filter(member.pod, self._board.fork, self._rows)
            known = shortfall_of_filters(member.pod, filtered, self._board.fork, self._rows)
            self._findings.shortfalls[shape] = known
        return known

    def _feasible(self, remaining: int) -> Status:
        """What PlacementFeasible says; a lone pod has no minimum to miss."""
        if self._cast.group is None:
            return Status.success()
        assigned = self._before + len(self._placed)
        return self._runner.placement_feasible(self._cast.group, assigned=assigned, remaining=remaining)

    def _conclude(self, status: Status) -> Outcome:
        findings = self._findings
        for shortfall in findings.shortfalls.values():
            findings.rejectors |= shortfall.plugins
        if not self._rows.size:
            findings.rejectors.update(plugin.name for plugin in self._runner.filters)
        if status.plugin:
            findings.rejectors.add(status.plugin)
        if not status.ok:
            findings.culprit = self._cast
            if self._cast.group is not None:
                findings.group_texts[self._cast.group.key] = status.message
        self._board.add(self._cast, self._placed)
        return Outcome(status, self._board, findings)
