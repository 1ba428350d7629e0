"""Amounts of resources: names, whole numbers, requests against limits, quality of service.

Quantities are canonical text when they come here; `api/quantity.py` turns them into integers (saturating).
"""

import re
from collections.abc import Iterable

from muster.api.quantity import format_amount, parse_quantity
from muster.apiserver.kinds import Cause, Object
from muster.apiserver.strategies.fields import (
    AT_LEAST_0,
    forbidden,
    invalid,
    invalid_each,
    items,
    mapping,
    not_found,
    not_supported,
    required,
    text,
)
from muster.apiserver.strategies.names import label_key

CPU, MEMORY = "cpu", "memory"
HUGE = "hugepages-"
_STANDARD_OF_CONTAINERS = (CPU, MEMORY, "ephemeral-storage")
_STANDARD = frozenset(
    {CPU, MEMORY, "ephemeral-storage", "storage", "pods", "services", "replicationcontrollers"}
    | {"resourcequotas", "secrets", "configmaps", "persistentvolumeclaims", "services.nodeports"}
    | {"services.loadbalancers", "requests.cpu", "requests.memory", "requests.storage", "limits.cpu"}
    | {"requests.ephemeral-storage", "limits.memory", "limits.ephemeral-storage"}
)
_INTEGER_STANDARD = frozenset({"pods", "services", "replicationcontrollers", "resourcequotas", "secrets"})
_NATIVE_PREFIX = "kubernetes.io/"
_SUB_UNIT = re.compile(r"(.+)[num]")
_NEEDS_LIMIT = "Limit must be set for non overcommitable resources"
_WHOLE = "must be an integer"


def is_huge(name: str) -> bool:
    """Whether the resource is pre-allocated pages of one size."""
    return name.startswith(HUGE)


def is_extended(name: str) -> bool:
    """Whether the resource is one that Kubernetes does not know (`nvidia.com/gpu`)."""
    if "/" not in name or _NATIVE_PREFIX in name or name.startswith("requests."):
        return False
    return not label_key(f"requests.{name}")


def is_native(name: str) -> bool:
    """Whether the name is Kubernetes' own."""
    return "/" not in name or _NATIVE_PREFIX in name


def is_standard_for_containers(name: str) -> bool:
    """Whether a container may ask for it without a prefix."""
    return name in _STANDARD_OF_CONTAINERS or is_huge(name)


def amount(value: object) -> int:
    """An amount in thousandths; held within int64."""
    return parse_quantity(str(value), milli=True)


def is_whole(value: object) -> bool:
    """Whether an amount has no fraction: canonical text shows it by its suffix."""
    shown = str(value)
    return not (_SUB_UNIT.fullmatch(shown) or "." in shown)


def round_up(amounts: Object) -> None:
    """No quantity finer than a thousandth is kept."""
    for name, value in amounts.items():
        shown = str(value)
        if shown[-1:] in ("n", "u"):
            thousandths = amount(shown)
            whole, rest = divmod(thousandths, 1000)
            amounts[name] = f"{thousandths}m" if rest else str(whole)


def _validate_name(path: str, name: str) -> list[Cause]:
    found = invalid_each(path, name, label_key(name))
    if found:
        return found
    if "/" not in name and name not in _STANDARD and not is_huge(name):
        return [invalid(path, name, "must be a standard resource type or fully qualified")]
    return []


def _validate_container_name(path: str, name: str) -> list[Cause]:
    found = _validate_name(path, name)
    if "/" not in name:
        if not is_standard_for_containers(name):
            found.append(invalid(path, name, "must be a standard resource for containers"))
    elif not is_native(name) and not is_extended(name):
        found.append(invalid(path, name, "doesn't follow extended resource name standard"))
    return found


def validate_amount(path: str, name: str, value: object) -> list[Cause]:
    """Not negative, and whole where the resource is counted."""
    if str(value).startswith("-") and amount(value) != 0:
        return [invalid(path, str(value), AT_LEAST_0)]
    if (name in _INTEGER_STANDARD or is_extended(name)) and not is_whole(value):
        return [invalid(path, str(value), _WHOLE)]
    return []


def validate_node_amounts(path: str, amounts: Object) -> list[Cause]:
    """Capacity or allocatable of a node."""
    found: list[Cause] = []
    for name in sorted(amounts):
        found += validate_amount(f"{path}.{name}", name, amounts[name])
    return found


def validate_resources(path: str, resources: Object, *, claims: frozenset[str] = frozenset()) -> list[Cause]:
    """`resources` of one container."""
    limits, requests = mapping(resources, "limits"), mapping(resources, "requests")
    found: list[Cause] = []
    for name, value in limits.items():
        where = f"{path}.limits[{name}]"
        found += _validate_container_name(where, name)
        found += validate_amount(where, name, value)
        found += _validate_pages(where, name, value)
    for name, value in requests.items():
        where = f"{path}.requests[{name}]"
        found += _validate_container_name(where, name)
        found += validate_amount(where, name, value)
        found += _validate_request(path, name, value, limits)
        found += _validate_pages(where, name, value)
    found += _validate_claims(path, items(resources, "claims"), claims)
    return found + validate_pages_alone(path, limits, requests)


def _validate_request(path: str, name: str, value: object, limits: Object) -> list[Cause]:
    where = f"{path}.requests"
    if name in limits:
        most = limits[name]
        if _may_overcommit(name):
            if amount(value) > amount(most):
                detail = f"must be less than or equal to {name} limit of {most}"
                return [invalid(where, str(value), detail)]
        elif amount(value) != amount(most):
            return [invalid(where, str(value), f"must be equal to {name} limit of {most}")]
        return []
    return [] if _may_overcommit(name) else [required(f"{path}.limits", _NEEDS_LIMIT)]


