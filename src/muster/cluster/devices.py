"""Devices and claims as known, and what this scheduler has allocated and nobody has seen written yet.

In come API objects as they are seen, and choices: an allocation for a claim.  Out comes a frozen picture that
is the same object until something changes.  Changed only inside `Scheduler.handle`.  Next:
`placement/device_allocation.py`, which allocates on the picture.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, TypeVar

from muster.api.core import Pod, PodClaim
from muster.api.devices import (
    AllocatedDevice,
    Allocation,
    Consumer,
    DeviceClass,
    DeviceObject,
    DeviceTaintRule,
    ResourceClaim,
    ResourceSlice,
)
from muster.api.meta import is_older
from muster.api.quantity import INT64_MAX, QuantityError
from muster.cluster.device_pools import CounterId, DeviceId, Pools, amount_of, find_pools
from muster.cluster.device_taints import with_taints
from muster.cluster.device_takings import Share, Takings
from muster.cluster.extended_resources import backed_by, is_extended_claim_of, unwritten_key

ClaimKey = tuple[str, str]  # namespace, name
_T = TypeVar("_T")


class GroupClaims(NamedTuple):
    """Claims that are reserved for a pod group as a whole, by the group's own references."""

    uid: str
    claims: tuple[PodClaim, ...]


class Devices(NamedTuple):
    """What is known; never changed.

    `choices`: allocations of ours that the API does not show yet.  `taken`: device → the claims that have it,
    by the API or by choice, admin access apart.  `shares`: of devices that are given in shares, what is taken
    of each capacity; `spent`: what is taken of each counter; both in thousandths.  `groups`: namespace and
    name → claims of pod groups that have any.  `backed`: extended resource → class that backs it.  `freed`:
    claims whose devices we have asked back, as far as that is not seen.
    """

    slices: Mapping[str, ResourceSlice]
    classes: Mapping[str, DeviceClass]
    claims: Mapping[ClaimKey, ResourceClaim]
    choices: Mapping[ClaimKey, Allocation]
    taken: Mapping[DeviceId, tuple[ClaimKey, ...]]
    pools: Pools
    shares: Mapping[DeviceId, Mapping[str, int]] = {}
    spent: Mapping[CounterId, int] = {}
    groups: Mapping[ClaimKey, GroupClaims] = {}
    backed: Mapping[str, str] = {}
    freed: frozenset[ClaimKey] = frozenset()

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
        self._taint_rules: dict[str, DeviceTaintRule] = {}
        self._classes: dict[str, DeviceClass] = {}
        self._claims: dict[ClaimKey, ResourceClaim] = {}
        self._choices: dict[ClaimKey, Allocation] = {}
        self._groups: dict[ClaimKey, GroupClaims] = {}
        self._frozen: Devices | None = NO_DEVICES
        self._pools: Pools | None = NO_DEVICES.pools
        self._backed: Mapping[str, str] | None = None
        self._freed: dict[ClaimKey, str] = {}  # claim → the version of it that we have asked to be freed
        self._holders: dict[DeviceId, dict[ClaimKey, None]] = {}  # of whole devices, by the API
        self._made_for: dict[str, dict[ClaimKey, None]] = {}  # uid of a pod → in place of extended resources
        self._takings = Takings()

    def apply(self, found: DeviceObject) -> bool:
        """Take over an object as seen; False if it is older than what is known."""
        meta = found.metadata
        known = self._find(type(found), (meta.namespace, meta.name))
        if known is not None and known.metadata.uid == meta.uid and is_older(found.metadata, known.metadata):
            return False
        if isinstance(found, ResourceSlice):
            self._slices[meta.name] = found
            self._pools = None
        elif isinstance(found, DeviceTaintRule):
            self._taint_rules[meta.name] = found
            self._pools = None
        elif isinstance(found, DeviceClass):
            self._classes[meta.name] = found
            self._pools = self._backed = None
        else:
            if self._freed.get((meta.namespace, meta.name)) != meta.resource_version:
                self._freed.pop((meta.namespace, meta.name), None)
            self._index((meta.namespace, meta.name), found)
            self._claims[meta.namespace, meta.name] = found
            if found.status.allocation is not None:
                self._choices.pop((meta.namespace, meta.name), None)
                self._see_made(found, found.status.allocation)
            self._count((meta.namespace, meta.name))
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
        elif isinstance(known, DeviceTaintRule):
            del self._taint_rules[key[1]]
            self._pools = None
        elif isinstance(known, DeviceClass):
            del self._classes[key[1]]
            self._pools = self._backed = None
        else:
            self._index(key, None)
            del self._claims[key]
            self._choices.pop(key, None)
            self._freed.pop(key, None)
            self._count(key)
        self._frozen = None
        return known

    def find_claim(self, key: ClaimKey) -> ResourceClaim | None:
        """A claim as the API shows it."""
        return self._claims.get(key)

    def holders_of(self, device: DeviceId) -> tuple[ClaimKey, ...]:
        """The claims that have all of a device as the API shows them, in the order in which that was seen."""
        return tuple(self._holders.get(device, ()))

    def made_for(self, uid: str) -> tuple[ResourceClaim, ...]:
        """The claims that have been made in place of a pod's extended resources, as the API shows them."""
        return tuple(self._claims[key] for key in self._made_for.get(uid, ()))

    def choose(self, key: ClaimKey, allocation: Allocation) -> None:
        """Count a claim as allocated before the API agrees."""
        self._choices[key] = allocation
        self._count(key)
        self._frozen = None

    def unchoose(self, key: ClaimKey) -> None:
        """The choice is given up; what the API shows counts again."""
        if self._choices.pop(key, None) is not None:
            self._count(key)
            self._frozen = None

    def free(self, key: ClaimKey, version: str) -> None:
        """The devices of a claim have been asked back: nobody counts on them until it is seen changed."""
        self._freed[key] = version
        self._frozen = None

    def is_freed(self, key: ClaimKey) -> bool:
        """Whether the devices of a claim have been asked back and it is not seen changed since."""
        return key in self._freed

    def see_group(self, key: ClaimKey, uid: str, claims: tuple[PodClaim, ...]) -> None:
        """A pod group has these claims; one without any is not kept."""
        found = GroupClaims(uid, claims) if claims else None
        if found == self._groups.get(key):
            return
        if found is None:
            del self._groups[key]
        else:
            self._groups[key] = found
        self._frozen = None

    @property
    def backed(self) -> Mapping[str, str]:
        """Extended resource → the class that backs it."""
        if self._backed is None:
            self._backed = backed_by(self._classes.values())
        return self._backed

    def freeze(self) -> Devices:
        """The picture now: the same object until something changes."""
        if self._pools is None:
            self._pools = find_pools(with_taints(self._slices, self._taint_rules))
        if self._frozen is None:
            claims, choices = dict(self._claims), dict(self._choices)
            taken, shares = self._takings.picture()
            self._frozen = Devices(
                slices=dict(self._slices),
                classes=dict(self._classes),
                claims=claims,
                choices=choices,
                taken=taken,
                pools=self._pools,
                shares=shares,
                spent=spent_by(taken, self._pools),
                groups=dict(self._groups),
                backed=self.backed,
                freed=frozenset(self._freed),
            )
        return self._frozen

    def _see_made(self, found: ResourceClaim, allocation: Allocation) -> None:
        """A claim in place of extended resources that has what was chosen for it: no choice any more."""
        key = unwritten_key(found.metadata.namespace, is_extended_claim_of(found))
        chosen = self._choices.get(key)
        if chosen is not None and _ids_in(chosen) == _ids_in(allocation):
            del self._choices[key]
            self._count(key)

    def _count(self, key: ClaimKey) -> None:
        """Count what the claim has now, by the API or by choice."""
        claim = self._claims.get(key)
        allocation = claim.status.allocation if claim is not None else None
        allocation = allocation or self._choices.get(key)
        self._takings.put(key, list(given_in(allocation)) if allocation is not None else ())

    def _index(self, key: ClaimKey, found: ResourceClaim | None) -> None:
        """The claim is what this version of it says (None: it is gone), and no longer what the last said."""
        known = self._claims.get(key)
        _move(self._holders, key, set(whole_devices(known)), set(whole_devices(found)))
        _move(self._made_for, key, _pods_in_place(known), _pods_in_place(found))

    def _find(self, kind: type, key: ClaimKey) -> DeviceObject | None:
        if kind is ResourceSlice:
            return self._slices.get(key[1])
        if kind is DeviceTaintRule:
            return self._taint_rules.get(key[1])
        return self._classes.get(key[1]) if kind is DeviceClass else self._claims.get(key)


