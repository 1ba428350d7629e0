"""Evictions, judged at the moment they are asked for, by what the scheduler had been told.

Nobody is evicted who is not weaker, for nobody who would not be placed by it, without need, in part where a
group goes whole, or while pods preempted for the same before are still leaving.  By resources alone: the
churn has no other rules.  Next: `run.py`.

Which seats an eviction is meant for is not always said.  Members that this scheduler nominated itself, and
did not take back, have theirs.  Of nominations that it found on the objects it may keep some and count the
others no more, and writes nothing of either: an eviction is sound if it is so for any choice among them.
"""

from itertools import combinations, product

from muster.api.core import Pod
from muster.api.times import parse_seconds
from muster.framework.groups import Group, ObjectKey, PodKey
from muster.framework.ports import (
    BindFailed,
    BindPod,
    Effect,
    Event,
    EvictDone,
    EvictFailed,
    EvictPod,
    PatchPodStatus,
    PodSeen,
    WriteFailed,
)
from muster.scheduling.units import OVERDUE_S
from muster.sim.loop import Noting
from muster.sim.told import Told, requests_of
from muster.sim.view import GPU_MILLI, Amounts, amount

Preemptor = tuple[str, ObjectKey]
Seats = list[tuple[Pod, str]]  # who is meant to go to which node


