"""What must hold after every step of a simulation, judged on what the API says and on what passed the line.

`GangWhole` watches decisions, `NodeRoom` and `NoTornGangs` look at the API, `NothingForgotten` compares
the scheduler's queue with the API, `RoomIsUsed` is asked once churn and faults have stopped.
Comes in: a `ClusterView` and the events and effects seen by the link.  Goes out: complaints.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from muster.api.core import Pod
from muster.base.errors import InvariantViolated
from muster.cluster.invariants import check_state
from muster.framework.groups import GroupKey, PodKey
from muster.framework.ports import (
    BindDone,
    BindFailed,
    BindPod,
    Effect,
    Event,
    GroupGone,
    GroupSeen,
    PodGone,
    PodSeen,
)
from muster.scheduling.scheduler import Scheduler
from muster.sim.client import SCHEDULER_NAMES
from muster.sim.view import (
    Amounts,
    ClusterView,
    Object,
    condition_of,
    copies,
    counts_for,
    group_of,
    is_gated,
    is_placed,
    is_waiting,
    min_count_of,
    name_of,
    node_of,
    requests_of,
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


class GangWhole:
    """A gang is never taken below its minimum by a decision of ours.

    Whenever the scheduler binds members of a gang, those it binds now, those on the wire and those that count
    as placed must reach minCount, all as the scheduler had been told at that moment.
    """

    name = "gang whole"

    def __init__(self) -> None:
        self._min_counts: dict[GroupKey, int | None] = {}
        self._pods: dict[PodKey, tuple[Pod, GroupKey | None]] = {}
        self._on_the_wire: dict[PodKey, str] = {}
        self._complaints: list[str] = []

    def observe(self, event: Event, effects: tuple[Effect, ...], now_s: float) -> None:
        """Learn what the scheduler was told, then judge what it decided."""
        self._learn(event)
        bound: dict[GroupKey, int] = {}
        for effect in effects:
            if isinstance(effect, BindPod):
                self._on_the_wire[effect.key] = effect.uid
                if effect.group is not None:
                    bound[effect.group] = bound.get(effect.group, 0) + 1
        for group, count in bound.items():
            minimum = self._min_counts.get(group, 1)
            placed = self._placed(group)
            if minimum is not None and placed < minimum:
                self._complaints.append(
                    f"gang {group} of {minimum} had {placed} placed after binding {count} at {now_s:.3f}"
                )

    def reset(self) -> None:
        """A new scheduler is told everything anew, and knows of no binding on the wire."""
        self._min_counts.clear()
        self._pods.clear()
        self._on_the_wire.clear()

    def check(self, now_s: float) -> Iterable[str]:
        """Complaints since the last step."""
        complaints, self._complaints = self._complaints, []
        return complaints

    def _learn(self, event: Event) -> None:
        match event:
            case GroupSeen(group):
                self._min_counts[group.key] = group.min_count
            case GroupGone(key):
                self._min_counts.pop(key, None)
            case PodSeen(pod, group_key):
                key = PodKey(pod.metadata.namespace, pod.metadata.name)
                self._pods[key] = (pod, group_key)
                if pod.spec.node_name or self._on_the_wire.get(key) != pod.metadata.uid:
                    self._on_the_wire.pop(key, None)
            case PodGone(key):
                self._pods.pop(key, None)
                self._on_the_wire.pop(key, None)
            case BindFailed(key, _, _, code) if code != 0:
                self._on_the_wire.pop(key, None)

    def _placed(self, group: GroupKey) -> int:
        return sum(
            key in self._on_the_wire
            or pod.status.phase == "Succeeded"
            or (bool(pod.spec.node_name) and pod.status.phase != "Failed")
            for key, (pod, of) in self._pods.items()
            if of == group
        )


class NothingForgotten:
    """Every pod to be placed is in exactly one queue or on the wire, and the scheduler's books add up.

    Judged against what the scheduler has been told, whenever it has nothing left to do at this moment.
    """

    name = "nothing forgotten"

    def __init__(self) -> None:
        self._world: SchedulerWorld | None = None
        self._pods: dict[PodKey, Pod] = {}
        self._accepted: set[str] = set()

    def observe(self, event: Event, effects: tuple[Effect, ...], now_s: float) -> None:
        """Learn what the scheduler was told."""
        match event:
            case PodSeen(pod):
                self._pods[PodKey(pod.metadata.namespace, pod.metadata.name)] = pod
            case PodGone(key):
                self._pods.pop(key, None)
            case BindDone(_, uid):
                self._accepted.add(uid)

    def of(self, world: SchedulerWorld) -> "NothingForgotten":
        """Judge the scheduler of this world."""
        self._world = world
        return self

    def reset(self) -> None:
        """A new scheduler is told everything anew."""
        self._pods.clear()
        self._accepted.clear()

    def check(self, now_s: float) -> Iterator[str]:
        """Pods in no queue or in two, queues nobody will come back to, sums that are not the parts'."""
        if self._world is None or self._world.scheduler is None or not self._world.is_settled:
            return
        scheduler = self._world.scheduler
        report = scheduler.report()
        queued = Counter(key for pending in report.pending for key in pending.waiting)
        on_the_wire = {binding.uid for binding in report.bindings}
        for key, pod in self._pods.items():
            to_place = self._is_to_place(pod) and pod.metadata.uid not in on_the_wire | self._accepted
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
    that no kubelet refused one at once for lack of it (unless the scheduler is told late: `is_prompt`).
    """

    name = "node room"

    def __init__(self, look: Look, *, is_prompt: bool) -> None:
        self._look = look
        self._is_prompt = is_prompt
        self._known: dict[str, set[str]] = {}

    def check(self, now_s: float) -> Iterator[str]:
        """Nodes that were given a pod since the last step and are over their room."""
        view = self._look()
        for name, pod in view.pods.items() if self._is_prompt else ():
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

    def count(self, group: Object, members: Iterable[Object]) -> int:
        """Take note of those bound now; give how many ever were."""
        pods = self._pods.setdefault(uid_of(group), set())
        pods.update(uid_of(pod) for pod in members if node_of(pod))
        return len(pods)


class NoTornGangs:
    """No two gangs hold parts of what the other needs.

    A gang that holds something though fewer than minCount members were ever bound, while nothing is on the
    wire, is torn; two of them are the deadlock that Muster exists to end.  Only refused binds may tear one.
    A group made again over members that are bound already has not been torn by us.
    """

    name = "no torn gangs"

    def __init__(self, look: Look, *, is_quiet: Callable[[], bool]) -> None:
        self._look = look
        self._is_quiet = is_quiet
        self._ever_bound = EverBound()
        self._known: set[str] = set()
        self._excused: set[str] = set()  # whole once, or found with members bound

    def check(self, now_s: float) -> Iterator[str]:
        """Torn gangs, of which there should be none."""
        view = self._look()
        torn = []
        for name, group in view.groups.items():
            members, minimum = view.members(name), min_count_of(group) or 1
            ever_bound = self._ever_bound.count(group, members)
            is_new = uid_of(group) not in self._known
            self._known.add(uid_of(group))
            if ever_bound >= minimum or (ever_bound and is_new):
                self._excused.add(uid_of(group))
            elif ever_bound and uid_of(group) not in self._excused:
                torn.append(f"{name} holds {sum(map(is_placed, members))} of {minimum}")
        if torn and self._is_quiet():
            yield "; ".join(torn)


class TrueStaysTrue:
    """PodGroupInitiallyScheduled turns True only when minCount binds were accepted, and never back."""

    name = "true stays true"

    def __init__(self, look: Look) -> None:
        self._look = look
        self._true: set[str] = set()
        self._ever_bound = EverBound()

    def check(self, now_s: float) -> Iterator[str]:
        """Groups whose condition says what is not so, or took something back."""
        view = self._look()
        for name, group in view.groups.items():
            bound, minimum = self._ever_bound.count(group, view.members(name)), min_count_of(group) or 1
            condition = condition_of(group, "PodGroupInitiallyScheduled")
            if condition is not None and condition["status"] == "True":
                if uid_of(group) not in self._true and bound < minimum:
                    yield f"group {name} is True with {bound} of {minimum} bound"
                self._true.add(uid_of(group))
            elif uid_of(group) in self._true:
                yield f"group {name} was True and is {condition and condition['status']}"


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
    """Once all is calm, whatever can be placed is placed.

    Exact for lone pods and for groups whose waiting members are alike, on nodes that differ only in room:
    there counting copies per node is enough.  Other groups are not judged.
    """

    name = "room is used"

    def __init__(self, look: Look) -> None:
        self._look = look

    def check(self, now_s: float) -> Iterator[str]:
        """Pending groups and pods that would fit."""
        view = self._look()
        rooms = [view.room_left[name] for name, node in view.nodes.items() if takes_pods(node)]
        for name, group in view.groups.items():
            waiting = [pod for pod in view.members(name) if is_waiting(pod)]
            needed = self._needed(view, group, waiting)
            if needed == 0 or any(requests_of(pod) != requests_of(waiting[0]) for pod in waiting):
                continue
            fits = copies(rooms, requests_of(waiting[0]))
            if fits >= needed:
                yield f"group {name} needs {needed} more and {fits} fit"
        for name, pod in view.pods.items():
            lone = is_waiting(pod) and not group_of(pod) and not is_gated(pod)
            if lone and copies(rooms, requests_of(pod)) >= 1:
                yield f"pod {name} fits"

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
