"""Simulated kubelets: every node of the cluster has one, and pods bound to it run without any container.

A kubelet reports its node ready, renews the node's Lease, starts the pods bound to it, ends those whose
annotation says how long they run, and lets go of those that are being deleted.  It refuses a pod that its
node cannot hold, as real ones do.  A phase or start time that a client has set stays.  A node annotated
`muster.dev/kubelet: stopped` has a silent kubelet (`muster node stop`); `node_lifecycle.py` notices.
"""

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from muster.api.core import Pod
from muster.api.quantity import QuantityError, resource_amount
from muster.cluster.requests import Amounts, pod_requests
from muster.controllers.node_room import NodeRooms
from muster.controllers.objects import (
    annotation_of,
    find_condition,
    has_condition,
    is_deleting,
    is_terminal,
    name_of,
    namespace_of,
    node_of,
    phase_of,
    rfc3339,
    rfc3339_micro,
    seconds_of,
    uid_of,
    with_condition,
)
from muster.controllers.ports import LEASES, NODES, PODS, Ask, Object, Seen, View, Wake, Write
from muster.controllers.reconciler import Key, Reconciler
from muster.framework.annotations import EXIT_CODE, RUN_SECONDS, STOP_SECONDS

KUBELET_ANNOTATION = "muster.dev/kubelet"
STOPPED = "stopped"
LEASE_NAMESPACE = "kube-node-lease"
HEARTBEAT_S = 10.0
LEASE_S = 40
_PARTS = 10  # nodes that come together renew their leases at so many different times
_KILLED = 143  # 128 + SIGTERM

_HEALTHY = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
)
_NODE_INFO = {
    **dict.fromkeys(("machineID", "systemUUID", "bootID", "kernelVersion", "kubeProxyVersion"), ""),
    "osImage": "simulated by Muster",
    "containerRuntimeVersion": "none",
    "kubeletVersion": "v1.37.2",
    "operatingSystem": "linux",
    "architecture": "amd64",
}


