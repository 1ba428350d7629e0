"""What the embedded controllers see: the store, with indexes for the questions they ask.

In come the store's changes, each once and in order; out go `controllers.ports.View` answers that are as
new as the last change applied.  Nothing is copied.  Next: `embedded.py`, which applies and asks.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

from muster.apiserver.kinds import Kind as Row
from muster.apiserver.store import Change, Store
from muster.controllers.objects import group_of, node_of
from muster.controllers.ports import PODS, Kind, Object, Seen

if TYPE_CHECKING:
    from muster.apiserver.routing import Catalog

_Place = tuple[Kind, str, str]  # kind, namespace, name
_Places = dict[_Place, None]  # in order of arrival
_Key = TypeVar("_Key")


class StoreView:
    """Serves `controllers.ports.View`."""

    def __init__(self, store: Store, catalog: "Catalog") -> None:
        self._store = store
        self._catalog = catalog
        self._row_of_kind = {kind_of(row): row for row in catalog.kinds if not row.stored_as}
        self._kind_of_name = {row.name: kind for kind, row in self._row_of_kind.items()}
        self._dependents: dict[str, _Places] = {}
        self._members: dict[tuple[str, str], _Places] = {}
        self._pods_on: dict[str, _Places] = {}

    def apply(self, change: Change) -> Seen:
        """Take a change into the indexes and give it as controllers see it."""
        kind = self._kind_of_name[change.kind.name]
        before = change.previous
        after = None if change.type == "DELETED" else change.object
        metadata = change.object["metadata"]
        place = (kind, metadata.get("namespace", ""), metadata["name"])
        _move(self._dependents, place, _owners(before), _owners(after))
        if kind == PODS:
            _move(self._members, place, _groups(before), _groups(after))
            _move(self._pods_on, place, _nodes(before), _nodes(after))
        return Seen(kind, before, after)

    def get(self, kind: Kind, namespace: str, name: str) -> Object | None:
        """One object, or None."""
        row = self._row_of_kind.get(kind)
        return None if row is None else self._store.get(row, namespace, name)

    def list(self, kind: Kind, namespace: str | None = None) -> Iterable[Object]:
        """Objects of a kind in order of namespace and name."""
        row = self._row_of_kind.get(kind)
        return () if row is None else self._store.list(row, namespace)

    def dependents(self, uid: str) -> Sequence[tuple[Kind, Object]]:
        """Objects with an owner reference to this uid, in order of arrival."""
        places = self._dependents.get(uid, ())
        return [(place[0], obj) for place in places if (obj := self.get(*place)) is not None]

    def members(self, namespace: str, group: str) -> Sequence[Object]:
        """Pods that name this pod group, in order of arrival."""
        return self._objects(self._members.get((namespace, group), ()))

    def pods_on(self, node_name: str) -> Sequence[Object]:
        """Pods bound to this node, in the order they came there."""
        return self._objects(self._pods_on.get(node_name, ()))

    def find_kind(self, api_version: str, kind: str) -> tuple[Kind, bool] | None:
        """The kind of an owner reference and whether it is namespaced, or None."""
        row = self._catalog.of_kind(api_version, kind)
        if row is None:
            return None
        return self._kind_of_name[self._catalog.stored(row).name], row.namespaced

    def namespaced_kinds(self) -> tuple[Kind, ...]:
        """Every stored kind that lives in namespaces, in the catalog's order."""
        return tuple(kind for kind, row in self._row_of_kind.items() if row.namespaced)

    def _objects(self, places: Iterable[_Place]) -> Sequence[Object]:
        return [obj for place in places if (obj := self.get(*place)) is not None]


def kind_of(row: Row) -> Kind:
    """A row of the catalog as controllers name it: by its preferred version."""
    return Kind(row.group, row.versions[0], row.resource)


def _owners(obj: Object | None) -> tuple[str, ...]:
    references = obj["metadata"].get("ownerReferences") if obj is not None else None
    return tuple(str(reference.get("uid")) for reference in references) if references else ()


def _groups(pod: Object | None) -> tuple[tuple[str, str], ...]:
    group = group_of(pod) if pod is not None else ""
    return ((pod["metadata"].get("namespace", ""), group),) if pod is not None and group else ()


def _nodes(pod: Object | None) -> tuple[str, ...]:
    node = node_of(pod) if pod is not None else ""
    return (node,) if node else ()


def _move(
    index: dict[_Key, _Places], place: _Place, before: tuple[_Key, ...], after: tuple[_Key, ...]
) -> None:
    """Take `place` from the index entries it left and add it to those it came to."""
    if before == after:
        return
    for key in set(before).difference(after):
        places = index.get(key)
        if places is not None:
            places.pop(place, None)
            if not places:
                del index[key]
    for key in after:
        index.setdefault(key, {})[place] = None
