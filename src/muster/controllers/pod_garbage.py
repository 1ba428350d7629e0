"""Pod collection: pods bound to a node that is gone, and waiting pods whose deletion hangs.

A pod whose node does not exist for 40 s is marked Failed, with the reason, and removed without grace: no
kubelet will ever do it.  Source: the stock pod-garbage-collector.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from muster.controllers.objects import (
    is_deleting,
    is_terminal,
    name_of,
    namespace_of,
    node_of,
    uid_of,
    with_condition,
)
from muster.controllers.ports import NODES, PODS, Ask, Seen, View, Wake, Write
from muster.controllers.reconciler import Key, Reconciler

QUARANTINE_S = 40.0


class PodGarbage(Reconciler):
    """Removes pods that nobody else can; a key is a pod's namespace and name."""

    name = "pod-garbage-collector"
    kinds = (NODES, PODS)

    def __init__(self) -> None:
        super().__init__()
        self._missing_s: dict[str, float] = {}

    def keys_of(self, change: Seen, view: View) -> Iterable[Key]:
        if change.kind == NODES:
            if change.after is not None:
                self._missing_s.pop(name_of(change.after), None)
                return
            for pod in view.pods_on(name_of(change.object)):
                yield (namespace_of(pod), name_of(pod))
        elif change.kind == PODS and change.after is None:
            node_name = node_of(change.object)
            if not view.pods_on(node_name):
                self._missing_s.pop(node_name, None)
        elif change.kind == PODS and change.after is not None:
            node_name = node_of(change.after)
            lost = view.get(NODES, "", node_name) is None if node_name else is_deleting(change.after)
            if lost:
                yield (namespace_of(change.after), name_of(change.after))

    def reconcile(self, key: Key, view: View, now_s: float) -> Iterator[Ask]:
        namespace, name = key
        pod = view.get(PODS, namespace, name)
        if pod is None:
            return
        node_name = node_of(pod)
        if node_name:
            if view.get(NODES, "", node_name) is not None:
                return
            since_s = self._missing_s.setdefault(node_name, now_s)
            if now_s < since_s + QUARANTINE_S:
                yield Wake(since_s + QUARANTINE_S)
                return
            if not is_terminal(pod):
                condition = {
                    "type": "DisruptionTarget",
                    "status": "True",
                    "reason": "DeletionByPodGC",
                    "message": "PodGC: node no longer exists",
                }
                status: dict[str, Any] = {
                    "phase": "Failed",
                    "conditions": with_condition(pod, condition, now_s),
                }
                yield Write("patch", PODS, namespace, name, {"status": status}, "status", uid_of(pod))
        elif not is_deleting(pod):
            return
        if not is_deleting(pod) or pod["metadata"].get("deletionGracePeriodSeconds"):
            yield Write("delete", PODS, namespace, name, {"gracePeriodSeconds": 0}, uid=uid_of(pod))
