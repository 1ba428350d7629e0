"""What nodes attach and provisioners make: StorageClass, CSINode, CSIDriver, and what they come to."""

from collections.abc import Iterable
from typing import Any

from muster.apiserver.kinds import Cause, Cluster, Object
from muster.apiserver.strategies.base import BaseStrategy
from muster.apiserver.strategies.fields import (
    IMMUTABLE,
    at_least_0,
    duplicate,
    forbidden,
    invalid,
    invalid_each,
    items,
    mapping,
    not_supported,
    required,
    text,
    too_long,
)
from muster.apiserver.strategies.names import dns_subdomain, label_key
from muster.apiserver.strategies.printing import Column, age, column
from muster.apiserver.strategies.resources import validate_amount
from muster.apiserver.strategies.selectors import validate_selector

CLASSES = "storageclasses.storage.k8s.io"
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
BINDING_MODES = ("Immediate", "WaitForFirstConsumer")
RECLAIM_POLICIES = ("Delete", "Retain")
_GROUP_POLICIES = ("File", "None", "ReadWriteOnceWithFSType")
_LIFECYCLES = ("Persistent", "Ephemeral")
_PARAMETERS_MAX, _PARAMETER_BYTES_MAX = 512, 256 * 1024
_NODE_ID_MAX = 256
_DRIVER_NAME_MAX = 63
_TOKEN_S_MIN = 600
_TOKEN_WARNING = (
    "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent "
    "possible logging of tokens in volume attributes"
)
_ONE_SOURCE = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
UNSET = "<unset>"


class StorageClassStrategy(BaseStrategy):
    """How volumes of a class come to be."""

    namespaced = False

    def default(self, obj: Object, cluster: Cluster) -> None:
        if obj.get("reclaimPolicy") is None:
            obj["reclaimPolicy"] = "Delete"
        if obj.get("volumeBindingMode") is None:
            obj["volumeBindingMode"] = "Immediate"

    def validate_object(self, obj: Object, cluster: Cluster) -> list[Cause]:
        provisioner = text(obj, "provisioner")
        if provisioner:
            found = invalid_each("provisioner", provisioner.lower(), label_key(provisioner.lower()))
        else:
            found = [required("provisioner")]
        found += _validate_parameters(mapping(obj, "parameters"))
        if (policy := text(obj, "reclaimPolicy")) and policy not in RECLAIM_POLICIES:
            found.append(not_supported("reclaimPolicy", policy, RECLAIM_POLICIES))
        if (mode := text(obj, "volumeBindingMode")) not in BINDING_MODES:
            found.append(not_supported("volumeBindingMode", mode, BINDING_MODES))
        return found + _validate_topologies("allowedTopologies", items(obj, "allowedTopologies"))

    def validate_change(self, obj: Object, old: Object, cluster: Cluster) -> list[Cause]:
        fixed = ("provisioner", "parameters", "reclaimPolicy", "volumeBindingMode")
        return [
            invalid(key, None, IMMUTABLE) for key in fixed if (obj.get(key) or None) != (old.get(key) or None)
        ]

    def columns(self) -> tuple[Column, ...]:
        names = ("Name", "Provisioner", "ReclaimPolicy", "VolumeBindingMode", "AllowVolumeExpansion", "Age")
        return tuple(column(name) for name in names)

    def cells(self, obj: Object, cluster: Cluster) -> list[Any]:
        return [
            obj["metadata"]["name"]
            + (" (default)" if default_class(cluster) == obj["metadata"]["name"] else ""),
            *(text(obj, key) for key in ("provisioner", "reclaimPolicy", "volumeBindingMode")),
            bool(obj.get("allowVolumeExpansion")),
            age(obj, cluster.now_s),
        ]


