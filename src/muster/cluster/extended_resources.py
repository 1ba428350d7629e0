"""Extended resources that a DeviceClass backs: which they are, and the claim of a pod that asks for some.

A pod may ask for devices as for any resource (`example.com/gpu: 2`).  Where its node does not offer the
resource itself, a claim is made for the pod, for so many devices of the class.  In come classes and pods; out
come claims that the API does not know yet.  Source: KEP-5004.  Next: `placement/extended_needs.py`.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from muster.api.core import Container, ExtendedResourceRequest, Pod, ResourceRequirements
from muster.api.devices import (
    DeviceClaim,
    DeviceClass,
    DeviceRequest,
    Request,
    ResourceClaim,
    ResourceClaimSpec,
)
from muster.api.meta import ObjectMeta
from muster.api.quantity import INT64_MAX, QuantityError, resource_amount

ANNOTATION = "resource.kubernetes.io/extended-resource-claim"
# What a node without the resource counts as having, as its devices decide; no node offers just that.
PLENTY = 2**20 + 3
_IMPLICIT = "deviceclass.resource.kubernetes.io/"
_UNWRITTEN = "<extended-resources>"  # no name of a claim, so that it is nobody else's

Backed = Mapping[str, str]


class ExtendedClaim(NamedTuple):
    """A claim that is not made yet, and which of its requests is for which resource of which container."""

    claim: ResourceClaim
    mappings: tuple[ExtendedResourceRequest, ...]


def backed_by(classes: Iterable[DeviceClass]) -> dict[str, str]:
    """Resource → class.  Of several classes with one name the youngest counts, then the first by name."""
    found: dict[str, str] = {}
    by_name = sorted(classes, key=lambda each: each.metadata.name, reverse=True)
    for each in sorted(by_name, key=lambda each: each.metadata.creation_timestamp or ""):
        name = each.metadata.name
        if each.spec.extended_resource_name:
            found[each.spec.extended_resource_name] = name
    return found | {f"{_IMPLICIT}{each.metadata.name}": each.metadata.name for each in by_name}


def backed_asks(pod: Pod, backed: Backed) -> tuple[str, ...]:
    """The backed resources of which some container of the pod asks for any, in order of name."""
    if not backed:
        return ()
    containers = (*(pod.spec.init_containers or ()), *pod.spec.containers)
    asked = {name for each in containers for name in _names_in(each.resources) if name in backed}
    if not asked:
        return ()
    return tuple(sorted(name for name in asked if any(_amount(each, name) > 0 for each in containers)))


def may_be_backed(pod: Pod) -> bool:
    """Whether the pod asks for any extended resource, whoever may have it."""
    containers = (*(pod.spec.init_containers or ()), *pod.spec.containers)
    return any("/" in name for each in containers for name in _names_in(each.resources))


def is_extended_claim_of(claim: ResourceClaim) -> str:
    """The uid of the pod for which the claim was made in place of an extended resource; else ""."""
    if (claim.metadata.annotations or {}).get(ANNOTATION) != "true":
        return ""
    owners = claim.metadata.owner_references or ()
    return next((owner.uid for owner in owners if owner.controller and owner.kind == "Pod"), "")


def unwritten_key(namespace: str, uid: str, resources: Iterable[str] = ()) -> tuple[str, str]:
    """How a pod's claim is called before it is made; `resources` where several are thought of."""
    return (namespace, "/".join((_UNWRITTEN, uid, *resources)))


def extended_claim(pod: Pod, resources: Iterable[str], backed: Backed) -> ExtendedClaim:
    """The claim in place of these resources.

    A request for every container and resource; init containers that end before others start use what those
    will have, and one request more, the largest, where that is too little.
    """
    requests: dict[str, DeviceRequest] = {}
    mappings: list[ExtendedResourceRequest] = []
    for resource in sorted(resources):
        found, mapped = _requests_for(pod, resource, backed[resource])
        requests.update(found)
        mappings += mapped
    asked = [Request(name, requests[name]) for name in sorted(requests)]
    key = unwritten_key(pod.metadata.namespace, pod.metadata.uid, sorted(resources))
    meta = ObjectMeta(name=key[1], namespace=key[0], uid=pod.metadata.uid)
    return ExtendedClaim(ResourceClaim(meta, ResourceClaimSpec(DeviceClaim(asked))), tuple(mappings))


def _requests_for(
    pod: Pod, resource: str, class_name: str
) -> tuple[dict[str, DeviceRequest], list[ExtendedResourceRequest]]:
    init = tuple(pod.spec.init_containers or ())
    containers = (*init, *pod.spec.containers)
    brief = [index for index, each in enumerate(init) if each.restart_policy != "Always"]
    kept: dict[int, tuple[str, int]] = {}  # by container: request and count, for as long as the pod runs
    mappings: list[ExtendedResourceRequest] = []
    for index, each in enumerate(containers):
        amount = _amount(each, resource)
        if index not in brief and amount:
            kept[index] = (_request_name(index, each, resource), amount)
            mappings.append(ExtendedResourceRequest(each.name, resource, kept[index][0]))
    largest = ("", 0)
    used: list[tuple[str, str, bool]] = []  # container, request, whether it is one of a brief container
    for index in brief:
        missing = _amount(containers[index], resource)
        for later in sorted(other for other in kept if other > index):
            if missing <= 0:
                break
            used.append((containers[index].name, kept[later][0], False))
            missing -= kept[later][1]
        if missing > 0:
            name = _request_name(index, containers[index], resource)
            used.append((containers[index].name, name, True))
            largest = (name, missing) if missing > largest[1] else largest
    mappings += [
        ExtendedResourceRequest(container, resource, largest[0] if is_brief else name)
        for container, name, is_brief in used
    ]
    named = [*kept.values(), *([largest] if largest[1] else [])]
    return {name: DeviceRequest(device_class_name=class_name, count=count) for name, count in named}, mappings


def _request_name(index: int, container: Container, resource: str) -> str:
    return f"container-{index}-request-{sorted(_names_in(container.resources)).index(resource)}"


def _names_in(resources: ResourceRequirements | None) -> dict[str, None]:
    """What is asked for; a limit without a request asks for the limit."""
    return (
        {} if resources is None else dict.fromkeys((*(resources.limits or {}), *(resources.requests or {})))
    )


def _amount(container: Container, resource: str) -> int:
    resources = container.resources
    if resources is None:
        return 0
    asked = {**(resources.limits or {}), **(resources.requests or {})}
    try:
        return max(resource_amount(resource, asked.get(resource, 0)), 0)
    except QuantityError:
        return INT64_MAX
