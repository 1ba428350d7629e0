"""Pod groups of the native API (scheduling.k8s.io) as the core's groups, and objects of watches as its
events.

The only module besides `api/` that knows the native API's field names.  In come objects as JSON text or
plain dicts; out come `framework.ports` events.  Another dialect (coscheduling, Volcano) would be another
such module. Next: `scheduling/scheduler.py`.
"""

from typing import Any

from msgspec.structs import replace

from muster.api.codec import decode_object
from muster.api.core import Namespace, Node, Pod
from muster.api.devices import DeviceClass, DeviceObject, DeviceTaintRule, ResourceClaim, ResourceSlice
from muster.api.policy import PodDisruptionBudget
from muster.api.scheduling import CompositePodGroup, PodGroup, SchedulingConstraints
from muster.api.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    StorageObject,
    VolumeAttachment,
)
from muster.api.times import parse_seconds
from muster.cluster.budgets import Budget
from muster.dialects.annotations import find_idle, read_wishes
from muster.dialects.terms import find_idle_on_basic, find_idle_terms, read_terms
from muster.framework.groups import Group, GroupKey, ObjectKey, UnsupportedField
from muster.framework.ports import (
    CompositeGone,
    CompositeSeen,
    DevicesGone,
    DevicesSeen,
    Event,
    GroupGone,
    GroupSeen,
    NamespaceGone,
    NamespaceSeen,
    NodeGone,
    NodeSeen,
    PdbGone,
    PdbSeen,
    PodGone,
    PodSeen,
    StorageGone,
    StorageSeen,
)

Raw = bytes | str | dict[str, Any]

STORAGE_KINDS: dict[str, type[StorageObject]] = {
    "persistentvolumes": PersistentVolume,
    "persistentvolumeclaims": PersistentVolumeClaim,
    "storageclasses": StorageClass,
    "csinodes": CSINode,
    "csidrivers": CSIDriver,
    "csistoragecapacities": CSIStorageCapacity,
    "volumeattachments": VolumeAttachment,
}
DEVICE_KINDS: dict[str, type[DeviceObject]] = {
    "deviceclasses": DeviceClass,
    "devicetaintrules": DeviceTaintRule,
    "resourceslices": ResourceSlice,
    "resourceclaims": ResourceClaim,
}


def decode_pod(raw: Raw) -> Pod:
    """A pod; raises ObjectInvalid."""
    return decode_object(raw, Pod)


def decode_node(raw: Raw) -> Node:
    """A node; raises ObjectInvalid."""
    return decode_object(raw, Node)


def decode_namespace(raw: Raw) -> Namespace:
    """A namespace; raises ObjectInvalid."""
    return decode_object(raw, Namespace)


def decode_group(raw: Raw) -> Group:
    """A PodGroup as the core knows groups; raises ObjectInvalid."""
    return group_of(decode_object(raw, PodGroup))


def decode_composite(raw: Raw) -> Group:
    """A CompositePodGroup as the core knows groups; raises ObjectInvalid."""
    return composite_of(decode_object(raw, CompositePodGroup))


def group_key_of(pod: Pod) -> GroupKey | None:
    """The group a pod names; None for a lone pod."""
    chosen = pod.spec.scheduling_group
    if chosen is None or not chosen.pod_group_name:
        return None
    return ObjectKey(pod.metadata.namespace, chosen.pod_group_name)


def idle_on(pod: Pod) -> tuple[UnsupportedField, ...]:
    """What the pod's user wrote on it for Muster and nobody reads there."""
    annotations = pod.metadata.annotations
    return find_idle(annotations, group_key_of(pod)) if annotations else ()


def seen_pod(pod: Pod) -> PodSeen:
    """The event that tells the core of a pod."""
    return PodSeen(pod, group_key_of(pod), idle_on(pod))


def group_of(pod_group: PodGroup) -> Group:
    """Translate a PodGroup; what it asks for that is not understood stands in `unsupported`."""
    gang = pod_group.spec.scheduling_policy.gang
    found = _group(
        pod_group,
        min_count=None if gang is None else max(gang.min_count, 1),  # a server ought to refuse less
    )
    if gang is None and found.annotations:
        annotations = dict(found.annotations)
        idle = find_idle_on_basic(annotations, has_parent=found.parent is not None)
        found = replace(found, unsupported=found.unsupported + idle)
    claims = pod_group.spec.resource_claims
    return replace(found, claims=tuple(claims)) if claims else found


