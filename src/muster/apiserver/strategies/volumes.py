"""PersistentVolume and PersistentVolumeClaim (v1): what is there to mount, and who asks for it."""

from typing import Any

from muster.api.times import format_seconds
from muster.apiserver.kinds import Cause, Cluster, Object
from muster.apiserver.strategies.base import BaseStrategy, forbid
from muster.apiserver.strategies.fields import (
    forbidden,
    invalid,
    invalid_each,
    items,
    mapping,
    not_supported,
    required,
    text,
)
from muster.apiserver.strategies.names import dns_subdomain
from muster.apiserver.strategies.pod_placement import validate_selector_terms
from muster.apiserver.strategies.printing import Column, age, column
from muster.apiserver.strategies.resources import amount, validate_amount
from muster.apiserver.strategies.selectors import validate_selector
from muster.apiserver.strategies.storage import CLASSES, UNSET, default_class

ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
ONE_POD = "ReadWriteOncePod"
_SHORT = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", ONE_POD: "RWOP"}
_RECLAIM_POLICIES = ("Delete", "Recycle", "Retain")
_VOLUME_MODES = ("Block", "Filesystem")
_SOURCES = (
    *("awsElasticBlockStore", "azureDisk", "azureFile", "cephfs", "cinder", "csi", "fc", "flexVolume"),
    *(
        "flocker",
        "gcePersistentDisk",
        "glusterfs",
        "hostPath",
        "iscsi",
        "local",
        "nfs",
        "photonPersistentDisk",
    ),
    *("portworxVolume", "quobyte", "rbd", "scaleIO", "storageos", "vsphereVolume"),
)
_POSITIVE = "must be greater than zero"
_NO_RESIZE = (
    "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must "
    "support resize"
)
_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_FIXED = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound "
    "claims"
)


class PersistentVolumeStrategy(BaseStrategy):
    """A volume that exists; the volume controller keeps its phase."""

    namespaced = False
    has_status = True
    keeps_status_metadata = True

    def default(self, obj: Object, cluster: Cluster) -> None:
        spec = obj.setdefault("spec", {})
        if not spec.get("persistentVolumeReclaimPolicy"):
            spec["persistentVolumeReclaimPolicy"] = "Retain"
        if spec.get("volumeMode") is None:
            spec["volumeMode"] = "Filesystem"
        if isinstance(path := spec.get("hostPath"), dict):
            path.setdefault("type", "")

    def prepare_create(self, obj: Object, cluster: Cluster) -> None:
        super().prepare_create(obj, cluster)
        obj["status"] = {"phase": "Pending", "lastPhaseTransitionTime": format_seconds(cluster.now_s)}

    def prepare_update(self, obj: Object, old: Object, sub: str, cluster: Cluster) -> None:
        super().prepare_update(obj, old, sub, cluster)
        status, before = mapping(obj, "status"), mapping(old, "status")
        if sub == "status" and status.get("phase") != before.get("phase"):
            status["lastPhaseTransitionTime"] = format_seconds(cluster.now_s)

    def admit_create(self, obj: Object, cluster: Cluster) -> None:
        _protect(obj, "kubernetes.io/pv-protection")

    def validate_object(self, obj: Object, cluster: Cluster) -> list[Cause]:
        spec = mapping(obj, "spec")
        found = _validate_modes("spec.accessModes", items(spec, "accessModes"), "")
        found += _validate_capacity(mapping(spec, "capacity"))
        policy = text(spec, "persistentVolumeReclaimPolicy")
        if policy not in _RECLAIM_POLICIES:
            where = "spec.persistentVolumeReclaimPolicy"
            found.append(not_supported(where, policy, _RECLAIM_POLICIES))
        found += _validate_node_affinity("spec.nodeAffinity", spec)
        sources = [key for key in _SOURCES if spec.get(key) is not None]
        if not sources:
            found.append(required("spec", "must specify a volume type"))
        found += [forbidden(f"spec.{key}", "may not specify more than 1 volume type") for key in sources[1:]]
        if class_name := text(spec, "storageClassName"):
            found += invalid_each("spec.storageClassName", class_name, dns_subdomain(class_name))
        return found + _validate_volume_mode(spec)

    def validate_change(self, obj: Object, old: Object, cluster: Cluster) -> list[Cause]:
        found = self.validate_object(obj, cluster)
        spec, before = mapping(obj, "spec"), mapping(old, "spec")
        if any(spec.get(key) != before.get(key) for key in _SOURCES):
            why = "spec.persistentvolumesource is immutable after creation"
            found.append(forbidden("spec.persistentvolumesource", why))
        if spec.get("volumeMode") != before.get("volumeMode"):
            found.append(invalid("volumeMode", spec.get("volumeMode"), "field is immutable"))
        affinity = before.get("nodeAffinity")
        if affinity is not None and spec.get("nodeAffinity") != affinity:
            found.append(invalid("nodeAffinity", spec.get("nodeAffinity"), "field is immutable"))
        return found

    def columns(self) -> tuple[Column, ...]:
        names = ("Name", "Capacity", "Access Modes", "Reclaim Policy", "Status", "Claim", "StorageClass")
        more = ("VolumeAttributesClass", "Reason", "Age")
        return (*(column(name) for name in (*names, *more)), column("VolumeMode", wide=True))

    def cells(self, obj: Object, cluster: Cluster) -> list[Any]:
        spec, status = mapping(obj, "spec"), mapping(obj, "status")
        claim = mapping(spec, "claimRef")
        return [
            obj["metadata"]["name"],
            str(mapping(spec, "capacity").get("storage", "0")),
            _modes_in_short(items(spec, "accessModes")),
            text(spec, "persistentVolumeReclaimPolicy"),
            _phase(obj),
            f"{text(claim, 'namespace')}/{text(claim, 'name')}" if claim else "",
            class_of(obj),
            spec.get("volumeAttributesClassName") or UNSET,
            text(status, "reason"),
            age(obj, cluster.now_s),
            spec.get("volumeMode") or UNSET,
        ]


