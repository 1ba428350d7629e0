"""One try at placing one entity: a pure decision on a frozen snapshot.

In come the entity's members, its group and the snapshot; out comes an `Attempt`: who goes where, or who is
told what.  Members are tried in the order of their creation, each on the best node; one that does not fit
does not stop the others, unless the group can no longer reach its minimum (`PlacementFeasible`, KEP-4671).
A lone pod goes the same way, without a group to ask.  Next: `cycle.py`, which commits.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np
from msgspec import Struct

from muster.base.arrays import Int32
from muster.base.errors import PluginError
from muster.cluster.snapshot import Snapshot
from muster.framework.groups import PodKey
from muster.framework.runner import Runner
from muster.framework.status import Status, Verdict
from muster.placement.assignment import UNPLACED, Assigner
from muster.placement.shapes import ShapeKey
from muster.scheduling.contradictions import find_contradiction
from muster.scheduling.members import Cast, Member
from muster.scheduling.reasons import Shortfall, shortfall_of_fields, shortfall_of_filters

UNSCHEDULABLE = "Unschedulable"
SCHEDULER_ERROR = "SchedulerError"


class Attempt(Struct, frozen=True):
    """What a try came to.

    `reason` is empty when the group's minimum is placed and there are `placements` to bind.  `own_texts` are
    of members tried without success; every other member that stays is told `message`.  `shortfalls` has one
    entry for each shape that found no room: by their pods events are judged.  `missing` is how many members
    more must find room, 0 where that cannot be said: members of several shapes may stand in each other's way.
    """

    placements: tuple[tuple[Member, str], ...] = ()
    reason: str = ""
    message: str = ""
    own_texts: dict[PodKey, str] = {}
    missing: int = 0
    rejectors: frozenset[str] = frozenset()
    shortfalls: tuple[Shortfall, ...] = ()


def attempt(cast: Cast, snapshot: Snapshot, runner: Runner) -> Attempt:
    """Try to place the waiting members of an entity; a plugin that raises makes an error of it."""
    waiting = cast.waiting()
    contradiction = find_contradiction(cast, waiting)
    if contradiction is not None:
        return Attempt(reason=SCHEDULER_ERROR, message=contradiction)
    if cast.group is not None and cast.group.unsupported:
        text = "; ".join(f"{field.path}: {field.why}" for field in cast.group.unsupported)
        return Attempt(reason=UNSCHEDULABLE, message=text)
    trial = _Trial(cast, waiting, snapshot, runner)
    try:
        return trial.run()
    except PluginError as error:
        return trial.fail(error)


class _Trial:
    """The state of one try: who was placed on the fork, who found no room and why."""

    def __init__(self, cast: Cast, waiting: Sequence[Member], snapshot: Snapshot, runner: Runner) -> None:
        self._cast = cast
        self._waiting = waiting
        self._runner = runner
        self._rows = snapshot.live_rows()
        self._fork = snapshot.fork()
        self._assigner = Assigner(self._fork, runner, self._rows)
        self._placements: list[tuple[Member, str]] = []
        self._being_tried: Sequence[Member] = ()
        self._shortfalls: dict[ShapeKey, Shortfall] = {}
        self._own_texts: dict[PodKey, str] = {}

    def run(self) -> Attempt:
        """Try run after run of like neighbours, until all are tried or the minimum is out of reach."""
        remaining = len(self._waiting)
        status = self._feasible(remaining)
        for alike in self._runs():
            if status.verdict is Verdict.UNSCHEDULABLE:
                break
            self._being_tried = alike
            for member, row in zip(alike, self._assign(alike).tolist(), strict=True):
                remaining -= 1
                if row != UNPLACED:
                    self._placements.append((member, self._fork.node_names[row]))
                    continue
                self._own_texts[member.key] = self._shortfall_of(member).text
                status = self._feasible(remaining)
                if status.verdict is Verdict.UNSCHEDULABLE:
                    break
            else:
                status = self._feasible(remaining)
        return self._conclude(status)

    def fail(self, error: PluginError) -> Attempt:
        """A plugin raised on one member: that one is told so, the others that another failed."""
        text = f"failed to schedule other pod from a pod group: {error}"
        own = {member.key: str(error) for member in self._being_tried[:1]}
        if self._cast.group is None:
            text = str(error)
        return Attempt(
            reason=SCHEDULER_ERROR, message=text, own_texts=own, rejectors=frozenset({error.plugin})
        )

    def _runs(self) -> Iterator[list[Member]]:
        for _, run in groupby(
            self._waiting, key=lambda member: (self._shape(member), member.pod.status.nominated_node_name)
        ):
            yield list(run)

    def _shape(self, member: Member) -> ShapeKey:
        return member.shape(metadata=self._runner.reads_metadata)

    def _assign(self, alike: Sequence[Member]) -> Int32:
        """A row for each of these like members; where one finds none, those after it find none either."""
        pod, shape = alike[0].pod, self._shape(alike[0])
        rows = np.full(len(alike), UNPLACED, dtype=np.int32)
        unsupported = self._runner.unsupported(pod)
        if unsupported:
            self._shortfalls[shape] = shortfall_of_fields(pod, unsupported)
            return rows
        prefer = self._fork.row_of_node.get(pod.status.nominated_node_name)
        if len(alike) > 1 and prefer is None and self._runner.can_count(pod, self._fork, self._rows):
            return self._assigner.assign_alike([member.pod for member in alike], shape)
        for index, member in enumerate(alike):
            row = self._assigner.assign_one(member.pod, shape, prefer=prefer)
            if row is None:
                break
            rows[index] = row
        return rows

    def _shortfall_of(self, member: Member) -> Shortfall:
        shape = self._shape(member)
        known = self._shortfalls.get(shape)
        if known is None:
            filtered = self._runner.filter(member.pod, self._fork, self._rows)
            known = self._shortfalls[shape] = shortfall_of_filters(
                member.pod, filtered, row_count=len(self._rows)
            )
        return known

    def _feasible(self, remaining: int) -> Status:
        """What PlacementFeasible says; a lone pod has no minimum to miss."""
        if self._cast.group is None:
            return Status.success()
        return self._runner.placement_feasible(
            self._cast.group, assigned=self._cast.placed_count + len(self._placements), remaining=remaining
        )

    def _conclude(self, status: Status) -> Attempt:
        shortfalls = tuple(self._shortfalls.values())
        rejectors = {plugin for shortfall in shortfalls for plugin in shortfall.plugins}
        if not self._rows.size:
            rejectors.update(plugin.name for plugin in self._runner.filters)
        if status.plugin:
            rejectors.add(status.plugin)
        placed = status.ok and bool(self._placements)
        return Attempt(
            placements=tuple(self._placements) if placed else (),
            reason="" if placed else UNSCHEDULABLE,
            message="" if placed else status.message,
            own_texts=self._own_texts,
            missing=self._missing(placed=placed),
            rejectors=frozenset(rejectors),
            shortfalls=shortfalls,
        )

    def _missing(self, *, placed: bool) -> int:
        if len({self._shape(member) for member in self._waiting}) != 1 or not self._shortfalls:
            return 0
        if placed or self._cast.group is None:
            return 1
        return max(1, self._cast.group.needed - self._cast.placed_count - len(self._placements))