def default_class(cluster: Cluster) -> str:
    """The class of claims that name none: the newest that says it is the default; "" without one."""
    marked = [
        each
        for each in cluster.list(CLASSES)
        if mapping(each["metadata"], "annotations").get(DEFAULT_CLASS) == "true"
    ]
    newest_first = sorted(marked, key=lambda each: str(each["metadata"]["name"]))
    newest_first.sort(key=lambda each: str(each["metadata"].get("creationTimestamp")), reverse=True)
    return str(newest_first[0]["metadata"]["name"]) if newest_first else ""


def _validate_parameters(parameters: Object) -> list[Cause]:
    if len(parameters) > _PARAMETERS_MAX:
        return [too_long("parameters", _PARAMETERS_MAX)]
    found = [invalid("parameters", key, "field can not be empty.") for key in parameters if not key]
    if sum(len(key) + len(str(value)) for key, value in parameters.items()) > _PARAMETER_BYTES_MAX:
        found.append(too_long("parameters", _PARAMETER_BYTES_MAX))
    return found


def _validate_topologies(path: str, terms: list[Any]) -> list[Cause]:
    found: list[Cause] = []
    seen: list[dict[str, set[str]]] = []
    for index, term in enumerate(terms):
        here = f"{path}[{index}]"
        values_of: dict[str, set[str]] = {}
        for number, expression in enumerate(items(term, "matchLabelExpressions")):
            found += _validate_expression(f"{here}.matchLabelExpressions[{number}]", expression, values_of)
        if values_of in seen:
            found.append(duplicate(f"{here}.matchLabelExpressions", ""))
        seen.append(values_of)
    return found


def _validate_expression(path: str, expression: Object, values_of: dict[str, set[str]]) -> list[Cause]:
    key, values = text(expression, "key"), items(expression, "values")
    found: list[Cause] = []
    if not values:
        found.append(required(f"{path}.values"))
    for index, value in enumerate(values):
        if value in values[:index]:
            found.append(duplicate(f"{path}.values[{index}]", value))
    found += invalid_each(f"{path}.key", key, label_key(key))
    if key in values_of:
        found.append(duplicate(f"{path}.key", key))
    values_of[key] = {str(value) for value in values}
    return found


class CSINodeStrategy(BaseStrategy):
    """Which drivers a node has, and how many volumes of each it can attach."""

    namespaced = False

    def validate_object(self, obj: Object, cluster: Cluster) -> list[Cause]:
        found: list[Cause] = []
        names: set[str] = set()
        for index, driver in enumerate(items(mapping(obj, "spec"), "drivers")):
            here = f"spec.drivers[{index}]"
            found += _validate_node_driver(here, driver)
            if text(driver, "name") in names:
                found.append(duplicate(f"{here}.name", text(driver, "name")))
            names.add(text(driver, "name"))
        return found

    def validate_change(self, obj: Object, old: Object, cluster: Cluster) -> list[Cause]:
        found = self.validate_object(obj, cluster)
        before = {text(driver, "name"): driver for driver in items(mapping(old, "spec"), "drivers")}
        for driver in items(mapping(obj, "spec"), "drivers"):
            known = before.get(text(driver, "name"))
            if known is not None and _identity(known) != _identity(driver):
                found.append(invalid("spec.drivers", driver, IMMUTABLE))
        return found

    def columns(self) -> tuple[Column, ...]:
        return (column("Name"), column("Drivers", "integer"), column("Age"))

    def cells(self, obj: Object, cluster: Cluster) -> list[Any]:
        drivers = items(mapping(obj, "spec"), "drivers")
        return [obj["metadata"]["name"], len(drivers), age(obj, cluster.now_s)]


def _identity(driver: Object) -> Object:
    return {key: value for key, value in driver.items() if key != "allocatable"}


def validate_driver_name(path: str, name: str) -> list[Cause]:
    """A CSI or device driver: a DNS subdomain of at most 63."""
    if not name:
        return [required(path)]
    found = [too_long(path, _DRIVER_NAME_MAX)] if len(name) > _DRIVER_NAME_MAX else []
    return found + invalid_each(path, name, dns_subdomain(name.lower()))


