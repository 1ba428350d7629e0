"""Nobody is bound before its devices and volumes are there, by what the process that decides was told.

Next: `claimed.py`, what the API shows of claims.
"""

from collections.abc import Iterator

from muster.api.core import Pod
from muster.api.devices import ResourceClaim
from muster.api.storage import PersistentVolumeClaim
from muster.cluster.devices import device_claims_of, whole_devices
from muster.cluster.volumes import claims_of as volume_claims_of
from muster.framework.ports import (
    BindPod,
    DevicesGone,
    DevicesSeen,
    Effect,
    Event,
    RecordEvent,
    StorageGone,
    StorageSeen,
    Synced,
)
from muster.scheduling.double_claims import DEVICE_IN_TWO_CLAIMS
from muster.sim.client import SCHEDULER_NAMES
from muster.sim.loop import Noting
from muster.sim.told import Told

Key = tuple[str, str]  # namespace, name


class PreparedAsTold(Noting):
    """Listens behind `Told`: whoever is asked to be bound has its volumes and claims, by all that was told.

    And a device in two claims is told of on each pod of ours that runs with it.
    """

    name = "prepared as told"

    def __init__(self, told: Told) -> None:
        super().__init__()
        self._told = told
        self._claims: dict[Key, ResourceClaim] = {}
        self._volume_claims: dict[Key, PersistentVolumeClaim] = {}
        self._holders: dict[tuple[str, str, str], set[Key]] = {}
        self._leads = False
        self._asked: set[tuple[str, str]] = set()  # uid of a pod and node

    def observe(self, event: Event, effects: tuple[Effect, ...], now_s: float) -> None:
        """Learn, and judge what is asked for."""
        doubled = self._learn(event)
        for effect in effects:
            if isinstance(effect, BindPod) and (effect.uid, effect.node_name) not in self._asked:
                self._asked.add((effect.uid, effect.node_name))
                pod = self._told.pods.get(effect.key)
                if pod is not None:
                    self._complaints += (
                        f"pod {effect.key} is bound, and {lack}" for lack in self._lacks(pod)
                    )
        if doubled and self._leads:
            warned = {
                effect.regarding.uid
                for effect in effects
                if isinstance(effect, RecordEvent) and effect.reason == DEVICE_IN_TWO_CLAIMS
            }
            for pod in self._running_with(doubled):
                if pod.metadata.uid not in warned:
                    self._complaints.append(f"nobody tells pod {pod.metadata.name} of {sorted(doubled)}")

    def _learn(self, event: Event) -> set[Key]:
        """Claims that share a device since this event."""
        match event:
            case Synced():
                self._leads = True
            case DevicesSeen(ResourceClaim() as claim):
                return self._learn_claim(claim)
            case DevicesGone(kind, key) if kind is ResourceClaim:
                self._forget_claim((key.namespace, key.name))
            case StorageSeen(PersistentVolumeClaim() as claim):
                self._volume_claims[claim.metadata.namespace, claim.metadata.name] = claim
            case StorageGone(kind, key) if kind is PersistentVolumeClaim:
                self._volume_claims.pop((key.namespace, key.name), None)
        return set()

    def _learn_claim(self, claim: ResourceClaim) -> set[Key]:
        key = (claim.metadata.namespace, claim.metadata.name)
        known = set(whole_devices(self._claims.get(key)))
        self._forget_claim(key)
        self._claims[key] = claim
        doubled: set[Key] = set()
        for device in whole_devices(claim):
            holders = self._holders.setdefault(device, set())
            if holders and device not in known:
                doubled |= {key, *holders}
            holders.add(key)
        return doubled

    def _forget_claim(self, key: Key) -> None:
        for device in whole_devices(self._claims.pop(key, None)):
            self._holders[device].discard(key)

    def _lacks(self, pod: Pod) -> Iterator[str]:
        """What the pod has not got."""
        for name, key in device_claims_of(pod):
            claim = self._claims.get(key) if key is not None else None
            if key is None or claim is None:
                yield f"its claim for {name} is not there"
                continue
            if claim.status.allocation is None:
                yield f"claim {key[1]} has no device"
            elif pod.metadata.uid not in {user.uid for user in claim.status.reserved_for or ()}:
                yield f"claim {key[1]} is not reserved for it"
            for other in self._earlier(key, claim):
                yield f"claim {other} had a device of claim {key[1]} before"
        for key, _ in volume_claims_of(pod):
            volume = self._volume_claims.get(key)
            if volume is None or not volume.is_bound:
                yield f"claim {key[1]} has no volume"

    def _earlier(self, key: Key, claim: ResourceClaim) -> Iterator[str]:
        for device in whole_devices(claim):
            for other in sorted(self._holders[device] - {key}):
                if _version(self._claims[other]) < _version(claim):
                    yield other[1]

    def _running_with(self, claims: set[Key]) -> Iterator[Pod]:
        """Pods of ours that are bound and use one of these claims."""
        uids = {user.uid for key in claims for user in self._claims[key].status.reserved_for or ()}
        for pod in self._told.pods.values():
            is_ours = pod.metadata.uid in uids and pod.spec.scheduler_name in SCHEDULER_NAMES
            if is_ours and pod.spec.node_name and not pod.is_terminal and not pod.is_terminating:
                yield pod


def _version(claim: ResourceClaim) -> int:
    return int(claim.metadata.resource_version)
