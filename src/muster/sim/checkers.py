"""What must hold after every step of a simulation, judged on what the API says.

`NodeRoom`, `NoTornGangs`, `TrueStaysTrue` and `SaysWhy` look at the API, `NothingForgotten` compares the
scheduler's queue with what it was told (`told.py`, where decisions are judged), `RoomIsUsed` and
`ScheduledIsSaid` are asked once churn and faults have stopped.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from typing import Protocol

from muster.api.core import Pod
from muster.base.errors import InvariantViolated
from muster.cluster.invariants import check_state
from muster.scheduling.scheduler import Scheduler
from muster.sim.client import SCHEDULER_NAMES
from muster.sim.told import Told
from muster.sim.view import (
    Amounts,
    ClusterView,
    Object,
    condition_of,
    copies,
    counts_for,
    gpus_of,
    group_of,
    is_gated,
    is_placed,
    is_waiting,
    min_count_of,
    name_of,
    node_of,
    requests_of,
    share_of,
    takes_pods,
    uid_of,
)

Look = Callable[[], ClusterView]


class SchedulerWorld(Protocol):
    """Where the scheduler is that is being judged."""

    @property
    def scheduler(self) -> Scheduler | None:
        """The one at work, None while it is stopped."""
        ...

    @property
    def is_settled(self) -> bool:
        """Whether it has nothing left to do at this moment."""
        ...


class NothingForgotten:
    """Every pod to be placed is in exactly one queue, prepared or on the wire, and the books add up.

    Judged against what the scheduler has been told, whenever it has nothing left to do at this moment.
    """

    name = "nothing forgotten"

    def __init__(self, world: SchedulerWorld, told: Told) -> None:
        self._world = world
        self._told = told

    def check(self, now_s: float) -> Iterator[str]:
        """Pods in no queue or in two, queues nobody will come back to, sums that are not the parts'."""
        scheduler = self._world.scheduler
        if scheduler is None or not self._world.is_settled:
            return
        report = scheduler.report()
        queued = Counter(key for pending in report.pending for key in pending.waiting)
        on_the_wire = {binding.uid for binding in report.bindings} | self._told.accepted
        on_the_wire |= {preparation.uid for preparation in report.preparations}
        for key, pod in self._told.pods.items():
            to_place = self._is_to_place(pod) and pod.metadata.uid not in on_the_wire
            if to_place and queued[key] != 1:
                yield f"pod {key} is in {queued[key]} queues"
            elif not to_place and queued[key]:
                yield f"pod {key} is queued though it is bound, on the wire, or not to be placed"
        for pending in report.pending:
            if pending.place in ("active", "arriving"):
                yield f"{pending.kind} {pending.key} is {pending.place} and nobody tries it"
            if pending.place in ("backoff", "unschedulable") and (pending.retry_at_s or 0) < now_s:
                yield f"{pending.kind} {pending.key} is in {pending.place}, due at {pending.retry_at_s}"
        try:
            check_state(scheduler.state)
        except InvariantViolated as error:
            yield str(error)

    @staticmethod
    def _is_to_place(pod: Pod) -> bool:
        ours = pod.spec.scheduler_name in SCHEDULER_NAMES
        return ours and not (pod.spec.node_name or pod.is_terminal or pod.is_terminating)


class NodeRoom:
    """No node is given more than it has.

    A node that shrank under its pods is not our doing: judged is that no pod came where there is no room, and
    that no kubelet refused one at once for lack of it.  Only where the scheduler is told at once;
    `RoomAsTold` judges everywhere.
    """

    name = "node room"

    def __init__(self, look: Look) -> None:
        self._look = look
        self._known: dict[str, set[str]] = {}

    def check(self, now_s: float) -> Iterator[str]:
        """Nodes that were given a pod since the last step and are over their room."""
        view = self._look()
        for name, pod in view.pods.items():
            reason = str(pod["status"].get("reason") or "")
            if reason.startswith("OutOf") and uid_of(pod) not in self._known.get(node_of(pod), ()):
                yield f"pod {name} was refused by node {node_of(pod)}: {reason}"
        for name, room in view.room_left.items():
            here = {uid_of(pod) for pod in view.pods_on.get(name, [])}
            arrived = here - self._known.get(name, set())
            self._known[name] = self._known.get(name, set()) | here
            over = {resource: left for resource, left in room.items() if left < 0}
            if arrived and over:
                yield f"node {name} is over by {_shortage(over)} with {len(here)} pods"


class EverBound:
    """Which members of a group have ever been bound, whatever became of them."""

    def __init__(self) -> None:
        self._pods: dict[str, set[str]] = {}

    def count(self, group: Object, members: Iterable[Object], also: Set[str] = frozenset()) -> int:
        """Take note of those bound now; give how many ever were, those in `also` included."""
        pods = self._pods.setdefault(uid_of(group), set())
        pods.update(uid_of(pod) for pod in members if node_of(pod))
        return len(pods | also)