def composite_of(composite: CompositePodGroup) -> Group:
    """Translate a CompositePodGroup: a group whose minimum counts groups."""
    gang = composite.spec.scheduling_policy.gang
    least = None if gang is None else max(gang.min_group_count, 1)
    found = _group(composite, min_count=least)
    idle = find_idle_terms(composite.metadata.annotations or {}, has_parent=found.parent is not None)
    return replace(found, unsupported=found.unsupported + idle) if idle else found


def _group(found: PodGroup | CompositePodGroup, *, min_count: int | None) -> Group:
    """What both kinds have in common."""
    meta, spec = found.metadata, found.spec
    constraints = spec.scheduling_constraints or SchedulingConstraints()
    mode = spec.disruption_mode
    parent = spec.parent_composite_pod_group_name
    wishes = read_wishes(meta.annotations or {})
    terms, bad_terms = read_terms(meta.annotations or {})
    return Group(
        key=ObjectKey(meta.namespace, meta.name),
        uid=meta.uid,
        version=meta.resource_version,
        generation=meta.generation or 0,
        min_count=min_count,
        priority=spec.priority or 0,
        preemption_policy=spec.preemption_policy,
        disruption_mode="all" if mode is not None and mode.all is not None else "single",
        topology_keys=tuple(term.key for term in constraints.topology or ()),
        parent=ObjectKey(meta.namespace, parent) if parent else None,
        created_s=parse_seconds(meta.creation_timestamp),
        deleting=meta.deletion_timestamp is not None,
        annotations=tuple(sorted((meta.annotations or {}).items())),
        conditions=tuple(found.status.conditions or ()),
        unsupported=wishes.unreadable + bad_terms,
        preferred_levels=wishes.levels,
        rank_key=wishes.rank_key,
        terms=terms,
        is_composite=isinstance(found, CompositePodGroup),
    )


def budget_of(pdb: PodDisruptionBudget) -> Budget:
    """Translate a PodDisruptionBudget: what it allows now, by its status."""
    meta, status = pdb.metadata, pdb.status
    return Budget(
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        selector=pdb.spec.selector,
        allowed=max(status.disruptions_allowed, 0),
        disrupted=frozenset(status.disrupted_pods or ()),
    )


def event_of(resource: str, raw: Raw, *, gone: bool = False) -> Event:
    """The event that tells the core of an object seen (or gone) on a watch.

    `resource` is one of those a scheduler watches.  Raises ObjectInvalid for an object that cannot be
    read, ValueError for another resource.
    """
    if resource == "pods":
        pod = decode_pod(raw)
        if gone:
            return PodGone(ObjectKey(pod.metadata.namespace, pod.metadata.name), pod.metadata.uid)
        return seen_pod(pod)
    if resource == "nodes":
        node = decode_node(raw)
        return NodeGone(node.metadata.name) if gone else NodeSeen(node)
    if resource == "namespaces":
        metadata = decode_namespace(raw).metadata
        return NamespaceGone(metadata.name) if gone else NamespaceSeen(metadata.name, metadata.labels or {})
    if resource == "podgroups":
        group = decode_group(raw)
        return GroupGone(group.key, group.uid) if gone else GroupSeen(group)
    if resource == "poddisruptionbudgets":
        budget = budget_of(decode_object(raw, PodDisruptionBudget))
        key = ObjectKey(budget.namespace, budget.name)
        return PdbGone(key, budget.uid) if gone else PdbSeen(budget)
    if resource == "compositepodgroups":
        composite = decode_composite(raw)
        return CompositeGone(composite.key, composite.uid) if gone else CompositeSeen(composite)
    kind = STORAGE_KINDS.get(resource)
    if kind is not None:
        found = decode_object(raw, kind)
        key = ObjectKey(found.metadata.namespace, found.metadata.name)
        return StorageGone(kind, key, found.metadata.uid) if gone else StorageSeen(found)
    device_kind = DEVICE_KINDS.get(resource)
    if device_kind is not None:
        device = decode_object(raw, device_kind)
        key = ObjectKey(device.metadata.namespace, device.metadata.name)
        return DevicesGone(device_kind, key, device.metadata.uid) if gone else DevicesSeen(device)
    raise ValueError(f"the core does not know {resource!r}")
