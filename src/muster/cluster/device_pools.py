"""Slices → the devices of whole pools, in the order in which they are given out, and what they are cut from.

Of a pool only the newest generation counts, and only when as many slices of it are there as it says and they
do not contradict each other.  In come slices; out come `Pools`.  Next: `devices.py`, which keeps them.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from muster.api.devices import Device, DeviceCapacity, Quantity, ResourceSlice
from muster.api.quantity import QuantityError, parse_quantity

DeviceId = tuple[str, str, str]  # driver, pool, device
CounterSetId = tuple[str, str, str]  # driver, pool, counter set
CounterId = tuple[str, str, str, str]  # driver, pool, counter set, counter


class Offer(NamedTuple):
    """A device with what its slice says of it.

    `rank`: its place in the order of giving out; `consumes`: what it takes of counters, in thousandths.
    """

    id: DeviceId
    device: Device
    slice: ResourceSlice
    rank: int = 0
    consumes: tuple[tuple[CounterId, int], ...] = ()

    @property
    def is_shared(self) -> bool:
        """Whether several claims may have it, each a share of its capacity."""
        return bool(self.device.allow_multiple_allocations)


class Pools:
    """The devices of whole pools, the same object while no slice and no class changes.

    `counters`: what there is of each counter, in thousandths; `sets`: the counters of each set, by name;
    `broken`: slices of pools that are not whole or contradict themselves; `found_out`: what readers have
    reckoned from devices and classes alone, by a key of theirs.
    """

    def __init__(
        self,
        offers: Sequence[Offer],
        counters: Mapping[CounterId, int] | None = None,
        broken: Sequence[ResourceSlice] = (),
    ) -> None:
        self.offers = tuple(offers)
        self.counters = dict(counters or {})
        self.sets: dict[CounterSetId, list[CounterId]] = {}
        for counter in sorted(self.counters):
            self.sets.setdefault(counter[:3], []).append(counter)
        self.broken = tuple(broken)
        self.consumers = {offer.id: offer.consumes for offer in self.offers if offer.consumes}
        self.found_out: dict[str, Any] = {}
        self._shared = {offer.id: offer.device for offer in self.offers if offer.is_shared}

    def capacities_of(self, device: DeviceId) -> dict[str, int]:
        """What there is of each capacity of a device that is given in shares, in thousandths."""
        found = self._shared.get(device)
        capacities = (found.capacity if found is not None else None) or {}
        return {name: amount_of(capacity.value) for name, capacity in capacities.items()}


def find_pools(slices: Mapping[str, ResourceSlice]) -> Pools:
    """Look through all slices.

    Pools come in the order of driver and name, those with devices that must become ready first at the end;
    devices in the order of their slices' names, then as listed.
    """
    found: dict[tuple[str, str], list[ResourceSlice]] = {}
    for _, each in sorted(slices.items()):
        found.setdefault((each.spec.driver, each.spec.pool.name), []).append(each)
    offers: list[tuple[bool, list[Offer]]] = []
    counters: dict[CounterId, int] = {}
    broken: list[ResourceSlice] = []
    for _, parts in sorted(found.items()):
        newest = max(each.spec.pool.generation for each in parts)
        current = [each for each in parts if each.spec.pool.generation == newest]
        try:
            of_pool = _counters_of(current)
            devices = list(_offers(current, of_pool))
        except _Contradiction:
            broken += current
            continue
        if len(current) != current[0].spec.pool.resource_slice_count:
            broken += current
            continue
        counters |= of_pool
        offers.append((any(offer.device.binding_conditions for offer in devices), devices))
    offers.sort(key=lambda pool: pool[0])
    in_order = [offer for _, devices in offers for offer in devices]
    return Pools([offer._replace(rank=rank) for rank, offer in enumerate(in_order)], counters, broken)


def amount_of(quantity: Quantity) -> int:
    """A capacity or counter in thousandths.  Raises   QuantityError."""
    return parse_quantity(quantity, milli=True)


class _Contradiction(ValueError):
    """The slices of a pool cannot all be true."""


def _counters_of(slices: Sequence[ResourceSlice]) -> dict[CounterId, int]:
    found: dict[CounterId, int] = {}
    names: set[str] = set()
    for each in slices:
        for counter_set in each.spec.shared_counters or ():
            if counter_set.name in names:
                raise _Contradiction
            names.add(counter_set.name)
            for name, counter in (counter_set.counters or {}).items():
                key = (each.spec.driver, each.spec.pool.name, counter_set.name, name)
                found[key] = _checked_amount(counter.value)
    return found


def _offers(slices: Sequence[ResourceSlice], counters: Mapping[CounterId, int]) -> Iterator[Offer]:
    names: set[str] = set()
    for each in slices:
        driver, pool = each.spec.driver, each.spec.pool.name
        for device in each.spec.devices or ():
            if device.name in names:
                raise _Contradiction
            names.add(device.name)
            for capacity in (device.capacity or {}).values():
                _check_capacity(capacity)
            consumes = tuple(
                ((driver, pool, part.counter_set, name), _checked_amount(counter.value))
                for part in device.consumes_counters or ()
                for name, counter in sorted((part.counters or {}).items())
            )
            if any(key not in counters for key, _ in consumes):
                raise _Contradiction
            if any(part.compatibility_groups for part in device.consumes_counters or ()):
                raise _Contradiction  # which devices go together is not known here (an alpha gate)
            yield Offer((driver, pool, device.name), device, each, consumes=consumes)


def _check_capacity(capacity: DeviceCapacity) -> None:
    policy = capacity.request_policy
    amounts: list[Quantity | None] = [capacity.value]
    if policy is not None:
        amounts += [policy.default, *(policy.valid_values or ())]
        if policy.valid_range is not None:
            amounts += [policy.valid_range.min, policy.valid_range.max, policy.valid_range.step]
    for amount in amounts:
        if amount is not None:
            _checked_amount(amount)


def _checked_amount(quantity: Quantity) -> int:
    try:
        amount = amount_of(quantity)
    except QuantityError as error:
        raise _Contradiction(str(error)) from error
    if amount < 0:
        raise _Contradiction
    return amount
