"""Who sleeps on which refusal, and which event ends it.

A refusal stands until an event that could end it.  All who ask alike sleep on one: it is asked once whether
an event helps (of 10,000 gangs of 20 shapes 20 times, not 10,000), and if so the first of them is woken.
What becomes of that one decides for the others: if it is refused they sleep on, else the next is woken, if
there may be room for it.  In come refusals and events; out go those to be woken.  Next: `queue.py`.
"""

import math
from collections.abc import Callable, Hashable, Iterable, Mapping

from msgspec import Struct

from muster.api.core import Pod
from muster.base.heap import KeyedHeap, Rank
from muster.framework.events import Change, ClusterEvent, Hint, HintRule, Rejected
from muster.placement.shapes import ShapeKey
from muster.scheduling.members import EntityKey

_NODE_CHANGES = (  # and what makes more of nodes
    Change.NODE_ADDED,
    Change.NODE_ALLOCATABLE_GREW,
    Change.NODE_LABELS_CHANGED,
    Change.NODE_TAINTS_CHANGED,
    Change.RESOURCE_BACKED,
)
# of no one node: it may make more of all of them
_OF_ALL_NODES = (Change.STORAGE_CHANGED, Change.DEVICES_CHANGED, Change.RESOURCE_BACKED)
RulesOf = Callable[[str], tuple[HintRule, ...]]
_Copies = dict[tuple[ShapeKey, float], int]  # on the node of an event: of each shape, without the weaker
FRESH_S = 10.0  # a refusal older than this is found anew before it is told to one more
CopiesOn = Callable[[Pod, str, float], int]  # of this pod on this node, when those below that priority go