def _validate_node_driver(path: str, driver: Object) -> list[Cause]:
    node_id = text(driver, "nodeID")
    found = validate_driver_name(f"{path}.name", text(driver, "name"))
    if not node_id:
        found.append(required(f"{path}.nodeID"))
    if len(node_id) > _NODE_ID_MAX:
        found.append(invalid(f"{path}.nodeID", node_id, f"must be {_NODE_ID_MAX} characters or less"))
    found += at_least_0(f"{path}.allocatable.count", mapping(driver, "allocatable").get("count"))
    keys = items(driver, "topologyKeys")
    for index, key in enumerate(keys):
        if not key:
            found.append(required(path))
        if key in keys[:index]:
            found.append(duplicate(path, key))
        found += invalid_each(path, key, label_key(str(key)))
    return found


class CSIDriverStrategy(BaseStrategy):
    """What the cluster needs to know of a driver."""

    namespaced = False
    _defaults = (
        ("attachRequired", True),
        ("podInfoOnMount", False),
        ("storageCapacity", False),
        ("fsGroupPolicy", "ReadWriteOnceWithFSType"),
        ("requiresRepublish", False),
        ("seLinuxMount", False),
        ("preventPodSchedulingIfMissing", False),
    )

    def default(self, obj: Object, cluster: Cluster) -> None:
        spec = obj.setdefault("spec", {})
        for key, value in self._defaults:
            if spec.get(key) is None:
                spec[key] = value
        if not spec.get("volumeLifecycleModes"):
            spec["volumeLifecycleModes"] = ["Persistent"]

    def validate_object(self, obj: Object, cluster: Cluster) -> list[Cause]:
        spec = mapping(obj, "spec")
        found: list[Cause] = []
        if (policy := text(spec, "fsGroupPolicy")) not in _GROUP_POLICIES:
            found.append(not_supported("spec.fsGroupPolicy", policy, _GROUP_POLICIES))
        audiences: set[str] = set()
        for index, request in enumerate(items(spec, "tokenRequests")):
            found += _validate_token(f"spec.tokenRequests[{index}]", request, audiences)
        for mode in items(spec, "volumeLifecycleModes"):
            if mode not in _LIFECYCLES:
                found.append(not_supported("spec.volumeLifecycleModes", mode, _LIFECYCLES))
        period = spec.get("nodeAllocatableUpdatePeriodSeconds")
        if isinstance(period, int) and period < 10:
            where = "spec.nodeAllocatableUpdatePeriodSeconds"
            found.append(invalid(where, period, "must be greater than or equal to 10 seconds"))
        return found

    def validate_change(self, obj: Object, old: Object, cluster: Cluster) -> list[Cause]:
        found = self.validate_object(obj, cluster)
        spec, before = mapping(obj, "spec"), mapping(old, "spec")
        for key, path in (
            ("attachRequired", "spec.attachedRequired"),
            ("volumeLifecycleModes", "spec.volumeLifecycleModes"),
        ):
            if spec.get(key) != before.get(key):
                found.append(invalid(path, spec.get(key), IMMUTABLE))
        return found

    def warnings(self, obj: Object) -> Iterable[str]:
        spec = mapping(obj, "spec")
        if items(spec, "tokenRequests") and spec.get("serviceAccountTokenInSecrets") is None:
            yield _TOKEN_WARNING

    def columns(self) -> tuple[Column, ...]:
        flags = ("AttachRequired", "PodInfoOnMount", "StorageCapacity")
        return (
            column("Name"),
            *(column(name, "boolean") for name in flags),
            column("TokenRequests"),
            column("RequiresRepublish", "boolean"),
            column("Modes"),
            column("Age"),
        )

    def cells(self, obj: Object, cluster: Cluster) -> list[Any]:
        spec = mapping(obj, "spec")
        audiences = ",".join(text(request, "audience") for request in items(spec, "tokenRequests"))
        return [
            obj["metadata"]["name"],
            bool(spec.get("attachRequired", True)),
            bool(spec.get("podInfoOnMount")),
            bool(spec.get("storageCapacity")),
            audiences if "tokenRequests" in spec else UNSET,
            bool(spec.get("requiresRepublish")),
            ",".join(items(spec, "volumeLifecycleModes")) or "<none>",
            age(obj, cluster.now_s),
        ]


