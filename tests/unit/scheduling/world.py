"""A small world around one scheduler: it does what is asked and shows what it did, as an API server would.

Objects are kept as the API has them; bindings are accepted unless `refused` names the pod or `mute` is set,
and every write is seen again on the watch.  Only the test moves the clock.
"""

from collections import Counter, deque
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from muster.api.core import Node, Pod, PodStatus
from muster.api.meta import Condition
from muster.api.times import format_seconds
from muster.assembly.config import Config
from muster.assembly.profiles import build
from muster.cluster.gpu_annotations import index_annotation
from muster.dialects.native import seen_pod
from muster.framework.groups import Group, ObjectKey, PodKey
from muster.framework.ports import (
    BindDone,
    BindFailed,
    BindPod,
    Effect,
    Event,
    EvictDone,
    EvictFailed,
    EvictPod,
    GroupGone,
    GroupSeen,
    NodeGone,
    NodeSeen,
    PatchGroupStatus,
    PatchPodStatus,
    PodGone,
    RecordEvent,
    Search,
    SearchDone,
    Synced,
    TimeReached,
    WakeAt,
    WriteFailed,
)
from muster.placement.exact import Limits, solve
from muster.placement.packing import Answer
from muster.scheduling.scheduler import Scheduler
from muster.testing.builders import make_group, make_node, make_pod

START_S = 1_800_000_000.0
WAKES_MAX = 10_000  # at one moment: more is a timer that stays due for ever


def key_of(name: str) -> ObjectKey:
    return ObjectKey("default", name)