def _may_overcommit(name: str) -> bool:
    return is_native(name) and not is_huge(name)


def _validate_pages(path: str, name: str, value: object) -> list[Cause]:
    if not is_huge(name):
        return []
    size = parse_quantity(name.removeprefix(HUGE)) if _is_quantity(name.removeprefix(HUGE)) else 0
    if size <= 0 or not is_whole(value) or parse_quantity(str(value)) % size:
        detail = f"{value} is not positive integer multiple of {name}"
        return [invalid(path, str(value), detail)]
    return []


def _is_quantity(shown: str) -> bool:
    try:
        parse_quantity(shown)
    except ValueError:
        return False
    return True


def validate_pages_alone(path: str, limits: Object, requests: Object) -> list[Cause]:
    """Huge pages make sense only beside cpu or memory."""
    names = limits.keys() | requests.keys()
    if any(is_huge(name) for name in names) and not names & {CPU, MEMORY}:
        return [forbidden(path, "HugePages require cpu or memory")]
    return []


def _validate_claims(path: str, claims: list[Object], known: frozenset[str]) -> list[Cause]:
    found: list[Cause] = []
    for index, claim in enumerate(claims):
        name = text(claim, "name")
        if not name:
            found.append(required(f"{path}.claims[{index}]"))
        elif name not in known:
            tail = " which is empty" if not known else ""
            detail = f"must be one of the names in pod.spec.resourceClaims{tail}"
            found.append(not_found(f"{path}.claims[{index}]", name, detail))
    return found


def validate_pod_resources(path: str, spec: Object) -> list[Cause]:
    """`resources` of a whole pod: cpu, memory and huge pages, at least what its containers ask for."""
    resources = spec.get("resources")
    if resources is None:
        return []
    limits, requests = mapping(resources, "limits"), mapping(resources, "requests")
    found: list[Cause] = []
    for kind, amounts in (("limits", limits), ("requests", requests)):
        for name, value in amounts.items():
            where = f"{path}.{kind}[{name}]"
            if kind == "requests":
                found += _validate_request(path, name, value, limits)
            if name not in (CPU, MEMORY) and not is_huge(name):
                found.insert(len(found), not_supported(where, name, (CPU, HUGE, MEMORY)))
            else:
                found += validate_amount(where, name, value)
    sums = container_sums(spec)
    for name, value in requests.items():
        if name in sums and amount(value) < sums[name]:
            detail = (
                f"must be greater than or equal to aggregate container requests of {_shown(name, sums[name])}"
            )
            found.append(invalid(f"{path}.requests[{name}]", str(value), detail))
    return found


def container_sums(spec: Object) -> dict[str, int]:
    """What the containers of a pod ask for together at their worst moment, in thousandths."""
    sums: dict[str, int] = {}
    sidecars: dict[str, int] = {}
    peaks: dict[str, int] = {}
    for container in items(spec, "initContainers"):
        asked = _requested(container)
        if container.get("restartPolicy") == "Always":
            _add(sidecars, asked)
            worst = sidecars
        else:
            worst = dict(sidecars)
            _add(worst, asked)
        for name, value in worst.items():
            peaks[name] = max(peaks.get(name, 0), value)
    for container in items(spec, "containers"):
        _add(sums, _requested(container))
    _add(sums, sidecars)
    return {name: max(sums.get(name, 0), peaks.get(name, 0)) for name in sums | peaks}


def _requested(container: Object) -> dict[str, int]:
    requests = mapping(mapping(container, "resources"), "requests")
    return {name: amount(value) for name, value in requests.items()}


def _add(sums: dict[str, int], asked: dict[str, int]) -> None:
    for name, value in asked.items():
        sums[name] = sums.get(name, 0) + value


def _shown(name: str, thousandths: int) -> str:
    whole, rest = divmod(thousandths, 1000)
    return f"{thousandths}m" if rest else str(whole) if name == CPU else format_amount(name, whole)


def default_requests(resources: Object) -> None:
    """A limit without a request is also the request."""
    limits = mapping(resources, "limits")
    if not limits:
        return
    requests = dict(mapping(resources, "requests"))
    for name, value in limits.items():
        requests.setdefault(name, value)
    resources["requests"] = requests


def default_pod_requests(spec: Object) -> None:
    """Pod-level requests: what the containers ask for, else the pod's limit."""
    resources = spec.get("resources")
    if not resources or not mapping(resources, "limits"):
        return
    limits, requests = mapping(resources, "limits"), dict(mapping(resources, "requests"))
    sums = container_sums(spec)
    for name in limits:
        if name in requests or not (name in (CPU, MEMORY) or is_huge(name)):
            continue
        requests[name] = _shown(name, sums[name]) if name in sums and not is_huge(name) else limits[name]
    resources["requests"] = requests


def quality_of_service(spec: Object) -> str:
    """Guaranteed, Burstable or BestEffort, by cpu and memory alone."""
    if mapping(spec, "resources"):
        parts: Iterable[Object] = [mapping(spec, "resources")]
    else:
        containers = [*items(spec, "initContainers"), *items(spec, "containers")]
        parts = [mapping(container, "resources") for container in containers]
    asked, guaranteed = False, True
    for part in parts:
        limits, requests = mapping(part, "limits"), mapping(part, "requests")
        for name in (CPU, MEMORY):
            least, most = amount(requests.get(name, "0")), amount(limits.get(name, "0"))
            asked = asked or least > 0 or most > 0
            guaranteed = guaranteed and most > 0 and least == most
    if not asked:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"
