"""Which devices each node reaches, which of them a request may have, and what pods of a trial have taken.

In come the devices of a snapshot and its nodes; out go offers by row and whether claims can be met there,
asked once for all rows whose free devices are alike.  Next: `device_allocation.py`, which searches one row,
and `device_trials.py`, which adds up what members of a gang get.  Axis: N node rows.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from muster.api.core import Node, NodeSelector
from muster.api.devices import Device, DeviceRequest, ResourceClaim, ResourceSlice, SliceSpec
from muster.api.quantity import QuantityError
from muster.api.selectors import matches_node_term
from muster.base.arrays import Bool, Int8, Int32
from muster.cluster.device_pools import CounterId, CounterSetId, DeviceId, Offer, Pools
from muster.cluster.devices import ClaimKey
from muster.cluster.snapshot import Snapshot
from muster.placement.device_allocation import (
    FIT,
    TAINTED,
    UNFIT,
    GaveUp,
    Reach,
    allocate,
    requests_of,
    tolerates,
)
from muster.placement.device_capacity import consumption
from muster.placement.device_ledger import Ledger
from muster.placement.device_likeness import attributes_of, facts_of
from muster.placement.device_selectors import SelectorError, selector_of

KINDS_MAX, ANSWERS_MAX = 32, 100_000  # of claims, and answers, that are remembered
MET, UNMET, UNKNOWN, _UNASKED = 1, 0, 2, -1
_Met = tuple[tuple[str, ...], ...]
_ENCODER = msgspec.msgpack.Encoder(order="deterministic")


class _Own(NamedTuple):
    """What claims see of the devices that one node alone reaches, taken or not.

    `number`: equal where they cannot tell them apart; `ids`: those of use to them, in order.
    """

    number: int
    ids: tuple[DeviceId, ...]


class _Known:
    """What follows from devices and classes alone: kept from decision to decision while they stay.

    `facts`: by claim and device, a number; equal numbers are devices between which the claim cannot tell, 0
    is of no use to it.  `answers`: by claims and what a node's devices are to them, the requests that are met
    of each claim, or None where there is no way.  `own`: by claims and node, where all that is of use to them
    is of that node alone and had whole.
    """

    def __init__(self, pools: Pools) -> None:
        self.local: dict[str, list[Offer]] = {}
        self.others: list[Offer] = []
        homes: dict[CounterId, set[str]] = {}
        for offer in pools.offers:
            spec = offer.slice.spec
            name = (offer.device.node_name if spec.per_device_node_selection else spec.node_name) or ""
            if name:
                self.local.setdefault(name, []).append(offer)
            else:
                self.others.append(offer)
            for counter, _ in offer.consumes:
                homes.setdefault(counter, set()).add(name)
        # counters out of which devices of several nodes are cut
        self.coupled = frozenset(counter for counter, names in homes.items() if "" in names or len(names) > 1)
        self.forget()

    def forget(self) -> None:
        self.eligible: dict[tuple[bytes, DeviceId], int] = {}
        self.facts: dict[bytes, dict[DeviceId, int]] = {}
        self.numbers: dict[object, int] = {}
        self.own: dict[tuple[tuple[bytes, ...], str], _Own] = {}
        self.answers: dict[tuple[tuple[bytes, ...], object], _Met | None] = {}


class DeviceOffers:
    """The devices of a frozen snapshot by the rows that reach them."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.devices = snapshot.devices
        self._nodes = snapshot.nodes
        self._names = snapshot.node_names
        found_out = self.devices.pools.found_out
        if "offers" not in found_out:
            found_out["offers"] = _Known(self.devices.pools)
        self._known: _Known = found_out["offers"]
        known = self._known
        if len(known.facts) > KINDS_MAX or max(len(known.answers), len(known.own)) > ANSWERS_MAX:
            self._known.forget()
        # reached by more than one node, with the mask [N]
        self.shared: list[tuple[Offer, Bool]] = [
            (offer, self._mask_of(offer.slice.spec, offer.device)) for offer in self._known.others
        ]
        self._shared_ids = frozenset(offer.id for offer, _ in self.shared)
        self.unwritten: dict[ClaimKey, ResourceClaim] = {}  # thought up in place of extended resources
        self._broken: list[Bool] = []  # by slice
        self._keys: dict[ClaimKey, bytes] = {}
        self._request_keys: dict[int, tuple[DeviceRequest, bytes]] = {}
        self._rows: dict[tuple[bytes, ...], Int8] = {}

    def claim_of(self, key: ClaimKey) -> ResourceClaim:
        """A claim that is there or thought up."""
        return self.unwritten.get(key) or self.devices.claims[key]

    @property
    def are_linked(self) -> bool:
        """Whether what a pod gets on one node can be missing on another."""
        return bool(self.shared or self._known.coupled)

    def is_linked(self, offer: Offer) -> bool:
        """Whether a device that is given on one node can be missing on another."""
        if offer.id in self._shared_ids:
            return True
        return bool(offer.consumes) and any(counter in self._known.coupled for counter, _ in offer.consumes)

    def may_have_linked(self, claim: ClaimKey, row: int) -> bool:
        """Whether on this row a claim could be given a device that can then be missing on another."""
        like = self._claim_key(claim)
        return any(self._fact(like, claim, offer) for offer in self.on(row) if self.is_linked(offer))

    def on(self, row: int) -> list[Offer]:
        """The devices that a row reaches, in the order of giving out."""
        local = self._known.local.get(self._names[row], [])
        others = [offer for offer, mask in self.shared if mask[row]]
        return sorted(local + others, key=lambda offer: offer.rank) if others else local

    def reach(self, row: int) -> Reach:
        """What claims of a pod on this row may be given."""
        return Reach(self.on(row), not self._is_broken(row))

    def broken_on(self, row: int) -> list[ResourceSlice]:
        """The slices that the row reaches of pools that are not whole."""
        broken = self.devices.pools.broken
        if len(self._broken) != len(broken):
            self._broken = [self._mask_of_slice(each.spec) for each in broken]
        return [each for each, mask in zip(broken, self._broken, strict=True) if mask[row]]

    def _is_broken(self, row: int) -> bool:
        return bool(self.devices.pools.broken) and bool(self.broken_on(row))

    def reaches(self, key: ClaimKey) -> Bool:
        """[N] the nodes that reach all devices of an allocated claim."""
        return np.array([self.is_reached(key, row) for row in range(len(self._nodes))], dtype=np.bool_)

    def is_reached(self, key: ClaimKey, row: int) -> bool:
        """Whether this node reaches all devices of an allocated claim."""
        allocation = self.devices.allocation_of(key)
        selector = allocation.node_selector if allocation is not None else None
        node = self._nodes[row]
        return node is not None and reaches_node(selector, node)

    def is_taken(self, device: DeviceId) -> bool:
        """Whether some claim has the whole device, by the API or by a choice of ours."""
        return device in self.devices.taken and device not in self.devices.shares

    def eligible(self, request: DeviceRequest, offer: Offer) -> int:
        """FIT, TAINTED or UNFIT: whether the request may have the device.

        Raises   SelectorError where an expression fails, or a capacity that is asked for is no quantity.
        """
        key = (self._request_key(request), offer.id)
        known = self._known.eligible.get(key)
        if known is None:
            known = self._known.eligible[key] = self._is_eligible(request, offer)
        return known

    def meets(self, claims: Sequence[ClaimKey], rows: Int32) -> Int8:
        """[K] MET, UNMET or UNKNOWN: whether each row could give all these claims their devices.

        Nobody else of this trial is there.  Raises   SelectorError.
        """
        likes = tuple(self._claim_key(key) for key in claims)
        known = self._rows.get(likes)
        if known is None:
            known = self._rows[likes] = np.full(len(self._nodes), _UNASKED, dtype=np.int8)
        for row in rows[known[rows] == _UNASKED].tolist():
            try:
                known[row] = UNMET if self._find_met(claims, likes, row) is None else MET
            except GaveUp:
                known[row] = UNKNOWN
        return known[rows]

    def met(self, claims: Sequence[ClaimKey], row: int) -> _Met | None:
        """Of each claim the names of the requests and alternatives that the row would meet; None: no way.

        Nobody else of this trial is there.  Raises   GaveUp, SelectorError.
        """
        return self._find_met(claims, tuple(self._claim_key(key) for key in claims), row)

    def _find_met(self, claims: Sequence[ClaimKey], likes: tuple[bytes, ...], row: int) -> _Met | None:
        """Searched once for all rows that are to the claims what this one is."""
        key = (likes, self._signature(claims, likes, row))
        if key not in self._known.answers:
            found = [self.claim_of(claim) for claim in claims]
            given = allocate(found, self.reach(row), Ledger(self.devices), self.eligible)
            met = None if given is None else tuple(tuple(each.request for each in one) for one in given)
            self._known.answers[key] = met
        return self._known.answers[key]

    def _signature(self, claims: Sequence[ClaimKey], likes: tuple[bytes, ...], row: int) -> Hashable:
        """Equal for rows between whose devices these claims cannot tell."""
        kinds = dict(zip(likes, claims, strict=True))
        own = self._own(likes, kinds, row)
        if own is not None:
            free = tuple([each not in self.devices.taken for each in own.ids])
            return (self._is_broken(row), own.number, free)
        found: list[Hashable] = []
        sets: dict[CounterSetId, int] = {}
        ledger = Ledger(self.devices)
        for offer in self.on(row):
            facts = [self._fact(like, claim, offer) for like, claim in kinds.items()]
            if any(facts):
                found.append((self.is_taken(offer.id), *facts))
                if offer.is_shared:
                    found.append((ledger.is_used(offer.id), ledger.share_of(offer.id)))
                for counter, amount in offer.consumes:
                    found.append((sets.setdefault(counter[:3], len(sets)), counter[3], amount))
        return (self._is_broken(row), tuple(map(ledger.left_in, sets)), *found)

    def _own(self, likes: tuple[bytes, ...], kinds: Mapping[bytes, ClaimKey], row: int) -> _Own | None:
        """What these claims see of a node whose devices are its own and had whole; None for any other."""
        if any(mask[row] for _, mask in self.shared):
            return None
        key = (likes, self._names[row])
        if key not in self._known.own:
            seen = [
                (offer, tuple([self._fact(like, claim, offer) for like, claim in kinds.items()]))
                for offer in self.on(row)
            ]
            useful = [(offer, facts) for offer, facts in seen if any(facts)]
            plain = not any(offer.is_shared or offer.consumes for offer, _ in useful)
            numbers, facts_in_turn = self._known.numbers, ("own", *(facts for _, facts in useful))
            number = numbers.setdefault(facts_in_turn, len(numbers) + 1) if plain else 0
            self._known.own[key] = _Own(number, tuple(offer.id for offer, _ in useful))
        own = self._known.own[key]
        return own if own.number else None

    def _fact(self, like: bytes, claim: ClaimKey, offer: Offer) -> int:
        facts = self._known.facts.setdefault(like, {})
        known = facts.get(offer.id)
        if known is None:
            known = facts[offer.id] = self._find_fact(self.claim_of(claim), offer)
        return known

    def _find_fact(self, claim: ResourceClaim, offer: Offer) -> int:
        """0 if no request may have the device, else a number for what requests and constraints see of it."""
        requests = [request for _, request in requests_of(claim)]
        facts = facts_of(offer, requests, attributes_of([claim]), self.eligible)
        if not any(facts[0]):
            return 0
        numbers = self._known.numbers
        return numbers.setdefault(facts, len(numbers) + 1)

    def _mask_of_slice(self, spec: SliceSpec) -> Bool:
        """[N] the nodes that reach any device of a slice."""
        devices = (spec.devices or ()) if spec.per_device_node_selection else (Device(),)
        masks = [self._mask_of(spec, device) for device in devices]
        return np.logical_or.reduce(masks) if masks else np.zeros(len(self._nodes), dtype=np.bool_)

    def _mask_of(self, spec: SliceSpec, device: Device) -> Bool:
        """[N] the nodes that reach a device of a slice."""
        chooser = device if spec.per_device_node_selection else spec
        name, selector, everywhere = chooser.node_name, chooser.node_selector, bool(chooser.all_nodes)
        found = [
            node is not None
            and (everywhere or (bool(name) and name == node.metadata.name) or _selects(selector, node))
            for node in self._nodes
        ]
        return np.array(found, dtype=np.bool_)

    def _is_eligible(self, request: DeviceRequest, offer: Offer) -> int:
        chosen = self.devices.classes.get(request.device_class_name)
        if chosen is None:
            return UNFIT
        of_class = f"deviceclass {request.device_class_name}"
        for selectors, whose in ((chosen.spec.selectors, of_class), (request.selectors, "the claim")):
            for selector in selectors or ():
                if selector.cel is not None and not self._meets(selector.cel.expression, offer, whose):
                    return UNFIT
        try:
            if consumption(offer.device, request.capacity) is None:
                return UNFIT
        except QuantityError as error:
            raise SelectorError(f"capacity of request {request.name or '(exactly)'}: {error}") from error
        return FIT if all(tolerates(request, taint) for taint in offer.device.taints or ()) else TAINTED

    @staticmethod
    def _meets(expression: str, offer: Offer, whose: str) -> bool:
        driver, pool, device = offer.id
        try:
            return selector_of(expression).meets(driver, offer.device)
        except SelectorError as error:
            raise SelectorError(f"{error} (device {driver}/{pool}/{device}, selector of {whose})") from error

    def _request_key(self, request: DeviceRequest) -> bytes:
        known = self._request_keys.get(id(request))
        if known is None:
            known = self._request_keys[id(request)] = (request, _ENCODER.encode(request))
        return known[1]

    def _claim_key(self, key: ClaimKey) -> bytes:
        known = self._keys.get(key)
        if known is None:
            known = self._keys[key] = _ENCODER.encode(self.claim_of(key).spec)
        return known


def reaches_node(selector: NodeSelector | None, node: Node) -> bool:
    """Whether an allocation with this selector is reached from the node; without one it is everywhere."""
    return selector is None or _selects(selector, node)


def _selects(selector: NodeSelector | None, node: Node) -> bool:
    if selector is None:
        return False
    return any(matches_node_term(term, node) for term in selector.node_selector_terms or ())