class NoTornGangs:
    """No two gangs hold parts of what the other needs.

    A gang that holds something though fewer than minCount members were ever bound, while nothing is on the
    wire, is torn; two of them are the deadlock that Muster exists to end.  Only refused binds may tear one.
    Not torn by us: one that a decision had made whole by what the scheduler had been told (a raised minCount
    may come late), and one made again over members that are bound already.
    """

    name = "no torn gangs"

    def __init__(self, look: Look, *, is_quiet: Callable[[], bool], ever_whole: Set[str]) -> None:
        self._look = look
        self._is_quiet = is_quiet
        self._ever_whole = ever_whole  # uids of groups
        self._ever_bound = EverBound()
        self._known: set[str] = set()
        self._made_over: set[str] = set()

    def check(self, now_s: float) -> Iterator[str]:
        """Torn gangs, of which there should be none."""
        view = self._look()
        torn = []
        for name, group in view.groups.items():
            members, minimum = view.members(name), min_count_of(group) or 1
            ever_bound = self._ever_bound.count(group, members)
            is_new = uid_of(group) not in self._known
            self._known.add(uid_of(group))
            if ever_bound and is_new:
                self._made_over.add(uid_of(group))
            if 0 < ever_bound < minimum and uid_of(group) not in self._made_over | self._ever_whole:
                torn.append(f"{name} holds {sum(map(is_placed, members))} of {minimum}")
        if torn and self._is_quiet():
            yield "; ".join(torn)


class TrueStaysTrue:
    """PodGroupInitiallyScheduled turns True only when minCount binds were accepted, and never back.

    A minCount raised meanwhile may not have been seen yet: the least that the scheduler was ever told counts.
    So do members bound and gone between two looks, if it was told of them.
    """

    name = "true stays true"

    def __init__(
        self, look: Look, *, least_needed: Mapping[str, int], ever_bound: Mapping[str, Set[str]] | None = None
    ) -> None:
        self._look = look
        self._least_needed = least_needed  # by uid of the group
        self._told_bound = {} if ever_bound is None else ever_bound  # by uid of the group: uids of pods
        self._true: set[str] = set()
        self._ever_bound = EverBound()

    def check(self, now_s: float) -> Iterator[str]:
        """Groups whose condition says what is not so, or took something back."""
        view = self._look()
        for name, group in view.groups.items():
            told = self._told_bound.get(uid_of(group), frozenset())
            bound = self._ever_bound.count(group, view.members(name), told)
            minimum = self._least_needed.get(uid_of(group), min_count_of(group) or 1)
            condition = condition_of(group, "PodGroupInitiallyScheduled")
            if condition is not None and condition["status"] == "True":
                if uid_of(group) not in self._true and bound < minimum:
                    yield f"group {name} is True with {bound} of {minimum} bound"
                self._true.add(uid_of(group))
            elif uid_of(group) in self._true:
                yield f"group {name} was True and is {condition and condition['status']}"


class ScheduledIsSaid:
    """Once all is calm, a group whose minimum is placed says so."""

    name = "scheduled is said"

    def __init__(self, look: Look) -> None:
        self._look = look

    def check(self, now_s: float) -> Iterator[str]:
        """Groups that are placed and not True."""
        view = self._look()
        for name, group in view.groups.items():
            placed = sum(counts_for(group, pod) for pod in view.members(name))
            minimum = min_count_of(group) or 1
            if placed >= minimum and _status_of(group, "PodGroupInitiallyScheduled") != "True":
                yield f"group {name} has {placed} of {minimum} placed and does not say so"


class SaysWhy:
    """Whoever waits is told what for, after a little more than five seconds, and nobody longer than it is so.

    Groups by `muster.dev/Waiting`, members of a missing group and lone pods by PodScheduled=False; at most
    ten members of a group that is held by its count.  Judged where the scheduler is told at once.
    """

    name = "says why"

    def __init__(self, look: Look, *, is_settled: Callable[[], bool], started_s: Callable[[], float]) -> None:
        self._look = look
        self._is_settled = is_settled
        self._started_s = started_s  # when the scheduler at work began
        self._since_s: dict[str, float] = {}

    def check(self, now_s: float) -> Iterator[str]:
        """Groups and pods that wait in silence, and groups that say they wait though they do not."""
        view = self._look()
        quiet: dict[str, str] = {}
        for name, group in view.groups.items():
            waiting = [pod for pod in view.members(name) if is_waiting(pod)]
            is_true = _status_of(group, "PodGroupInitiallyScheduled") == "True"
            told = _status_of(group, "muster.dev/Waiting") == "True"
            if waiting and not is_true and not told:
                quiet[uid_of(group)] = f"group {name}"
            elif told and is_true and self._is_settled():
                yield f"group {name} is scheduled and says that it waits"
            held = [pod for pod in waiting if _reason_of(pod) == "NotReadyForScheduling"]
            if len(held) > 10:
                yield f"group {name} tells {len(held)} members that they are not ready"
        for name, pod in view.pods.items():
            alone = is_waiting(pod) and not group_of(pod)
            missing = (
                is_waiting(pod)
                and group_of(pod) not in view.groups
                and len(view.members(group_of(pod))) <= 10
            )
            if (alone or missing) and _status_of(pod, "PodScheduled") != "False":
                quiet[uid_of(pod)] = f"pod {name}"
        self._since_s = {uid: self._since_s.get(uid, now_s) for uid in quiet}
        for uid, since_s in self._since_s.items() if self._is_settled() else ():
            if now_s - max(since_s, self._started_s()) > 6:
                yield f"{quiet[uid]} waits since {since_s:.3f} and nobody says why"


