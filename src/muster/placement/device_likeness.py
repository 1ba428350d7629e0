"""Which devices are alike to a search: where one has been tried in vain, trying the other is needless.

Alike are devices between which no request and no constraint of these claims can tell, and of which as much is
taken.  Devices that are cut out of counters are alike when their counter sets are: as much is left, the same
devices can be cut out of them, and like ones of those are in use.  In come offers; out come keys to compare.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence

from muster.api.devices import DeviceRequest, ResourceClaim
from muster.cluster.device_pools import CounterSetId, DeviceId, Offer
from muster.placement.device_capacity import consumption
from muster.placement.device_ledger import Ledger
from muster.placement.device_selectors import find_attribute, selector_of, value_of

_PLAIN = DeviceRequest()
Eligible = Callable[[DeviceRequest, Offer], int]  # 0: the request may not have the device
_Holder = tuple[int, bool]  # claim, by admin access


class Likeness:
    """Keys of offers; `use` and `release` follow what the search gives to which claim."""

    def __init__(
        self,
        claims: Sequence[ResourceClaim],
        reached: Sequence[Sequence[Offer]],
        ledger: Ledger,
        eligible: Eligible,
        requests: Sequence[DeviceRequest],
    ) -> None:
        self._ledger = ledger
        self._eligible = eligible
        self._requests = requests
        self._attributes = attributes_of(claims)
        self._has_admins = any(request.admin_access for request in requests)
        self._holders: dict[DeviceId, list[_Holder]] = {}
        self._numbers: dict[Hashable, int] = {}
        self._static: dict[DeviceId, int] = {}
        self._reached_by: dict[DeviceId, list[int]] = {}
        self._cut_from: dict[CounterSetId, list[int]] = {}
        self._in_use: dict[CounterSetId, dict[tuple[int, _Holder], int]] = {}
        self._crossed: set[CounterSetId] = set()
        if all(offers is reached[0] for offers in reached[1:]):
            reached = reached[:1]
        else:
            for claim, offers in enumerate(reached):
                for offer in offers:
                    self._reached_by.setdefault(offer.id, []).append(claim)
        seen = {offer.id: offer for offers in reached for offer in offers if offer.consumes}
        for offer in seen.values():
            self._note(offer)

    def of(self, offer: Offer) -> Hashable:
        """Equal for devices that are alike now."""
        static: Hashable = self._number_of(offer)
        if self._has_admins:
            static = (static, self._ledger.is_used(offer.id), *sorted(self._holders.get(offer.id, ())))
        if not offer.consumes:
            return (static, self._ledger.share_of(offer.id)) if offer.is_shared else static
        shares = (self._ledger.is_used(offer.id), self._ledger.share_of(offer.id)) if offer.is_shared else ()
        return (static, shares, *(self._state_of(each) for each in _sets_of(offer)))

    def use(self, offer: Offer, claim: int, is_admin: bool = False) -> None:
        """The search has given the device to a claim."""
        if self._has_admins:
            self._holders.setdefault(offer.id, []).append((claim, is_admin))
        self._count(offer, (claim, is_admin), 1)

    def release(self, offer: Offer, claim: int, is_admin: bool = False) -> None:
        """The search has taken it back."""
        if self._has_admins:
            self._holders[offer.id].remove((claim, is_admin))
        self._count(offer, (claim, is_admin), -1)

    def _note(self, offer: Offer) -> None:
        sets = _sets_of(offer)
        if len(sets) > 1:
            self._crossed.update(sets)
        for each in sets:
            self._cut_from.setdefault(each, []).append(self._number_of(offer))

    def _count(self, offer: Offer, holder: _Holder, sign: int) -> None:
        for each in _sets_of(offer):
            users = self._in_use.setdefault(each, {})
            key = (self._number_of(offer), holder)
            users[key] = users.get(key, 0) + sign

    def _state_of(self, counter_set: CounterSetId) -> Hashable:
        if counter_set in self._crossed:
            return counter_set
        return (
            tuple(sorted(self._cut_from.get(counter_set, ()))),
            self._ledger.left_in(counter_set),
            tuple(sorted(item for item in self._in_use.get(counter_set, {}).items() if item[1])),
        )

    def _number_of(self, offer: Offer) -> int:
        """A number for all of a device that does not change in a search."""
        known = self._static.get(offer.id)
        if known is None:
            facts = (
                facts_of(offer, self._requests, self._attributes, self._eligible),
                tuple(self._reached_by.get(offer.id, ())),
                tuple((counter[3], amount) for counter, amount in offer.consumes),
                bool(offer.consumes) and self._ledger.is_used(offer.id),
            )
            known = self._static[offer.id] = self._numbers.setdefault(facts, len(self._numbers))
        return known


def facts_of(
    offer: Offer, requests: Sequence[DeviceRequest], attributes: Sequence[str], eligible: Eligible
) -> tuple[tuple[int, ...], Hashable]:
    """What a device is to each of these requests, and all that they and constraints see of it.

    `attributes`: those that constraints read.  Raises   SelectorError.
    """
    kinds = tuple(int(eligible(request, offer)) for request in requests)
    said = tuple(attribute_value(offer, name) for name in attributes)
    derived = tuple(
        attribute_value(offer, name, request) if kind else None
        for request, kind in zip(requests, kinds, strict=True)
        if request.derived_attributes
        for name in attributes
    )
    capacity: tuple[Hashable, ...] = ()
    if offer.is_shared:
        capacities = sorted((offer.device.capacity or {}).items())
        capacity = (
            *((name, str(each.value)) for name, each in capacities),
            *(consumption(offer.device, request.capacity) for request in requests),
        )
    return kinds, (said, derived, capacity)


def attribute_value(offer: Offer, name: str, request: DeviceRequest = _PLAIN) -> Hashable:
    """What a device says under this name, as constraints compare it; None where it says nothing.

    A request may say it for the device (derived attributes).  Raises   SelectorError where that fails.
    """
    for derived in request.derived_attributes or ():
        if derived.name == name:
            return selector_of(derived.expression).value(offer.id[0], offer.device)
    attribute = find_attribute(offer.id[0], offer.device, name)
    return value_of(attribute) if attribute is not None else None


def attributes_of(claims: Iterable[ResourceClaim]) -> list[str]:
    """The attributes that constraints of these claims read."""
    return sorted(
        {
            name
            for claim in claims
            for constraint in claim.spec.devices.constraints or ()
            for name in (constraint.match_attribute, constraint.distinct_attribute)
            if name
        }
    )


def _sets_of(offer: Offer) -> list[CounterSetId]:
    return list(dict.fromkeys(counter[:3] for counter, _ in offer.consumes))
