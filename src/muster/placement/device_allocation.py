"""Requests → devices: which devices of a node several claims get between them, or that there is no way.

A complete search with a bound: requests in turn, alternatives in the order in which they were asked for,
devices in the order of the offers; of devices that are alike only the first is tried.  In come the claims
and the devices that a node reaches; out comes an allocation for each claim, or None.  Next:
`plugins/dynamic_resources.py`, which asks for every node.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from muster.api.devices import ALL, DeviceConstraint, DeviceRequest, DeviceTaint, ResourceClaim
from muster.cluster.device_pools import Offer
from muster.placement.device_capacity import Amount, consumption
from muster.placement.device_ledger import Ledger
from muster.placement.device_likeness import Eligible, Likeness, attribute_value

STEPS_MAX = 20_000
DEVICES_PER_CLAIM_MAX = 32  # the API takes no more results
UNFIT, FIT, TAINTED = 0, 1, 2  # a device to a request; tainted: it would do but for a taint


class GaveUp(Exception):
    """The search took more steps than it may; whether there is a way is not known."""


class Given(NamedTuple):
    """One device for one request; `request` is "name", or "name/alternative".

    `amounts`: what it takes of the capacities of a device that is given in shares.
    """

    request: str
    offer: Offer
    is_admin: bool
    amounts: tuple[Amount, ...] = ()


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


class Reach(NamedTuple):
    """The devices that a claim may be given, in the order of giving out.

    `is_whole`: no pool is being changed, or contradicts itself; otherwise nobody knows what "all" is.
    """

    offers: Sequence[Offer]
    is_whole: bool = True


def allocate(
    claims: Sequence[ResourceClaim],
    reach: Reach | Sequence[Reach],
    ledger: Ledger,
    eligible: Eligible,
    counter: Counter | None = None,
) -> tuple[tuple[Given, ...], ...] | None:
    """Give every claim its devices out of what it reaches (one reach: all the same); None: there is no way.

    `ledger`: what others have; no use any more after a search that gave up.  `eligible`: whether a device is
    of the class, meets selectors and has the capacity (FIT), all that but a taint (TAINTED), or not (UNFIT).
    Raises   GaveUp after `STEPS_MAX` steps; whatever `eligible` raises.
    """
    reaches = [reach] * len(claims) if isinstance(reach, Reach) else reach
    return _Search(claims, reaches, ledger, eligible, counter or Counter()).run()


class _Search:
    """The state of one search; every step is taken back by whoever took it."""

    def __init__(
        self,
        claims: Sequence[ResourceClaim],
        reaches: Sequence[Reach],
        ledger: Ledger,
        eligible: Eligible,
        counter: Counter,
    ) -> None:
        self._claims = claims
        self._reaches = reaches
        self._ledger = ledger
        self._eligible = eligible
        self._counter = counter
        self._given: list[list[Given]] = [[] for _ in claims]
        self._slots = [slot for index, claim in enumerate(claims) for slot in _slots_of(index, claim)]
        self._asked = [dict(requests_of(claim)) for claim in claims]
        self._fitting: dict[tuple[int, int], tuple[list[Offer], bool]] = {}
        requests = [request for slot in self._slots for _, request in slot.choices]
        self._likeness = Likeness(claims, [reach.offers for reach in reaches], ledger, eligible, requests)

    def run(self) -> tuple[tuple[Given, ...], ...] | None:
        if not all(map(self._may_be_filled, range(len(self._slots)))) or not self._fill(0):
            return None
        for claim, found in enumerate(self._given):
            for given in found:
                self._release(given, claim)
        return tuple(tuple(found) for found in self._given)

    def _may_be_filled(self, position: int) -> bool:
        """Whether there would be enough if nobody else had anything."""
        for choice, (_, request) in enumerate(self._slots[position].choices):
            fitting, _ = self._fitting_for(position, choice)
            if len(fitting) >= (1 if request.allocation_mode == ALL else request.count):
                return True
        return False

    def _fill(self, position: int) -> bool:
        if position == len(self._slots):
            return True
        slot = self._slots[position]
        for choice, (name, request) in enumerate(slot.choices):
            self._counter.step()
            fitting, is_tainted = self._fitting_for(position, choice)
            if request.allocation_mode == ALL:
                if not is_tainted and self._take_all(slot, name, request, fitting, position):
                    return True
            elif self._take(slot, name, request, fitting, request.count, position):
                return True
        return False

    def _fitting_for(self, position: int, choice: int) -> tuple[list[Offer], bool]:
        """The devices that would do, and whether a taint keeps the request off others."""
        known = self._fitting.get((position, choice))
        if known is None:
            slot = self._slots[position]
            request = slot.choices[choice][1]
            answers = [(self._eligible(request, offer), offer) for offer in self._reaches[slot.claim].offers]
            fitting = [offer for answer, offer in answers if answer == FIT]
            known = self._fitting[position, choice] = (fitting, any(each == TAINTED for each, _ in answers))
        return known

    def _take_all(
        self, slot: _Slot, name: str, request: DeviceRequest, fitting: list[Offer], position: int
    ) -> bool:
        """Every device that would do, and none of them in other hands."""
        if not fitting or not self._reaches[slot.claim].is_whole:
            return False
        before = len(self._given[slot.claim])
        fits = all(self._give(slot, name, request, offer) for offer in fitting)
        if fits and self._fill(position + 1):
            return True
        while len(self._given[slot.claim]) > before:
            self._take_back(slot)
        return False

    def _take(
        self,
        slot: _Slot,
        name: str,
        request: DeviceRequest,
        fitting: list[Offer],
        count: int,
        position: int,
        start: int = 0,
    ) -> bool:
        """`count` more of the fitting devices, from the one at `start` on."""
        if not count:
            return self._fill(position + 1)
        tried: set[object] = set()
        for place in range(start, len(fitting) - count + 1):
            offer = fitting[place]
            self._counter.step()
            like = self._likeness.of(offer)
            if like in tried:
                continue
            if self._give(slot, name, request, offer):
                tried.add(like)
                if self._take(slot, name, request, fitting, count - 1, position, place + 1):
                    return True
                self._take_back(slot)
        return False

    def _give(self, slot: _Slot, name: str, request: DeviceRequest, offer: Offer) -> bool:
        """Take a device for a slot if it is free and the constraints of its claim allow it as well."""
        found = self._given[slot.claim]
        if len(found) >= DEVICES_PER_CLAIM_MAX:
            return False
        amounts = (consumption(offer.device, request.capacity) or ()) if offer.is_shared else ()
        given = Given(name, offer, request.admin_access, amounts)
        if not offer.is_shared and any(each.offer.id == offer.id for each in found):
            return False
        if not request.admin_access and not self._ledger.is_free(offer, amounts):
            return False
        for constraint in self._claims[slot.claim].spec.devices.constraints or ():
            if not _allows(constraint, [*found, given], self._asked[slot.claim]):
                return False
        found.append(given)
        if not given.is_admin:
            self._ledger.give(offer, amounts)
        self._likeness.use(given.offer, slot.claim, given.is_admin)
        return True

    def _take_back(self, slot: _Slot) -> None:
        self._release(self._given[slot.claim].pop(), slot.claim)

    def _release(self, given: Given, claim: int) -> None:
        if not given.is_admin:
            self._ledger.take_back(given.offer, given.amounts)
        self._likeness.release(given.offer, claim, given.is_admin)


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


def _slots_of(index: int, claim: ResourceClaim) -> Iterator[_Slot]:
    for request in claim.spec.devices.requests or ():
        if request.exactly is not None:
            yield _Slot(index, request.name, ((request.name, request.exactly),))
        else:
            alternatives = request.first_available or ()
            named = tuple((f"{request.name}/{each.name}", each) for each in alternatives)
            yield _Slot(index, request.name, named)


def _allows(constraint: DeviceConstraint, given: Sequence[Given], asked: Mapping[str, DeviceRequest]) -> bool:
    """Whether the newest of these devices keeps the constraint with those before it."""
    about = constraint.requests
    concerned = [each for each in given if not about or _is_about(each.request, about)]
    if not concerned or concerned[-1] is not given[-1]:
        return True
    name = constraint.match_attribute or constraint.distinct_attribute or ""
    values = [attribute_value(each.offer, name, asked[each.request]) for each in concerned]
    if values[-1] is None:
        return False
    if constraint.match_attribute:
        return values[-1] == values[0]
    return values[-1] not in values[:-1]


def _is_about(request: str, about: Sequence[str]) -> bool:
    return request in about or request.partition("/")[0] in about
