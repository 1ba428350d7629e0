"""Pod groups of the native API (scheduling.k8s.io) as the core's groups, and objects of watches as its
events.

The only module besides `api/` that knows the native API's field names.  In come objects as JSON text or
plain dicts; out come `framework.ports` events.  Another dialect (coscheduling, Volcano) would be another
such module. Next: `scheduling/scheduler.py`.
"""

from typing import Any

from muster.api.codec import decode_object
from muster.api.core import Node, Pod
from muster.api.scheduling import PodGroup, SchedulingConstraints
from muster.api.times import parse_seconds
from muster.framework.groups import Group, GroupKey, ObjectKey, UnsupportedField
from muster.framework.ports import Event, GroupGone, GroupSeen, NodeGone, NodeSeen, PodGone, PodSeen

Raw = bytes | str | dict[str, Any]

_NOT_BUILT = {
    "spec.parentCompositePodGroupName": "groups of composite groups are not placed yet",
    "spec.resourceClaims": "groups with resource claims are not placed yet",
}


def decode_pod(raw: Raw) -> Pod:
    """A pod; raises ObjectInvalid."""
    return decode_object(raw, Pod)


def decode_node(raw: Raw) -> Node:
    """A node; raises ObjectInvalid."""
    return decode_object(raw, Node)


def decode_group(raw: Raw) -> Group:
    """A PodGroup as the core knows groups; raises ObjectInvalid."""
    return group_of(decode_object(raw, PodGroup))


def group_key_of(pod: Pod) -> GroupKey | None:
    """The group a pod names; None for a lone pod."""
    chosen = pod.spec.scheduling_group
    if chosen is None or not chosen.pod_group_name:
        return None
    return ObjectKey(pod.metadata.namespace, chosen.pod_group_name)


def group_of(pod_group: PodGroup) -> Group:
    """Translate a PodGroup; what it asks for that is not built stands in `unsupported`."""
    meta, spec = pod_group.metadata, pod_group.spec
    gang = spec.scheduling_policy.gang
    constraints = spec.scheduling_constraints or SchedulingConstraints()
    mode = spec.disruption_mode
    parent = spec.parent_composite_pod_group_name
    return Group(
        key=ObjectKey(meta.namespace, meta.name),
        uid=meta.uid,
        version=meta.resource_version,
        min_count=None if gang is None else gang.min_count,
        priority=spec.priority or 0,
        preemption_policy=spec.preemption_policy,
        disruption_mode="all" if mode is not None and mode.all is not None else "single",
        topology_keys=tuple(term.key for term in constraints.topology or ()),
        parent=ObjectKey(meta.namespace, parent) if parent else None,
        created_s=parse_seconds(meta.creation_timestamp),
        deleting=meta.deletion_timestamp is not None,
        annotations=tuple(sorted((meta.annotations or {}).items())),
        conditions=tuple(pod_group.status.conditions or ()),
        unsupported=_unsupported(pod_group),
    )


def _unsupported(pod_group: PodGroup) -> tuple[UnsupportedField, ...]:
    spec = pod_group.spec
    asked = {
        "spec.parentCompositePodGroupName": bool(spec.parent_composite_pod_group_name),
        "spec.resourceClaims": bool(spec.resource_claims),
    }
    return tuple(UnsupportedField(path, _NOT_BUILT[path]) for path, is_asked in asked.items() if is_asked)


def event_of(resource: str, raw: Raw, *, gone: bool = False) -> Event:
    """The event that tells the core of an object seen (or gone) on a watch.

    `resource` is nodes, pods or podgroups.  Raises ObjectInvalid for an object that cannot be read,
    ValueError for another resource.
    """
    if resource == "pods":
        pod = decode_pod(raw)
        if gone:
            return PodGone(ObjectKey(pod.metadata.namespace, pod.metadata.name), pod.metadata.uid)
        return PodSeen(pod, group_key_of(pod))
    if resource == "nodes":
        node = decode_node(raw)
        return NodeGone(node.metadata.name) if gone else NodeSeen(node)
    if resource == "podgroups":
        group = decode_group(raw)
        return GroupGone(group.key, group.uid) if gone else GroupSeen(group)
    raise ValueError(f"the core does not know {resource!r}")