class PersistentVolumeClaimStrategy(BaseStrategy):
    """Who asks for a volume; bound to one by the volume controller or by the scheduler's choice."""

    has_status = True
    keeps_status_metadata = True

    def default(self, obj: Object, cluster: Cluster) -> None:
        spec = obj.setdefault("spec", {})
        if spec.get("volumeMode") is None:
            spec["volumeMode"] = "Filesystem"

    def prepare_create(self, obj: Object, cluster: Cluster) -> None:
        super().prepare_create(obj, cluster)
        obj["status"] = {"phase": "Pending"}

    def admit_create(self, obj: Object, cluster: Cluster) -> None:
        _protect(obj, "kubernetes.io/pvc-protection")
        spec = obj["spec"]
        annotated = _CLASS_ANNOTATION in mapping(obj["metadata"], "annotations")
        if spec.get("storageClassName") is None and not annotated and (chosen := default_class(cluster)):
            spec["storageClassName"] = chosen

    def admit_update(self, obj: Object, old: Object, sub: str, cluster: Cluster) -> None:
        if sub or _asked(obj) <= _asked(old) or text(mapping(old, "status"), "phase") != "Bound":
            return
        chosen = cluster.get(CLASSES, "", class_of(old)) or {}
        if not chosen.get("allowVolumeExpansion"):
            raise forbid("persistentvolumeclaims", "", obj["metadata"]["name"], _NO_RESIZE)

    def validate_object(self, obj: Object, cluster: Cluster) -> list[Cause]:
        spec = mapping(obj, "spec")
        modes = items(spec, "accessModes")
        found = [] if modes else [required("spec.accessModes", "at least 1 access mode is required")]
        found += validate_selector("spec.selector", spec.get("selector"))
        found += _validate_modes("spec.accessModes", modes, None)
        asked = mapping(mapping(spec, "resources"), "requests").get("storage")
        if asked is None:
            found.append(required("spec.resources[storage]"))
        elif amount(asked) <= 0:
            found.append(invalid("spec.resources[storage]", str(asked), _POSITIVE))
        if class_name := text(spec, "storageClassName"):
            found += invalid_each("spec.storageClassName", class_name, dns_subdomain(class_name))
        return found + _validate_volume_mode(spec)

    def validate_change(self, obj: Object, old: Object, cluster: Cluster) -> list[Cause]:
        found = self.validate_object(obj, cluster)
        spec, before = _fixed_part(obj), _fixed_part(old)
        is_bound = text(mapping(obj, "status"), "phase") == "Bound"
        for part in (spec, before):
            if not text(old["spec"], "volumeName"):
                part.pop("volumeName", None)
            if before.get("storageClassName") is None:
                part.pop("storageClassName", None) if part is spec else None
            if is_bound:
                part.pop("resources", None)
                part.pop("volumeAttributesClassName", None)
        if spec != before:
            found.append(forbidden("spec", _FIXED))
        asked, had = _asked(obj), _asked(old)
        reached = mapping(mapping(old, "status"), "capacity").get("storage")
        if asked < had and asked <= (amount(reached) if reached is not None else 0):
            why = "field can not be less than status.capacity"
            found.append(forbidden("spec.resources.requests.storage", why))
        return found

    def columns(self) -> tuple[Column, ...]:
        names = ("Name", "Status", "Volume", "Capacity", "Access Modes", "StorageClass")
        more = ("VolumeAttributesClass", "Age")
        return (*(column(name) for name in (*names, *more)), column("VolumeMode", wide=True))

    def cells(self, obj: Object, cluster: Cluster) -> list[Any]:
        spec, status = mapping(obj, "spec"), mapping(obj, "status")
        has_volume = bool(text(spec, "volumeName"))
        return [
            obj["metadata"]["name"],
            _phase(obj),
            text(spec, "volumeName"),
            str(mapping(status, "capacity").get("storage", "0")) if has_volume else "",
            _modes_in_short(items(status, "accessModes")) if has_volume else "",
            class_of(obj),
            spec.get("volumeAttributesClassName") or UNSET,
            age(obj, cluster.now_s),
            spec.get("volumeMode") or UNSET,
        ]


