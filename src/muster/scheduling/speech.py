"""When a pending entity should be asked again what it waits for.

What a group waits for is said after five seconds of waiting, and a change of it five seconds after it
changed: a gang whose members come one by one is not written about at every pod.  A flood of words is spread
over time, for bindings need the API server more.  Next: `waiting.py`, which says it.
"""

from collections.abc import Iterator
from typing import NamedTuple

from muster.base.heap import KeyedHeap
from muster.scheduling.members import EntityKey

QUIET_S = 5.0
RETRY_S_MAX = 60.0  # after an outage, however long, a group says within a minute what is
# Of 1,000 gangs whose groups came after their pods, 3,000 members were told so in the seconds in which all of
# them could have been bound, and 800 bindings came too late for the version they named.
WRITES_PER_S = 50.0
BURST_S = 2.0  # a hundred writes may go at once


class _Rest(NamedTuple):
    failures: int  # in a row
    until_s: float


class Speech:
    """One timer per entity, armed while there may be something to say, and one per group that it cannot be.

    In a tree they differ: what is refused on one group is no reason to be silent on another.
    """

    def __init__(self) -> None:
        self._due: KeyedHeap[EntityKey] = KeyedHeap()
        self._rests: dict[EntityKey, _Rest] = {}  # by the group that could not be written on
        self._free_s = 0.0  # from then on there may be more writes

    def arm(self, entity: EntityKey, now_s: float) -> None:
        """Ask in five seconds, unless that has been arranged already."""
        self._ask_by(entity, now_s + QUIET_S)

    def retry(self, entity: EntityKey, group: EntityKey, now_s: float) -> None:
        """A write on a group of the entity's tree failed: it rests for a while, longer every time.

        Those that fail before its rest is over are one failure: they were on the way together.
        """
        rest = self._rests.get(group)
        if rest is None or rest.until_s <= now_s:
            failures = 1 if rest is None else rest.failures + 1
            wait_s = min(QUIET_S * 2.0 ** min(failures - 1, 30), RETRY_S_MAX)
            rest = self._rests[group] = _Rest(failures, now_s + wait_s)
        self._ask_by(entity, rest.until_s)

    def rests(self, entity: EntityKey, group: EntityKey, now_s: float) -> bool:
        """Whether nothing is to be written on a group now; the entity is asked again when it may be."""
        rest = self._rests.get(group)
        if rest is None or rest.until_s <= now_s:
            return False
        self._ask_by(entity, rest.until_s)
        return True

    def end_rest(self, group: EntityKey) -> None:
        """A write on the group has landed, or it is gone: the next that fails is the first again."""
        self._rests.pop(group, None)

    def forget(self, entity: EntityKey) -> None:
        """The entity is gone, or no root any more."""
        self._due.remove(entity)

    def next_due_s(self) -> float | None:
        """When the next one must be asked."""
        first_s = self._due.next_due_s()
        return None if first_s is None else max(first_s, self._free_s)

    def tick(self, now_s: float) -> Iterator[EntityKey]:
        """Entities to ask now, for as long as what they have to say (`spend`) is not too much."""
        while (first := self._due.peek()) is not None and first[1][0] <= now_s and self._free_s <= now_s:
            self._due.remove(first[0])
            yield first[0]

    def _ask_by(self, entity: EntityKey, at_s: float) -> None:
        known = self._due.find_rank(entity)
        if known is None or at_s < known[0]:
            self._due.put(entity, (at_s,))

    def spend(self, writes: int, now_s: float) -> None:
        """So many writes were asked for."""
        if writes:
            self._free_s = max(self._free_s, now_s - BURST_S) + writes / WRITES_PER_S
