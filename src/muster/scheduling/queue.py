"""Who is tried next, and who waits for what.

Every pending entity (lone pod or root group) is in exactly one place: *active* (tried in the order of the
QueueSort plugin), *backoff* (tried again when its time comes, or at once when something helps it),
*unschedulable* (its backoff has reached its cap: it rests until something helps it, or the flush), *gated* (a
PreEnqueue plugin holds it), *incomplete* (its group object has not been seen) or *searching* (an exact search
for its placement is out: it is tried again with the answer, or when something helps it before).

In come decisions of `scheduler.py` and cluster events; what an event could help is found by index: by the
change that a rejecting plugin named in its hint rules.  Own changes (a member more, a lowered minCount) are
told to the entity they are about, never searched for.  Next: `cycle.py`.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum

from msgspec import Struct

from muster.api.core import Pod
from muster.base.heap import KeyedHeap
from muster.framework.events import Change, ClusterEvent, Hint, HintRule, Rejected
from muster.framework.points import Entity
from muster.framework.status import Status
from muster.placement.shapes import ShapeKey
from muster.scheduling.members import EntityKey


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


class Refusal(Struct, frozen=True):
    """Why an attempt failed: by which plugins, of whom, and what its users are told.

    `plain` is the message without what preemption came to; `short_of`: the facts behind it, which was found
    at `explained_s`; `shown`: what the filters said → the same with examples.  `missing`: how many members
    more would have to find room, where that is known exactly (members of one shape); 0 where it is not.
    `takes_below`: pods of less priority it may drive out, so that their room counts, too (minus infinity:
    nobody's).  `never`: not even the empty cluster has room, so that nothing but a node helps.  `error`: a
    contradiction or a refused call rather than lack of room.  Errors of one round (the number of the attempt
    that led to them) count once, however many members they hit.  `slowness` times the usual wait is waited
    where the cause is not one that passes by itself.
    """

    rejectors: frozenset[str]
    rejected: Rejected
    reason: str
    message: str
    plain: str = ""
    short_of: tuple[object, ...] = ()
    explained_s: float = 0.0
    shown: Mapping[str, str] = {}
    member_count: int = 1
    missing: int = 0
    takes_below: float = -math.inf
    shape: ShapeKey = b""
    never: bool = False
    error: bool = False
    error_round: int = 0
    retry_after_s: float = 0.0
    slowness: float = 1.0


class Entry:
    """One pending entity.  `queued_s` is when it first could have been tried and survives every attempt."""

    __slots__ = (
        "attempts",
        "due_s",
        "error_round",
        "errors",
        "failures",
        "gained",
        "gate",
        "goes_first",
        "key",
        "place",
        "priority",
        "queued_s",
        "refusal",
        "sequence",
        "since_s",
        "waits_for",
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
        self.gained: dict[str, int] = {}  # node name → copies that fit there, for nodes that changed since
        self.waits_for: dict[Change, tuple[HintRule, ...]] = {}


_NODE_CHANGES = (
    Change.NODE_ADDED,
    Change.NODE_ALLOCATABLE_GREW,
    Change.NODE_LABELS_CHANGED,
    Change.NODE_TAINTS_CHANGED,
)
RulesOf = Callable[[str], tuple[HintRule, ...]]
_Copies = dict[tuple[ShapeKey, float], int]  # on the node of an event: of each shape, without the weaker
CopiesOn = Callable[[Pod, str, float], int]  # of this pod on this node, when those below that priority go


class Queue:
    """The places and the index of what could help whom."""

    def __init__(
        self,
        *,
        sort_key: Callable[[Entity], tuple[float, ...]],
        rules_of: RulesOf,
        copies_on: CopiesOn,
        times: QueueTimes | None = None,
    ) -> None:
        self.times = times or QueueTimes()
        self._sort_key = sort_key
        self._rules_of = rules_of
        self._copies_on = copies_on
        self._entries: dict[EntityKey, Entry] = {}
        self._past: dict[
            EntityKey, Entry
        ] = {}  # nothing pending now, but their turn and errors are remembered
        self._active: KeyedHeap[EntityKey] = KeyedHeap()
        self._due: KeyedHeap[EntityKey] = KeyedHeap()
        self._waiting_for: dict[Change, dict[EntityKey, Entry]] = {}
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

    def next_due_s(self) -> float | None:
        """When the next entity leaves backoff or is flushed."""
        first = self._due.peek()
        return None if first is None else first[1][0]

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
        self._active.put(key, (not entry.goes_first, *self._sort_key(self._entity_of(entry))))

    def gate(self, key: EntityKey, status: Status, now_s: float) -> None:
        """Hold the entity until it is activated: PreEnqueue says `status`."""
        self._take(key, Place.GATED, now_s, "PreEnqueue").gate = status

    def set_incomplete(self, key: EntityKey, now_s: float) -> None:
        """Hold members whose group object has not been seen."""
        self._take(key, Place.INCOMPLETE, now_s, "PodAdd")

    def pop(self) -> Entry | None:
        """Take the first active entity out, to be tried; whoever pops it refuses or drops it."""
        key = self._active.pop()
        if key is None:
            return None
        entry = self._entries[key]
        entry.attempts += 1
        return entry

    def refuse(self, key: EntityKey, refusal: Refusal, now_s: float) -> None:
        """Put an entity back whose attempt failed: backoff while that still grows, then unschedulable."""
        entry = self._take(key, Place.BACKOFF, now_s, "")
        entry.since_s = now_s
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
        rests = (capped or refusal.never) and not refusal.error
        entry.refusal = refusal
        entry.gained = {}
        if rests:
            entry.place = Place.UNSCHEDULABLE
            every_s = self.times.flush_every_s
            entry.due_s = math.ceil((now_s + self.times.unschedulable_s_max) / every_s) * every_s
        else:
            entry.due_s = math.ceil(now_s + max(wait_s, refusal.retry_after_s))
        self._count(entry.place, "ScheduleAttemptFailure", key)
        self._due.put(entry.key, (entry.due_s, -entry.priority, entry.sequence))
        self._index(entry)

    def search(self, key: EntityKey, refusal: Refusal, *, until_s: float, now_s: float) -> None:
        """Put an entity aside while a placement is searched for it; at `until_s` it is tried regardless."""
        entry = self._take(key, Place.SEARCHING, now_s, "Search")
        entry.refusal = refusal
        entry.gained = {}
        entry.due_s = until_s
        self._due.put(entry.key, (entry.due_s, -entry.priority, entry.sequence))
        self._index(entry)

    def drop(self, key: EntityKey) -> None:
        """The entity has nothing to place for now; its turn and its errors stay known."""
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._active.remove(key)
            self._leave(entry)
            entry.failures = 0
            entry.refusal = None
            self._past[key] = entry

    def forget(self, key: EntityKey) -> None:
        """The entity no longer exists; one of the same name starts anew."""
        self.drop(key)
        self._past.pop(key, None)

    def clear_errors(self, key: EntityKey, attempt: int) -> None:
        """What went wrong in earlier attempts has gone well in this one: the next error waits least again."""
        entry = self._entries.get(key) or self._past.get(key)
        if entry is not None and entry.error_round < attempt:
            entry.errors = 0

    def tick(self, now_s: float) -> list[EntityKey]:
        """Activate every entity whose backoff is over or whose rest was too long; who that was."""
        woken = []
        while (first := self._due.peek()) is not None and first[1][0] <= now_s:
            woken.append(first[0])
            entry = self._entries[first[0]]
            event = "BackoffComplete" if entry.place is Place.BACKOFF else "UnschedulableTimeout"
            self._wake(entry, now_s, event)
        return woken

    def tell(self, event: ClusterEvent, now_s: float) -> list[EntityKey]:
        """Activate every refused entity that the event can help, at once; who that was.

        Only entities rejected by a plugin that names this change are asked, each once.  One that is `missing`
        several places waits until the nodes that changed could give so many.
        """
        copies: _Copies = {}
        woken = [
            entry
            for entry in self._waiting_for.get(event.change, {}).values()
            if entry.refusal is not None
            and can_help(entry.waits_for[event.change], entry.refusal.rejected, event)
            and self._gives_enough(entry, entry.refusal, event, copies)
        ]
        for entry in woken:
            self._wake(entry, now_s, event.change.name)
        return [entry.key for entry in woken]

    # ── inside ───────────────────────────────────────────────────────────────────────────────────

    def _wake(self, entry: Entry, now_s: float, event: str) -> None:
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
        entry.due_s = None
        entry.gate = None
        for change in entry.waits_for:
            self._waiting_for[change].pop(entry.key, None)
        entry.waits_for = {}

    def _gives_enough(self, entry: Entry, refusal: Refusal, event: ClusterEvent, copies: _Copies) -> bool:
        """Whether the nodes that changed since the refusal could take as many members as are missing.

        An upper bound, so that no change that helps is slept through: what fits on those nodes now, whether
        it fitted before or not, were those gone who may be driven out.
        """
        if refusal.missing == 0 or Change.POD_ASSIGNED in entry.waits_for:
            return True  # whom a pod elsewhere can help, a change of one node may help on every node
        if event.node is None:
            return False
        name = event.node.metadata.name
        asked = (refusal.shape, math.inf if refusal.never else refusal.takes_below)
        if asked not in copies:
            copies[asked] = self._copies_on(refusal.rejected.pods[0], name, asked[1])
        entry.gained[name] = copies[asked]
        return sum(entry.gained.values()) >= refusal.missing

    def _index(self, entry: Entry) -> None:
        if entry.refusal is None:
            return
        rules: dict[Change, list[HintRule]] = {}
        for plugin in sorted(entry.refusal.rejectors):
            for rule in self._rules_of(plugin):
                rules.setdefault(rule.change, []).append(rule)
        if entry.refusal.never:
            rules = {change: found for change, found in rules.items() if change in _NODE_CHANGES}
        entry.waits_for = {change: tuple(found) for change, found in rules.items()}
        for change in entry.waits_for:
            self._waiting_for.setdefault(change, {})[entry.key] = entry

    def _backoff_s(self, count: int, member_count: int) -> tuple[float, bool]:
        """How long after this many failures, and whether the cap is reached (10 s × √members for a group)."""
        cap_s = self.times.backoff_s_max * math.sqrt(max(1, member_count))
        wait_s = self.times.backoff_s_initial * 2.0 ** min(count - 1, 30)
        return min(wait_s, cap_s), wait_s >= cap_s

    @staticmethod
    def _entity_of(entry: Entry) -> Entity:
        return Entity(
            name=str(entry.key), priority=entry.priority, queued_s=entry.queued_s, sequence=entry.sequence
        )


def can_help(rules: Iterable[HintRule], rejected: Rejected, event: ClusterEvent) -> bool:
    """Whether one of the rules says that this event may end the rejection."""
    return any(rule.helps is None or rule.helps(rejected, event) is Hint.QUEUE for rule in rules)
