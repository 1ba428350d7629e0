"""Who is tried next, and who waits for what.

Every pending entity (lone pod or root group) is in exactly one place: *active* (tried in the order of the
QueueSort plugin), *backoff* (tried again when its time comes, or at once when something helps it),
*unschedulable* (its backoff has reached its cap: it rests until something helps it, or the flush), *gated* (a
PreEnqueue plugin holds it), *incomplete* (its group object has not been seen) or *searching* (an exact search
for its placement is out: it is tried again with the answer, or when something helps it before).

In come decisions of `scheduler.py` and cluster events; whom an event could help `sleepers.py` knows.  Own
changes (a member more, a lowered minCount) are told to the entity they are about, never searched for.  One
that asks what has just been refused to others is not tried: it sleeps with them at once, and is told when
nobody is active.  Next: `cycle.py`.
"""

import math
from collections.abc import Callable, Hashable, Iterator
from enum import Enum

from msgspec import Struct

from muster.base.heap import KeyedHeap, Rank
from muster.framework.events import ClusterEvent
from muster.framework.points import Entity
from muster.framework.status import Status
from muster.scheduling.members import EntityKey
from muster.scheduling.sleepers import CopiesOn, Refusal, RulesOf, Sleep, Sleepers


class Place(Enum):
    """Where a pending entity is."""

    ACTIVE = "active"
    BACKOFF = "backoff"
    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"
    INCOMPLETE = "incomplete"
    SEARCHING = "searching"


class QueueTimes(Struct, frozen=True):
    """How long to wait; the defaults are kube-scheduler's."""

    backoff_s_initial: float = 1.0
    backoff_s_max: float = 10.0
    flush_every_s: float = 30.0
    unschedulable_s_max: float = 300.0


class Entry:
    """One pending entity.  `queued_s` is when it first could have been tried and survives every attempt."""

    __slots__ = (
        "attempts",
        "due_s",
        "error_round",
        "errors",
        "failures",
        "gate",
        "goes_first",
        "key",
        "number",
        "place",
        "priority",
        "queued_s",
        "refusal",
        "sequence",
        "since_s",
        "sleep",
        "woken_from",
    )

    def __init__(self, key: EntityKey, place: Place, now_s: float) -> None:
        self.key = key
        self.place = place
        self.priority = 0
        self.queued_s = now_s
        self.sequence = 0
        self.goes_first = False
        self.since_s = now_s
        self.due_s: float | None = None
        self.attempts = 0
        self.failures = 0
        self.errors = 0
        self.error_round = 0
        self.gate: Status | None = None
        self.refusal: Refusal | None = None
        self.sleep: Sleep | None = None
        self.number = 0  # of the refusal that it fell asleep on
        self.woken_from: Sleep | None = None  # where its next try decides for others, too


