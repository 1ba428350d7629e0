"""Volumes, claims and classes as the tests of the scheduler need them."""

from typing import Any

from muster.api.core import LabelSelectorRequirement as Requirement
from muster.api.core import NodeSelector, NodeSelectorTerm, ResourceRequirements
from muster.api.meta import ObjectMeta
from muster.api.storage import (
    BIND_COMPLETED,
    SELECTED_NODE,
    ClaimReference,
    ClaimSpec,
    CSISource,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeNodeAffinity,
    VolumeSpec,
    VolumeStatus,
)


def make_claim(
    name: str, *, volume: str = "", node: str = "", size: str = "1Gi", uid: str = "", **spec: Any
) -> PersistentVolumeClaim:
    """A claim of class "wait"; with `volume` bound for good, with `node` a provisioner is at work there."""
    annotations = ({BIND_COMPLETED: "yes"} if volume else {}) | ({SELECTED_NODE: node} if node else {})
    asked = {
        "storage_class_name": "wait",
        "access_modes": ["ReadWriteOnce"],
        "resources": ResourceRequirements(requests={"storage": size}),
        "volume_name": volume,
    }
    meta = ObjectMeta(name=name, namespace="default", uid=uid or f"uid-{name}", annotations=annotations)
    return PersistentVolumeClaim(meta, ClaimSpec(**(asked | spec)))


def make_volume(
    name: str,
    *,
    zone: str = "",
    size: str = "1Gi",
    claim: str = "",
    labels: dict[str, str] | None = None,
    **spec: Any,
) -> PersistentVolume:
    """A volume of class "wait", reached from this zone (label "zone") alone, promised to a claim by name."""
    affinity = None
    if zone:
        term = NodeSelectorTerm(match_expressions=[Requirement("zone", "In", [zone])])
        affinity = VolumeNodeAffinity(NodeSelector([term]))
    offered = {
        "storage_class_name": "wait",
        "access_modes": ["ReadWriteOnce"],
        "capacity": {"storage": size},
        "node_affinity": affinity,
        "claim_ref": ClaimReference("default", claim, f"uid-{claim}") if claim else None,
        "csi": CSISource("disk.example.com", name),
    }
    meta = ObjectMeta(name=name, uid=f"uid-{name}", resource_version="5", labels=labels)
    return PersistentVolume(meta, VolumeSpec(**(offered | spec)), VolumeStatus("Available"))


def make_class(
    name: str = "wait", *, provisioner: str = "", waits: bool = True, **fields: Any
) -> StorageClass:
    """A class that waits for its first consumer; without a provisioner nobody makes volumes of it."""
    mode = "WaitForFirstConsumer" if waits else "Immediate"
    return StorageClass(ObjectMeta(name=name, uid=f"uid-{name}"), provisioner, mode, **fields)


def mounts(*claims: str) -> list[dict[str, object]]:
    """The volumes of a pod that mounts these claims."""
    return [
        {"name": f"v{index}", "persistentVolumeClaim": {"claimName": name}}
        for index, name in enumerate(claims)
    ]
