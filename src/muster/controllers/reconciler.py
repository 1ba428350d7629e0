"""The form all controllers here have: changes name keys, and each key is looked at again when it is due.

A subclass says which keys a change is about (`keys_of`) and what to do about one key (`reconcile`); the
queue coalesces (a hundred changes of one Job are one look), orders by time and arrival, and lets a key
whose write was refused wait longer each time.  Next: any controller of this package.
"""

import heapq
import itertools
from collections.abc import Iterable, Iterator
from zlib import crc32

import msgspec

from muster.controllers.objects import event
from muster.controllers.ports import EVENTS, Ask, Kind, Object, Seen, View, Wake, Write

Key = tuple[str, ...]

RETRY_S_INITIAL = 0.1
RETRY_S_MAX = 60.0
KEYS_PER_CALL_MAX = 20


class DueKeys:
    """Keys with the time from which each may be looked at; equal times in order of arrival."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Key]] = []
        self._at: dict[Key, tuple[float, int]] = {}
        self._failures: dict[Key, int] = {}
        self._sequence = itertools.count()

    def add(self, key: Key, at_s: float) -> None:
        """Have `key` looked at from `at_s` on, or sooner if that was already asked for."""
        known = self._at.get(key)
        if known is not None and known[0] <= at_s:
            return
        entry = (at_s, next(self._sequence))
        self._at[key] = entry
        heapq.heappush(self._heap, (*entry, key))

    def retry(self, key: Key, now_s: float) -> None:
        """Have `key` looked at again after a delay that doubles with every failure in a row."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        self.add(key, now_s + min(RETRY_S_INITIAL * 2 ** min(failures - 1, 30), RETRY_S_MAX))

    def failures(self, key: Key) -> int:
        """How often in a row it failed."""
        return self._failures.get(key, 0)

    def forgive(self, key: Key) -> None:
        """Forget the failures of `key`: it went well."""
        self._failures.pop(key, None)

    def take(self, now_s: float) -> Key | None:
        """Remove and give the next key that is due, or None."""
        at_s = self.next_due_s()
        if at_s is None or at_s > now_s:
            return None
        _, _, key = heapq.heappop(self._heap)
        del self._at[key]
        return key

    def next_due_s(self) -> float | None:
        """When the next key is due, or None."""
        while self._heap:
            at_s, sequence, key = self._heap[0]
            if self._at.get(key) == (at_s, sequence):
                return at_s
            heapq.heappop(self._heap)
        return None


class Reconciler:
    """Base of the controllers; serves `ports.Controller`."""

    name = "reconciler"
    kinds: tuple[Kind, ...] | None = None

    def __init__(self) -> None:
        self._keys = DueKeys()
        self._events = itertools.count(crc32(self.name.encode()))  # not that of another controller

    def keys_of(self, change: Seen, view: View) -> Iterable[Key]:
        """Give the keys that this change may concern."""
        raise NotImplementedError

    def reconcile(self, key: Key, view: View, now_s: float) -> Iterator[Ask]:
        """Ask for what makes the world as it should be for `key`; a `Wake` looks at the key again then."""
        raise NotImplementedError

    def seen(self, change: Seen, view: View, now_s: float) -> Iterable[Ask]:
        """React to one change by having its keys looked at."""
        keys = tuple(self.keys_of(change, view))
        for key in keys:
            self._keys.add(key, now_s)
        return (Wake(now_s),) if keys else ()

    def due(self, view: View, now_s: float) -> Iterator[Ask]:
        """Look at the keys that are due, a bounded number of them."""
        for _ in range(KEYS_PER_CALL_MAX):
            key = self._keys.take(now_s)
            if key is None:
                break
            yield from self._look_at(key, view, now_s)
        at_s = self._keys.next_due_s()
        if at_s is not None:
            yield Wake(at_s)

    def failed(self, write: Write, code: int, message: str, view: View, now_s: float) -> Iterator[Ask]:
        """Look again later, unless it was an Event, or the object is gone (its own change tells)."""
        if write.kind == EVENTS or (code == 404 and write.verb != "create"):
            return
        self._keys.retry(write.about, now_s)
        at_s = self._keys.next_due_s()
        if at_s is not None:
            yield Wake(at_s)

    def event(self, regarding: Object, type_: str, reason: str, message: str, now_s: float) -> Write:
        """Give the write of an Event about an object, said by this controller."""
        serial = next(self._events) % 1000
        return event(regarding, type_, reason, message, source=self.name, now_s=now_s, serial=serial)

    def _look_at(self, key: Key, view: View, now_s: float) -> Iterator[Ask]:
        failures = self._keys.failures(key)
        for ask in self.reconcile(key, view, now_s):
            if isinstance(ask, Wake):
                self._keys.add(key, ask.at_s)
            else:
                yield msgspec.structs.replace(ask, about=key)
        if self._keys.failures(key) == failures:
            self._keys.forgive(key)
