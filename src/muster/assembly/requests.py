"""Effects and writes as API requests: method, path, content type and body, and nothing about who sends them.

In come the scheduler's effects (`framework/ports.py`) and the controllers' writes (`controllers/ports.py`);
out go plain values that `runtime/executor.py` sends over HTTP and `assembly/loopback.py` hands to the
embedded server in this process.  Both use this one translation.
"""

import hashlib
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec

from muster.api.meta import Condition
from muster.api.storage import SELECTED_NODE
from muster.cluster.gpu_annotations import index_annotation
from muster.controllers.ports import (
    DEVICE_CLAIMS,
    POD_GROUPS,
    PODS,
    VOLUME_CLAIMS,
    VOLUMES,
    Kind,
    Write,
)
from muster.framework.groups import ObjectKey
from muster.framework.ports import (
    BindPod,
    EvictPod,
    PatchGroupStatus,
    PatchPodStatus,
    Prepare,
    PromiseVolume,
    RecordEvent,
    SelectNode,
    WriteClaim,
)

JSON = "application/json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"

_NAME_BYTES_MAX = 253
PROTECTION = "resource.kubernetes.io/delete-protection"
_BOUND_BY_US = "pv.kubernetes.io/bound-by-controller"  # it may be taken back when the claim goes
_METHODS = {"create": "POST", "update": "PUT", "patch": "PATCH", "delete": "DELETE"}

OneCall = (
    BindPod
    | PromiseVolume
    | SelectNode
    | WriteClaim
    | EvictPod
    | PatchPodStatus
    | PatchGroupStatus
    | RecordEvent
)
WireEffect = BindPod | Prepare | EvictPod | PatchPodStatus | PatchGroupStatus | RecordEvent


class Call(NamedTuple):
    """One request, without a server."""

    method: str
    path: str
    content_type: str
    body: dict[str, Any]


def request_of(effect: OneCall, *, now_s: float, sequence: int = 0, instance: str = "") -> Call:
    """Give the request that performs `effect`.

    `now_s`, `sequence` and `instance` matter for events only: their time, what tells apart two alike of one
    instant (any counter), and the reporting instance (the scheduler's name where empty).
    """
    if isinstance(effect, BindPod):
        return _binding(effect)
    if isinstance(effect, EvictPod):
        return _deletion(effect)
    if isinstance(effect, PromiseVolume):
        return _promise(effect)
    if isinstance(effect, SelectNode):
        return _selection(effect)
    if isinstance(effect, WriteClaim):
        return _claim_status(effect)
    if isinstance(effect, PatchPodStatus):
        return _pod_status(effect)
    if isinstance(effect, PatchGroupStatus):
        return _group_status(effect)
    return _event(effect, now_s=now_s, sequence=sequence, instance=instance)


def mark_of(effect: EvictPod) -> Call:
    """Give the request that goes before an eviction's own: it says on the pod why it ends."""
    return _pod_status(PatchPodStatus(effect.key, effect.uid, effect.condition))


def may_go_unmarked(effect: EvictPod, code: int) -> bool:
    """Whether a pod whose mark was refused with this status is deleted all the same.

    Yes where a gang is released and Muster may not write there: else it would hold its room for ever.
    """
    return not effect.preemptor.name and code in (403, 422)


def protection_of(effect: Prepare) -> Call | None:
    """Give the request that goes before a claim gets devices: it may not vanish while somebody uses them."""
    if not isinstance(effect, WriteClaim) or effect.allocation is None:
        return None
    metadata: dict[str, Any] = {"uid": effect.claim_uid, "finalizers": [PROTECTION]}
    return Call("PATCH", path_of(DEVICE_CLAIMS, *effect.claim), STRATEGIC, {"metadata": metadata})


def request_of_write(write: Write) -> Call:
    """Give the request of a controller's write; preconditions go where the API wants them."""
    body = dict(write.body or {})
    named = write.verb != "create" or write.subresource
    path = path_of(write.kind, write.namespace, write.name if named else "", write.subresource)
    if write.verb == "delete":
        if write.uid:
            body["preconditions"] = {"uid": write.uid}
        return Call("DELETE", path, JSON, {"apiVersion": "v1", "kind": "DeleteOptions", **body})
    if write.uid:
        body["metadata"] = {**body.get("metadata", {}), "uid": write.uid}
    return Call(_METHODS[write.verb], path, MERGE if write.verb == "patch" else JSON, body)


def path_of(kind: Kind, namespace: str, name: str = "", subresource: str = "") -> str:
    """Give the URL path of a collection (no name), an object, or one of its subresources."""
    root = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    parts = [root]
    if namespace:
        parts += ["namespaces", namespace]
    parts.append(kind.resource)
    parts += [part for part in (name, subresource) if part]
    return "/".join(parts)


