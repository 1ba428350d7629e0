"""A scheduler fed by hand, for faults that depend on the order in which events arrive.

`feed` gives it events, `run` lets time pass and wakes it when it asks; what it wants done is collected and
nothing of it is done unless the test says so (`accept`, `refuse`).
"""

from collections.abc import Iterable

from msgspec.structs import replace

from muster.api.core import Node, Pod
from muster.api.times import format_seconds
from muster.assembly.config import Config
from muster.assembly.profiles import build
from muster.framework.groups import Group, ObjectKey
from muster.framework.ports import (
    BindDone,
    BindFailed,
    BindPod,
    Effect,
    Event,
    EvictDone,
    EvictPod,
    GroupSeen,
    NodeSeen,
    PatchGroupStatus,
    PatchPodStatus,
    PodGone,
    PodSeen,
    RecordEvent,
    Synced,
    TimeReached,
    WakeAt,
)

Seen = Pod | Node | Group | Event


class Bench:
    """One scheduler, what it has asked for, and a clock that only the test moves."""

    def __init__(self, *seen: Seen, synced: bool = True) -> None:
        self.now_s = 1_000_000.0
        self.scheduler = build(Config(scheduler_names=("muster",)))
        self.binds: list[BindPod] = []
        self.events: list[RecordEvent] = []
        self.pod_patches: list[PatchPodStatus] = []
        self.group_patches: list[PatchGroupStatus] = []
        self.evictions: list[str] = []
        self._answered = 0
        self._wake_s: float | None = None
        self.feed(*seen)
        if synced:
            self.feed(Synced())

    # ── giving ───────────────────────────────────────────────────────────────────────────────────

    def feed(self, *seen: Seen) -> "Bench":
        """Deliver events; a pod, node or group stands for the event that it was seen."""
        for each in seen:
            self._take(self.scheduler.handle(_event_of(each), self.now_s))
        return self

    def run(self, seconds: float = 0.0) -> "Bench":
        """Let time pass, waking the scheduler whenever it has asked for it."""
        until_s = self.now_s + seconds
        while self._wake_s is not None and self._wake_s <= until_s:
            self.now_s = max(self.now_s, self._wake_s)
            self._wake_s = None
            self._take(self.scheduler.handle(TimeReached(), self.now_s))
        self.now_s = until_s
        return self

    def accept(self) -> "Bench":
        """Answer every bind not answered yet with success."""
        return self.feed(*(BindDone(bind.key, bind.uid, bind.node_name) for bind in self._unanswered()))

    def refuse(self, *names: str, code: int = 500, reason: str = "InternalError") -> "Bench":
        """Answer every bind not answered yet: those named with a refusal, the others with success."""
        for bind in self._unanswered():
            if bind.key.name in names:
                self.feed(BindFailed(bind.key, bind.uid, bind.node_name, code, reason, "not today"))
            else:
                self.feed(BindDone(bind.key, bind.uid, bind.node_name))
        return self

    def obey(self, *, grace_s: float = 30.0) -> "Bench":
        """Have everybody who was asked to leave begin to: deleted, and still there until `end`."""
        for name in self.evictions:
            pod = self.scheduler.state.pod(("default", name))
            if pod is None or pod.is_terminating:
                continue
            due = format_seconds(self.now_s + grace_s)
            version = str(int(pod.metadata.resource_version or "0") + 1)
            leaving = replace(pod.metadata, deletion_timestamp=due, resource_version=version)
            self.feed(EvictDone(ObjectKey("default", name), pod.metadata.uid))
            self.feed(replace(pod, metadata=leaving))
        return self

    def end(self, name: str) -> "Bench":
        """Have a pod be gone at last."""
        pod = self.scheduler.state.pod(("default", name))
        return self if pod is None else self.feed(gone(pod))

    # ── looking ──────────────────────────────────────────────────────────────────────────────────

    @property
    def placed(self) -> dict[str, str]:
        """Pod name → node name of every bind asked for, the last one where there were several."""
        return {bind.key.name: bind.node_name for bind in self.binds}

    def bind_count(self, name: str) -> int:
        """How many times this pod's binding was asked for."""
        return sum(bind.key.name == name for bind in self.binds)

    def group_statuses(self, name: str) -> list[str]:
        """What PodGroupInitiallyScheduled of this group was set to, in order."""
        return [
            condition.status
            for patch in self.group_patches
            if patch.key.name == name
            for condition in patch.set_conditions
            if condition.type == "PodGroupInitiallyScheduled"
        ]

    def event_reasons(self, name: str) -> list[str]:
        """Reasons of the events on this pod, in order."""
        return [event.reason for event in self.events if event.regarding.key.name == name]

    def _unanswered(self) -> list[BindPod]:
        waiting = self.binds[self._answered :]
        self._answered = len(self.binds)
        return waiting

    def _take(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            match effect:
                case BindPod():
                    self.binds.append(effect)
                case EvictPod(key):
                    self.evictions.append(key.name)
                case RecordEvent():
                    self.events.append(effect)
                case PatchPodStatus():
                    self.pod_patches.append(effect)
                case PatchGroupStatus():
                    self.group_patches.append(effect)
                case WakeAt(at_s):
                    self._wake_s = at_s


def gone(pod: Pod) -> PodGone:
    """The event that this very pod no longer exists."""
    return PodGone(ObjectKey(pod.metadata.namespace, pod.metadata.name), pod.metadata.uid)


def _event_of(seen: Seen) -> Event:
    if isinstance(seen, Pod):
        reference = seen.spec.scheduling_group
        name = reference.pod_group_name if reference else None
        return PodSeen(seen, ObjectKey(seen.metadata.namespace, name) if name else None)
    if isinstance(seen, Node):
        return NodeSeen(seen)
    return GroupSeen(seen) if isinstance(seen, Group) else seen