def class_of(obj: Object) -> str:
    """The storage class of a volume or claim; the old annotation goes first, as in Kubernetes."""
    annotated = mapping(obj["metadata"], "annotations").get(_CLASS_ANNOTATION)
    return str(annotated) if annotated is not None else text(mapping(obj, "spec"), "storageClassName")


def _protect(obj: Object, finalizer: str) -> None:
    finalizers = items(obj["metadata"], "finalizers")
    if finalizer not in finalizers:
        obj["metadata"]["finalizers"] = [*finalizers, finalizer]


def _phase(obj: Object) -> str:
    if obj["metadata"].get("deletionTimestamp"):
        return "Terminating"
    return text(mapping(obj, "status"), "phase")


def _modes_in_short(modes: list[Any]) -> str:
    return ",".join(short for mode, short in _SHORT.items() if mode in modes)


def _fixed_part(claim: Object) -> Object:
    return dict(mapping(claim, "spec"))


def _asked(claim: Object) -> int:
    return amount(mapping(mapping(mapping(claim, "spec"), "resources"), "requests").get("storage", "0"))


def _validate_modes(path: str, modes: list[Any], missing: str | None) -> list[Cause]:
    found = [required(path, missing)] if missing is not None and not modes else []
    found += [not_supported(path, mode, ACCESS_MODES) for mode in modes if mode not in ACCESS_MODES]
    known = {mode for mode in modes if mode in ACCESS_MODES}
    if ONE_POD in known and len(known) > 1:
        found.append(forbidden(path, "may not use ReadWriteOncePod with other access modes"))
    return found


def _validate_capacity(capacity: Object) -> list[Cause]:
    found = [] if capacity else [required("spec.capacity")]
    if set(capacity) != {"storage"}:
        shown = dict(sorted(capacity.items())) or None
        found.append(not_supported("spec.capacity", shown, ("storage",)))
    for name, value in sorted(capacity.items()):
        found += validate_amount(f"spec.capacity[{name}]", name, value)
        if not found and amount(value) <= 0:
            found.append(invalid(f"spec.capacity[{name}]", str(value), _POSITIVE))
    return found


def _validate_node_affinity(path: str, spec: Object) -> list[Cause]:
    affinity = spec.get("nodeAffinity")
    if not isinstance(affinity, dict):
        return []
    wanted = affinity.get("required")
    if not isinstance(wanted, dict):
        return [required(f"{path}.required", "must specify required node constraints")]
    return validate_selector_terms(f"{path}.required", wanted)


def _validate_volume_mode(spec: Object) -> list[Cause]:
    mode = text(spec, "volumeMode")
    return [] if mode in _VOLUME_MODES else [not_supported("spec.volumeMode", mode, _VOLUME_MODES)]
