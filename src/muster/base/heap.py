"""A heap whose items have keys: an item can be replaced or removed by key.

Orders the scheduler's active queue and its timers.  Stale entries stay in the list and are skipped when they
surface, so every operation costs O(log n) amortised.  Those that never surface, for an old key stands before
them, are cleared away when they are the most: the list is never longer than `STALE_MIN` and twice the keys.
"""

import heapq
from collections.abc import Iterator
from typing import Generic, TypeVar

Key = TypeVar("Key")
Rank = tuple[float, ...]
STALE_MIN = 64  # fewer are not worth clearing away


class KeyedHeap(Generic[Key]):
    """Keys in order of their rank; equal ranks come out in order of insertion."""

    def __init__(self) -> None:
        self._heap: list[tuple[Rank, int, Key]] = []
        self._entry_of: dict[Key, tuple[Rank, int, Key]] = {}
        self._inserted = 0

    def __len__(self) -> int:
        return len(self._entry_of)

    def __contains__(self, key: Key) -> bool:
        return key in self._entry_of

    def __iter__(self) -> Iterator[Key]:
        """Keys in the order in which they would come out."""
        return (key for _, _, key in sorted(self._entry_of.values(), key=lambda entry: entry[:2]))

    def put(self, key: Key, rank: Rank) -> None:
        """Insert the key, or give it a new rank; the same rank again leaves its turn as it is."""
        known = self._entry_of.get(key)
        if known is not None and known[0] == rank:
            return
        entry = (rank, self._inserted, key)
        self._inserted += 1
        self._entry_of[key] = entry
        heapq.heappush(self._heap, entry)
        if len(self._heap) > STALE_MIN + 2 * len(self._entry_of):
            self._heap = list(self._entry_of.values())
            heapq.heapify(self._heap)

    def remove(self, key: Key) -> bool:
        """Take the key out; False when it was not there."""
        return self._entry_of.pop(key, None) is not None

    def find_rank(self, key: Key) -> Rank | None:
        """The key's rank, None when it is not there."""
        entry = self._entry_of.get(key)
        return None if entry is None else entry[0]

    def peek(self) -> tuple[Key, Rank] | None:
        """The first key and its rank, left in place; None when empty."""
        while self._heap:
            rank, _, key = entry = self._heap[0]
            if self._entry_of.get(key) is entry:
                return key, rank
            heapq.heappop(self._heap)
        return None

    def pop(self) -> Key | None:
        """Take the first key out; None when empty."""
        first = self.peek()
        if first is None:
            return None
        heapq.heappop(self._heap)
        del self._entry_of[first[0]]
        return first[0]

    def next_due_s(self) -> float | None:
        """Of ranks that begin with a time: that of the first key, None when empty."""
        first = self.peek()
        return None if first is None else first[1][0]

    def take_due(self, now_s: float) -> Iterator[Key]:
        """Take out, one by one, the keys whose time has come; those put in meanwhile count."""
        while (at_s := self.next_due_s()) is not None and at_s <= now_s:
            key = self.pop()
            assert key is not None
            yield key
