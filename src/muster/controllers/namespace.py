"""Namespace deletion: everything in a terminating namespace is deleted, then the namespace itself may go.

A namespace's own deletion only marks it (`spec.finalizers` holds "kubernetes"); the mark is taken off
through its `finalize` subresource once nothing is left in it.  What stays because of a grace period or a
finalizer is waited for.  As with stock, nothing goes for five seconds, in which creation is refused already.
"""

from collections.abc import Iterable, Iterator

from muster.controllers.objects import is_deleting, name_of, namespace_of, seconds_of, uid_of
from muster.controllers.ports import NAMESPACES, PODS, Ask, Seen, View, Wake, Write
from muster.controllers.reconciler import Key, Reconciler

_DELETIONS_PER_LOOK = 200
_LOOK_AGAIN_S = 5.0
BEGINS_AFTER_S = 5.0
_FINALIZER = "kubernetes"


class NamespaceDeletion(Reconciler):
    """Empties and releases terminating namespaces; a key is a namespace's name."""

    name = "namespace-controller"

    def keys_of(self, change: Seen, view: View) -> Iterable[Key]:
        if change.kind == NAMESPACES:
            if change.after is not None and is_deleting(change.after):
                return ((name_of(change.after),),)
            return ()
        if change.after is None or change.before is None:
            namespace = view.get(NAMESPACES, "", namespace_of(change.object))
            if namespace is not None and is_deleting(namespace):
                return ((name_of(namespace),),)
        return ()

    def reconcile(self, key: Key, view: View, now_s: float) -> Iterator[Ask]:
        (name,) = key
        namespace = view.get(NAMESPACES, "", name)
        if namespace is None or not is_deleting(namespace):
            return
        begins_s = (seconds_of(namespace["metadata"].get("deletionTimestamp")) or 0.0) + BEGINS_AFTER_S
        if now_s < begins_s:
            yield Wake(begins_s)
            return
        asked = 0
        for kind in view.namespaced_kinds():
            for obj in list(view.list(kind, name)):
                if is_deleting(obj) and kind == PODS:
                    continue  # its grace period runs
                if is_deleting(obj) and obj["metadata"].get("finalizers"):
                    continue
                if asked == _DELETIONS_PER_LOOK:
                    yield Wake(now_s)
                    return
                asked += 1
                yield Write(
                    "delete", kind, name, name_of(obj), {"propagationPolicy": "Background"}, uid=uid_of(obj)
                )
        if any(next(iter(view.list(kind, name)), None) for kind in view.namespaced_kinds()):
            yield Wake(now_s + _LOOK_AGAIN_S)
            return
        finalizers = (namespace.get("spec") or {}).get("finalizers") or []
        left = [entry for entry in finalizers if entry != _FINALIZER]
        if left != finalizers:
            body = {**namespace, "spec": {**namespace.get("spec", {}), "finalizers": left}}
            yield Write("update", NAMESPACES, "", name, body, "finalize", uid_of(namespace))
