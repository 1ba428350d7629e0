"""ResourceSlice (resource.k8s.io/v1): the devices that a driver offers, on one node or many."""

from typing import Any

from muster.api.versions import is_version
from muster.apiserver.kinds import Cause, Cluster, Object
from muster.apiserver.strategies.base import BaseStrategy
from muster.apiserver.strategies.device_rules import (
    declared_last,
    each,
    named,
    stamp_taint,
    validate_binding_conditions,
    validate_label,
    validate_pool_name,
    validate_qualified,
    validate_taint,
)
from muster.apiserver.strategies.fields import (
    IMMUTABLE,
    invalid,
    invalid_each,
    items,
    mapping,
    required,
    text,
    too_long,
)
from muster.apiserver.strategies.names import dns_subdomain
from muster.apiserver.strategies.pod_placement import validate_selector_terms
from muster.apiserver.strategies.printing import Column, age, column
from muster.apiserver.strategies.storage import validate_driver_name

_DEVICES_MAX, _ADVANCED_DEVICES_MAX = 128, 64
_TAINTS_MAX = 16
_PROPERTIES_MAX = 32
_VALUE_BYTES_MAX = 64
_SETS_MAX, _COUNTERS_MAX, _CONSUMED_MAX = 8, 32, 2
_VALUES = ("int", "bool", "string", "version", "ints", "bools", "strings", "versions")
_LISTS = _VALUES[4:]
_ONE_VALUE = "one of: " + ", ".join(f"`{key}`" for key in _VALUES)
_CHOICES = "`nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection`"
_ONE_CHOICE = f"exactly one of {_CHOICES} is required"
_DEVICE_CHOICE = (
    "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is "
    "set to true in the ResourceSlice spec"
)
_NO_CHOICE = (
    "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in "
    "the ResourceSlice spec"
)


class ResourceSliceStrategy(BaseStrategy):
    """Part of a pool; the pool is whole when all slices of its newest generation are there."""

    namespaced = False
    has_generation = True

    def default(self, obj: Object, cluster: Cluster) -> None:
        _drop_alpha(mapping(obj, "spec"))
        for device in items(mapping(obj, "spec"), "devices"):
            for taint in items(device, "taints"):
                stamp_taint(taint, cluster)

    def validate_object(self, obj: Object, cluster: Cluster) -> list[Cause]:
        spec = mapping(obj, "spec")
        found = validate_driver_name("spec.driver", text(spec, "driver"))
        found += _validate_pool(mapping(spec, "pool"))
        found += _validate_choice(spec)
        if spec.get("sharedCounters") is not None and spec.get("devices") is not None:
            found.append(invalid("spec", "", "only one of `sharedCounters` or `devices` is allowed"))
        devices = items(spec, "devices")
        is_advanced = any(items(device, "taints") or items(device, "consumesCounters") for device in devices)
        found += each(
            "spec.devices",
            devices,
            lambda here, device: _validate_device(here, device, bool(spec.get("perDeviceNodeSelection"))),
            most=_ADVANCED_DEVICES_MAX if is_advanced else _DEVICES_MAX,
            key=named,
            shows_key=True,
        )
        found += each(
            "spec.sharedCounters",
            items(spec, "sharedCounters"),
            lambda here, counters: _validate_counters(here, "name", counters),
            most=_SETS_MAX,
            key=named,
        )
        return declared_last(found)

    def validate_change(self, obj: Object, old: Object, cluster: Cluster) -> list[Cause]:
        spec, before = mapping(obj, "spec"), mapping(old, "spec")
        found = self.validate_object(obj, cluster)
        fixed = [
            ("pool.name", mapping(spec, "pool").get("name"), mapping(before, "pool").get("name")),
            ("driver", spec.get("driver"), before.get("driver")),
            ("nodeName", spec.get("nodeName"), before.get("nodeName")),
        ]
        return found + [
            invalid(f"spec.{path}", value, IMMUTABLE) for path, value, was in fixed if value != was
        ]

    def columns(self) -> tuple[Column, ...]:
        return tuple(column(name) for name in ("Name", "Node", "Driver", "Pool", "Age"))

    def cells(self, obj: Object, cluster: Cluster) -> list[Any]:
        spec = mapping(obj, "spec")
        return [
            obj["metadata"]["name"],
            text(spec, "nodeName"),
            text(spec, "driver"),
            text(mapping(spec, "pool"), "name"),
            age(obj, cluster.now_s),
        ]


def _drop_alpha(spec: Object) -> None:
    """Leave out, as stock does, what gates allow that are alpha, off, and not offered here."""
    for key in ("partitionTypeAttribute", "skipNodeOperations"):
        spec.pop(key, None)
    for device in items(spec, "devices"):
        device.pop("nodeAllocatableResources", None)
        for counters in items(device, "consumesCounters"):
            counters.pop("compatibilityGroups", None)
        for attribute in mapping(device, "attributes").values():
            for key in _LISTS:
                attribute.pop(key, None)


def _validate_pool(pool: Object) -> list[Cause]:
    found = validate_pool_name("spec.pool.name", text(pool, "name"))
    count, generation = pool.get("resourceSliceCount") or 0, pool.get("generation") or 0
    if count <= 0:
        found.append(invalid("spec.pool.resourceSliceCount", count, "must be greater than zero"))
    if generation < 0:
        why = "must be greater than or equal to zero"
        found.append(invalid("spec.pool.generation", generation, why))
    return found


