"""Why a node cannot give claims their devices, in one clause for the person whose job is pending.

In come claims, a row, what it reaches and what others of the trial have; out comes a text that names the
claim, its request, what is short, and a pool that is not whole.  Next: `plugins/dynamic_resources.py`.
"""

from collections.abc import Iterable, Iterator, Sequence

from muster.api.devices import ALL, DeviceRequest, ResourceClaim, ResourceSlice
from muster.cluster.device_pools import Offer
from muster.cluster.devices import ClaimKey
from muster.placement.device_allocation import (
    DEVICES_PER_CLAIM_MAX,
    FIT,
    TAINTED,
    Given,
    requests_of,
    tolerates,
)
from muster.placement.device_capacity import consumption
from muster.placement.device_ledger import Ledger
from muster.placement.device_likeness import attribute_value
from muster.placement.device_offers import DeviceOffers

_TOGETHER = "there are devices for each request, not for all of them together"
_UNDER_CONSTRAINTS = "there are devices for each request, but not together within its constraints"
_NO_ATTRIBUTE = "names an attribute that no device there has"


def find_lack(claims: Sequence[ClaimKey], row: int, offers: DeviceOffers, given: Iterable[Given]) -> str:
    """What the row lacks for these claims beside what was given already: the first that is found.

    Raises   SelectorError.
    """
    ledger = Ledger(offers.devices)
    for each in given:
        if not each.is_admin:
            ledger.give(each.offer, each.amounts)
    unwhole = "".join(f"{text}; " for text in list(_unwhole(offers.broken_on(row)))[:1])
    for key in claims:
        claim = offers.claim_of(key)
        for name, alternatives in _alternatives(claim):
            lacks = [_lack(request, offers.on(row), offers, ledger) for request in alternatives]
            if all(lacks):
                return f"{unwhole}{_called(key, offers)}: request {name} {lacks[0]}"
        wanted = sum(_least(alternatives, offers.on(row), offers) for _, alternatives in _alternatives(claim))
        if wanted > DEVICES_PER_CLAIM_MAX:
            too_many = f"asks for {wanted} devices there, and a claim takes {DEVICES_PER_CLAIM_MAX} at most"
            return f"{unwhole}{_called(key, offers)}: {too_many}: share them out among several claims"
    constrained = next((key for key in claims if offers.claim_of(key).spec.devices.constraints), None)
    if constrained is not None:
        lack = _lack_under_constraints(offers.claim_of(constrained), offers.on(row))
        return f"{unwhole}{_called(constrained, offers)}: {lack}"
    return f"{unwhole}{_called(claims[0], offers)}: {_TOGETHER}"


def _called(key: ClaimKey, offers: DeviceOffers) -> str:
    return "in place of extended resources" if key in offers.unwritten else f"claim {'/'.join(key)}"


def _alternatives(claim: ResourceClaim) -> Iterator[tuple[str, list[DeviceRequest]]]:
    """Every request of a claim by its name, with all that would do."""
    found: dict[str, list[DeviceRequest]] = {}
    for name, request in requests_of(claim):
        found.setdefault(name.partition("/")[0], []).append(request)
    yield from found.items()


def _lack(request: DeviceRequest, reached: Sequence[Offer], offers: DeviceOffers, ledger: Ledger) -> str:
    """What one request lacks if it were the only one; "" if nothing."""
    answers = [(offers.eligible(request, offer), offer) for offer in reached]
    fitting = [offer for answer, offer in answers if answer == FIT]
    tainted = [offer for answer, offer in answers if answer == TAINTED]
    free = [offer for offer in fitting if _is_free(request, offer, ledger)]
    is_for_all = request.allocation_mode == ALL
    wanted = max(len(fitting), 1) if is_for_all else request.count
    if len(free) >= wanted and not (is_for_all and tainted):
        return ""
    asks = f"asks for {'all' if is_for_all else wanted} of class {request.device_class_name}"
    amounts = request.capacity.requests if request.capacity is not None else None
    if amounts:
        asks += f" with {', '.join(f'{name} {amount}' for name, amount in sorted(amounts.items()))}"
    if not reached:
        return f"{asks}: no devices are published there"
    would = f"of {len(reached)} devices there {len(fitting)} would do"
    have = f"{would}, {len(free)} free" if fitting else would
    return f"{asks}: {have}{_but_for_taints(request, tainted)}"


def _least(alternatives: Sequence[DeviceRequest], reached: Sequence[Offer], offers: DeviceOffers) -> int:
    """How many devices a request takes at least."""
    return min(
        sum(offers.eligible(request, offer) == FIT for offer in reached)
        if request.allocation_mode == ALL
        else request.count
        for request in alternatives
    )


def _lack_under_constraints(claim: ResourceClaim, reached: Sequence[Offer]) -> str:
    """The constraint that no device can meet, or all of them."""
    said: list[str] = []
    asked = [request for _, request in requests_of(claim)]
    for constraint in claim.spec.devices.constraints or ():
        kind = "matchAttribute" if constraint.match_attribute else "distinctAttribute"
        name = constraint.match_attribute or constraint.distinct_attribute or ""
        if all(attribute_value(offer, name, each) is None for offer in reached for each in asked):
            return f"{kind} {name} {_NO_ATTRIBUTE}"
        said.append(f"{kind} {name}")
    return f"{_UNDER_CONSTRAINTS} ({', '.join(said)})"


def _is_free(request: DeviceRequest, offer: Offer, ledger: Ledger) -> bool:
    amounts = (consumption(offer.device, request.capacity) or ()) if offer.is_shared else ()
    return request.admin_access or ledger.is_free(offer, amounts)


def _but_for_taints(request: DeviceRequest, tainted: Sequence[Offer]) -> str:
    if not tainted:
        return ""
    taints = (taint for offer in tainted for taint in offer.device.taints or ())
    key = next(taint.key for taint in taints if not tolerates(request, taint))
    return f", {len(tainted)} more but for taint {key}"


def _unwhole(slices: Sequence[ResourceSlice]) -> Iterator[str]:
    """Pools of which slices are missing, or contradict each other."""
    for pool in dict.fromkeys((each.spec.driver, each.spec.pool) for each in slices):
        driver, about = pool
        count = sum((each.spec.driver, each.spec.pool) == pool for each in slices)
        name = f"pool {driver}/{about.name}"
        if count != about.resource_slice_count:
            yield f"{name} is not whole: {count} of {about.resource_slice_count} slices"
        else:
            yield f"the slices of {name} contradict each other, or have compatibilityGroups"
