"""Requests → devices: which devices of a node several claims get between them, or that there is no way.

A complete search with a bound: requests in turn, alternatives in the order in which they were asked for,
devices in the order of their names; of devices that are alike only the first is tried.  In come the claims
and the devices that a node reaches; out comes an allocation for each claim, or None.  Next:
`plugins/dynamic_resources.py`, which asks for every node.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from msgspec import Struct

from muster.api.devices import ALL, Device, DeviceConstraint, DeviceRequest, DeviceTaint, ResourceClaim
from muster.cluster.devices import DeviceId, Offer
from muster.placement.device_selectors import find_attribute, value_of

STEPS_MAX = 20_000
DEVICES_PER_CLAIM_MAX = 32  # the API takes no more results


class GaveUp(Exception):
    """The search took more steps than it may; whether there is a way is not known."""


class Given(NamedTuple):
    """One device for one request; `request` is "name", or "name/alternative"."""

    request: str
    offer: Offer
    is_admin: bool


Eligible = Callable[[DeviceRequest, Offer], bool]


class _Slot(NamedTuple):
    """One request of one claim: by its name, and what would do, the first choice first."""

    claim: int
    name: str
    choices: tuple[tuple[str, DeviceRequest], ...]


class Counter(Struct):
    """Steps left; shared by all parts of one search."""

    left: int = STEPS_MAX

    def step(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise GaveUp


def allocate(
    claims: Sequence[ResourceClaim],
    offers: Sequence[Offer],
    is_taken: Callable[[DeviceId], bool],
    eligible: Eligible,
    counter: Counter | None = None,
) -> tuple[tuple[Given, ...], ...] | None:
    """Give every claim its devices out of `offers`; None when there is no way.

    `is_taken`: somebody else has the device; `eligible`: it is of the class and meets selectors and taints.
    Raises   GaveUp after `STEPS_MAX` steps; whatever `eligible` raises.
    """
    search = _Search(claims, offers, is_taken, eligible, counter or Counter())
    return search.run()


class _Search:
    """The state of one search; every step is taken back by whoever took it."""

    def __init__(
        self,
        claims: Sequence[ResourceClaim],
        offers: Sequence[Offer],
        is_taken: Callable[[DeviceId], bool],
        eligible: Eligible,
        counter: Counter,
    ) -> None:
        self._claims = claims
        self._offers = offers
        self._is_taken = [is_taken(offer.id) for offer in offers]
        self._eligible = eligible
        self._counter = counter
        self._used = [False] * len(offers)
        self._given: list[list[tuple[Given, int]]] = [[] for _ in claims]
        self._slots = [slot for index, claim in enumerate(claims) for slot in _slots_of(index, claim)]
        self._attributes = sorted(
            {
                name
                for claim in claims
                for constraint in claim.spec.devices.constraints or ()
                for name in (constraint.match_attribute, constraint.distinct_attribute)
                if name
            }
        )

    def run(self) -> tuple[tuple[Given, ...], ...] | None:
        if not self._fill(0):
            return None
        return tuple(tuple(given for given, _ in found) for found in self._given)

    def _fill(self, position: int) -> bool:
        if position == len(self._slots):
            return True
        slot = self._slots[position]
        for name, request in slot.choices:
            self._counter.step()
            fitting = [i for i, offer in enumerate(self._offers) if self._eligible(request, offer)]
            if request.allocation_mode == ALL:
                if self._take_all(slot, name, request, fitting, position):
                    return True
            elif self._take(slot, name, request, fitting, request.count, position):
                return True
        return False

    def _take_all(
        self, slot: _Slot, name: str, request: DeviceRequest, fitting: list[int], position: int
    ) -> bool:
        """Every device that would do, and none of them in other hands."""
        if not fitting or any(not self._is_free(i, request) for i in fitting):
            return False
        before = len(self._given[slot.claim])
        fits = all(self._give(slot, name, request, i) for i in fitting)
        if fits and self._fill(position + 1):
            return True
        while len(self._given[slot.claim]) > before:
            self._take_back(slot, request)
        return False

    def _take(
        self,
        slot: _Slot,
        name: str,
        request: DeviceRequest,
        fitting: list[int],
        count: int,
        position: int,
        start: int = 0,
    ) -> bool:
        """`count` more of the fitting devices, from the one at `start` on."""
        if not count:
            return self._fill(position + 1)
        tried: set[object] = set()
        for place in range(start, len(fitting) - count + 1):
            index = fitting[place]
            self._counter.step()
            if not self._is_free(index, request):
                continue
            like = self._likeness(index)
            if like in tried:
                continue
            tried.add(like)
            if self._give(slot, name, request, index):
                if self._take(slot, name, request, fitting, count - 1, position, place + 1):
                    return True
                self._take_back(slot, request)
        return False

    def _is_free(self, index: int, request: DeviceRequest) -> bool:
        return request.admin_access or not (self._used[index] or self._is_taken[index])

    def _likeness(self, index: int) -> object:
        """Equal for devices between which no request and no constraint of these claims can tell."""
        offer = self._offers[index]
        kinds = tuple(self._eligible(request, offer) for slot in self._slots for _, request in slot.choices)
        return kinds, tuple(attribute_value(offer, name) for name in self._attributes)

    def _give(self, slot: _Slot, name: str, request: DeviceRequest, index: int) -> bool:
        """Take a device for a slot if the constraints of its claim allow it beside the others."""
        found = self._given[slot.claim]
        if len(found) >= DEVICES_PER_CLAIM_MAX:
            return False
        offer = self._offers[index]
        given = [*(other for other, _ in found), Given(name, offer, request.admin_access)]
        for constraint in self._claims[slot.claim].spec.devices.constraints or ():
            if not _allows(constraint, given):
                return False
        found.append((given[-1], index))
        if not request.admin_access:
            self._used[index] = True
        return True

    def _take_back(self, slot: _Slot, request: DeviceRequest) -> None:
        _, index = self._given[slot.claim].pop()
        if not request.admin_access:
            self._used[index] = False


def tolerates(request: DeviceRequest, taint: DeviceTaint) -> bool:
    """Whether a request bears a taint of a device; only NoSchedule and NoExecute keep anybody off."""
    if taint.effect not in ("NoSchedule", "NoExecute"):
        return True
    return any(
        (not each.effect or each.effect == taint.effect)
        and (not each.key or each.key == taint.key)
        and (each.operator == "Exists" or each.value == taint.value)
        and (each.key or each.operator == "Exists")
        for each in request.tolerations or ()
    )


def requests_of(claim: ResourceClaim) -> Iterator[tuple[str, DeviceRequest]]:
    """Every request and alternative of a claim, by the name that results have."""
    for slot in _slots_of(0, claim):
        yield from slot.choices


def is_exclusive(device: Device) -> bool:
    """Whether Muster gives the device out: one that is divided, or bound later, is not understood yet."""
    return not (device.consumes_counters or device.binding_conditions)


def _slots_of(index: int, claim: ResourceClaim) -> Iterator[_Slot]:
    for request in claim.spec.devices.requests or ():
        if request.exactly is not None:
            yield _Slot(index, request.name, ((request.name, request.exactly),))
        else:
            alternatives = request.first_available or ()
            named = tuple((f"{request.name}/{each.name}", each) for each in alternatives)
            yield _Slot(index, request.name, named)


def _allows(constraint: DeviceConstraint, given: Sequence[Given]) -> bool:
    """Whether the newest of these devices keeps the constraint with those before it."""
    about = constraint.requests
    concerned = [each for each in given if not about or _is_about(each.request, about)]
    if not concerned or concerned[-1] is not given[-1]:
        return True
    name = constraint.match_attribute or constraint.distinct_attribute or ""
    values = [attribute_value(each.offer, name) for each in concerned]
    if values[-1] is None:
        return False
    if constraint.match_attribute:
        return values[-1] == values[0]
    return values[-1] not in values[:-1]


def _is_about(request: str, about: Sequence[str]) -> bool:
    return request in about or request.partition("/")[0] in about


def attribute_value(offer: Offer, name: str) -> object:
    """What a device says under this name, as constraints compare it; None where it says nothing."""
    attribute = find_attribute(offer.id[0], offer.device, name)
    return value_of(attribute) if attribute is not None else None