class Refusal(Struct, frozen=True):
    """Why an attempt failed: by which plugins, of whom, and what its users are told.

    `plain` is the message without what preemption came to; `short_of`: the facts behind it, which was found
    at `explained_s`; `shown`: what the filters said → the same with examples.  `missing`: how many members
    more would have to find room, where that is known exactly (members of one shape); 0 where it is not.
    `takes_below`: pods of less priority it may drive out, so that their room counts, too (minus infinity:
    nobody's).  `never`: not even the empty cluster has room, so that nothing but a node helps.  `error`: a
    contradiction, a refused call or a gang under way that is not to be torn, rather than lack of room: tried
    again after a while.  Errors of one round (the number of the attempt that led to them) count once, however
    many members they hit.  `slowness` times the usual wait is waited where the cause is not one that passes
    by itself.  `ask`: all who ask this are refused alike, their n-th member with the words that `own_texts`
    has for it; None: nobody else is.  `facts`: what the words are about; where they are as before, nothing
    new is said.
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
    ask: Hashable = None
    own_texts: Mapping[int, str] = {}
    facts: tuple[object, ...] = ()


class Sleep:
    """One refusal and all who sleep on it, the first of the queue first.

    `number` counts refusals found by a try, `tried_s` is when this one was.  `woken`: the one whose new try
    decides for the others; `is_doubted`: if it finds room, so may the next, whatever has been gained.
    `gained`: node name → copies that fit there, for nodes that changed since.
    """

    __slots__ = ("gained", "is_doubted", "number", "refusal", "sleepers", "tried_s", "waits_for", "woken")

    def __init__(self, refusal: Refusal) -> None:
        self.refusal = refusal
        self.number = 0
        self.tried_s = 0.0
        self.waits_for: dict[Change, tuple[HintRule, ...]] = {}
        self.gained: dict[str, int] = {}
        self.sleepers: KeyedHeap[EntityKey] = KeyedHeap()
        self.woken: EntityKey | None = None
        self.is_doubted = False


class Sleepers:
    """All sleeps, by the changes that could end them and by what was asked."""

    def __init__(self, *, rules_of: RulesOf, copies_on: CopiesOn) -> None:
        self._rules_of = rules_of
        self._copies_on = copies_on
        self._by_change: dict[Change, dict[Sleep, None]] = {}
        self._of_ask: dict[Hashable, Sleep] = {}
        self.reopened: list[Hashable] = []  # asks that no refusal stands for any more
        self._count = 0

    @property
    def knows_asks(self) -> bool:
        """Whether anything was refused that others may ask, too."""
        return bool(self._of_ask)

    def find(self, ask: Hashable, now_s: float) -> Sleep | None:
        """The refusal that stands for all who ask this; None where one of them has to be tried."""
        sleep = self._of_ask.get(ask)
        is_known = sleep is not None and sleep.woken is None and now_s - sleep.tried_s < FRESH_S
        return sleep if is_known else None

    def begin(self, refusal: Refusal, now_s: float) -> Sleep:
        """A try has ended so: from now on this is what stands for all who ask it."""
        sleep = self._of_ask.get(refusal.ask) if _may_be_shared(refusal) else None
        if sleep is None:
            sleep = Sleep(refusal)
        self._unindex(sleep)
        self._count += 1
        sleep.number, sleep.refusal, sleep.tried_s = self._count, refusal, now_s
        sleep.gained, sleep.woken = {}, None
        sleep.waits_for = self._changes_of(refusal)
        self._index(sleep)
        return sleep

    def put(self, sleep: Sleep, key: EntityKey, rank: Rank) -> None:
        """Let an entity sleep on it."""
        sleep.sleepers.put(key, rank)
        self._index(sleep)

    def leave(self, sleep: Sleep, key: EntityKey) -> None:
        """The entity does not sleep on it any more."""
        sleep.sleepers.remove(key)
        if not len(sleep.sleepers):
            self._unindex(sleep)
            if self._of_ask.get(sleep.refusal.ask) is sleep:
                del self._of_ask[sleep.refusal.ask]
                self.reopened.append(sleep.refusal.ask)

    def tell(self, event: ClusterEvent) -> list[EntityKey]:
        """Whom the event can help; of those who sleep on one refusal the first.

        While that one has not been tried, what happens counts for the one after it.
        """
        copies: _Copies = {}
        woken = []
        for sleep in self._by_change.get(event.change, ()):
            if not can_help(sleep.waits_for[event.change], sleep.refusal.rejected, event):
                continue
            if not self._gives_enough(sleep, event, copies):
                continue
            if sleep.woken is None:
                sleep.is_doubted = False
                woken.append(self._wake_first(sleep))
            sleep.is_doubted |= event.change in _OF_ALL_NODES or not self._counts_room(sleep)
        return woken

    def doubt(self, sleep: Sleep, key: EntityKey) -> None:
        """One of those who sleep on it is tried anew, though nothing has happened: it decides for all."""
        sleep.woken, sleep.is_doubted = key, True

    def settle(self, sleep: Sleep, key: EntityKey) -> EntityKey | None:
        """The one woken from it was not refused again: who is woken next; None: nobody has room."""
        if sleep.woken != key:
            return None
        sleep.woken = None
        if not len(sleep.sleepers):
            return None
        if not sleep.is_doubted and self._counts_room(sleep):
            pod, below = sleep.refusal.rejected.pods[0], _takes_below(sleep.refusal)
            sleep.gained = {name: self._copies_on(pod, name, below) for name in sleep.gained}
            if sum(sleep.gained.values()) < sleep.refusal.missing:
                return None
        return self._wake_first(sleep)

    def _wake_first(self, sleep: Sleep) -> EntityKey:
        first = sleep.sleepers.peek()
        assert first is not None, "a sleep that is indexed has sleepers"
        sleep.woken = first[0]
        return sleep.woken

    def _index(self, sleep: Sleep) -> None:
        if not len(sleep.sleepers):
            return
        for change in sleep.waits_for:
            self._by_change.setdefault(change, {})[sleep] = None
        if _may_be_shared(sleep.refusal):
            self._of_ask[sleep.refusal.ask] = sleep

    def _unindex(self, sleep: Sleep) -> None:
        for change in sleep.waits_for:
            self._by_change.get(change, {}).pop(sleep, None)

    def _changes_of(self, refusal: Refusal) -> dict[Change, tuple[HintRule, ...]]:
        rules: dict[Change, list[HintRule]] = {}
        for plugin in sorted(refusal.rejectors):
            for rule in self._rules_of(plugin):
                rules.setdefault(rule.change, []).append(rule)
        if refusal.never:
            rules = {change: found for change, found in rules.items() if change in _NODE_CHANGES}
        return {change: tuple(found) for change, found in rules.items()}

    @staticmethod
    def _counts_room(sleep: Sleep) -> bool:
        """Whether only so many places on nodes that changed can help.

        Whom a pod elsewhere can help, a change of one node may help on every node.
        """
        return sleep.refusal.missing > 0 and Change.POD_ASSIGNED not in sleep.waits_for

    def _gives_enough(self, sleep: Sleep, event: ClusterEvent, copies: _Copies) -> bool:
        """Whether the nodes that changed since the refusal could take as many members as are missing.

        An upper bound, so that no change that helps is slept through: what fits on those nodes now, whether
        it fitted before or not, were those gone who may be driven out.
        """
        refusal = sleep.refusal
        if not self._counts_room(sleep):
            return True
        if event.node is None:
            return event.change in _OF_ALL_NODES
        name = event.node.metadata.name
        asked = (refusal.shape, _takes_below(refusal))
        if asked not in copies:
            copies[asked] = self._copies_on(refusal.rejected.pods[0], name, asked[1])
        sleep.gained[name] = copies[asked]
        return sum(sleep.gained.values()) >= refusal.missing


def can_help(rules: Iterable[HintRule], rejected: Rejected, event: ClusterEvent) -> bool:
    """Whether one of the rules says that this event may end the rejection."""
    return any(rule.helps is None or rule.helps(rejected, event) is Hint.QUEUE for rule in rules)


def _takes_below(refusal: Refusal) -> float:
    """Whose room counts, too: of an empty cluster everybody's."""
    return math.inf if refusal.never else refusal.takes_below


def _may_be_shared(refusal: Refusal) -> bool:
    return refusal.ask is not None and not refusal.error