class Queue:
    """The places and the index of what could help whom."""

    def __init__(
        self,
        *,
        sort_key: Callable[[Entity], tuple[float, ...]],
        rules_of: RulesOf,
        copies_on: CopiesOn,
        ask_of: Callable[[EntityKey], Hashable] = lambda key: None,
        may_drive_out: Callable[[EntityKey, float], bool] = lambda key, now_s: False,
        times: QueueTimes | None = None,
    ) -> None:
        self.times = times or QueueTimes()
        self._sort_key = sort_key
        self._ask_of = ask_of
        self._may_drive_out = may_drive_out
        self._sleepers = Sleepers(rules_of=rules_of, copies_on=copies_on)
        self._entries: dict[EntityKey, Entry] = {}
        self._past: dict[
            EntityKey, Entry
        ] = {}  # nothing pending now, but their turn and errors are remembered
        self._active: KeyedHeap[EntityKey] = KeyedHeap()
        self._due: KeyedHeap[EntityKey] = KeyedHeap()
        self._untold: dict[EntityKey, float] = {}  # refused with others and not told yet, since when
        self._sequence = 0
        self.incoming: dict[tuple[str, str, str], int] = {}  # (place, event, kind) → how many came

    # ── looking ──────────────────────────────────────────────────────────────────────────────────

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries.values())

    def find(self, key: EntityKey) -> Entry | None:
        """The pending entity of this key."""
        return self._entries.get(key)

    @property
    def has_active(self) -> bool:
        """Whether something may be tried now."""
        return len(self._active) > 0

    def untold_since_s(self) -> float | None:
        """Since when the first of those who were refused with others waits to be told; None: all are told."""
        return next(iter(self._untold.values()), None)

    def remembers(self, key: EntityKey) -> bool:
        """Whether the entity is pending, or was and has kept its turn."""
        return key in self._entries or key in self._past

    def is_ahead_of(self, rank: Rank) -> bool:
        """Whether somebody who may be tried now comes before one of this rank."""
        first = self._active.peek()
        return first is not None and first[1] <= rank

    def is_refused(self, key: EntityKey, ask: Hashable, now_s: float) -> bool:
        """Whether one that asks this would be refused with others, untried."""
        return self._sleepers.find(ask, now_s) is not None and not self._may_drive_out(key, now_s)

    @property
    def knows_asks(self) -> bool:
        """Whether anything was refused that others may ask, too."""
        return self._sleepers.knows_asks

    def take_reopened(self) -> list[Hashable]:
        """What others may ask in vain no longer, since this was last taken."""
        reopened, self._sleepers.reopened = self._sleepers.reopened, []
        return reopened

    def next_due_s(self) -> float | None:
        """When the next entity leaves backoff or is flushed."""
        return self._due.next_due_s()

    # ── moving ───────────────────────────────────────────────────────────────────────────────────

    def activate(
        self,
        key: EntityKey,
        *,
        priority: int,
        queued_s: float | None,
        now_s: float,
        event: str,
        goes_first: bool | None = None,
    ) -> None:
        """Let the entity be tried.  `queued_s` is when it first could have been; None: now, if it is new.

        `goes_first`: it goes before all that do not (None: as before), for it holds room and is not whole.
        """
        entry = self._take(key, Place.ACTIVE, now_s, event)
        entry.priority = priority
        if goes_first is not None:
            entry.goes_first = goes_first
        if entry.sequence == 0:
            self._sequence += 1
            entry.sequence = self._sequence
            entry.queued_s = now_s if queued_s is None else queued_s
        self._active.put(key, self._rank_of(entry))

    def take_turn(self, key: EntityKey, priority: int, queued_s: float) -> tuple[int, Rank]:
        """The next turn, for an entity that has not been looked at, and the rank it would have."""
        self._sequence += 1
        return self._sequence, self._rank(key, False, priority, queued_s, self._sequence)

    def keep_turn(self, key: EntityKey, turn: int, queued_s: float) -> None:
        """The entity, which was never here, has this turn whatever becomes of it now."""
        entry = self._past[key] = Entry(key, Place.ACTIVE, queued_s)
        entry.sequence = turn

    def gate(self, key: EntityKey, status: Status, now_s: float) -> None:
        """Hold the entity until it is activated: PreEnqueue says `status`."""
        self._take(key, Place.GATED, now_s, "PreEnqueue").gate = status
        self._settle(self._entries[key], now_s)

    def set_incomplete(self, key: EntityKey, now_s: float) -> None:
        """Hold members whose group object has not been seen."""
        self._settle(self._take(key, Place.INCOMPLETE, now_s, "PodAdd"), now_s)

    def pop(self, now_s: float) -> Entry | None:
        """Take the first active entity out, to be tried; whoever pops it refuses or drops it.

        Those before it that ask what has just been refused to others are refused with them.
        """
        while (key := self._active.pop()) is not None:
            entry = self._entries[key]
            entry.attempts += 1
            known = None
            if self._sleepers.knows_asks and not entry.goes_first:
                known = self._sleepers.find(self._ask_of(key), now_s)
            if known is None or self._may_drive_out(key, now_s):
                return entry
            self._follow(entry, known, now_s)
        return None

    def take_untold(self) -> Entry | None:
        """The first of those who were refused with others, to be told now."""
        key = next(iter(self._untold), None)
        if key is None:
            return None
        del self._untold[key]
        return self._entries[key]

    def refuse(self, key: EntityKey, refusal: Refusal, now_s: float) -> None:
        """Put an entity back whose attempt failed: backoff while that still grows, then unschedulable."""
        entry = self._take(key, Place.BACKOFF, now_s, "")
        entry.refusal = refusal
        self._put_to_rest(entry, self._sleepers.begin(refusal, now_s), now_s)

    def _follow(self, entry: Entry, known: Sleep, now_s: float) -> None:
        """Refuse an entity with those who asked the same; where that is no news, in the words it knows."""
        self._take(entry.key, Place.BACKOFF, now_s, "")
        if entry.refusal is None or entry.refusal.error or entry.refusal.facts != known.refusal.facts:
            entry.refusal = known.refusal
        self._put_to_rest(entry, known, now_s)
        self._untold[entry.key] = min(now_s, entry.queued_s) if entry.attempts == 1 else now_s

    def _put_to_rest(self, entry: Entry, sleep: Sleep, now_s: float) -> None:
        """Let an entity that was refused wait for its time, or for what helps before."""
        entry.since_s = now_s
        self._rest(entry, sleep.refusal, now_s)
        self._count(entry.place, "ScheduleAttemptFailure", entry.key)
        self._sleep(entry, sleep)
        self._settle(entry, now_s)

    def _rest(self, entry: Entry, refusal: Refusal, now_s: float) -> None:
        """How long it waits now if nothing helps it, and where."""
        if refusal.error:
            if not refusal.error_round or refusal.error_round != entry.error_round:
                entry.errors += 1
            entry.error_round = refusal.error_round
            wait_s, capped = self._backoff_s(entry.errors, refusal.member_count)
            wait_s *= refusal.slowness
        else:
            entry.errors = 0
            entry.failures += 1
            wait_s, capped = self._backoff_s(entry.failures, refusal.member_count)
        if (capped or refusal.never) and not refusal.error:
            entry.place = Place.UNSCHEDULABLE
            every_s = self.times.flush_every_s
            entry.due_s = math.ceil((now_s + self.times.unschedulable_s_max) / every_s) * every_s
        else:
            entry.place = Place.BACKOFF
            entry.due_s = math.ceil(now_s + max(wait_s, refusal.retry_after_s))
        self._due.put(entry.key, (entry.due_s, -entry.priority, entry.sequence))

    def search(self, key: EntityKey, refusal: Refusal, *, until_s: float, now_s: float) -> None:
        """Put an entity aside while a placement is searched for it; at `until_s` it is tried regardless."""
        entry = self._take(key, Place.SEARCHING, now_s, "Search")
        entry.refusal = refusal
        entry.due_s = until_s
        self._due.put(entry.key, (entry.due_s, -entry.priority, entry.sequence))
        self._sleep(entry, self._sleepers.begin(refusal, now_s))

    def drop(self, key: EntityKey, now_s: float) -> None:
        """The entity has nothing to place for now; its turn and its errors stay known."""
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._active.remove(key)
            self._leave(entry)
            entry.failures = 0
            entry.refusal = None
            self._past[key] = entry
            self._settle(entry, now_s)

    def forget(self, key: EntityKey, now_s: float) -> None:
        """The entity no longer exists; one of the same name starts anew."""
        self.drop(key, now_s)
        self._past.pop(key, None)

    def clear_errors(self, key: EntityKey, attempt: int) -> None:
        """What went wrong in earlier attempts has gone well in this one: the next error waits least again."""
        entry = self._entries.get(key) or self._past.get(key)
        if entry is not None and entry.error_round < attempt:
            entry.errors = 0

    def tick(self, now_s: float) -> list[EntityKey]:
        """Activate every entity whose backoff is over or whose rest was too long; who that was.

        Of those who sleep on one refusal one is tried, and the others with it: they rest on.
        """
        woken = []
        while (first := self._due.peek()) is not None and first[1][0] <= now_s:
            entry = self._entries[first[0]]
            sleep = entry.sleep
            if sleep is not None and (sleep.woken is not None or sleep.number > entry.number):
                entry.number = sleep.number
                self._rest(entry, sleep.refusal, now_s)
                continue
            woken.append(entry.key)
            event = "BackoffComplete" if entry.place is Place.BACKOFF else "UnschedulableTimeout"
            if sleep is not None:
                self._sleepers.doubt(sleep, entry.key)
            self._wake(entry, now_s, event)
        return woken

    def tell(self, event: ClusterEvent, now_s: float) -> list[EntityKey]:
        """Activate every refused entity that the event can help, at once; who that was.

        Only refusals by a plugin that names this change are asked about, each once, and the first of those
        who sleep on it is woken.  One that is `missing` several places waits until the nodes that changed
        could give so many.
        """
        woken = self._sleepers.tell(event)
        for key in woken:
            self._wake(self._entries[key], now_s, event.change.name)
        return woken

    # ── inside ───────────────────────────────────────────────────────────────────────────────────

    def _sleep(self, entry: Entry, sleep: Sleep) -> None:
        entry.sleep, entry.number = sleep, sleep.number
        self._sleepers.put(sleep, entry.key, self._rank_of(entry))

    def _settle(self, entry: Entry, now_s: float) -> None:
        """What became of one that was woken is known: the next who asks the same may have its turn."""
        sleep, entry.woken_from = entry.woken_from, None
        key = self._sleepers.settle(sleep, entry.key) if sleep is not None else None
        if key is not None:
            self._wake(self._entries[key], now_s, "AlikeSettled")

    def _wake(self, entry: Entry, now_s: float, event: str) -> None:
        entry.woken_from = entry.woken_from or entry.sleep  # one put aside meanwhile still decides for others
        self.activate(entry.key, priority=entry.priority, queued_s=None, now_s=now_s, event=event)

    def _take(self, key: EntityKey, place: Place, now_s: float, event: str) -> Entry:
        """Move the entity out of where it is; a new entry if it is nowhere."""
        entry = self._entries.get(key)
        if entry is not None:
            self._leave(entry)
            if entry.place is not Place.ACTIVE or place is not Place.ACTIVE:
                self._active.remove(key)
            if entry.place is place:
                return entry
        else:
            past = self._past.pop(key) if key in self._past else Entry(key, place, now_s)
            entry = self._entries[key] = past
        entry.place = place
        entry.since_s = now_s
        if event:
            self._count(place, event, key)
        return entry

    def _count(self, place: Place, event: str, key: EntityKey) -> None:
        counted = (place.value, event, key.kind)
        self.incoming[counted] = self.incoming.get(counted, 0) + 1

    def _leave(self, entry: Entry) -> None:
        self._due.remove(entry.key)
        self._untold.pop(entry.key, None)
        entry.due_s = None
        entry.gate = None
        sleep, entry.sleep = entry.sleep, None
        if sleep is not None:
            self._sleepers.leave(sleep, entry.key)

    def _backoff_s(self, count: int, member_count: int) -> tuple[float, bool]:
        """How long after this many failures, and whether the cap is reached (10 s × √members for a group)."""
        cap_s = self.times.backoff_s_max * math.sqrt(max(1, member_count))
        wait_s = self.times.backoff_s_initial * 2.0 ** min(count - 1, 30)
        return min(wait_s, cap_s), wait_s >= cap_s

    def _rank_of(self, entry: Entry) -> Rank:
        return self._rank(entry.key, entry.goes_first, entry.priority, entry.queued_s, entry.sequence)

    def _rank(self, key: EntityKey, goes_first: bool, priority: int, queued_s: float, turn: int) -> Rank:
        entity = Entity(name=str(key), priority=priority, queued_s=queued_s, sequence=turn)
        return (not goes_first, *self._sort_key(entity))