class Kubelets(Reconciler):
    """All the kubelets; a key is ("node", name) or ("pod", namespace, name)."""

    name = "kubelet"
    kinds = (NODES, PODS)

    def __init__(self, *, heartbeat_s: float = HEARTBEAT_S) -> None:
        super().__init__()
        self._heartbeat_s = heartbeat_s
        self._renewed_s: dict[str, float] = {}
        self._spread = itertools.cycle(part / _PARTS for part in range(_PARTS))
        self._started_s: dict[str, float] = {}
        self._rooms = NodeRooms()

    def keys_of(self, change: Seen, view: View) -> Iterable[Key]:
        if change.kind == NODES:
            yield from self._node_keys(change, view)
        elif change.kind == PODS:
            pod = change.object
            if change.after is None:
                self._started_s.pop(uid_of(pod), None)
                self._rooms.release(uid_of(pod))
            elif node_of(pod):
                self._note_room(change.before, pod)
                yield ("pod", namespace_of(pod), name_of(pod))

    def reconcile(self, key: Key, view: View, now_s: float) -> Iterator[Ask]:
        if key[0] == "node":
            node = view.get(NODES, "", key[1])
            if node is not None and not is_stopped(node):
                yield from self._report(node, view, now_s)
            return
        pod = view.get(PODS, key[1], key[2])
        node = view.get(NODES, "", node_of(pod)) if pod is not None and node_of(pod) else None
        if pod is None or node is None or is_stopped(node):
            return
        if is_deleting(pod):
            yield from self._let_go(pod, now_s)
        elif phase_of(pod) == "Pending":
            yield from self._admit(pod, node, view, now_s)
        elif phase_of(pod) == "Running":
            yield from self._run(pod, now_s)

    def _node_keys(self, change: Seen, view: View) -> Iterator[Key]:
        node = change.object
        if change.after is None:
            self._renewed_s.pop(name_of(node), None)
            return
        yield ("node", name_of(node))
        if change.before is None or (is_stopped(change.before) and not is_stopped(node)):
            for pod in view.pods_on(name_of(node)):
                yield ("pod", namespace_of(pod), name_of(pod))

    # ── the node ──

    def _report(self, node: Object, view: View, now_s: float) -> Iterator[Ask]:
        """Renew the lease when its time has come, and report ready where nobody says otherwise."""
        name = name_of(node)
        renewed_s = self._renewed_s.get(name)
        if renewed_s is None:
            self._renewed_s[name] = renewed_s = now_s - self._heartbeat_s * next(self._spread)
            yield _lease_write(node, view, now_s)
        elif renewed_s + self._heartbeat_s <= now_s:
            self._renewed_s[name] = renewed_s = now_s
            yield _lease_write(node, view, now_s)
        ready = find_condition(node, "Ready")
        if ready is None or ready.get("status") == "Unknown":
            yield _ready_write(node, now_s)
        yield Wake(renewed_s + self._heartbeat_s)

    # ── a pod ──

    def _admit(self, pod: Object, node: Object, view: View, now_s: float) -> Iterator[Ask]:
        requests = pod_requests(msgspec.convert(pod, Pod))
        short = _shortage(requests, node, self._rooms.used(name_of(node)))
        if short is not None:
            resource, message = short
            reason = f"OutOf{resource}"
            status: dict[str, Any] = {
                "phase": "Failed",
                "reason": reason,
                "message": f"Pod was rejected: {message}",
                **_start_time(pod, now_s),
            }
            yield _status_write(pod, status)
            yield self.event(pod, "Warning", reason, message, now_s)
            return
        self._started_s[uid_of(pod)] = now_s
        self._rooms.take(name_of(node), uid_of(pod), requests)
        conditions = pod
        for type_ in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady"):
            conditions = _with(conditions, type_, "True", now_s)
        status = {
            "phase": "Running",
            **_start_time(pod, now_s),
            "conditions": conditions["status"]["conditions"],
            "containerStatuses": _container_statuses(
                pod, {"running": {"startedAt": rfc3339(now_s)}}, running=True
            ),
        }
        yield _status_write(pod, status)
        duration_s = _seconds_in(pod, RUN_SECONDS)
        if duration_s is not None:
            yield Wake(now_s + duration_s)

    def _note_room(self, before: Object | None, pod: Object) -> None:
        """Keep count of the room that pods take from when they run until they have ended."""
        if phase_of(pod) != "Running":
            if is_terminal(pod):
                self._rooms.release(uid_of(pod))
        elif (
            before is None
            or phase_of(before) != "Running"
            or before["metadata"].get("generation") != pod["metadata"].get("generation")
        ):
            requests = pod_requests(msgspec.convert(pod, Pod))
            self._rooms.take(node_of(pod), uid_of(pod), requests)

    def _run(self, pod: Object, now_s: float) -> Iterator[Ask]:
        duration_s = _seconds_in(pod, RUN_SECONDS)
        if duration_s is None:
            return
        started_s = self._started_s.get(uid_of(pod))
        if started_s is None:
            started_s = seconds_of((pod.get("status") or {}).get("startTime"))
        if started_s is None:
            started_s = self._started_s[uid_of(pod)] = now_s
        if now_s < started_s + duration_s:
            yield Wake(started_s + duration_s)
            return
        code = int(_seconds_in(pod, EXIT_CODE) or 0)
        self._rooms.release(uid_of(pod))
        yield _status_write(pod, _ended(pod, code, now_s))

    def _let_go(self, pod: Object, now_s: float) -> Iterator[Ask]:
        """End a pod that is being deleted, within its grace period, and release its object."""
        metadata = pod["metadata"]
        grace_s = float(metadata.get("deletionGracePeriodSeconds") or 0)
        killed_s = seconds_of(metadata["deletionTimestamp"]) or now_s
        stops_s = killed_s - grace_s + min(_seconds_in(pod, STOP_SECONDS) or 0.0, grace_s)
        if now_s < stops_s and not is_terminal(pod):
            yield Wake(stops_s)
            return
        self._rooms.release(uid_of(pod))
        if phase_of(pod) == "Running":
            yield _status_write(pod, _ended(pod, _KILLED, now_s))
        if grace_s > 0:
            yield Write(
                "delete",
                PODS,
                namespace_of(pod),
                name_of(pod),
                {"gracePeriodSeconds": 0},
                uid=uid_of(pod),
            )


def is_stopped(node: Object) -> bool:
    """Whether the node's simulated kubelet has been told to fall silent."""
    return annotation_of(node, KUBELET_ANNOTATION) == STOPPED