def _validate_choice(spec: Object) -> list[Cause]:
    chosen, found = _choices("spec", spec, ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection"))
    if not chosen:
        return [*found, required("spec", _ONE_CHOICE)]
    if len(chosen) > 1:
        shown = "{" + ", ".join(f"`{key}`" for key in chosen) + "}"
        found.append(invalid("spec", shown, f"{_ONE_CHOICE}, but multiple fields are set"))
    return found


def _choices(path: str, owner: Object, keys: tuple[str, ...]) -> tuple[list[str], list[Cause]]:
    chosen: list[str] = []
    found: list[Cause] = []
    for key in keys:
        value = owner.get(key)
        if value is None:
            continue
        if key == "nodeName":
            if not value:
                found.append(
                    invalid(f"{path}.{key}", value, "must be either unset or set to a non-empty string")
                )
                continue
            found += invalid_each(f"{path}.{key}", value, dns_subdomain(str(value)))
        elif key == "nodeSelector":
            terms = items(value, "nodeSelectorTerms")
            found += validate_selector_terms(f"{path}.{key}", value)
            if len(terms) > 1:
                why = "must have exactly one node selector term"
                found.append(invalid(f"{path}.{key}.nodeSelectorTerms", value, why))
        elif not value:
            found.append(invalid(f"{path}.{key}", value, "must be either unset or set to true"))
            continue
        chosen.append(key)
    return chosen, found


def _validate_device(path: str, device: Any, chooses: bool) -> list[Cause]:
    found = validate_label(f"{path}.name", named(device))
    attributes, capacity = mapping(device, "attributes"), mapping(device, "capacity")
    count = len(attributes) + len(capacity)
    if count > _PROPERTIES_MAX:
        why = f"the total number of attributes and capacities must not exceed {_PROPERTIES_MAX}"
        found.append(invalid(path, count, why))
    for name in sorted(attributes):
        here = f"{path}.attributes[{name}]"
        found += validate_qualified(f"{path}.attributes", name) + _validate_attribute(here, attributes[name])
    for name in sorted(capacity):
        found += validate_qualified(f"{path}.capacity", name)
        if not device.get("allowMultipleAllocations") and mapping(capacity[name], "requestPolicy"):
            why = "allowMultipleAllocations must be true"
            found.append(invalid(f"{path}.capacity[{name}].requestPolicy", None, why))
    found += each(f"{path}.taints", items(device, "taints"), validate_taint, most=_TAINTS_MAX)
    found += each(
        f"{path}.consumesCounters",
        items(device, "consumesCounters"),
        lambda here, counters: _validate_counters(here, "counterSet", counters),
        most=_CONSUMED_MAX,
        key=lambda counters: text(counters, "counterSet"),
    )
    return found + _validate_where(path, device, chooses) + validate_binding_conditions(path, device)


def _validate_where(path: str, device: Any, chooses: bool) -> list[Cause]:
    keys = ("nodeName", "nodeSelector", "allNodes")
    if not chooses:
        is_set = any(device.get(key) is not None for key in keys)
        return [invalid(path, None, _NO_CHOICE)] if is_set else []
    chosen, found = _choices(path, device, keys)
    if not chosen:
        found.append(required(path, _DEVICE_CHOICE))
    elif len(chosen) > 1:
        shown = "{" + ", ".join(f"`{key}`" for key in chosen) + "}"
        found.append(invalid(path, shown, _DEVICE_CHOICE))
    return found


def _validate_attribute(path: str, attribute: Any) -> list[Cause]:
    given = [key for key in _VALUES if attribute.get(key) is not None]
    found: list[Cause] = []
    for key in given:
        found += _validate_value(f"{path}.{key}", key, attribute[key])
    if not given:
        found.append(invalid(path, "", f"must specify {_ONE_VALUE}"))
    elif len(given) > 1:
        shown = "{" + ", ".join(given) + "}"
        found.append(invalid(path, shown, f"must specify exactly {_ONE_VALUE}"))
    return found


def _validate_value(path: str, kind: str, value: Any) -> list[Cause]:
    if kind not in ("string", "version"):
        return []
    found: list[Cause] = []
    if kind == "version" and not is_version(str(value)):
        why = "must be a string compatible with semver.org spec 2.0.0"
        found.append(invalid(path, value, why))
    if len(str(value).encode()) > _VALUE_BYTES_MAX:
        found.append(too_long(path, _VALUE_BYTES_MAX))
    return found


def _validate_counters(path: str, key: str, counters: Any) -> list[Cause]:
    name, values = text(counters, key), mapping(counters, "counters")
    found = validate_label(f"{path}.{key}", name) if name else [required(f"{path}.{key}")]
    if not values:
        return [*found, required(f"{path}.counters")]
    for each_name in sorted(values):
        found += validate_label(f"{path}.counters", each_name)
    if len(values) > _COUNTERS_MAX:
        found.append(invalid(f"{path}.counters", len(values), f"must have at most {_COUNTERS_MAX} items"))
    return found