class SoundEvictions(Noting):
    """Listens behind `Told` and complains of evictions that should not be."""

    name = "sound evictions"

    def __init__(self, told: Told) -> None:
        super().__init__()
        self.count = 0
        self._now_s = 0.0
        self._told = told
        self._nominated: dict[str, str] = {}  # uid → node
        self._kept: dict[str, str] = {}  # uid of a pod whose binding was refused → node
        self._said: set[str] = set()  # uids of pods of which no object shows yet what this scheduler said
        self._ours: set[str] = set()  # uids of pods whose nomination this scheduler said
        self._released: set[str] = set()  # uids of pods that were asked to leave with their gang, for nobody
        self._leaving: dict[Preemptor, dict[str, PodKey]] = {}  # asked to leave, by uid
        self._gone: set[str] = set()  # uids of pods asked to leave that were gone already, whatever is seen

    def reset(self) -> None:
        """Another scheduler knows of nobody it asked to leave."""
        self._nominated.clear()
        self._kept.clear()
        self._said.clear()
        self._ours.clear()
        self._leaving.clear()
        self._released.clear()
        self._gone.clear()

    def observe(self, event: Event, effects: tuple[Effect, ...], now_s: float) -> None:
        """Learn what is nominated, and judge what is evicted."""
        self._now_s = now_s
        if isinstance(event, PodSeen):
            self._see(event.pod)
        elif isinstance(event, WriteFailed) and isinstance(event.effect, PatchPodStatus):
            self._unsay(event.effect)
        elif isinstance(event, EvictFailed) or (isinstance(event, EvictDone) and event.is_gone):
            for victims in self._leaving.values():
                if victims.pop(event.uid, None) is not None and isinstance(event, EvictDone):
                    self._gone.add(event.uid)
        evicted: dict[Preemptor, list[EvictPod]] = {}
        if isinstance(event, BindFailed):
            self._kept[event.uid] = event.node_name
        for effect in effects:
            if isinstance(effect, BindPod):
                self._bind(effect)
            if isinstance(effect, PatchPodStatus) and effect.nominated_node_name is not None:
                self._nominated[effect.uid] = effect.nominated_node_name
                self._said.add(effect.uid)
                self._ours.add(effect.uid)
            elif isinstance(effect, EvictPod) and effect.preemptor_kind:  # else a gang is released
                evicted.setdefault((effect.preemptor_kind, effect.preemptor), []).append(effect)
            elif isinstance(effect, EvictPod):
                self._released.add(effect.uid)
        for preemptor, evictions in evicted.items():
            self._judge(preemptor, evictions)

    def _see(self, pod: Pod) -> None:
        """Learn what the object says: nothing is promised to one that has a node, is done, or is leaving.

        What this scheduler has said itself is newer, until the object says so, too.
        """
        uid, shown = pod.metadata.uid, pod.status.nominated_node_name
        if pod.spec.node_name or pod.is_terminal:
            self._kept.pop(uid, None)
        if pod.spec.node_name or pod.is_terminal or pod.is_terminating:
            self._forget(uid)
        elif uid in self._said:
            if shown == self._nominated[uid]:
                self._said.discard(uid)
        elif shown != self._nominated.get(uid, ""):
            self._nominated[uid] = shown
            self._ours.discard(uid)

    def _unsay(self, effect: PatchPodStatus) -> None:
        """The write was given up: a promise stands all the same; one taken back is as the object will say."""
        uid = effect.uid
        if uid in self._said and effect.nominated_node_name == "" == self._nominated[uid]:
            self._forget(uid)

    def _bind(self, bind: BindPod) -> None:
        """Its promise has been kept.  Should the binding fail, it has what the object shows."""
        self._kept.pop(bind.uid, None)
        self._forget(bind.uid)
        pod = self._told.pods.get(bind.key)
        if pod is not None and pod.metadata.uid == bind.uid:
            self._see(pod)

    def _forget(self, uid: str) -> None:
        self._nominated.pop(uid, None)
        self._said.discard(uid)
        self._ours.discard(uid)

    def _judge(self, preemptor: Preemptor, evictions: list[EvictPod]) -> None:
        self.count += len(evictions)
        pods = [self._told.pods[e.key] for e in evictions if e.key in self._told.pods]
        who = f"{preemptor[0]} {preemptor[1]}"
        for eviction in evictions:
            pod = self._told.pods.get(eviction.key)
            if pod is None or not self._is_placed(eviction.key, pod):
                self._complaints.append(f"{who} evicts {eviction.key}, which runs nowhere")
            elif self._rank(eviction.key, pod) >= self._rank_of(preemptor):
                self._complaints.append(f"{who} evicts {eviction.key}, which is not weaker")
        earlier = self._leaving.setdefault(preemptor, {})
        if any(self._is_there(key, uid) for uid, key in earlier.items()):
            self._complaints.append(f"{who} evicts a second time while the first victims are leaving")
        earlier.update({eviction.uid: eviction.key for eviction in evictions})
        seatings = self._seatings(self._seats(preemptor))
        if not seatings:
            self._complaints.append(f"{who} evicts {len(pods)} pods and does not fit then")
            return
        promised = self._promised(preemptor)
        self._judge_need(who, [seats + promised for seats in seatings], pods, self._rank_of(preemptor))

    def _seatings(self, seats: Seats) -> list[Seats]:
        """Which of the seats may be meant: those of ours all, of the others on each node as many as fit.

        One seat more never makes a victim less needed: smaller choices need no look.
        """
        ours = [seat for seat in seats if seat[0].metadata.uid in self._ours]
        if not self._fit(ours, []):
            return []
        choices: list[list[Seats]] = []
        for node_name in {node: None for _, node in seats}:
            here = [seat for seat in ours if seat[1] == node_name]
            found = [seat for seat in seats if seat[1] == node_name and seat not in ours]
            fitting: list[Seats] = []
            for count in range(len(found), -1, -1):
                for some in map(list, combinations(found, count)):
                    is_part = any(all(seat in more for seat in some) for more in fitting)
                    if not is_part and self._fit(here + some, []):
                        fitting.append(some)
            choices.append(fitting)
        chosen = (ours + [seat for some in choice for seat in some] for choice in product(*choices))
        return [seats for seats in chosen if seats]

    def _judge_need(self, who: str, seatings: list[Seats], victims: list[Pod], rank: int) -> None:
        """Every unit must be in the way of a seat; what goes whole, or has not started, must go whole.

        Where parts of GPUs are about, or devices are asked for, sums do not tell who is in the way: then need
        is not judged.
        """
        shares = any(GPU_MILLI in (pod.metadata.annotations or {}) for pod in self._told.pods.values())
        shares = shares or any(_wants_supplies(pod) for seats in seatings for pod, _ in seats)
        asked = self._asked()
        units: dict[object, list[Pod]] = {}
        for pod in victims:
            group = self._told.groups.get(self._told.group_of.get(_key_of(pod)) or ObjectKey("", ""))
            units.setdefault(self._unit_of(group) or pod.metadata.uid, []).append(pod)
        needless = [] if shares else [self._needless(seats, units, rank) for seats in seatings]
        if all(needless):
            for pods in needless[0] if needless else ():
                self._complaints.append(f"{who} evicts {', '.join(map(_name_of, pods))} without need")
        for unit, pods in units.items():
            if isinstance(unit, ObjectKey):
                left = [
                    key
                    for key, pod in self._told.pods.items()
                    if self._is_of(key, unit)
                    and pod not in pods
                    and not pod.is_terminating
                    and pod.metadata.uid not in asked | self._released
                    and self._is_placed(key, pod)
                ]
                if left:
                    self._complaints.append(f"{who} evicts group {unit} in part: {left[0]} stays")

    def _needless(self, seats: Seats, units: dict[object, list[Pod]], rank: int) -> list[list[Pod]]:
        """Units that could stay: the seats hold with them, too."""
        stays = self._not_counted_on(rank)
        return [pods for pods in units.values() if self._fit(seats, pods + stays)]

    def _unit_of(self, group: Group | None) -> ObjectKey | None:
        """The tree or group that goes whole, or not at all, with this group; None where pods go alone."""
        if group is None:
            return None
        if group.parent is not None and self._told.is_tree_under_way(group.parent):
            return group.parent
        is_under_way = group.is_gang and self._told.is_under_way(group)
        return group.key if group.disruption_mode == "all" or is_under_way else None

    def _is_of(self, pod: PodKey, owner: ObjectKey) -> bool:
        """Whether the pod is of this group, or tree."""
        group = self._told.groups.get(self._told.group_of[pod] or ObjectKey("", ""))
        return group is not None and owner in (group.key, group.parent)

    def _fit(self, seats: Seats, back: list[Pod]) -> bool:
        """Whether the seats hold when all that are leaving or asked to leave are gone, but for these."""
        asked = self._asked() - {pod.metadata.uid for pod in back}
        for node_name in {node for _, node in seats}:
            node = self._told.nodes.get(node_name)
            offered = {} if node is None else node.status.allocatable or {}
            room: Amounts = {key: amount(str(value)) for key, value in offered.items()}
            here = [pod for pod, seat in seats if seat == node_name] + [
                pod
                for key, pod in self._told.pods.items()
                if self._where(key, pod) == node_name
                and (pod in back or not pod.is_terminating)
                and pod.metadata.uid not in asked
            ]
            for pod in here:
                for resource, wanted in requests_of(pod).items():
                    room[resource] = room.get(resource, 0) - wanted
            if any(left < 0 for left in room.values()):
                return False
        return True

    def _asked(self) -> set[str]:
        """Pods by uid that were asked to leave for somebody and have not refused."""
        return self._gone.union(*self._leaving.values())

    def _not_counted_on(self, rank: int) -> list[Pod]:
        """Pods that are leaving or asked to, but whose room a preemptor of this rank does not count on."""
        asked = self._asked()
        return [
            pod
            for key, pod in self._told.pods.items()
            if ((pod.is_terminating or pod.metadata.uid in asked) and self._rank(key, pod) >= rank)
            or (
                pod.is_terminating
                and self._now_s > parse_seconds(pod.metadata.deletion_timestamp) + OVERDUE_S
            )
        ]

    def _seats(self, preemptor: Preemptor) -> Seats:
        kind, key = preemptor
        return [
            (pod, self._nominated[pod.metadata.uid])
            for pod_key, pod in self._told.pods.items()
            if (self._is_of(pod_key, key) if kind != "pod" else pod_key == key)
            and not self._is_placed(pod_key, pod)
            and self._nominated.get(pod.metadata.uid)
        ]

    def _promised(self, preemptor: Preemptor) -> Seats:
        """Pods of others that are not weaker, with the nodes that they are nominated to.

        And, whoever they are, those of gangs under way whose binding was refused, and those in preparation:
        their room is kept.
        """
        own = {pod.metadata.uid for pod, _ in self._seats(preemptor)}
        kept = [
            (pod, self._kept[pod.metadata.uid])
            for key, pod in self._told.pods.items()
            if pod.metadata.uid not in own
            and not self._is_placed(key, pod)
            and self._kept.get(pod.metadata.uid)
        ]
        return kept + [
            (pod, self._nominated[pod.metadata.uid])
            for key, pod in self._told.pods.items()
            if pod.metadata.uid not in own
            and not self._is_placed(key, pod)
            and self._nominated.get(pod.metadata.uid)
            and (self._rank(key, pod) >= self._rank_of(preemptor) or _wants_supplies(pod))
        ]

    def _is_there(self, key: PodKey, uid: str) -> bool:
        pod = self._told.pods.get(key)
        return pod is not None and pod.metadata.uid == uid and self._is_placed(key, pod)

    def _is_placed(self, key: PodKey, pod: Pod) -> bool:
        return bool(self._where(key, pod)) and not pod.is_terminal

    def _where(self, key: PodKey, pod: Pod) -> str:
        bind = self._told.on_the_wire.get(key)
        return "" if pod.is_terminal else bind.node_name if bind is not None else pod.spec.node_name

    def _rank(self, key: PodKey, pod: Pod) -> int:
        group = self._told.groups.get(self._told.group_of.get(key) or ObjectKey("", ""))
        tree = self._told.composites.get(group.parent) if group is not None and group.parent else None
        owner = tree or group
        return owner.priority if owner is not None else pod.spec.priority or 0

    def _rank_of(self, preemptor: Preemptor) -> int:
        kind, key = preemptor
        if kind == "pod":
            return self._rank(key, self._told.pods[key])
        return (self._told.composites if kind == "compositepodgroup" else self._told.groups)[key].priority


def _key_of(pod: Pod) -> PodKey:
    return PodKey(pod.metadata.namespace, pod.metadata.name)


def _wants_supplies(pod: Pod) -> bool:
    """Whether it is nominated before its binding, while its devices or volumes are prepared."""
    return bool(pod.spec.resource_claims or pod.spec.volumes)


def _name_of(pod: Pod) -> str:
    return pod.metadata.name
