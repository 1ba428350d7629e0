"""Node lifecycle: a node whose kubelet is not heard of becomes NotReady, and conditions become taints.

Heard of means: its Lease was renewed.  After 50 s of silence the node's conditions turn Unknown, its pods
count as not ready, and it is tainted `unreachable`; `taint_eviction.py` then evicts.  Cordoning and pressure
conditions become NoSchedule taints here as well.  Runs only where kubelets do.
Source: the stock node-lifecycle controller (node-monitor-grace-period 50 s).
"""

from collections.abc import Iterable, Iterator
from typing import Any

from muster.controllers.kubelet import LEASE_NAMESPACE
from muster.controllers.objects import (
    find_condition,
    has_condition,
    name_of,
    namespace_of,
    rfc3339,
    seconds_of,
    uid_of,
    with_condition,
)
from muster.controllers.ports import LEASES, NODES, PODS, Ask, Object, Seen, View, Wake, Write
from muster.controllers.reconciler import Key, Reconciler

SILENCE_S = 50.0
_PREFIX = "node.kubernetes.io/"
_CONDITIONS = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
_NEVER = ("NodeStatusNeverUpdated", "Kubelet never posted node status.")
_SILENT = ("NodeStatusUnknown", "Kubelet stopped posting node status.")

# condition, its status, the taint and the effects it gets
_TAINT_OF_CONDITION = (
    ("Ready", "False", "not-ready", ("NoSchedule", "NoExecute")),
    ("Ready", "Unknown", "unreachable", ("NoSchedule", "NoExecute")),
    ("MemoryPressure", "True", "memory-pressure", ("NoSchedule",)),
    ("DiskPressure", "True", "disk-pressure", ("NoSchedule",)),
    ("PIDPressure", "True", "pid-pressure", ("NoSchedule",)),
    ("NetworkUnavailable", "True", "network-unavailable", ("NoSchedule",)),
)
_UNSCHEDULABLE = f"{_PREFIX}unschedulable"
_MANAGED = frozenset({_UNSCHEDULABLE, *(_PREFIX + row[2] for row in _TAINT_OF_CONDITION)})


class NodeLifecycle(Reconciler):
    """Watches over nodes; a key is a node's name."""

    name = "node-controller"
    kinds = (NODES,)

    def __init__(self, *, silence_s: float = SILENCE_S) -> None:
        super().__init__()
        self._silence_s = silence_s
        self._first_seen_s: dict[str, float] = {}

    def keys_of(self, change: Seen, view: View) -> Iterable[Key]:
        if change.after is None:
            self._first_seen_s.pop(name_of(change.object), None)
            return ()
        return ((name_of(change.object),),)

    def reconcile(self, key: Key, view: View, now_s: float) -> Iterator[Ask]:
        (name,) = key
        node = view.get(NODES, "", name)
        if node is None:
            return
        heard_s = self._first_seen_s.setdefault(name, now_s)
        lease = view.get(LEASES, LEASE_NAMESPACE, name)
        renewed_s = seconds_of((lease or {}).get("spec", {}).get("renewTime"))
        if renewed_s is not None:
            heard_s = max(heard_s, renewed_s)
        if now_s < heard_s + self._silence_s:
            yield Wake(heard_s + self._silence_s)
        elif not has_condition(node, "Ready", "Unknown"):
            yield _unknown_write(node, now_s)
            yield self.event(
                node, "Normal", "NodeNotReady", f"Node {name} status is now: NodeNotReady", now_s
            )
            yield from self._mark_pods(name, view, now_s)
            node = view.get(NODES, "", name) or node
        taints = _taints_of(node, now_s)
        if taints is not None:
            body = {
                "metadata": {"resourceVersion": node["metadata"]["resourceVersion"]},
                "spec": {"taints": taints or None},
            }
            yield Write("patch", NODES, "", name, body, uid=uid_of(node))

    def _mark_pods(self, name: str, view: View, now_s: float) -> Iterator[Ask]:
        for pod in view.pods_on(name):
            if has_condition(pod, "Ready"):
                conditions = with_condition(pod, {"type": "Ready", "status": "False"}, now_s)
                body = {"status": {"conditions": conditions}}
                yield Write("patch", PODS, namespace_of(pod), name_of(pod), body, "status", uid_of(pod))


def _unknown_write(node: Object, now_s: float) -> Write:
    silent = node
    for type_ in _CONDITIONS:
        reason, message = _SILENT if find_condition(node, type_) else _NEVER
        words = {"type": type_, "status": "Unknown", "reason": reason, "message": message}
        conditions = with_condition(silent, words, now_s)
        silent = {**silent, "status": {**(silent.get("status") or {}), "conditions": conditions}}
    body = {"status": {"conditions": silent["status"]["conditions"]}}
    return Write("patch", NODES, "", name_of(node), body, "status", uid_of(node))


def _taints_of(node: Object, now_s: float) -> list[Object] | None:
    """The taints the node should have; None where it has them."""
    spec = node.get("spec") or {}
    current: list[Object] = spec.get("taints") or []
    wanted: list[tuple[str, str]] = []
    for type_, status, name, effects in _TAINT_OF_CONDITION:
        if has_condition(node, type_, status):
            wanted += [(_PREFIX + name, effect) for effect in effects]
    if spec.get("unschedulable"):
        wanted.append((_UNSCHEDULABLE, "NoSchedule"))
    have = {(taint.get("key"), taint.get("effect")) for taint in current if taint.get("key") in _MANAGED}
    if have == set(wanted):
        return None
    kept = [
        taint
        for taint in current
        if taint.get("key") not in _MANAGED or (taint.get("key"), taint.get("effect")) in wanted
    ]
    added: list[dict[str, Any]] = [
        {"key": key, "effect": effect, "timeAdded": rfc3339(now_s)}
        for key, effect in wanted
        if (key, effect) not in have
    ]
    return kept + added
