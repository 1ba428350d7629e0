"""Who asks for devices (resource.k8s.io/v1): DeviceClass, ResourceClaim, ResourceClaimTemplate."""

from typing import Any

from muster.apiserver.kinds import Cause, Cluster, Object
from muster.apiserver.strategies.base import BaseStrategy
from muster.apiserver.strategies.device_rules import (
    CONFIGS_MAX,
    NAMES_MAX,
    declared_last,
    each,
    named,
    validate_binding_conditions,
    validate_expression,
    validate_fully_qualified,
    validate_label,
    validate_opaque,
    validate_pool_name,
    validate_selectors,
    validate_toleration,
)
from muster.apiserver.strategies.fields import (
    IMMUTABLE,
    forbidden,
    invalid,
    invalid_each,
    items,
    mapping,
    not_supported,
    required,
    text,
)
from muster.apiserver.strategies.metadata import validate_labels
from muster.apiserver.strategies.names import dns_subdomain, long_name
from muster.apiserver.strategies.pod_placement import validate_selector_terms
from muster.apiserver.strategies.printing import Column, age, column
from muster.apiserver.strategies.resources import is_extended
from muster.apiserver.strategies.storage import validate_driver_name

CONSUMERS_MAX = 256
RESULTS_MAX = 32
_ALTERNATIVES_MAX = 8
_TOLERATIONS_MAX = 16
_MODES = ("All", "ExactCount")
_SOURCES = ("FromClaim", "FromClass")
_ONE_OF = "exactly one of `exactly` or `firstAvailable` is required"
_NO_NEW_CONSUMERS = (
    "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
)
_EXTENDED = "a name must be a domain-prefixed path, such as 'example.com/my-prop'"
_ALLOCATED = "field cannot be modified once set"
_REFERENCE = (
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
)
ADMIN_LABEL = "resource.kubernetes.io/admin-access"
_ADMIN = f"admin access to devices requires the `{ADMIN_LABEL}: true` label on the containing namespace"


class DeviceClassStrategy(BaseStrategy):
    """What an administrator calls a kind of device."""

    namespaced = False
    has_generation = True

    def name_rule(self, name: str) -> list[str]:
        return long_name(name)

    def validate_object(self, obj: Object, cluster: Cluster) -> list[Cause]:
        return self._validate(mapping(obj, "spec"), stored=False)

    def validate_change(self, obj: Object, old: Object, cluster: Cluster) -> list[Cause]:
        spec = mapping(obj, "spec")
        same = items(spec, "selectors") == items(mapping(old, "spec"), "selectors")
        return self._validate(spec, stored=same)

    def _validate(self, spec: Object, *, stored: bool) -> list[Cause]:
        found = validate_selectors("spec.selectors", items(spec, "selectors"), stored=stored)
        found += each("spec.config", items(spec, "config"), validate_opaque, most=CONFIGS_MAX)
        name = spec.get("extendedResourceName")
        if name is not None and not is_extended(str(name)):
            found.append(invalid("spec.extendedResourceName", name, _EXTENDED))
        return found


class ResourceClaimStrategy(BaseStrategy):
    """A request for devices; its status says which it got and who may use them."""

    has_status = True

    def default(self, obj: Object, cluster: Cluster) -> None:
        default_requests(mapping(mapping(obj, "spec"), "devices"), cluster.gates)

    def validate_object(self, obj: Object, cluster: Cluster) -> list[Cause]:
        devices = mapping(mapping(obj, "spec"), "devices")
        found = refuse_admins(obj, devices, cluster)
        return declared_last(found + validate_devices("spec.devices", devices))

    def validate_change(self, obj: Object, old: Object, cluster: Cluster) -> list[Cause]:
        same = mapping(obj, "spec") == mapping(old, "spec")
        return [] if same else [invalid("spec", None, IMMUTABLE)]

    def prepare_update(self, obj: Object, old: Object, sub: str, cluster: Cluster) -> None:
        super().prepare_update(obj, old, sub, cluster)
        status = mapping(obj, "status")
        if (
            sub == "status"
            and not mapping(status, "allocation")
            and mapping(mapping(old, "status"), "allocation")
        ):
            status.pop("devices", None)  # what drivers said of devices goes with them

    def validate_status(self, obj: Object, old: Object) -> list[Cause]:
        status, before = mapping(obj, "status"), mapping(old, "status")
        consumers = items(status, "reservedFor")
        found = each(
            "status.reservedFor",
            consumers,
            _validate_consumer,
            most=CONSUMERS_MAX,
            key=lambda consumer: text(consumer, "uid"),
        )
        if consumers and not isinstance(status.get("allocation"), dict):
            why = "may not be specified when `allocated` is not set"
            found.append(forbidden("status.reservedFor", why))
        elif obj["metadata"].get("deletionTimestamp") and any(
            consumer not in items(before, "reservedFor") for consumer in consumers
        ):
            found.append(forbidden("status.reservedFor", _NO_NEW_CONSUMERS))
        allocation, allocated = status.get("allocation"), before.get("allocation")
        if isinstance(allocation, dict) and isinstance(allocated, dict):
            return found + (
                [] if allocation == allocated else [invalid("status.allocation", None, _ALLOCATED)]
            )
        if isinstance(allocation, dict):
            found += _validate_allocation("status.allocation", allocation, mapping(obj["spec"], "devices"))
        return declared_last(found)

    def columns(self) -> tuple[Column, ...]:
        return (column("Name"), column("State"), column("Age"))

    def cells(self, obj: Object, cluster: Cluster) -> list[Any]:
        return [obj["metadata"]["name"], state_of(obj), age(obj, cluster.now_s)]


