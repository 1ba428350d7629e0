"""Eviction by taint: pods leave a node tainted NoExecute, at once or when their toleration runs out.

The time a pod tolerates counts from when it was first seen under the node's taints.  Runs only where
kubelets do.  Source: the stock taint-eviction controller.
"""

from collections.abc import Iterable, Iterator

from muster.controllers.objects import (
    is_deleting,
    is_terminal,
    name_of,
    namespace_of,
    node_of,
    uid_of,
    with_condition,
)
from muster.controllers.ports import NODES, PODS, Ask, Object, Seen, View, Wake, Write
from muster.controllers.reconciler import Key, Reconciler


class TaintEviction(Reconciler):
    """Evicts what a node no longer bears; a key is a pod's namespace and name."""

    name = "taint-eviction-controller"
    kinds = (NODES, PODS)

    def __init__(self) -> None:
        super().__init__()
        self._since_s: dict[str, float] = {}

    def keys_of(self, change: Seen, view: View) -> Iterable[Key]:
        if change.kind == NODES:
            if change.after is not None and _no_execute(change.before) != _no_execute(change.after):
                for pod in view.pods_on(name_of(change.after)):
                    yield (namespace_of(pod), name_of(pod))
        elif change.kind == PODS:
            pod = change.object
            if change.after is None:
                self._since_s.pop(uid_of(pod), None)
            elif node_of(pod) and _no_execute(view.get(NODES, "", node_of(pod))):
                yield (namespace_of(pod), name_of(pod))

    def reconcile(self, key: Key, view: View, now_s: float) -> Iterator[Ask]:
        namespace, name = key
        pod = view.get(PODS, namespace, name)
        if pod is None or not node_of(pod) or is_deleting(pod) or is_terminal(pod):
            return
        taints = _no_execute(view.get(NODES, "", node_of(pod)))
        if not taints:
            if self._since_s.pop(uid_of(pod), None) is not None:
                words = f"Cancelling deletion of Pod {namespace}/{name}"
                yield self.event(pod, "Normal", "TaintManagerEviction", words, now_s)
            return
        since_s = self._since_s.setdefault(uid_of(pod), now_s)
        patience_s = _patience_s(pod, taints)
        if patience_s is None:
            return
        if now_s < since_s + patience_s:
            yield Wake(since_s + patience_s)
            return
        words = f"Marking for deletion Pod {namespace}/{name}"
        yield self.event(pod, "Normal", "TaintManagerEviction", words, now_s)
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "DeletionByTaintManager",
            "message": "Taint manager: deleting due to NoExecute taint",
        }
        body = {"status": {"conditions": with_condition(pod, condition, now_s)}}
        yield Write("patch", PODS, namespace, name, body, "status", uid_of(pod))
        yield Write("delete", PODS, namespace, name, {}, uid=uid_of(pod))


def _no_execute(node: Object | None) -> list[tuple[str, str]]:
    """Key and value of the node's NoExecute taints."""
    taints = ((node or {}).get("spec") or {}).get("taints") or ()
    return [
        (str(taint.get("key", "")), str(taint.get("value") or ""))
        for taint in taints
        if taint.get("effect") == "NoExecute"
    ]


def _patience_s(pod: Object, taints: list[tuple[str, str]]) -> float | None:
    """How long the pod bears these taints: 0 if it does not, None for ever."""
    by_key: dict[str, list[Object]] = {}
    for toleration in pod["spec"].get("tolerations") or ():
        if toleration.get("effect") in (None, "", "NoExecute"):
            by_key.setdefault(toleration.get("key") or "", []).append(toleration)
    for_all = [entry for entry in by_key.pop("", []) if entry.get("operator") == "Exists"]
    used = list(for_all)
    for key, value in taints:
        found = [entry for entry in by_key.get(key, ()) if _tolerates(entry, value)]
        if not found and not for_all:
            return 0.0
        used += found
    limits = [entry["tolerationSeconds"] for entry in used if entry.get("tolerationSeconds") is not None]
    return max(0.0, float(min(limits))) if limits else None


def _tolerates(toleration: Object, value: str) -> bool:
    """Whether a toleration of the taint's key takes its value, too."""
    operator = toleration.get("operator") or "Equal"
    if operator == "Exists":
        return True
    return operator == "Equal" and (toleration.get("value") or "") == value
