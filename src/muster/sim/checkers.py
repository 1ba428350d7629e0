"""What must hold after every step of a simulation, judged on what the API says and on what passed the line.

`GangWhole` watches decisions, `NodeRoom` and `NoTornGangs` look at the API, `NothingForgotten` compares
the scheduler's queue with the API, `RoomIsUsed` is asked once churn and faults have stopped.
Comes in: a `ClusterView` and the events and effects seen by the link.  Goes out: complaints.
"""

from collections.abc import Callable, Iterable, Iterator

from muster.api.core import Pod
from muster.framework.groups import GroupKey, PodKey
from muster.framework.ports import (
    BindFailed,
    BindPod,
    Effect,
    Event,
    GroupGone,
    GroupSeen,
    PodGone,
    PodSeen,
)
from muster.sim.view import (
    Amounts,
    ClusterView,
    Object,
    condition_of,
    copies,
    group_of,
    is_gated,
    is_placed,
    is_waiting,
    min_count_of,
    name_of,
    node_of,
    requests_of,
    takes_pods,
)

Look = Callable[[], ClusterView]


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


class NodeRoom:
    """No node holds more than it has.

    A node that shrank under its pods is not our doing: judged is that no pod came where there is no room.
    """

    name = "node room"

    def __init__(self, look: Look) -> None:
        self._look = look
        self._known: dict[str, set[str]] = {}

    def check(self, now_s: float) -> Iterator[str]:
        """Nodes that were given a pod since the last step and are over their room."""
        view = self._look()
        for name, room in view.room_left.items():
            here = {str(pod["metadata"]["uid"]) for pod in view.pods_on.get(name, [])}
            arrived = here - self._known.get(name, set())
            self._known[name] = here
            over = {resource: left for resource, left in room.items() if left < 0}
            if arrived and over:
                yield f"node {name} is over by {_shortage(over)} with {len(here)} pods"


class NoTornGangs:
    """No two gangs hold parts of what the other needs.

    A gang that has never been whole and holds something, while nothing is on the wire, is torn.
    Refused binds may tear one; two at once, each waiting, would be the deadlock that Muster exists to end.
    """

    name = "no torn gangs"

    def __init__(self, look: Look, *, is_quiet: Callable[[], bool], allowed: int = 0) -> None:
        self._look = look
        self._is_quiet = is_quiet
        self._allowed = allowed
        self._ever_whole: set[str] = set()

    def check(self, now_s: float) -> Iterator[str]:
        """Torn gangs beyond the allowed number."""
        view = self._look()
        torn = []
        for name, group in view.groups.items():
            minimum = min_count_of(group)
            placed = sum(is_placed(pod) for pod in view.members(name))
            if minimum is None or placed >= minimum:
                self._ever_whole.add(str(group["metadata"]["uid"]))
            elif placed and str(group["metadata"]["uid"]) not in self._ever_whole:
                torn.append(f"{name} holds {placed} of {minimum}")
        if len(torn) > self._allowed and self._is_quiet():
            yield "; ".join(torn)


class TrueStaysTrue:
    """PodGroupInitiallyScheduled turns True only when minCount binds were accepted, and never back."""

    name = "true stays true"

    def __init__(self, look: Look) -> None:
        self._look = look
        self._true: set[str] = set()
        self._ever_bound: dict[str, set[str]] = {}

    def check(self, now_s: float) -> Iterator[str]:
        """Groups whose condition says what is not so, or took something back."""
        view = self._look()
        for name, group in view.groups.items():
            uid = str(group["metadata"]["uid"])
            ever_bound = self._ever_bound.setdefault(uid, set())
            ever_bound |= {str(pod["metadata"]["uid"]) for pod in view.members(name) if node_of(pod)}
            condition = condition_of(group, "PodGroupInitiallyScheduled")
            if condition is not None and condition["status"] == "True":
                if uid not in self._true and len(ever_bound) < (min_count_of(group) or 1):
                    yield f"group {name} is True with {len(ever_bound)} of {min_count_of(group) or 1} bound"
                self._true.add(uid)
            elif uid in self._true:
                yield f"group {name} was True and is {condition and condition['status']}"


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
        placed = sum(is_placed(pod) for pod in view.members(name_of(group)))
        needed = max((min_count_of(group) or 1) - placed, 1)
        return needed if len(waiting) >= needed else 0


def _shortage(over: Amounts) -> str:
    return ", ".join(f"{-left / 1000:g} {resource}" for resource, left in sorted(over.items()))