class ResourceClaimTemplateStrategy(BaseStrategy):
    """What the claims made for pods and groups look like."""

    def default(self, obj: Object, cluster: Cluster) -> None:
        default_requests(mapping(mapping(mapping(obj, "spec"), "spec"), "devices"), cluster.gates)

    def validate_object(self, obj: Object, cluster: Cluster) -> list[Cause]:
        spec = mapping(obj, "spec")
        devices = mapping(mapping(spec, "spec"), "devices")
        found = refuse_admins(obj, devices, cluster)
        found += validate_labels("spec.metadata.labels", mapping(mapping(spec, "metadata"), "labels"))
        found += validate_devices("spec.spec.devices", devices)
        return declared_last(found)

    def validate_change(self, obj: Object, old: Object, cluster: Cluster) -> list[Cause]:
        same = mapping(obj, "spec") == mapping(old, "spec")
        return [] if same else [invalid("spec", mapping(obj, "spec"), IMMUTABLE)]


def state_of(claim: Object) -> str:
    """What `kubectl get` says of a claim."""
    status = mapping(claim, "status")
    is_deleted = bool(claim["metadata"].get("deletionTimestamp"))
    states = ["deleted"] if is_deleted else []
    if not isinstance(status.get("allocation"), dict):
        states += [] if is_deleted else ["pending"]
    else:
        states += ["allocated"] + (["reserved"] if items(status, "reservedFor") else [])
    return ",".join(states)


def default_requests(devices: Object, gates: frozenset[str]) -> None:
    """One device each, unless said otherwise; without fields whose gate is off."""
    for request in items(devices, "requests"):
        alternatives = items(request, "firstAvailable")
        exactly = request.get("exactly")
        for asked in [*alternatives, *([exactly] if isinstance(exactly, dict) else [])]:
            if "DRADerivedAttributes" not in gates:
                asked.pop("derivedAttributes", None)
            if not asked.get("allocationMode"):
                asked["allocationMode"] = "ExactCount"
            if asked["allocationMode"] == "ExactCount" and not asked.get("count"):
                asked["count"] = 1


def refuse_admins(obj: Object, devices: Object, cluster: Cluster) -> list[Cause]:
    """Admin access is for namespaces that have the label; of a template the path is that of its claims."""
    namespace = cluster.get("namespaces", "", text(obj["metadata"], "namespace")) or {}
    if mapping(namespace.get("metadata") or {}, "labels").get(ADMIN_LABEL) == "true":
        return []
    return [
        forbidden(f"spec.devices.requests[{index}].adminAccess", _ADMIN)
        for index, request in enumerate(items(devices, "requests"))
        if mapping(request, "exactly").get("adminAccess")
    ]


def validate_devices(path: str, devices: Object) -> list[Cause]:
    """Requests, constraints between them, and parameters."""
    names = _request_names(devices)
    found = each(f"{path}.requests", items(devices, "requests"), _validate_request, most=NAMES_MAX, key=named)
    found += each(
        f"{path}.constraints",
        items(devices, "constraints"),
        lambda here, constraint: _validate_constraint(here, constraint, names),
        most=NAMES_MAX,
    )
    return found + each(
        f"{path}.config",
        items(devices, "config"),
        lambda here, config: _validate_references(here, config, names) + validate_opaque(here, config),
        most=CONFIGS_MAX,
    )


def _request_names(devices: Object) -> set[str]:
    names: set[str] = set()
    for request in items(devices, "requests"):
        names.add(named(request))
        names |= {f"{named(request)}/{named(other)}" for other in items(request, "firstAvailable")}
    return names


