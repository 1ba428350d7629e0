"""What is stored, and what changed: revisioned objects behind one interface.

A write takes the whole new object and gives it a resourceVersion; it never changes a dict that was
stored before, so whoever holds one may keep it.  Every write is one `Change` of one revision.  Changes
are kept for a while: watches resume from them and lists of a past revision are computed from them; older
ones are forgotten (`Expired`).  Next: `writing.py` writes here, `reading.py` and `watching.py` read.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from muster.apiserver.kinds import Kind, Object
from muster.base.errors import Expired

_KEPT_COUNT = 50_000
_KEPT_S = 300.0
_SLACK = 1_000  # forget in portions, so that a write stays cheap
_FORGET_EVERY_S = 60.0


class Change(NamedTuple):
    """One write; `object` of a DELETED is the last state, with the revision of the deletion."""

    revision: int
    type: str  # ADDED, MODIFIED or DELETED
    kind: Kind
    object: Object
    previous: Object | None


class _Log:
    """Changes in order of revision, the oldest forgotten in portions."""

    def __init__(self) -> None:
        self.changes: list[Change] = []
        self.times_s: list[float] = []
        self.forgotten = 0  # the newest revision that is no longer here

    def append(self, change: Change, now_s: float) -> None:
        self.changes.append(change)
        self.times_s.append(now_s)

    def forget(self, count: int) -> None:
        if count > 0:
            self.forgotten = self.changes[count - 1].revision
            del self.changes[:count]
            del self.times_s[:count]

    def after(self, revision: int, most: int | None) -> list[Change]:
        changes = self.changes
        if not changes or revision >= changes[-1].revision:
            return []
        start = bisect_left(changes, revision + 1, key=_revision_of)
        return changes[start:] if most is None else changes[start : start + most]


def _revision_of(change: Change) -> int:
    return change.revision


class _Shelf:
    """The objects of one kind, in the order Kubernetes lists them."""

    def __init__(self) -> None:
        self.objects: dict[str, Object] = {}
        self.keys: list[str] = []
        self.listeners: list[Callable[[], None]] = []


def key_of(namespace: str, name: str) -> str:
    """Where an object stands in lists: by namespace, then name, as text."""
    return f"{namespace}/{name}"


class Backup(NamedTuple):
    """What a store held at one moment: its revision, and by name of the kind the objects by key."""

    revision: int
    objects: dict[str, dict[str, Object]]


class Store:
    """All objects of a cluster, in memory.

    `kept_count` and `kept_s` say how many changes stay, and for how long, before they are forgotten.
    """

    def __init__(self, *, kept_count: int = _KEPT_COUNT, kept_s: float = _KEPT_S) -> None:
        self.revision = 1
        self._kept_count = kept_count
        self._kept_s = kept_s
        self._forget_at_s = 0.0
        self._opened_at = 0
        self._log = _Log()
        self._shelves: dict[str, _Shelf] = {}

    # Reading

    def get(self, kind: Kind, namespace: str, name: str) -> Object | None:
        """The object as stored, or None."""
        return self._shelf(kind).objects.get(f"{namespace}/{name}")

    def list(self, kind: Kind, namespace: str | None = None) -> list[Object]:
        """Objects of a kind as stored, of one namespace where given, by namespace and name."""
        shelf = self._shelf(kind)
        return [shelf.objects[key] for key in self.keys(kind, namespace)]

    def keys(self, kind: Kind, namespace: str | None = None) -> Sequence[str]:
        """The keys of `list`, in the same order."""
        keys = self._shelf(kind).keys
        if not namespace:
            return keys
        return keys[bisect_left(keys, f"{namespace}/") : bisect_left(keys, f"{namespace}0")]

    def at(self, kind: Kind, namespace: str | None, revision: int) -> dict[str, Object]:
        """The objects of a kind at a past revision, by key and in order.

        Raises   Expired when that revision is forgotten.
        """
        self.check_remembered(revision)
        objects = self._shelf(kind).objects
        past = {key: objects[key] for key in self.keys(kind, namespace)}
        moved = False
        for change in reversed(self.changes_after(revision)):
            metadata = change.object["metadata"]
            if change.kind.name != kind.name or (namespace and metadata.get("namespace") != namespace):
                continue
            key = key_of(metadata.get("namespace", ""), metadata["name"])
            moved = moved or change.type != "MODIFIED"
            if change.previous is None:
                past.pop(key, None)
            else:
                past[key] = change.previous
        return dict(sorted(past.items())) if moved else past

    def changes_after(self, revision: int, most: int | None = None) -> Sequence[Change]:
        """What was written after this revision, oldest first, at most so many.

        Raises   Expired when part of it is forgotten.
        """
        if revision < self._log.forgotten:
            raise Expired(f"too old resource version: {revision} ({self._log.forgotten})", code=410)
        return self._log.after(revision, most)

    def open(self) -> None:
        """From here on clients come: none of them can have seen an earlier revision."""
        self._opened_at = self.revision

    def check_remembered(self, revision: int) -> None:
        """Raise Expired where a client names a revision that is forgotten, or was before there were any."""
        if revision < max(self._opened_at, self._log.forgotten):
            raise Expired(f"too old resource version: {revision} ({self._log.forgotten})", code=410)

    @property
    def forgotten(self) -> int:
        """The newest revision whose change is no longer known; reading from there on works."""
        return self._log.forgotten

    # Writing

    def create(self, kind: Kind, obj: Object, now_s: float) -> Object:
        """Store a new object; the dict becomes the store's.  It must not exist yet."""
        metadata = obj["metadata"]
        shelf = self._shelf(kind)
        key = f"{metadata.get('namespace', '')}/{metadata['name']}"
        assert key not in shelf.objects
        self.revision += 1
        metadata["resourceVersion"] = str(self.revision)
        shelf.objects[key] = obj
        keys = shelf.keys
        if keys and key < keys[-1]:
            insort(keys, key)
        else:
            keys.append(key)
        self._written(Change(self.revision, "ADDED", kind, obj, None), shelf, now_s)
        return obj

    def update(self, kind: Kind, obj: Object, now_s: float) -> Object:
        """Replace a stored object; the dict and its metadata become the store's."""
        metadata = obj["metadata"]
        shelf = self._shelf(kind)
        key = f"{metadata.get('namespace', '')}/{metadata['name']}"
        previous = shelf.objects[key]
        self.revision += 1
        metadata["resourceVersion"] = str(self.revision)
        shelf.objects[key] = obj
        self._written(Change(self.revision, "MODIFIED", kind, obj, previous), shelf, now_s)
        return obj

    def delete(self, kind: Kind, obj: Object, now_s: float) -> Object:
        """Remove an object; `obj` is its last state, shown to watches with the deletion's revision."""
        metadata = obj["metadata"]
        shelf = self._shelf(kind)
        key = key_of(metadata.get("namespace", ""), metadata["name"])
        previous = shelf.objects.pop(key)
        del shelf.keys[bisect_left(shelf.keys, key)]
        self.revision += 1
        last = {**obj, "metadata": {**metadata, "resourceVersion": str(self.revision)}}
        self._written(Change(self.revision, "DELETED", kind, last, previous), shelf, now_s)
        return last

    def forget(self) -> None:
        """Forget every change up to now, as compaction does in time."""
        self._log.forget(len(self._log.changes))

    # Backup

    def backup(self) -> Backup:
        """What is here now; nothing is copied that a write would change."""
        return Backup(self.revision, {name: dict(shelf.objects) for name, shelf in self._shelves.items()})

    def restore(self, backup: Backup, kinds: Mapping[str, Kind], now_s: float) -> None:
        """Hold what the backup holds, at its revision, as if just made; what came after never was."""
        self.revision = self._opened_at = backup.revision
        for shelf in self._shelves.values():
            shelf.objects, shelf.keys = {}, []
        made = []
        for name, objects in backup.objects.items():
            shelf = self._shelves[name]
            shelf.objects, shelf.keys = dict(objects), sorted(objects)
            made += [(int(obj["metadata"]["resourceVersion"]), name, obj) for obj in objects.values()]
        self._log = _Log()
        for revision, name, obj in sorted(made, key=lambda each: each[0]):
            self._log.append(Change(revision, "ADDED", kinds[name], obj, None), now_s)

    # Telling

    def listen(self, kind: Kind, listener: Callable[[], None]) -> Callable[[], None]:
        """Have `listener` called after each write of this kind; gives what ends it."""
        listeners = self._shelf(kind).listeners
        listeners.append(listener)
        return lambda: listeners.remove(listener)

    def _written(self, change: Change, shelf: _Shelf, now_s: float) -> None:
        self._log.append(change, now_s)
        log = self._log
        if now_s >= self._forget_at_s or len(log.changes) >= self._kept_count + _SLACK:
            self._forget_at_s = now_s + _FORGET_EVERY_S
            old = bisect_left(log.times_s, now_s - self._kept_s)
            log.forget(max(old, len(log.changes) - self._kept_count))
        for listener in shelf.listeners:
            listener()

    def _shelf(self, kind: Kind) -> _Shelf:
        shelf = self._shelves.get(kind.name)
        if shelf is None:
            shelf = self._shelves[kind.name] = _Shelf()
        return shelf
