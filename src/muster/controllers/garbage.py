"""Garbage collection by owner references: background, foreground and orphan.

An object goes when every owner it names is gone (or never was); references to missing owners beside a
living one are dropped.  An owner deleted in the foreground waits for the dependents that block it, one
deleted with "orphan" first lets go of all of them.  Cycles end: whoever waits for somebody that waits for
him stops blocking.  An owner of a kind that is not served cannot be looked up, so nothing is concluded.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from muster.controllers.objects import (
    has_finalizer,
    is_deleting,
    name_of,
    namespace_of,
    uid_of,
    without_finalizer,
)
from muster.controllers.ports import Ask, Kind, Object, Seen, View, Write
from muster.controllers.reconciler import Key, Reconciler

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
_DEPENDENTS_PER_LOOK = 200


class _Owners(NamedTuple):
    """Owner references sorted by what became of the owner."""

    solid: list[Object]
    missing: list[Object]
    waiting: list[Object]  # being deleted in the foreground and blocked by this object
    undecided: bool


class GarbageCollector(Reconciler):
    """Collects dependents; a key is an object's kind, namespace, name and uid."""

    name = "generic-garbage-collector"

    def keys_of(self, change: Seen, view: View) -> Iterable[Key]:
        before, after = change.before, change.after
        if after is None:
            assert before is not None
            yield from (_key(kind, obj) for kind, obj in view.dependents(uid_of(before)))
            yield from self._owner_keys(before, view)
            return
        references = after["metadata"].get("ownerReferences")
        if before is None:
            if references or is_deleting(after):
                yield _key(change.kind, after)
            return
        moved = before["metadata"].get("ownerReferences") != references
        if moved:
            yield from self._owner_keys(before, view)
        if moved or is_deleting(after):
            yield _key(change.kind, after)

    def reconcile(self, key: Key, view: View, now_s: float) -> Iterator[Ask]:
        group, version, resource, namespace, name, uid = key
        kind = Kind(group, version, resource)
        obj = view.get(kind, namespace, name)
        if obj is None or uid_of(obj) != uid:
            return
        if is_deleting(obj):
            if has_finalizer(obj, ORPHAN):
                yield from self._orphan(kind, obj, view)
            elif has_finalizer(obj, FOREGROUND):
                yield from self._delete_dependents(kind, obj, view, now_s)
            return
        references = obj["metadata"].get("ownerReferences") or []
        if references:
            yield from self._follow_owners(kind, obj, references, view)

    def _orphan(self, kind: Kind, obj: Object, view: View) -> Iterator[Ask]:
        """Let go of some dependents; each change of one brings the owner back here."""
        uid = uid_of(obj)
        for dependent_kind, dependent in view.dependents(uid)[:_DEPENDENTS_PER_LOOK]:
            yield _drop_references(dependent_kind, dependent, {uid})
        if not view.dependents(uid):
            yield _finalizer_patch(kind, obj, ORPHAN)

    def _delete_dependents(self, kind: Kind, obj: Object, view: View, now_s: float) -> Iterator[Ask]:
        uid = uid_of(obj)
        dependents = [pair for pair in view.dependents(uid) if uid_of(pair[1]) != uid]
        if not any(_blocks(dependent, uid) for _, dependent in dependents):
            yield _finalizer_patch(kind, obj, FOREGROUND)
            return
        for dependent_kind, dependent in dependents:
            if not is_deleting(dependent):
                self._keys.add(_key(dependent_kind, dependent), now_s)

    def _follow_owners(self, kind: Kind, obj: Object, references: list[Object], view: View) -> Iterator[Ask]:
        owners = _classify(obj, references, view)
        if owners.undecided:
            return
        if owners.solid:
            lost = {str(reference.get("uid")) for reference in (*owners.missing, *owners.waiting)}
            if lost:
                yield _drop_references(kind, obj, lost)
            return
        if not owners.waiting:
            yield _delete(kind, obj, _policy_of(obj))
            return
        dependents = view.dependents(uid_of(obj))
        if not dependents:
            yield _delete(kind, obj, _policy_of(obj))
            return
        if any(is_deleting(other) and has_finalizer(other, FOREGROUND) for _, other in dependents):
            yield _unblock(kind, obj, references)
        yield _delete(kind, obj, "Foreground")

    def _owner_keys(self, obj: Object, view: View) -> Iterator[Key]:
        """Owners in foreground deletion that may have waited for `obj`."""
        for reference in obj["metadata"].get("ownerReferences") or ():
            found = _find_owner(obj, reference, view)
            if found is not None and found[1] is not None and is_deleting(found[1]):
                yield _key(found[0], found[1])


def _key(kind: Kind, obj: Object) -> Key:
    return (*kind, namespace_of(obj), name_of(obj), uid_of(obj))


def _find_owner(obj: Object, reference: Object, view: View) -> tuple[Kind, Object | None] | None:
    """The owner's kind and the owner, None where it is gone; None altogether if the kind is not served."""
    found = view.find_kind(str(reference.get("apiVersion", "")), str(reference.get("kind", "")))
    if found is None:
        return None
    kind, namespaced = found
    owner = view.get(kind, namespace_of(obj) if namespaced else "", str(reference.get("name", "")))
    if owner is not None and uid_of(owner) != reference.get("uid"):
        owner = None
    return kind, owner


def _classify(obj: Object, references: list[Object], view: View) -> _Owners:
    owners = _Owners([], [], [], False)
    for reference in references:
        found = _find_owner(obj, reference, view)
        if found is None:
            return owners._replace(undecided=True)
        owner = found[1]
        if owner is None:
            owners.missing.append(reference)
        elif is_deleting(owner) and has_finalizer(owner, FOREGROUND) and reference.get("blockOwnerDeletion"):
            owners.waiting.append(reference)
        else:
            owners.solid.append(reference)
    return owners


def _blocks(dependent: Object, uid: str) -> bool:
    references = dependent["metadata"].get("ownerReferences") or ()
    return any(
        reference.get("uid") == uid and reference.get("blockOwnerDeletion") for reference in references
    )


def _policy_of(obj: Object) -> str:
    if has_finalizer(obj, ORPHAN):
        return "Orphan"
    return "Foreground" if has_finalizer(obj, FOREGROUND) else "Background"


def _delete(kind: Kind, obj: Object, policy: str) -> Write:
    options: dict[str, Any] = {"propagationPolicy": policy}
    return Write("delete", kind, namespace_of(obj), name_of(obj), options, uid=uid_of(obj))


def _drop_references(kind: Kind, obj: Object, uids: set[str]) -> Write:
    references = obj["metadata"].get("ownerReferences") or ()
    left = [reference for reference in references if str(reference.get("uid")) not in uids]
    return _patch_references(kind, obj, left)


def _unblock(kind: Kind, obj: Object, references: list[Object]) -> Write:
    return _patch_references(
        kind, obj, [{**reference, "blockOwnerDeletion": False} for reference in references]
    )


def _patch_references(kind: Kind, obj: Object, references: list[Object]) -> Write:
    metadata = {
        "ownerReferences": references or None,
        "resourceVersion": obj["metadata"]["resourceVersion"],
    }
    return Write("patch", kind, namespace_of(obj), name_of(obj), {"metadata": metadata}, uid=uid_of(obj))


def _finalizer_patch(kind: Kind, obj: Object, finalizer: str) -> Write:
    patch = without_finalizer(obj, finalizer)
    return Write("patch", kind, namespace_of(obj), name_of(obj), patch, uid=uid_of(obj))