def micro_time(now_s: float) -> str:
    """Unix seconds as the API's MicroTime text."""
    return datetime.fromtimestamp(now_s, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


_EVENTS = Kind("events.k8s.io", "v1", "events")


def _binding(effect: BindPod) -> Call:
    namespace, name = effect.key
    meta: dict[str, Any] = {"name": name, "namespace": namespace, "uid": effect.uid}
    if effect.version:
        meta["resourceVersion"] = effect.version
    if effect.devices:
        meta["annotations"] = index_annotation(effect.devices)
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": meta,
        "target": {"apiVersion": "v1", "kind": "Node", "name": effect.node_name},
    }
    return Call("POST", path_of(PODS, namespace, name, "binding"), JSON, body)


def _promise(effect: PromiseVolume) -> Call:
    reference: dict[str, str] | None = None
    if effect.claim_uid:
        reference = {
            "kind": "PersistentVolumeClaim",
            "apiVersion": "v1",
            "namespace": effect.claim.namespace,
            "name": effect.claim.name,
            "uid": effect.claim_uid,
        }
    metadata: dict[str, Any] = {"annotations": {_BOUND_BY_US: "yes" if reference else None}}
    if effect.version:
        metadata["resourceVersion"] = effect.version
    body = {"metadata": metadata, "spec": {"claimRef": reference}}
    return Call("PATCH", path_of(VOLUMES, "", effect.volume_name), MERGE, body)


def _claim_status(effect: WriteClaim) -> Call:
    status: dict[str, Any] = {"reservedFor": msgspec.to_builtins(list(effect.reserved_for)) or None}
    if effect.allocation is not None or effect.clears:
        status["allocation"] = msgspec.to_builtins(effect.allocation)
    metadata = {"uid": effect.claim_uid}
    if effect.allocation is None:
        metadata["resourceVersion"] = effect.version
    body = {"metadata": metadata, "status": status}
    return Call("PATCH", path_of(DEVICE_CLAIMS, *effect.claim, "status"), MERGE, body)


def _selection(effect: SelectNode) -> Call:
    annotations = {SELECTED_NODE: effect.node_name or None}
    body = {"metadata": {"uid": effect.claim_uid, "annotations": annotations}}
    return Call("PATCH", path_of(VOLUME_CLAIMS, *effect.claim), MERGE, body)


def _deletion(effect: EvictPod) -> Call:
    body = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": effect.uid}}
    return Call("DELETE", path_of(PODS, *effect.key), JSON, body)


def _pod_status(effect: PatchPodStatus) -> Call:
    status: dict[str, Any] = {}
    if effect.condition is not None:
        status["conditions"] = [_condition(effect.condition)]
    if effect.nominated_node_name is not None:
        status["nominatedNodeName"] = effect.nominated_node_name or None
    body = {"metadata": {"uid": effect.uid}, "status": status}
    return Call("PATCH", path_of(PODS, *effect.key, "status"), STRATEGIC, body)


def _group_status(effect: PatchGroupStatus) -> Call:
    conditions = [_condition(condition) for condition in effect.set_conditions]
    conditions += [{"$patch": "delete", "type": type_} for type_ in effect.remove_conditions]
    status: dict[str, Any] = {"conditions": conditions}
    if effect.order:
        status["$setElementOrder/conditions"] = [{"type": type_} for type_ in effect.order]
    body = {"metadata": {"uid": effect.uid}, "status": status}
    return Call("PATCH", path_of(POD_GROUPS, *effect.key, "status"), STRATEGIC, body)


def _condition(condition: Condition) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(condition)
    plain.setdefault("status", condition.status)
    return plain


def _event(effect: RecordEvent, *, now_s: float, sequence: int, instance: str) -> Call:
    regarding = effect.regarding
    namespace = regarding.key.namespace or "default"
    said = f"{now_s:.6f} {sequence} {regarding.uid} {effect.reason} {effect.note}"
    digest = hashlib.blake2b(said.encode(), digest_size=8).hexdigest()
    name = f"{regarding.key.name[: _NAME_BYTES_MAX - len(digest) - 1]}.{digest}"
    body = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": namespace},
        "eventTime": micro_time(now_s),
        "reportingController": effect.scheduler_name,
        "reportingInstance": instance or effect.scheduler_name,
        "action": effect.action,
        "reason": effect.reason,
        "type": effect.type,
        "note": effect.note,
        "regarding": _reference(regarding.api_version, regarding.kind, regarding.key, regarding.uid),
    }
    if effect.related is not None:
        related = effect.related
        body["related"] = _reference(related.api_version, related.kind, related.key, related.uid)
    return Call("POST", path_of(_EVENTS, namespace), JSON, body)


def _reference(api_version: str, kind: str, key: ObjectKey, uid: str) -> dict[str, str]:
    reference = {"apiVersion": api_version, "kind": kind, "namespace": key.namespace, "name": key.name}
    return {name: value for name, value in {**reference, "uid": uid}.items() if value}
