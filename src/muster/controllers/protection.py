"""PodGroup protection: a group that is being deleted stays until none of its pods is alive.

Admission puts the finalizer on; here it is taken off once the group is being deleted and every pod that
names it has ended or is gone (a waiting, gated or terminating pod still counts).  Pods are never touched.
Source: the stock `podgroupprotection` controller (KEP-5832).
"""

from collections.abc import Iterable, Iterator

from muster.controllers.objects import (
    group_of,
    has_finalizer,
    is_deleting,
    is_terminal,
    name_of,
    namespace_of,
    uid_of,
    without_finalizer,
)
from muster.controllers.ports import POD_GROUPS, PODS, Ask, Object, Seen, View, Write
from muster.controllers.reconciler import Key, Reconciler

FINALIZER = "scheduling.k8s.io/podgroup-protection"


class GroupProtection(Reconciler):
    """Takes the finalizer off groups that may go; a key is a group's namespace and name."""

    name = "podgroup-protection-controller"
    kinds = (POD_GROUPS, PODS)

    def keys_of(self, change: Seen, view: View) -> Iterable[Key]:
        if change.kind == POD_GROUPS and change.after is not None:
            return ((namespace_of(change.after), name_of(change.after)),)
        if change.kind == PODS and change.before is not None and self._released(change):
            return ((namespace_of(change.before), group_of(change.before)),)
        return ()

    def reconcile(self, key: Key, view: View, now_s: float) -> Iterator[Ask]:
        namespace, name = key
        group = view.get(POD_GROUPS, namespace, name)
        if group is None or not is_deleting(group) or not has_finalizer(group, FINALIZER):
            return
        if any(not is_terminal(pod) for pod in view.members(namespace, name)):
            return
        yield Write(
            "patch", POD_GROUPS, namespace, name, without_finalizer(group, FINALIZER), uid=uid_of(group)
        )

    def _released(self, change: Seen) -> bool:
        """Whether a pod that held its group may hold it no longer."""
        before, after = change.before, change.after
        if before is None or not group_of(before):
            return False
        return after is None or is_terminal(after) or not _is_same_member(before, after)


def _is_same_member(before: Object, after: Object) -> bool:
    return uid_of(before) == uid_of(after) and group_of(before) == group_of(after)
