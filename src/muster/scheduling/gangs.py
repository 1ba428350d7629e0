"""What is remembered of gangs between decided and started, and of those that are given up.

A record exists while something of a gang is not as it should be, or may not be; everything in it can be told
again from the objects (`transaction.py`).  How often a gang was released in a row, and when it may be tried
again, shows on nothing else: its condition `muster.dev/Whole` says it, and who leads next reads it there.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from muster.api.times import format_seconds, parse_seconds
from muster.base.heap import KeyedHeap
from muster.framework.groups import PodKey
from muster.scheduling.members import EntityKey

RELEASE, RESTART = "release", "restart"
RELEASE_BACKOFF_S, RELEASE_BACKOFF_S_MAX = 10.0, 600.0
DOUBLINGS_MAX = 6  # the next would be more than ten minutes

_RELEASES = re.compile(r"releases in a row: ([0-9]{1,9})(?:, not tried again before ([0-9T:-]+Z))?")


class Gang:
    """One gang.

    `since_s`: when the first of its members that hold room now was bound or decided on, before it started;
    `ending`: whether it is being released or restarted, for `cause`; `asked`: by uid, when a member may be
    asked to leave again (infinity: it was asked and not refused); `releases`: how often it was released in a
    row, and `not_before_s`: when it may be tried again.  `has_bare`: what is left are pods that nobody would
    make again; `is_lost`: it had started and is short; `started_s`, `was_ready`: since when it runs and
    whether it was ready once; `whole_generation`: by which spec it was last whole.
    """

    __slots__ = (
        "asked",
        "cause",
        "ending",
        "has_bare",
        "is_lost",
        "not_before_s",
        "releases",
        "since_s",
        "started_s",
        "was_ready",
        "whole_generation",
    )

    def __init__(self) -> None:
        self.since_s: float | None = None
        self.ending = ""
        self.cause = ""
        self.asked: dict[str, float] = {}
        self.releases = 0
        self.not_before_s = 0.0
        self.has_bare = False
        self.is_lost = False
        self.started_s: float | None = None
        self.was_ready = False
        self.whole_generation: int | None = None

    def release(self, now_s: float) -> None:
        """It was released once more: it waits ten seconds, doubling to ten minutes."""
        self.end_run(now_s)
        self.releases += 1

    def end_run(self, now_s: float) -> None:
        """It runs no longer; ten minutes of it make up for earlier releases."""
        if self.started_s is not None and now_s - self.started_s > RELEASE_BACKOFF_S_MAX:
            self.releases = 0
        self.started_s = None

    @property
    def backoff_s(self) -> float:
        """How long it waits after a release."""
        doublings = min(max(self.releases, 1) - 1, DOUBLINGS_MAX)
        return min(RELEASE_BACKOFF_S * 2.0**doublings, RELEASE_BACKOFF_S_MAX)

    def write_releases(self, *, with_time: bool) -> str:
        """How often it was released in a row and, if asked, when it may be tried again; "" if never."""
        if not self.releases:
            return ""
        text = f"releases in a row: {self.releases}"
        return f"{text}, not tried again before {format_seconds(self.not_before_s)}" if with_time else text

    def read_releases(self, text: str) -> float:
        """Remember what another process wrote; gives when it may be tried again, 0.0 if that is not said."""
        found = _RELEASES.search(text)
        if found is None:
            return 0.0
        self.releases = int(found[1])
        return parse_seconds(found[2])


class Kept(NamedTuple):
    """Room on a node that is kept for one member of a gang under way."""

    entity: EntityKey
    key: PodKey
    node_name: str


class Gangs:
    """All records, by entity of the pod group (of the root for a tree), and when each is looked at."""

    def __init__(self) -> None:
        self._gangs: dict[EntityKey, Gang] = {}
        self._due: KeyedHeap[EntityKey] = KeyedHeap()
        self._counts_due: KeyedHeap[EntityKey] = KeyedHeap()
        self._counted_s: dict[EntityKey, float] = {}  # when its numbers were last written
        self.unwritten: set[EntityKey] = set()  # that write was given up

    def __iter__(self) -> Iterator[tuple[EntityKey, Gang]]:
        return iter(self._gangs.items())

    def find(self, entity: EntityKey) -> Gang | None:
        """The record of this gang."""
        return self._gangs.get(entity)

    def make(self, entity: EntityKey) -> Gang:
        """The record of this gang, a new one if there is none."""
        return self._gangs.setdefault(entity, Gang())

    def forget(self, entity: EntityKey) -> None:
        """Nothing of it is worth remembering."""
        self._gangs.pop(entity, None)
        self._due.remove(entity)

    def lose(self, entity: EntityKey) -> None:
        """The gang is gone."""
        self.forget(entity)
        self._counts_due.remove(entity)
        self._counted_s.pop(entity, None)
        self.unwritten.discard(entity)

    def begin(self, entity: EntityKey, timeout_s: float, now_s: float) -> None:
        """Members have been decided on; what is under way since before stays so."""
        gang = self.make(entity)
        if gang.since_s is None:
            gang.since_s = now_s
            self.look_at(entity, now_s + timeout_s)

    def look_at(self, entity: EntityKey, at_s: float | None) -> None:
        """Have it looked at then, whatever was arranged before (None: nothing)."""
        if at_s is None:
            self._due.remove(entity)
        else:
            self._due.put(entity, (at_s,))

    def look_by(self, entity: EntityKey, at_s: float) -> None:
        """Have it looked at then, or earlier if that has been arranged."""
        known = self._due.find_rank(entity)
        if known is None or at_s < known[0]:
            self._due.put(entity, (at_s,))

    def count_at(self, entity: EntityKey, at_s: float) -> None:
        """Have its members counted then, or earlier if that has been arranged."""
        known = self._counts_due.find_rank(entity)
        if known is None or at_s < known[0]:
            self._counts_due.put(entity, (at_s,))

    def counted_s(self, entity: EntityKey) -> float:
        """When its numbers were last written; long ago if never."""
        return self._counted_s.get(entity, 0.0)

    def note_counted(self, entity: EntityKey, now_s: float) -> None:
        """Its numbers have been written."""
        self._counted_s[entity] = now_s
        self.unwritten.discard(entity)

    def next_due_s(self) -> float | None:
        """When the next one is to be looked at or counted."""
        times = (self._due.next_due_s(), self._counts_due.next_due_s())
        return min((at_s for at_s in times if at_s is not None), default=None)

    def tick(self, now_s: float) -> list[EntityKey]:
        """Those to look at now."""
        return list(self._due.take_due(now_s))

    def tick_counts(self, now_s: float) -> list[EntityKey]:
        """Those to count now."""
        return list(self._counts_due.take_due(now_s))
