"""What the API holds, write by write: nodes, pods, groups and claims as they are, and who bound whom.

A `Ledger` follows the store and tells its `readers` of every single write, so that nothing that was so for a
moment is missed.  Next: `promises.py`, the readers.
"""

from collections.abc import Callable
from typing import Protocol

from muster.apiserver.store import Change, Store
from muster.sim.storm.door import Landed
from muster.sim.view import ClusterView, Object, group_of, name_of, uid_of

NODES, PODS, GROUPS = "nodes", "pods", "podgroups.scheduling.k8s.io"
COMPOSITES = "compositepodgroups.scheduling.k8s.io"
CLAIMS, VOLUME_CLAIMS = "resourceclaims.resource.k8s.io", "persistentvolumeclaims"


class Reader(Protocol):
    """Follows what happens."""

    def see(self, kind: str, before: Object | None, after: Object | None, now_s: float) -> None:
        """One object came (`before` is None), changed or went (`after` is None)."""
        ...

    def restored(self, now_s: float) -> None:
        """The store holds a backup: what is not in the ledger any more never was."""
        ...


class Ledger:
    """Objects by name (of one namespace), members by group, and the binding of each bound pod."""

    def __init__(self, store: Callable[[], Store]) -> None:
        kinds = (NODES, PODS, GROUPS, COMPOSITES, CLAIMS, VOLUME_CLAIMS)
        self.objects: dict[str, dict[str, Object]] = {kind: {} for kind in kinds}
        self.members: dict[str, dict[str, Object]] = {}  # by name of the group: pods by name
        self.landed: dict[str, Landed] = {}  # by uid of the pod
        self.changed_s: dict[str, float] = {}  # by name of the group: when something befell a member
        self.readers: list[Reader] = []
        self._store = store
        self._revision = 0
        self._view: tuple[int, ClusterView] | None = None

    @property
    def nodes(self) -> dict[str, Object]:
        """Nodes by name."""
        return self.objects[NODES]

    @property
    def pods(self) -> dict[str, Object]:
        """Pods by name."""
        return self.objects[PODS]

    @property
    def groups(self) -> dict[str, Object]:
        """Groups by name."""
        return self.objects[GROUPS]

    @property
    def composites(self) -> dict[str, Object]:
        """Composite groups by name."""
        return self.objects[COMPOSITES]

    @property
    def claims(self) -> dict[str, Object]:
        """Claims for devices by name."""
        return self.objects[CLAIMS]

    @property
    def volume_claims(self) -> dict[str, Object]:
        """Claims for volumes by name."""
        return self.objects[VOLUME_CLAIMS]

    def members_of(self, group: str) -> list[Object]:
        """Pods that name this group."""
        return list(self.members.get(group, {}).values())

    def take_changes(self) -> list[Change]:
        """What was written since the last time, oldest first."""
        store = self._store()
        if store.revision == self._revision:
            return []
        changes = list(store.changes_after(self._revision))
        self._revision = store.revision
        return changes

    def apply(self, change: Change, now_s: float) -> None:
        """Take a write over, and tell the readers."""
        kind = change.kind.name
        if kind not in self.objects:
            return
        name = name_of(change.object)
        before = self.objects[kind].get(name)
        after = None if change.type == "DELETED" else change.object
        self._put(kind, name, before, after)
        if kind == PODS and (group := group_of(change.object)):
            self.changed_s[group] = now_s
        for reader in self.readers:
            reader.see(kind, before, after, now_s)
        if kind == PODS and before is not None and (after is None or uid_of(after) != uid_of(before)):
            self.landed.pop(uid_of(before), None)

    def restart(self, now_s: float) -> None:
        """The store was restored: begin anew with what it holds."""
        for objects in self.objects.values():
            objects.clear()
        self.members.clear()
        self._view = None
        self._revision = 0
        for change in self.take_changes():
            kind = change.kind.name
            if kind in self.objects:
                self._put(kind, name_of(change.object), None, change.object)
        present = {uid_of(pod) for pod in self.pods.values()}
        self.landed = {uid: landed for uid, landed in self.landed.items() if uid in present}
        for reader in self.readers:
            reader.restored(now_s)

    def view(self) -> ClusterView:
        """Everything, as checkers that look at the whole take it."""
        if self._view is None or self._view[0] != self._revision:
            view = ClusterView(self.nodes.values(), self.pods.values(), self.groups.values())
            self._view = (self._revision, view)
        return self._view[1]

    def _put(self, kind: str, name: str, before: Object | None, after: Object | None) -> None:
        if after is None:
            self.objects[kind].pop(name, None)
        else:
            self.objects[kind][name] = after
        if kind != PODS:
            return
        if before is not None and group_of(before):
            self.members.get(group_of(before), {}).pop(name, None)
        if after is not None and group_of(after):
            self.members.setdefault(group_of(after), {})[name] = after
