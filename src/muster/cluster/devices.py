"""Devices and claims as known, and what this scheduler has allocated and nobody has seen written yet.

In come API objects as they are seen, and choices: an allocation for a claim.  Out comes a frozen picture that
is the same object until something changes.  Changed only inside `Scheduler.handle`.  Next:
`placement/device_allocation.py`, which allocates on the picture.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from muster.api.core import Pod
from muster.api.devices import Allocation, Device, DeviceClass, DeviceObject, ResourceClaim, ResourceSlice
from muster.api.meta import is_older

ClaimKey = tuple[str, str]  # namespace, name
DeviceId = tuple[str, str, str]  # driver, pool, device


class Offer(NamedTuple):
    """A device with what its slice says of it."""

    id: DeviceId
    device: Device
    slice: ResourceSlice


class Pools:
    """The devices of whole pools, the same object while no slice and no class changes.

    `found_out`: what readers have reckoned from devices and classes alone, by a key of theirs.
    """

    def __init__(self, offers: Sequence[Offer]) -> None:
        self.offers = tuple(offers)
        self.found_out: dict[str, Any] = {}


class Devices(NamedTuple):
    """What is known; never changed.

    `choices`: allocations of ours that the API does not show yet.  `taken`: device → the claims that have it,
    by the API or by choice, admin access apart.
    """

    slices: Mapping[str, ResourceSlice]
    classes: Mapping[str, DeviceClass]
    claims: Mapping[ClaimKey, ResourceClaim]
    choices: Mapping[ClaimKey, Allocation]
    taken: Mapping[DeviceId, tuple[ClaimKey, ...]]
    pools: Pools

    def allocation_of(self, key: ClaimKey) -> Allocation | None:
        """What the claim has, by the API or by our choice."""
        claim = self.claims.get(key)
        if claim is not None and claim.status.allocation is not None:
            return claim.status.allocation
        return self.choices.get(key)


NO_DEVICES = Devices({}, {}, {}, {}, {}, Pools(()))


class DeviceBook:
    """The objects by kind and name, and the choices by claim."""

    def __init__(self) -> None:
        self._slices: dict[str, ResourceSlice] = {}
        self._classes: dict[str, DeviceClass] = {}
        self._claims: dict[ClaimKey, ResourceClaim] = {}
        self._choices: dict[ClaimKey, Allocation] = {}
        self._frozen: Devices | None = NO_DEVICES
        self._pools: Pools | None = NO_DEVICES.pools

    def apply(self, found: DeviceObject) -> bool:
        """Take over an object as seen; False if it is older than what is known."""
        meta = found.metadata
        known = self._find(type(found), (meta.namespace, meta.name))
        if known is not None and known.metadata.uid == meta.uid and is_older(found.metadata, known.metadata):
            return False
        if isinstance(found, ResourceSlice):
            self._slices[meta.name] = found
            self._pools = None
        elif isinstance(found, DeviceClass):
            self._classes[meta.name] = found
            self._pools = None
        else:
            self._claims[meta.namespace, meta.name] = found
            if found.status.allocation is not None:
                self._choices.pop((meta.namespace, meta.name), None)
        self._frozen = None
        return True

    def remove(self, kind: type, key: ClaimKey, uid: str) -> DeviceObject | None:
        """Forget an object that is gone; None if this very one is not known."""
        known = self._find(kind, key)
        if known is None or (uid and known.metadata.uid != uid):
            return None
        if isinstance(known, ResourceSlice):
            del self._slices[key[1]]
            self._pools = None
        elif isinstance(known, DeviceClass):
            del self._classes[key[1]]
            self._pools = None
        else:
            del self._claims[key]
            self._choices.pop(key, None)
        self._frozen = None
        return known

    def choose(self, key: ClaimKey, allocation: Allocation) -> None:
        """Count a claim as allocated before the API agrees."""
        self._choices[key] = allocation
        self._frozen = None

    def unchoose(self, key: ClaimKey) -> None:
        """The choice is given up; what the API shows counts again."""
        if self._choices.pop(key, None) is not None:
            self._frozen = None

    def freeze(self) -> Devices:
        """The picture now: the same object until something changes."""
        if self._pools is None:
            self._pools = Pools(tuple(_offers(self._slices)))
        if self._frozen is None:
            claims, choices = dict(self._claims), dict(self._choices)
            self._frozen = Devices(
                dict(self._slices), dict(self._classes), claims, choices, _taken(claims, choices), self._pools
            )
        return self._frozen

    def _find(self, kind: type, key: ClaimKey) -> DeviceObject | None:
        if kind is ResourceSlice:
            return self._slices.get(key[1])
        return self._classes.get(key[1]) if kind is DeviceClass else self._claims.get(key)


def device_claims_of(pod: Pod) -> tuple[tuple[str, ClaimKey | None], ...]:
    """The claims of a pod: by what the pod calls them, and their keys (None: not made yet)."""
    made = {status.name: status.resource_claim_name for status in pod.status.resource_claim_statuses or ()}
    found: list[tuple[str, ClaimKey | None]] = []
    for wanted in pod.spec.resource_claims or ():
        name = wanted.resource_claim_name or made.get(wanted.name)
        found.append((wanted.name, (pod.metadata.namespace, name) if name else None))
    return tuple(found)


def ids_of(allocation: Allocation) -> Iterator[DeviceId]:
    """The devices that an allocation keeps from others."""
    for result in allocation.devices.results or ():
        if not result.admin_access:
            yield (result.driver, result.pool, result.device)


def _offers(slices: Mapping[str, ResourceSlice]) -> Iterator[Offer]:
    """The devices of every pool that is whole, in the order of driver, pool and device.

    Of a pool only the newest generation counts, and only when as many slices of it are there as it says.
    """
    pools: dict[tuple[str, str], list[ResourceSlice]] = {}
    for found in slices.values():
        pools.setdefault((found.spec.driver, found.spec.pool.name), []).append(found)
    for (driver, pool), parts in sorted(pools.items()):
        newest = max(found.spec.pool.generation for found in parts)
        current = [found for found in parts if found.spec.pool.generation == newest]
        if len(current) != current[0].spec.pool.resource_slice_count:
            continue
        pairs = [(device, found) for found in current for device in found.spec.devices or ()]
        for device, found in sorted(pairs, key=lambda pair: pair[0].name):
            yield Offer((driver, pool, device.name), device, found)


def _taken(
    claims: Mapping[ClaimKey, ResourceClaim], choices: Mapping[ClaimKey, Allocation]
) -> dict[DeviceId, tuple[ClaimKey, ...]]:
    taken: dict[DeviceId, tuple[ClaimKey, ...]] = {}
    for key in sorted(claims.keys() | choices.keys()):
        claim = claims.get(key)
        allocation = claim.status.allocation if claim is not None else None
        allocation = allocation or choices.get(key)
        for device in ids_of(allocation) if allocation is not None else ():
            taken[device] = (*taken.get(device, ()), key)
    return taken
