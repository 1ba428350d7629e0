"""What a claim has been given, as its status says it (resource.k8s.io/v1 AllocationResult).

In come a claim, its devices and the node for which they were chosen; out comes an `Allocation`: results,
parameters for drivers, and the nodes that reach all of it.  Next: `plugins/dynamic_resources.py`.
"""

import uuid
from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from muster.api.core import LabelSelectorRequirement, NodeSelector, NodeSelectorTerm
from muster.api.devices import (
    AllocatedDevice,
    Allocation,
    DeviceAllocation,
    DeviceRequest,
    Quantity,
    ResourceClaim,
)
from muster.cluster.device_pools import Offer
from muster.cluster.devices import Devices
from muster.placement.device_allocation import Given, requests_of

_SHARES = uuid.UUID("6f0f7bb5-6a55-4d8c-9d0e-0f3d4f2f3c57")  # the name space of our shares' ids


def allocation_of(
    claim: ResourceClaim, given: Sequence[Given], node_name: str, devices: Devices
) -> Allocation:
    """Say what the claim has got."""
    asked = dict(requests_of(claim))
    results = [_result(claim, index, each, asked[each.request]) for index, each in enumerate(given)]
    config = list(_config(claim, list(dict.fromkeys(each.request for each in given)), devices))
    return Allocation(
        DeviceAllocation(results, config or None), _reach([each.offer for each in given], node_name)
    )


def _result(claim: ResourceClaim, index: int, given: Given, request: DeviceRequest) -> AllocatedDevice:
    device = given.offer.device
    found = AllocatedDevice(
        given.request,
        *given.offer.id,
        admin_access=given.is_admin,
        tolerations=request.tolerations or None,
        binding_conditions=device.binding_conditions or None,
        binding_failure_conditions=device.binding_failure_conditions or None,
    )
    if not given.offer.is_shared:
        return found
    # a share has the same id however often it is written; another of the claim, or a later one, has not
    meta = claim.metadata
    name = "/".join((meta.uid, meta.resource_version, str(index), *given.offer.id))
    consumed: dict[str, Quantity] = {amount.name: amount.text for amount in given.amounts}
    return replace(found, share_id=str(uuid.uuid5(_SHARES, name)), consumed_capacity=consumed or None)


def _config(claim: ResourceClaim, chosen: Sequence[str], devices: Devices) -> Iterator[dict[str, object]]:
    """The parameters of classes, each class once, then those of the claim for what was chosen.

    Those that are for all that was chosen name no requests.
    """
    by_class: dict[str, list[str]] = {}
    for name, request in requests_of(claim):
        if name in chosen:
            by_class.setdefault(request.device_class_name, []).append(name)
    for class_name, names in by_class.items():
        device_class = devices.classes.get(class_name)
        for part in (device_class.spec.config if device_class is not None else None) or ():
            yield _entry("FromClass", names, chosen, part)
    for part in claim.spec.devices.config or ():
        about = [str(name) for name in _names_in(part)]
        if not about or any(name in about or name.partition("/")[0] in about for name in chosen):
            yield _entry("FromClaim", about, chosen, part)


def _entry(
    source: str, names: Sequence[str], chosen: Sequence[str], part: dict[str, object]
) -> dict[str, object]:
    about_all = all(name in names or name.partition("/")[0] in names for name in chosen)
    entry: dict[str, object] = {"source": source, **part}
    entry.pop("requests", None)
    if names and not about_all:
        entry["requests"] = list(names)
    return entry


def _names_in(part: dict[str, object]) -> Iterable[object]:
    names = part.get("requests")
    return names if isinstance(names, list) else ()


def _reach(offers: Sequence[Offer], node_name: str) -> NodeSelector | None:
    """Which nodes reach all of these devices: the one node, those that meet every selector, or (None) all."""
    fields: list[LabelSelectorRequirement] = []
    labels: list[LabelSelectorRequirement] = []
    for offer in offers:
        spec = offer.slice.spec
        chooser = offer.device if spec.per_device_node_selection else spec
        if chooser.node_name or offer.device.binds_to_node:
            here = LabelSelectorRequirement("metadata.name", "In", [node_name])
            return NodeSelector([NodeSelectorTerm(match_fields=[here])])
        terms = chooser.node_selector.node_selector_terms if chooser.node_selector is not None else None
        for term in terms or ():
            fields += [each for each in term.match_fields or () if each not in fields]
            labels += [each for each in term.match_expressions or () if each not in labels]
    if not fields and not labels:
        return None
    return NodeSelector([NodeSelectorTerm(labels or None, fields or None)])
