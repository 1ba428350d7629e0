"""A Muster scheduler fed by hand: no server, every binding accepted at once, every decision timed.

`HandFed` gives events to `Scheduler.handle`, wakes it when it asks, answers its bindings and keeps count of
effects.  Its clock is virtual; what is measured are processor seconds of this thread, so that neighbours on
the machine do not count.  Next: `in_process.py`.
"""

import gc
import time
from collections import Counter
from collections.abc import Iterable

from msgspec.structs import replace

from muster.api.core import Pod
from muster.api.devices import ResourceClaim, ResourceClaimStatus
from muster.assembly.profiles import build
from muster.dialects.native import group_key_of
from muster.framework.groups import Group, ObjectKey, PodKey
from muster.framework.ports import (
    BindDone,
    BindPod,
    DevicesGone,
    DevicesSeen,
    Effect,
    Event,
    EvictDone,
    EvictPod,
    GroupSeen,
    PatchGroupStatus,
    PodGone,
    PodSeen,
    PrepareDone,
    Synced,
    TimeReached,
    WakeAt,
    WriteClaim,
)
from muster.scheduling.metrics import ALGORITHM_SECONDS

YOUNG_OBJECTS_BEFORE_COLLECTION = 50_000  # as in runtime/process.py


class HandFed:
    """One scheduler and what became of what it asked for."""

    def __init__(self) -> None:
        self.now_s = 1_000_000.0
        self.scheduler = build(stopwatch=time.thread_time, third_party={})
        self.pods: dict[PodKey, Pod] = {}
        self.claims: dict[ObjectKey, ResourceClaim] = {}
        self.node_of: dict[PodKey, str] = {}
        self.bound_s: dict[PodKey, float] = {}
        self.effects: Counter[str] = Counter()
        self.group_patches: Counter[ObjectKey] = Counter()
        self.decisions_s: list[float] = []
        self.rejections_s: list[
            float
        ] = []  # whole cycles that bound nobody, effects and explanation included
        self.handled_s = 0.0
        self.evicting_s: list[float] = []  # whole cycles that asked for evictions
        self._asked: list[BindPod] = []
        self._to_evict: list[EvictPod] = []
        self._to_write: list[WriteClaim] = []
        self._version = 1_000_000
        self._wake_s: float | None = None

    def begin(self) -> None:
        """Let it decide from now on, with the garbage collector as `muster run` sets it."""
        gc.collect()
        gc.freeze()
        gc.set_threshold(YOUNG_OBJECTS_BEFORE_COLLECTION, 20, 100)
        self.feed(Synced())

    def see(self, seen: Iterable[Pod | Event]) -> None:
        """Deliver sightings; a pod stands for PodSeen."""
        for each in seen:
            if isinstance(each, Pod):
                key = ObjectKey(each.metadata.namespace, each.metadata.name)
                self.pods[key] = each
                self.feed(PodSeen(each, group_key_of(each)))
            else:
                self.feed(each)

    def lose(self, key: PodKey) -> None:
        """A pod is gone, and its room is free."""
        pod = self.pods.pop(key)
        self.node_of.pop(key, None)
        self.feed(PodGone(key, pod.metadata.uid))

    def show(self, claim: ResourceClaim) -> None:
        """A claim for devices exists in this state."""
        self.claims[ObjectKey(claim.metadata.namespace, claim.metadata.name)] = claim
        self.feed(DevicesSeen(claim))

    def lose_claim(self, key: ObjectKey) -> None:
        """A claim is gone, and its devices are free."""
        claim = self.claims.pop(key)
        self.feed(DevicesGone(ResourceClaim, key, claim.metadata.uid))

    def feed(self, event: Event) -> None:
        """Hand over one event and note what is to be done about it."""
        began = time.thread_time()
        effects = self.scheduler.handle(event, self.now_s)
        self.handled_s += time.thread_time() - began
        for effect in effects:
            self._note(effect)

    def run(self, *, until_s: float = 0.0) -> None:
        """Wake it as often as it asks for, up to so many virtual seconds from now."""
        end_s = self.now_s + until_s
        while self._has_work() or (self._wake_s is not None and self._wake_s <= end_s):
            self._answer()
            if self._wake_s is None or self._wake_s > end_s:
                continue
            self.now_s = max(self.now_s, self._wake_s)
            self._wake_s = None
            count, seconds = self._timed()
            before_s, asked, evicted = self.handled_s, len(self._asked), len(self._to_evict)
            self.feed(TimeReached())
            after, total = self._timed()
            if len(self._to_evict) > evicted:
                self.evicting_s.append(self.handled_s - before_s)
            if after > count:
                self.decisions_s.append(total - seconds)
                if len(self._asked) == asked:
                    self.rejections_s.append(self.handled_s - before_s)
        self.now_s = max(self.now_s, end_s)

    def _timed(self) -> tuple[int, float]:
        histogram = self.scheduler.metrics.histograms.get((ALGORITHM_SECONDS, ()))
        return (0, 0.0) if histogram is None else (histogram.count, histogram.total)

    def _has_work(self) -> bool:
        return bool(self._asked or self._to_evict or self._to_write)

    def _answer(self) -> None:
        """Accept what was asked for, and show it as a watch would: claims written, pods bound, pods gone."""
        writes, self._to_write = self._to_write, []
        for write in writes:
            self.feed(PrepareDone(write))
            self._version += 1
            claim = self.claims[write.claim]
            meta = replace(claim.metadata, resource_version=str(self._version))
            given = write.allocation or claim.status.allocation
            self.show(
                replace(claim, metadata=meta, status=ResourceClaimStatus(given, list(write.reserved_for)))
            )
        asked, self._asked = self._asked, []
        for effect in asked:
            self.node_of[effect.key] = effect.node_name
            self.bound_s[effect.key] = self.handled_s
            self.feed(BindDone(effect.key, effect.uid, effect.node_name))
            pod = self.pods[effect.key]
            self.see([replace(pod, spec=replace(pod.spec, node_name=effect.node_name))])
        victims, self._to_evict = self._to_evict, []
        for victim in victims:
            self.feed(EvictDone(victim.key, victim.uid))
            self.lose(victim.key)

    def _note(self, effect: Effect) -> None:
        self.effects[type(effect).__name__] += 1
        if isinstance(effect, PatchGroupStatus):
            self.group_patches[effect.key] += 1
        if isinstance(effect, WakeAt):
            self._wake_s = effect.at_s
        elif isinstance(effect, BindPod):
            self._asked.append(effect)
        elif isinstance(effect, EvictPod):
            self._to_evict.append(effect)
        elif isinstance(effect, WriteClaim):
            self._to_write.append(effect)


def group_seen(name: str, size: int, *, topology_key: str = "") -> GroupSeen:
    """A gang that needs all its members."""
    key = ObjectKey("default", name)
    keys = (topology_key,) if topology_key else ()
    return GroupSeen(Group(key=key, uid=f"uid-{name}", version="1", min_count=size, topology_keys=keys))