def _validate_request(path: str, request: Any) -> list[Cause]:
    found = validate_label(f"{path}.name", named(request))
    alternatives, exactly = items(request, "firstAvailable"), request.get("exactly")
    if alternatives and isinstance(exactly, dict):
        return [*found, invalid(path, None, f"{_ONE_OF}, but multiple fields are set")]
    if alternatives:
        return found + each(
            f"{path}.firstAvailable",
            alternatives,
            lambda here, other: validate_label(f"{here}.name", named(other)) + _validate_asked(here, other),
            most=_ALTERNATIVES_MAX,
            key=named,
        )
    if isinstance(exactly, dict):
        return found + _validate_asked(f"{path}.exactly", exactly)
    return [*found, required(path, _ONE_OF)]


def _validate_derived(path: str, derived: Any) -> list[Cause]:
    found = validate_fully_qualified(f"{path}.name", text(derived, "name"))
    where, expression = f"{path}.expression", text(derived, "expression")
    return found + (
        validate_expression(where, expression, is_derived=True) if expression else [required(where)]
    )


def _validate_asked(path: str, asked: Any) -> list[Cause]:
    class_name = text(asked, "deviceClassName")
    where = f"{path}.deviceClassName"
    found = invalid_each(where, class_name, dns_subdomain(class_name)) if class_name else [required(where)]
    found += validate_selectors(f"{path}.selectors", items(asked, "selectors"))
    found += each(
        f"{path}.derivedAttributes",
        items(asked, "derivedAttributes"),
        _validate_derived,
        most=NAMES_MAX,
    )
    mode, count = text(asked, "allocationMode"), asked.get("count") or 0
    if mode == "All":
        if count:
            why = "must not be specified when allocationMode is 'All'"
            found.append(invalid(f"{path}.count", count, why))
    elif mode == "ExactCount":
        if count <= 0:
            found.append(invalid(f"{path}.count", count, "must be greater than zero"))
    else:
        found.append(not_supported(f"{path}.allocationMode", mode, _MODES))
    tolerations = items(asked, "tolerations")
    return found + each(f"{path}.tolerations", tolerations, validate_toleration, most=_TOLERATIONS_MAX)


def _validate_constraint(path: str, constraint: Any, names: set[str]) -> list[Cause]:
    found = _validate_references(path, constraint, names)
    given = [key for key in ("matchAttribute", "distinctAttribute") if constraint.get(key) is not None]
    if len(given) != 1:
        why = (
            'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'
        )
        return [*found, required(path, why)]
    return found + validate_fully_qualified(f"{path}.{given[0]}", text(constraint, given[0]))


def _validate_references(path: str, owner: Any, names: set[str]) -> list[Cause]:
    return each(
        f"{path}.requests",
        items(owner, "requests"),
        lambda here, name: [] if name in names else [invalid(here, name, _REFERENCE)],
        most=NAMES_MAX,
        key=str,
    )


def _validate_consumer(path: str, consumer: Any) -> list[Cause]:
    return [required(f"{path}.{key}") for key in ("resource", "name", "uid") if not text(consumer, key)]


def _validate_allocation(path: str, allocation: Object, devices: Object) -> list[Cause]:
    names = _request_names(devices)
    given = mapping(allocation, "devices")
    found = each(
        f"{path}.devices.results",
        items(given, "results"),
        lambda here, result: _validate_result(here, result, names),
        most=RESULTS_MAX,
    )
    found += each(
        f"{path}.devices.config",
        items(given, "config"),
        lambda here, config: _validate_given_config(here, config, names),
        most=2 * CONFIGS_MAX,
    )
    selector = allocation.get("nodeSelector")
    if isinstance(selector, dict):
        found += validate_selector_terms(f"{path}.nodeSelector", selector)
    return found


def _validate_result(path: str, result: Any, names: set[str]) -> list[Cause]:
    request = text(result, "request")
    found = [] if request in names else [invalid(f"{path}.request", request, _REFERENCE)]
    found += validate_driver_name(f"{path}.driver", text(result, "driver"))
    found += validate_pool_name(f"{path}.pool", text(result, "pool"))
    found += validate_label(f"{path}.device", text(result, "device"))
    found += validate_binding_conditions(path, result)
    return found + each(f"{path}.tolerations", items(result, "tolerations"), validate_toleration)


def _validate_given_config(path: str, config: Any, names: set[str]) -> list[Cause]:
    source = text(config, "source")
    found: list[Cause] = []
    if not source:
        found.append(required(f"{path}.source"))
    elif source not in _SOURCES:
        found.append(not_supported(f"{path}.source", source, _SOURCES))
    return found + _validate_references(path, config, names) + validate_opaque(path, config)