def device_claims_of(pod: Pod) -> tuple[tuple[str, ClaimKey | None], ...]:
    """The claims of a pod: by what the pod calls them, and their keys (None: not made yet).

    Not those for which its status says that none is needed.
    """
    made = {status.name: status.resource_claim_name for status in pod.status.resource_claim_statuses or ()}
    found: list[tuple[str, ClaimKey | None]] = []
    for wanted in pod.spec.resource_claims or ():
        name = wanted.resource_claim_name or made.get(wanted.name)
        if not name and wanted.name in made:
            continue
        found.append((wanted.name, (pod.metadata.namespace, name) if name else None))
    return tuple(found)


def user_of(pod: Pod, name: str, devices: Devices) -> Consumer:
    """For whom a claim is reserved that a pod calls `name`: its group if the group has the very claim."""
    chosen = pod.spec.scheduling_group
    group_name = (chosen.pod_group_name or "") if chosen is not None else ""
    group = devices.groups.get((pod.metadata.namespace, group_name))
    if group is not None and any(
        wanted.name == name and wanted in group.claims for wanted in pod.spec.resource_claims or ()
    ):
        return Consumer("podgroups", group_name, group.uid, "scheduling.k8s.io")
    return Consumer("pods", pod.metadata.name, pod.metadata.uid)


