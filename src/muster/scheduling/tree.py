"""A group, or a tree of them, on a board: candidate placements, each on a branch of its own, the best kept.

In come a cast (a pod group, a composite group with its children, or a lone pod), rows and a board; out comes
an `Outcome`.  What a group is tried in is what the generator plugins say (KEP-5732), inside the rows of its
parent; what is chosen is what the placement scores say, of equals the one named first.  Next: `attempt.py`.
"""

from collections.abc import Sequence

import numpy as np

from muster.base.arrays import Float64, Int32
from muster.cluster.snapshot import Snapshot
from muster.framework.groups import Group
from muster.framework.points import PlacementTotals
from muster.framework.runner import Runner
from muster.framework.status import Status
from muster.placement.domains import Placements
from muster.scheduling.board import Board, Findings, Outcome
from muster.scheduling.contradictions import pinned_members
from muster.scheduling.leaf import LeafTrial
from muster.scheduling.members import Cast, Member
from muster.scheduling.room import are_enough, find_room, score_by_counting


class TreeTrial:
    """One try at placing the waiting members of a root."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._leaf_trial: LeafTrial | None = None

    @property
    def being_tried(self) -> Sequence[Member]:
        """Members that were asked about last, should a plugin have raised."""
        return self._leaf_trial.being_tried if self._leaf_trial is not None else ()

    def place(self, cast: Cast, board: Board, rows: Int32) -> Outcome:
        """Place what can be placed of this group inside these rows; the board given stays as it is."""
        group = cast.group
        if group is None or not rows.size:
            return self._place_in(cast, board, rows)
        pinned = [
            *pinned_members(cast, board.fork),
            *((member.pod, row) for member, row in board.placed(cast)),
        ]
        placements = self._runner.placements(group, board.fork, rows, pinned=pinned)
        if isinstance(placements, Status):
            return self._refuse(cast, board, placements)
        if placements.count == 0:
            return self._refuse(cast, board, Status.unschedulable(_nowhere(group, board.fork, rows)))
        if placements.count == 1:
            outcome = self._place_in(cast, board, placements.rows_of(0))
            return outcome if placements.names[0] == "" else _in_words(cast, outcome, placements, 0)
        return self._place_in_best(cast, group, board, placements)

    def _refuse(self, cast: Cast, board: Board, status: Status) -> Outcome:
        findings = Findings()
        findings.rejectors.update((status.plugin,) if status.plugin else self._runner.generators)
        findings.culprit = cast
        return Outcome(status, board, findings)

    def _place_in(self, cast: Cast, board: Board, rows: Int32) -> Outcome:
        """Place the group in these very rows."""
        waiting = still_waiting(cast, board)
        self._leaf_trial = LeafTrial(cast, waiting, board.branch(), self._runner, rows)
        return self._leaf_trial.run()

    def _place_in_best(self, cast: Cast, group: Group, board: Board, placements: Placements) -> Outcome:
        """Weigh the placements by counting where counting answers, else by a trial of each that may do."""
        runner = self._runner
        waiting = still_waiting(cast, board)
        before = cast.placed_count + len(board.placed(cast))
        room = find_room(waiting, board.fork, placements, runner)
        enough = are_enough(group, room.takes + before, runner) & (room.takes > 0)
        if not enough.any():
            nearest = int(np.argmax(room.takes))
            outcome = self._place_in(cast, board, placements.rows_of(nearest))
            return _in_words(cast, outcome, placements, nearest)
        roomy = enough & (room.holds >= group.needed)  # others may come where members have ended
        enough = roomy if roomy.any() else enough
        candidates = placements.keep(enough)
        if not room.is_exact:
            return self._try_each(cast, group, board, candidates, placements)
        scores = score_by_counting(group, room, board.fork, placements, before=before, runner=runner)
        best = int(np.argmax(np.where(enough, scores, -np.inf)))
        outcome = self._place_in(cast, board, placements.rows_of(best))
        return outcome if outcome.ok else self._try_each(cast, group, board, candidates, placements)

    def _try_each(
        self, cast: Cast, group: Group, board: Board, candidates: Placements, everything: Placements
    ) -> Outcome:
        """Try the group in every candidate and keep the best of those in which it fits."""
        fitting: list[tuple[int, Outcome]] = []
        failed: list[tuple[int, Outcome]] = []
        for index in range(candidates.count):
            outcome = self._place_in(cast, board, candidates.rows_of(index))
            if outcome.is_error:
                return outcome
            fits = outcome.ok and len(outcome.board.all_placed()) > len(board.all_placed())
            (fitting if fits else failed).append((index, outcome))
        if not fitting:
            index, outcome = max(failed, key=lambda pair: len(pair[1].board.all_placed()))
            name = candidates.names[index]
            return _in_words(cast, outcome, everything, everything.names.index(name))
        scores = self._score(cast, group, fitting, candidates)
        return fitting[int(np.argmax(scores))][1]

    def _score(
        self, cast: Cast, group: Group, fitting: Sequence[tuple[int, Outcome]], candidates: Placements
    ) -> Float64:
        forks = [(outcome.board.fork, candidates.rows_of(index)) for index, outcome in fitting]
        members = [cast.placed_count + len(outcome.board.all_placed()) for _, outcome in fitting]
        totals = PlacementTotals(
            snapshot=forks[0][0],
            requested=np.array([fork.requested[rows].sum(axis=0, dtype=np.float64) for fork, rows in forks]),
            allocatable=np.array(
                [fork.allocatable[rows].sum(axis=0, dtype=np.float64) for fork, rows in forks]
            ),
            member_count=np.array(members, dtype=np.int64),
        )
        return self._runner.score_placements(group, totals)


def still_waiting(cast: Cast, board: Board) -> list[Member]:
    """Members of a leaf that are not on the board yet, in the order in which they are tried."""
    placed = {member.key for member, _ in board.placed(cast)}
    return [member for member in cast.waiting() if member.key not in placed]


def _nowhere(group: Group, snapshot: Snapshot, rows: Int32) -> str:
    keys = " and ".join(group.topology_keys)
    nodes = "1 node has" if rows.size == 1 else f"{rows.size} nodes have"
    return f"no feasible placements found: none of {nodes} the label {keys}"


def _in_words(cast: Cast, outcome: Outcome, placements: Placements, nearest: int) -> Outcome:
    """Say on a refusal how many placements there are, and of which one the reason speaks."""
    if outcome.ok or outcome.is_error:
        return outcome
    name = placements.names[nearest]
    text = (
        f"0/{placements.count} placements are available, first placement status ({name}): "
        f"{outcome.status.message}"
    )
    status = Status(outcome.status.verdict, text, outcome.status.plugin)
    if cast.group is not None:
        outcome.findings.group_texts[cast.group.key] = text
    return Outcome(status, outcome.board, outcome.findings)