class World:
    """One scheduler and what it sees."""

    def __init__(self, scheduler: Scheduler | None = None, *, synced: bool = True) -> None:
        self.now_s = START_S
        self.pods: dict[PodKey, Pod] = {}
        self.groups: dict[ObjectKey, Group] = {}
        self.nodes: dict[str, Node] = {}
        self.effects: list[Effect] = []
        self.refused: dict[str, tuple[int, str]] = {}  # pod name → code and message
        self.mute = False  # bindings get no answer and do not land
        self.deny_status = False
        self.denied_groups: set[str] = set()  # on which nothing may be said
        self.hides_status = False  # what is said on groups lands and is not shown
        self.deny_evictions = False
        self.behind_s = 0.0  # the server's clock, by which it says when a pod was bound; 0: it does not say
        self.grace_s = 0.0  # how long the evicted stay after all
        self.evicted: list[str] = []
        self.searches: list[Search] = []  # that are not answered yet
        self.answers_searches = True
        self._wake_s: float | None = None
        self._uids = 0
        self._inbox: deque[Event] = deque()
        self.scheduler = scheduler or build(Config(scheduler_names=("muster",)), third_party={})
        if synced:
            self.tell(Synced())

    # ── what there is ────────────────────────────────────────────────────────────────────────────

    def node(self, name: str, **words: Any) -> "World":
        self.nodes[name] = make_node(name, **words)
        return self.tell(NodeSeen(self.nodes[name]))

    def group(self, name: str, min_count: int | None = None, **fields: Any) -> "World":
        self._uids += 1
        group = make_group(name, min_count, **{"uid": f"uid-{name}-{self._uids}", **fields})
        self.groups[group.key] = group
        return self.tell(GroupSeen(group))

    def pod(self, name: str, **words: Any) -> "World":
        self._uids += 1
        words = {"cpu": 1, "uid": f"uid-{name}-{self._uids}", **words}
        return self.put(make_pod(name, **words))

    def members(self, group: str, *indices: int, **words: Any) -> "World":
        for index in indices:
            self.pod(f"{group}-{index}", group=group, **words)
        return self

    def put(self, pod: Pod) -> "World":
        """The pod exists in this state now."""
        self.pods[ObjectKey(pod.metadata.namespace, pod.metadata.name)] = pod
        return self.tell(seen_pod(pod))

    def change(self, name: str, how: Callable[[Pod], Pod]) -> "World":
        return self.put(how(self.pods[key_of(name)]))

    def change_group(self, name: str, **fields: Any) -> "World":
        group = self.groups[key_of(name)] = replace(self.groups[key_of(name)], **fields)
        return self.tell(GroupSeen(group))

    def end(self, *names: str, phase: str = "Succeeded") -> "World":
        for name in names:
            self.change(name, lambda pod: replace(pod, status=replace(pod.status, phase=phase)))
        return self

    def begin_deletion(self, *names: str) -> "World":
        for name in names:
            self.change(
                name,
                lambda pod: replace(
                    pod, metadata=replace(pod.metadata, deletion_timestamp="2027-01-15T08:00:00Z")
                ),
            )
        return self

    def delete(self, *names: str) -> "World":
        for name in names:
            pod = self.pods.pop(key_of(name))
            self.tell(PodGone(key_of(name), pod.metadata.uid))
        return self

    def delete_group(self, name: str) -> "World":
        return self.tell(GroupGone(key_of(name), self.groups.pop(key_of(name)).uid))

    def delete_node(self, name: str) -> "World":
        del self.nodes[name]
        return self.tell(NodeGone(name))

    # ── what happens ─────────────────────────────────────────────────────────────────────────────

    def tell(self, event: Event) -> "World":
        """Deliver an event and do what the scheduler answers; what follows is delivered after it."""
        self._inbox.append(event)
        if len(self._inbox) > 1:
            return self  # somebody further out is delivering
        while self._inbox:
            effects = self.scheduler.handle(self._inbox[0], self.now_s)
            self.effects += effects
            for effect in effects:
                self._perform(effect)
            self._inbox.popleft()
        return self

    def run(self, seconds: float = 0.0) -> "World":
        """Let time pass, waking the scheduler whenever it asked for it."""
        until_s, moments = self.now_s + seconds, Counter[float]()
        while self._wake_s is not None and self._wake_s <= until_s:
            self.now_s = max(self.now_s, self._wake_s)
            moments[self.now_s] += 1
            assert moments[self.now_s] < WAKES_MAX, f"still due at {self.now_s} after {WAKES_MAX} wakes"
            self._wake_s = None
            self.tell(TimeReached())
        self.now_s = until_s
        return self

    def wake(self) -> "World":
        """Wake the scheduler once, if it asked to be woken by now."""
        if self._wake_s is not None and self._wake_s <= self.now_s:
            self._wake_s = None
            self.tell(TimeReached())
        return self

    def restart(self) -> "World":
        """A new scheduler that is shown everything anew."""
        self._wake_s = None
        self.scheduler = build(Config(scheduler_names=("muster",)), third_party={})
        for node in self.nodes.values():
            self.tell(NodeSeen(node))
        for group in self.groups.values():
            self.tell(GroupSeen(group))
        for pod in list(self.pods.values()):
            self.tell(seen_pod(pod))
        return self.tell(Synced())

    # ── what came of it ──────────────────────────────────────────────────────────────────────────

    def of(self, kind: type[Effect]) -> list[Any]:
        """All effects of one type so far."""
        return [effect for effect in self.effects if isinstance(effect, kind)]

    def forget_effects(self) -> "World":
        self.effects.clear()
        return self

    @property
    def bound(self) -> set[str]:
        return {key.name for key, pod in self.pods.items() if pod.spec.node_name}

    def node_of(self, name: str) -> str:
        return self.pods[key_of(name)].spec.node_name

    def condition(self, group: str, type_: str = "PodGroupInitiallyScheduled") -> Condition | None:
        return self.groups[key_of(group)].find_condition(type_)

    def pod_condition(self, name: str) -> Condition | None:
        return self.pods[key_of(name)].find_condition("PodScheduled")

    def place(self, name: str) -> str:
        """Where the entity is, "" when it is not pending."""
        pending = self.scheduler.report().find(key_of(name))
        return pending.place if pending is not None else ""

    def notes(self, reason: str) -> list[tuple[str, str]]:
        """Events written for this reason: pod and text."""
        return [
            (event.regarding.key.name, event.note) for event in self.of(RecordEvent) if event.reason == reason
        ]

    def answer(self, answer: Answer | None = None) -> "World":
        """Answer the oldest open search: with this, or with what a search comes to."""
        asked = self.searches.pop(0)
        found = answer or solve(asked.problem, Limits(branches=1000))
        return self.tell(SearchDone(asked.ticket, found))

    # ── the API server's part ────────────────────────────────────────────────────────────────────

    def _perform(self, effect: Effect) -> None:
        if isinstance(effect, WakeAt):
            assert self._wake_s is None or effect.at_s < self._wake_s, (
                "one wake-up at most, or an earlier one"
            )
            self._wake_s = effect.at_s
        elif isinstance(effect, BindPod):
            self._bind(effect)
        elif isinstance(effect, EvictPod):
            self._evict(effect)
        elif isinstance(effect, Search):
            self.searches.append(effect)
            if self.answers_searches:
                self.answer()
        elif isinstance(effect, PatchPodStatus | PatchGroupStatus) and self._is_denied(effect):
            self.tell(WriteFailed(effect, 403, "not today"))
        elif isinstance(effect, PatchPodStatus):
            self._patch_pod(effect)
        elif isinstance(effect, PatchGroupStatus):
            self._patch_group(effect)

    def _is_denied(self, effect: PatchPodStatus | PatchGroupStatus) -> bool:
        on_group = isinstance(effect, PatchGroupStatus)
        return self.deny_status or (on_group and effect.key.name in self.denied_groups)

    def _bound_status(self, pod: Pod) -> PodStatus:
        if not self.behind_s:
            return pod.status
        at = format_seconds(self.now_s - self.behind_s)
        bound = Condition(type="PodScheduled", status="True", last_transition_time=at)
        return replace(pod.status, conditions=[bound])

    def _bind(self, effect: BindPod) -> None:
        pod = self.pods.get(effect.key)
        if effect.key.name in self.refused:
            code, message = self.refused[effect.key.name]
            self.tell(BindFailed(effect.key, effect.uid, effect.node_name, code, "", message))
        elif pod is None or pod.metadata.uid != effect.uid:
            self.tell(BindFailed(effect.key, effect.uid, effect.node_name, 404, "NotFound", "not found"))
        elif not self.mute:
            self.tell(BindDone(effect.key, effect.uid, effect.node_name))
            metadata = pod.metadata
            if effect.devices:
                said = {**(metadata.annotations or {}), **index_annotation(effect.devices)}
                metadata = replace(metadata, annotations=said)
            spec = replace(pod.spec, node_name=effect.node_name)
            self.put(replace(pod, metadata=metadata, spec=spec, status=self._bound_status(pod)))

    def _evict(self, effect: EvictPod) -> None:
        pod = self.pods.get(effect.key)
        if pod is None or pod.metadata.uid != effect.uid:
            self.tell(EvictDone(effect.key, effect.uid, is_gone=True))
        elif self.deny_evictions:
            self.tell(EvictFailed(effect.key, effect.uid, 403, "not today"))
        else:
            self.evicted.append(effect.key.name)
            self.tell(EvictDone(effect.key, effect.uid))
            if self.grace_s:
                due = format_seconds(self.now_s + self.grace_s)
                conditions = [*(pod.status.conditions or ()), effect.condition]
                metadata = replace(pod.metadata, deletion_timestamp=due)
                self.put(replace(pod, metadata=metadata, status=replace(pod.status, conditions=conditions)))
            else:
                self.delete(effect.key.name)

    def _patch_pod(self, effect: PatchPodStatus) -> None:
        pod = self.pods.get(effect.key)
        if pod is None or pod.metadata.uid != effect.uid:
            return
        if effect.nominated_node_name is not None:
            status = replace(pod.status, nominated_node_name=effect.nominated_node_name)
            pod = self.put(replace(pod, status=status)).pods[effect.key]
        if effect.condition is None:
            return
        kept = [c for c in pod.status.conditions or () if c.type != effect.condition.type]
        self.put(replace(pod, status=replace(pod.status, conditions=[*kept, effect.condition])))

    def _patch_group(self, effect: PatchGroupStatus) -> None:
        group = self.groups.get(effect.key)
        if group is None or group.uid != effect.uid:
            return
        new = {condition.type for condition in effect.set_conditions} | set(effect.remove_conditions)
        kept = tuple(condition for condition in group.conditions if condition.type not in new)
        self.groups[effect.key] = replace(group, conditions=(*kept, *effect.set_conditions))
        if not self.hides_status:
            self.tell(GroupSeen(self.groups[effect.key]))