def _validate_token(path: str, request: Object, audiences: set[str]) -> list[Cause]:
    audience, lasts_s = text(request, "audience"), request.get("expirationSeconds")
    if audience in audiences:
        return [duplicate(f"{path}.audience", audience)]
    audiences.add(audience)
    if not isinstance(lasts_s, int):
        return []
    where = f"{path}.expirationSeconds"
    if lasts_s < _TOKEN_S_MIN:
        return [invalid(where, lasts_s, "may not specify a duration less than 10 minutes")]
    if lasts_s > 1 << 32:
        return [invalid(where, lasts_s, "may not specify a duration larger than 2^32 seconds")]
    return []


class VolumeAttachmentStrategy(BaseStrategy):
    """A volume that is to be attached to a node; the status is the attacher's."""

    namespaced = False
    has_status = True

    def validate_object(self, obj: Object, cluster: Cluster) -> list[Cause]:
        spec = mapping(obj, "spec")
        source, node_name = mapping(spec, "source"), text(spec, "nodeName")
        given = [key for key in ("inlineVolumeSpec", "persistentVolumeName") if source.get(key) is not None]
        found = validate_driver_name("spec.attacher", text(spec, "attacher"))
        if not given:
            found.append(required("spec.source", _ONE_SOURCE))
        elif len(given) > 1:
            found.append(forbidden("spec.source", _ONE_SOURCE))
        elif given == ["persistentVolumeName"]:
            name = text(source, "persistentVolumeName")
            path = "spec.source.persistentVolumeName"
            if not name:
                found.append(required(path, "must specify non empty persistentVolumeName"))
            found += invalid_each(path, name, dns_subdomain(name))
        return found + invalid_each("spec.nodeName", node_name, dns_subdomain(node_name))

    def validate_change(self, obj: Object, old: Object, cluster: Cluster) -> list[Cause]:
        same = mapping(obj, "spec") == mapping(old, "spec")
        return [] if same else [invalid("spec", mapping(obj, "spec"), IMMUTABLE)]

    def columns(self) -> tuple[Column, ...]:
        words = tuple(column(name) for name in ("Name", "Attacher", "PV", "Node"))
        return (*words, column("Attached", "boolean"), column("Age"))

    def cells(self, obj: Object, cluster: Cluster) -> list[Any]:
        spec = mapping(obj, "spec")
        return [
            obj["metadata"]["name"],
            text(spec, "attacher"),
            text(mapping(spec, "source"), "persistentVolumeName"),
            text(spec, "nodeName"),
            bool(mapping(obj, "status").get("attached")),
            age(obj, cluster.now_s),
        ]


class CSIStorageCapacityStrategy(BaseStrategy):
    """How much a provisioner can still make of a class where these nodes can reach it."""

    def validate_object(self, obj: Object, cluster: Cluster) -> list[Cause]:
        class_name, capacity = text(obj, "storageClassName"), obj.get("capacity")
        found = validate_selector("nodeTopology", obj.get("nodeTopology"))
        found += invalid_each("storageClassName", class_name, dns_subdomain(class_name))
        return found + (validate_amount("capacity", "storage", capacity) if capacity is not None else [])

    def validate_change(self, obj: Object, old: Object, cluster: Cluster) -> list[Cause]:
        return [
            invalid(key, obj.get(key), IMMUTABLE)
            for key in ("nodeTopology", "storageClassName")
            if obj.get(key) != old.get(key)
        ]

    def columns(self) -> tuple[Column, ...]:
        return (column("Name"), ("Created At", "date", "", 0))

    def cells(self, obj: Object, cluster: Cluster) -> list[Any]:
        return [obj["metadata"]["name"], text(obj["metadata"], "creationTimestamp")]