def _status_of(thing: Object, type_: str) -> str:
    condition = condition_of(thing, type_)
    return "" if condition is None else str(condition["status"])


def _reason_of(pod: Object) -> str:
    condition = condition_of(pod, "PodScheduled")
    return "" if condition is None else str(condition.get("reason"))


class RoomIsUsed:
    """Whatever can be placed is placed: soon where the scheduler is told at once, else once all is calm.

    Exact for lone pods and for groups whose waiting members are alike, on nodes that differ only in room:
    there counting copies per node is enough.  Other groups are not judged, nor who wants GPUs where some are
    shared.  `patience_s` is how long
    something may fit and wait, whenever nothing is left to do at this moment.
    """

    name = "room is used"

    def __init__(self, look: Look, *, is_settled: Callable[[], bool], patience_s: float) -> None:
        self._look = look
        self._is_settled = is_settled
        self._patience_s = patience_s
        self._since_s: dict[str, float] = {}

    def check(self, now_s: float) -> Iterator[str]:
        """Pending groups and pods that would fit, and have for longer than that."""
        if not self._is_settled():
            return
        fitting = dict(self._fitting(self._look()))
        self._since_s = {uid: self._since_s.get(uid, now_s) for uid in fitting}
        for uid, complaint in fitting.items():
            if now_s - self._since_s[uid] >= self._patience_s:
                yield f"{complaint}, since {self._since_s[uid]:.3f}"

    def _fitting(self, view: ClusterView) -> Iterator[tuple[str, str]]:
        """Uid and complaint of everything that waits and fits."""
        for name, group in view.groups.items():
            waiting = [pod for pod in view.members(name) if is_waiting(pod)]
            needed = self._needed(view, group, waiting)
            if needed == 0 or any(requests_of(pod) != requests_of(waiting[0]) for pod in waiting):
                continue
            if any(self._wants_devices(view, pod) for pod in waiting):
                continue
            fits = copies(self._rooms(view, waiting), requests_of(waiting[0]))
            if fits >= needed:
                yield uid_of(group), f"group {name} needs {needed} more and {fits} fit"
        for name, pod in view.pods.items():
            lone = is_waiting(pod) and not group_of(pod) and not is_gated(pod)
            lone = lone and not self._wants_devices(view, pod)
            if lone and copies(self._rooms(view, [pod]), requests_of(pod)) >= 1:
                yield uid_of(pod), f"pod {name} fits"

    @staticmethod
    def _wants_devices(view: ClusterView, pod: Object) -> bool:
        """Whether counting pieces is not enough for this pod."""
        return bool(share_of(pod)) or (gpus_of(pod) > 0 and any(map(share_of, view.pods.values())))

    @staticmethod
    def _rooms(view: ClusterView, waiting: list[Object]) -> list[Amounts]:
        """Room on usable nodes for these pods: less what is promised to other waiting ones."""
        rooms = {name: dict(view.room_left[name]) for name, node in view.nodes.items() if takes_pods(node)}
        for pod in view.pods.values():
            promised = rooms.get(str(pod["status"].get("nominatedNodeName")))
            if promised is not None and is_waiting(pod) and pod not in waiting:
                for resource, asked in requests_of(pod).items():
                    promised[resource] = promised.get(resource, 0) - asked
        return list(rooms.values())

    @staticmethod
    def _needed(view: ClusterView, group: Object, waiting: list[Object]) -> int:
        """How many more must go at once; 0 when the group is whole, gated, or short of members."""
        if not waiting or any(is_gated(pod) for pod in waiting):
            return 0
        placed = sum(counts_for(group, pod) for pod in view.members(name_of(group)))
        needed = max((min_count_of(group) or 1) - placed, 1)
        return needed if len(waiting) >= needed else 0


def _shortage(over: Amounts) -> str:
    return ", ".join(f"{-left / 1000:g} {resource}" for resource, left in sorted(over.items()))