def _shortage(requests: Amounts, node: Object, used: Amounts) -> tuple[str, str] | None:
    """The first resource that the node is short of, and the kubelet's words for it."""
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    for resource, amount in requests.items():
        capacity = _amount(resource, allocatable.get(resource))
        if amount == 0 or (capacity is None and "/" in resource):
            continue
        if used.get(resource, 0) + amount > (capacity or 0):
            return resource, (
                f"Node didn't have enough resource: {resource}, requested: {amount}, "
                f"used: {used.get(resource, 0)}, capacity: {capacity or 0}"
            )
    return None


def _lease_write(node: Object, view: View, now_s: float) -> Write:
    name = name_of(node)
    spec = {
        "holderIdentity": name,
        "leaseDurationSeconds": LEASE_S,
        "renewTime": rfc3339_micro(now_s),
    }
    if view.get(LEASES, LEASE_NAMESPACE, name) is not None:
        return Write("patch", LEASES, LEASE_NAMESPACE, name, {"spec": spec})
    owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid_of(node)}
    body = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "namespace": LEASE_NAMESPACE, "ownerReferences": [owner]},
        "spec": spec,
    }
    return Write("create", LEASES, LEASE_NAMESPACE, "", body)


def _ready_write(node: Object, now_s: float) -> Write:
    reported = node
    for type_, status, reason, message in _HEALTHY:
        words = {"reason": reason, "message": message, "lastHeartbeatTime": rfc3339(now_s)}
        reported = _with(reported, type_, status, now_s, words)
    news: dict[str, Any] = {"conditions": reported["status"]["conditions"]}
    if not ((node.get("status") or {}).get("nodeInfo") or {}).get("kubeletVersion"):
        news["nodeInfo"] = _NODE_INFO
    body = {"status": news}
    return Write("patch", NODES, "", name_of(node), body, "status", uid_of(node))


def _with(obj: Object, type_: str, status: str, now_s: float, words: dict[str, str] | None = None) -> Object:
    """The object with one more condition set; a new object, of which only the conditions are used."""
    conditions = with_condition(obj, {"type": type_, "status": status, **(words or {})}, now_s)
    return {**obj, "status": {**(obj.get("status") or {}), "conditions": conditions}}


def _start_time(pod: Object, now_s: float) -> dict[str, str]:
    known = (pod.get("status") or {}).get("startTime")
    return {} if known else {"startTime": rfc3339(now_s)}


def _ended(pod: Object, code: int, now_s: float) -> dict[str, Any]:
    """The status of a pod whose containers have all ended with this exit code."""
    status = pod.get("status") or {}
    started = {"startedAt": status["startTime"]} if status.get("startTime") else {}
    terminated = {
        "exitCode": code,
        "reason": "Completed" if code == 0 else "Error",
        "finishedAt": rfc3339(now_s),
        **started,
    }
    ended: dict[str, Any] = {
        "phase": "Succeeded" if code == 0 else "Failed",
        "containerStatuses": _container_statuses(pod, {"terminated": terminated}, running=False),
    }
    if has_condition(pod, "Ready"):
        reason = {"reason": "PodCompleted" if code == 0 else "PodFailed"}
        conditions = _with(pod, "Ready", "False", now_s, reason)
        conditions = _with(conditions, "ContainersReady", "False", now_s, reason)
        ended["conditions"] = conditions["status"]["conditions"]
    return ended


def _container_statuses(pod: Object, state: dict[str, Any], *, running: bool) -> list[Object]:
    return [
        {
            "name": container["name"],
            "image": container.get("image", ""),
            "imageID": "",
            "ready": running,
            "started": running,
            "restartCount": 0,
            "state": state,
        }
        for container in pod["spec"].get("containers") or ()
    ]


def _status_write(pod: Object, status: dict[str, Any]) -> Write:
    return Write("patch", PODS, namespace_of(pod), name_of(pod), {"status": status}, "status", uid_of(pod))


def _seconds_in(obj: Object, annotation: str) -> float | None:
    """A number in an annotation, not negative; None where there is none or it cannot be read."""
    text = annotation_of(obj, annotation)
    try:
        value = float(text) if text is not None else None
    except ValueError:
        return None
    return value if value is not None and 0 <= value < 1e12 else None


def _amount(resource: str, quantity: str | int | float | None) -> int | None:
    if quantity is None:
        return None
    try:
        return resource_amount(resource, quantity)
    except QuantityError:
        return 0