def given_in(allocation: Allocation) -> Iterator[tuple[DeviceId, Share | None]]:
    """The devices that an allocation keeps from others: all of it (None), or so much of each capacity."""
    for result in allocation.devices.results or ():
        if not result.admin_access:
            yield (result.driver, result.pool, result.device), _share_of(result)


def whole_devices(claim: ResourceClaim | None) -> list[DeviceId]:
    """The devices that the API shows as this claim's alone."""
    allocation = claim.status.allocation if claim is not None else None
    return [device for device, share in given_in(allocation) if share is None] if allocation else []


def spent_by(devices: Iterable[DeviceId], pools: Pools) -> dict[CounterId, int]:
    """What these devices, once each, take of the counters of their pools."""
    spent: dict[CounterId, int] = {}
    if pools.consumers:
        for device in devices:
            for counter, amount in pools.consumers.get(device, ()):
                spent[counter] = spent.get(counter, 0) + amount
    return spent


def _pods_in_place(claim: ResourceClaim | None) -> set[str]:
    uid = is_extended_claim_of(claim) if claim is not None else ""
    return {uid} if uid else set()


def _move(index: dict[_T, dict[ClaimKey, None]], key: ClaimKey, before: set[_T], after: set[_T]) -> None:
    """A claim that was found under `before` is found under `after`."""
    for each in before - after:
        del index[each][key]
        if not index[each]:
            del index[each]
    for each in after:
        index.setdefault(each, {})[key] = None


def _ids_in(allocation: Allocation) -> list[tuple[DeviceId, str | None]]:
    results = allocation.devices.results or ()
    return [((each.driver, each.pool, each.device), each.share_id) for each in results]


def _share_of(result: AllocatedDevice) -> dict[str, int] | None:
    if result.share_id is None:
        return None
    share: dict[str, int] = {}
    for name, quantity in (result.consumed_capacity or {}).items():
        try:
            share[name] = amount_of(quantity)
        except QuantityError:
            share[name] = INT64_MAX  # nobody can tell: nothing is left of it
    return share
