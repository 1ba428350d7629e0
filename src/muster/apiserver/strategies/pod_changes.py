"""What may change in a pod after its creation, through itself and through its subresources."""

from muster.apiserver.kinds import Cause, Object
from muster.apiserver.strategies.fields import (
    IMMUTABLE,
    duplicate,
    forbidden,
    invalid,
    invalid_each,
    items,
    keep_from,
    mapping,
    required,
    text,
)
from muster.apiserver.strategies.names import dns_label, dns_subdomain, label_key
from muster.apiserver.strategies.pod_placement import REQUIRED
from muster.apiserver.strategies.pod_spec import INT32_MAX, validate_address
from muster.apiserver.strategies.resources import CPU, MEMORY, quality_of_service

_FROZEN = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_LISTS = ("containers", "initContainers")
_MAPPED = ("containerName", "resourceName", "requestName")
_NO_CONTAINER = "must match the name of an entry in spec.initContainers.name or spec.containers.name"
_NO_RESOURCE = (
    "must match the extended resource name of an entry in spec.initContainers.resources.requests or "
    "spec.containers.resources.requests"
)
_RESIZED = ("resources", "resizePolicy")


def validate_pod_change(obj: Object, old: Object) -> list[Cause]:
    """An update of the pod itself."""
    spec, before = obj["spec"], old["spec"]
    for key in _LISTS:
        if len(items(spec, key)) != len(items(before, key)):
            return [forbidden(f"spec.{key}", "pod updates may not add or remove containers")]
    deadline = _validate_deadline(spec.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds"))
    if deadline:
        return deadline
    found = _validate_tolerations_kept(items(spec, "tolerations"), items(before, "tolerations"))
    found += _validate_gates_only_removed(items(spec, "schedulingGates"), items(before, "schedulingGates"))
    gated = bool(items(before, "schedulingGates"))
    if gated:
        found += _validate_selector_narrowed(mapping(spec, "nodeSelector"), mapping(before, "nodeSelector"))
        found += _validate_affinity_narrowed(spec, before)
    if _masked(spec, before, gated=gated) != before:
        found.append(forbidden("spec", _FROZEN))
    return found


def _masked(spec: Object, before: Object, *, gated: bool) -> Object:
    """The new spec with every field that may change set back: equal to the old one if all is well."""
    masked = dict(spec)
    for key in _LISTS:
        if key in masked:
            pairs = zip(items(spec, key), items(before, key), strict=True)
            masked[key] = [_with(new, "image", old) for new, old in pairs]
    for key in ("activeDeadlineSeconds", "tolerations", "schedulingGates"):
        keep_from(masked, before, key)
    grace, old_grace = spec.get("terminationGracePeriodSeconds"), before.get("terminationGracePeriodSeconds")
    if grace == 1 and (old_grace or 0) < 0:
        keep_from(masked, before, "terminationGracePeriodSeconds")
    if gated:
        keep_from(masked, before, "nodeSelector")
        masked["affinity"] = _affinity_masked(mapping(spec, "affinity"), mapping(before, "affinity"))
        if before.get("affinity") is None and not masked["affinity"]:
            del masked["affinity"]
    return masked


def _with(new: Object, key: str, old: Object) -> Object:
    changed = dict(new)
    keep_from(changed, old, key)
    return changed


def _affinity_masked(affinity: Object, before: Object) -> Object:
    masked = dict(affinity)
    node = dict(mapping(affinity, "nodeAffinity"))
    keep_from(node, mapping(before, "nodeAffinity"), REQUIRED)
    if node or "nodeAffinity" in before:
        masked["nodeAffinity"] = node
    else:
        masked.pop("nodeAffinity", None)
    return masked


def _validate_deadline(new: int | None, old: int | None) -> list[Cause]:
    path = "spec.activeDeadlineSeconds"
    if new is None:
        detail = "must not update from a positive integer to nil value"
        return [] if old is None else [invalid(path, None, detail)]
    if not 1 <= new <= INT32_MAX:
        return [invalid(path, new, f"must be between 1 and {INT32_MAX}, inclusive")]
    if old is not None and new > old:
        return [invalid(path, new, "must be less than or equal to previous value")]
    return []


def _validate_tolerations_kept(new: list[Object], old: list[Object]) -> list[Cause]:
    kept = {_toleration_key(toleration) for toleration in new}
    if all(_toleration_key(toleration) in kept for toleration in old):
        return []
    detail = "existing toleration can not be modified except its tolerationSeconds"
    return [forbidden("spec.tolerations", detail)]


def _toleration_key(toleration: Object) -> tuple[str, ...]:
    return tuple(text(toleration, key) for key in ("key", "operator", "value", "effect"))


def _validate_gates_only_removed(new: list[Object], old: list[Object]) -> list[Cause]:
    known = {text(gate, "name") for gate in old}
    return [
        forbidden(
            f"spec.schedulingGates[{index}].name",
            f"only deletion is allowed, but found new scheduling gate '{text(gate, 'name')}'",
        )
        for index, gate in enumerate(new)
        if text(gate, "name") not in known
    ]


def _validate_selector_narrowed(new: Object, old: Object) -> list[Cause]:
    if all(new.get(key) == value for key, value in old.items()):
        return []
    detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
    return [invalid("spec.nodeSelector", new, detail)]


def _validate_affinity_narrowed(spec: Object, before: Object) -> list[Cause]:
    new = mapping(mapping(mapping(spec, "affinity"), "nodeAffinity"), REQUIRED)
    old = mapping(mapping(mapping(before, "affinity"), "nodeAffinity"), REQUIRED)
    terms, old_terms = items(new, "nodeSelectorTerms"), items(old, "nodeSelectorTerms")
    path = f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms"
    if not old_terms:
        return []
    if len(terms) != len(old_terms):
        return [
            invalid(path, terms, "no additions/deletions to non-empty NodeSelectorTerms list are allowed")
        ]
    found: list[Cause] = []
    for index, (term, old_term) in enumerate(zip(terms, old_terms, strict=True)):
        if term == old_term:
            continue
        was_empty = not items(old_term, "matchExpressions") and not items(old_term, "matchFields")
        missing = any(
            requirement not in items(term, key)
            for key in ("matchExpressions", "matchFields")
            for requirement in items(old_term, key)
        )
        if was_empty or missing:
            detail = "only additions are allowed (no mutations or deletions)"
            found.append(invalid(f"{path}[{index}]", term, detail))
    return found


def keep_all_but_ephemeral(obj: Object, old: Object) -> None:
    """`pods/ephemeralcontainers` writes these and nothing else."""
    spec = dict(old["spec"])
    keep_from(spec, obj["spec"], "ephemeralContainers")
    obj["spec"], obj["status"] = spec, old["status"]


def validate_ephemeral_change(obj: Object, old: Object) -> list[Cause]:
    """Ephemeral containers are only added."""
    new = {text(c, "name"): c for c in items(obj["spec"], "ephemeralContainers")}
    path = "spec.ephemeralContainers"
    found: list[Cause] = []
    for container in items(old["spec"], "ephemeralContainers"):
        name = text(container, "name")
        if name not in new:
            found.append(forbidden(path, f'existing ephemeral containers "{name}" may not be removed\n'))
        elif new[name] != container:
            found.append(forbidden(path, f'existing ephemeral containers "{name}" may not be changed\n'))
    return found


def keep_all_but_resources(obj: Object, old: Object) -> None:
    """`pods/resize` writes the resources of containers that are there, and nothing else."""
    asked = obj["spec"]
    spec = dict(old["spec"])
    for key in _LISTS:
        if key not in spec:
            continue
        wanted = {text(c, "name"): c for c in items(asked, key)}
        spec[key] = [_resized(container, wanted.get(text(container, "name"))) for container in spec[key]]
    keep_from(spec, asked, "resources")
    obj["spec"], obj["status"] = spec, old["status"]


def _resized(container: Object, wanted: Object | None) -> Object:
    if wanted is None:
        return dict(container)
    changed = dict(container)
    for key in _RESIZED:
        keep_from(changed, wanted, key)
    return changed


def validate_resize(obj: Object, old: Object) -> list[Cause]:
    """Only cpu and memory change, and the quality of service stays."""
    spec, before = obj["spec"], old["spec"]
    found: list[Cause] = []
    quality = text(mapping(old, "status"), "qosClass") or quality_of_service(before)
    if quality_of_service(spec) != quality:
        detail = "Pod QOS Class may not change as a result of resizing"
        found.append(invalid("spec", quality, detail))
    if _other_amounts(spec) != _other_amounts(before):
        found.append(forbidden("spec", "only cpu and memory resources are mutable"))
    return found


def _other_amounts(spec: Object) -> list[tuple[str, str, str, str]]:
    return sorted(
        (text(container, "name"), kind, name, str(value))
        for key in _LISTS
        for container in items(spec, key)
        for kind in ("limits", "requests")
        for name, value in mapping(mapping(container, "resources"), kind).items()
        if name not in (CPU, MEMORY)
    )


def validate_pod_status(obj: Object, old: Object) -> list[Cause]:
    """A status as kubelets and schedulers write it; a phase may be any word."""
    status, before = mapping(obj, "status"), mapping(old, "status")
    found: list[Cause] = []
    for index, condition in enumerate(items(status, "conditions")):
        here, type_ = f"status.conditions[{index}]", text(condition, "type")
        found += invalid_each(f"{here}.Type", type_, label_key(type_))
        generation = condition.get("observedGeneration")
        if isinstance(generation, int) and generation < 0:
            found.append(invalid(f"{here}.observedGeneration", generation, "must be a non-negative integer"))
    nominated = text(status, "nominatedNodeName")
    if nominated:
        found += invalid_each("status.nominatedNodeName", nominated, dns_subdomain(nominated))
        if text(old["spec"], "nodeName") and nominated != text(before, "nominatedNodeName"):
            detail = "may not be set on pods that are already bound to a node"
            found.append(forbidden("status.nominatedNodeName", detail))
    if text(before, "qosClass") and text(status, "qosClass") != text(before, "qosClass"):
        found.append(invalid("status.qosClass", text(status, "qosClass"), IMMUTABLE))
    found += _validate_terminated(old["spec"], status, before)
    found += _validate_claim_statuses(old["spec"], items(status, "resourceClaimStatuses"))
    found += _validate_extended_claim(old["spec"], status.get("extendedResourceClaimStatus"))
    for index, address in enumerate(items(status, "podIPs")):
        found += validate_address(f"status.podIPs[{index}]", text(address, "ip"))
    return found


def _validate_claim_statuses(spec: Object, statuses: list[Object]) -> list[Cause]:
    known = {text(claim, "name") for claim in items(spec, "resourceClaims")}
    detail = "must match the name of an entry in `spec.resourceClaims`"
    return [
        invalid(f"status.resourceClaimStatuses[{index}].name", text(status, "name"), detail)
        for index, status in enumerate(statuses)
        if text(status, "name") not in known
    ]


def _validate_extended_claim(spec: Object, status: Object | None) -> list[Cause]:
    """The claim made in place of extended resources, and which of its requests is for which container."""
    if status is None:
        return []
    path = "status.extendedResourceClaimStatus"
    containers = {
        text(container, "name"): mapping(mapping(container, "resources"), "requests")
        for container in (*items(spec, "initContainers"), *items(spec, "containers"))
    }
    mappings, name = items(status, "requestMappings"), text(status, "resourceClaimName")
    found: list[Cause] = []
    if not mappings:
        found.append(required(f"{path}.requestMappings", "at least one request mapping is required"))
    seen: set[tuple[str, ...]] = set()
    for index, each in enumerate(mappings):
        here = f"{path}.requestMappings[{index}]"
        container, resource, request = key = tuple(text(each, name) for name in _MAPPED)
        if container not in containers:
            found.append(invalid(f"{here}.containerName", container, _NO_CONTAINER))
        elif resource not in containers[container]:
            found.append(invalid(f"{here}.resourceName", resource, _NO_RESOURCE))
        found += invalid_each(f"{path}.requestName", request, dns_label(request))
        if key in seen:
            found += [duplicate(f"{here}.{name}", value) for name, value in zip(_MAPPED, key, strict=True)]
        seen.add(key)
    if not name:
        return [*found, required(f"{path}.resourceClaimName")]
    return found + invalid_each(f"{path}.resourceClaimName", name, dns_subdomain(name))


def _validate_terminated(spec: Object, status: Object, before: Object) -> list[Cause]:
    """A container that has ended stays so, unless the pod's policy restarts it."""
    policy = text(spec, "restartPolicy")
    if policy == "Always":
        return []
    new = {text(c, "name"): c for c in items(status, "containerStatuses")}
    found: list[Cause] = []
    for container in items(before, "containerStatuses"):
        ended = mapping(container, "state").get("terminated")
        now = new.get(text(container, "name"))
        if not isinstance(ended, dict) or (policy == "OnFailure" and ended.get("exitCode")):
            continue
        if now is not None and mapping(now, "state").get("terminated") is None:
            where = f"status.containerStatuses[{list(new).index(text(container, 'name'))}].state"
            found.append(forbidden(where, "may not be transitioned to non-terminated state"))
    return found


def validate_ephemeral_absent(spec: Object) -> list[Cause]:
    """They come only later."""
    if items(spec, "ephemeralContainers"):
        return [forbidden("spec.ephemeralContainers", "cannot be set on create")]
    return []
