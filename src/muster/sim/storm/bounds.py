"""What a gang may be for a while only, while somebody leads and the API server is there.

A `Bounded` follows the ledger and counts, gang by gang, how long something has been so without a break.
`NotHeldIdle`: half held, and `TreesNotHeldIdle`, a composite is.  `SaysWhatIs`: whole and not said so, or
said to be what it is not.
`NoticesBackup` does the same for processes that a restored backup leaves behind.
"""

from collections.abc import Iterable, Iterator, Mapping

from muster.sim.storm.forest import Forest
from muster.sim.storm.ledger import GROUPS, PODS
from muster.sim.storm.promises import (
    WHOLE,
    Starts,
    bind_timeout_s,
    holds,
    is_exempt,
    says_scheduled,
    says_whole,
)
from muster.sim.storm.world import StormWorld
from muster.sim.view import (
    Object,
    condition_of,
    counts_for,
    group_of,
    min_count_of,
    name_of,
    parent_of,
    uid_of,
)

GRACE_S = 100.0  # for a release to be decided, said and done on a bad line
NOTICED_WITHIN_S = 30.0  # a standby asks for the lease every two to four seconds, on a bad line
SAID_WITHIN_S = 100.0  # half a minute that counts wait for, and the pause after writes that failed


class Bounded:
    """Complains of a gang that has been in some state for longer than it may.

    Counted is the time in which somebody leads and the API server is there.
    """

    name = "bounded"

    def __init__(self, world: StormWorld) -> None:
        self.world = world
        self._lasted_s: dict[str, float] = {}  # uid of an object → how long it has been so
        self._concerned: dict[str, str] = {}  # uid → name
        self._touched: set[str] = set()
        self._last_s: float | None = None

    @property
    def objects(self) -> Mapping[str, Object]:
        """What is looked at, by name: gangs, where nothing else is said."""
        return self.world.ledger.groups

    def concerned(self, kind: str, thing: Object) -> Iterable[str]:
        """Names of what is looked at when something befalls this one."""
        return [name_of(thing)] if kind == GROUPS else [group_of(thing)] if kind == PODS else ()

    def is_bounded(self, thing: Object) -> bool:
        """Whether it is one of those: a basic group is no gang."""
        return min_count_of(thing) is not None

    def is_so(self, thing: Object) -> bool:
        """Whether it is in the state that is bounded."""
        raise NotImplementedError

    def bound_s(self, thing: Object) -> float:
        """How long it may be."""
        raise NotImplementedError

    def describe(self, thing: Object, seconds: float) -> str:
        """The complaint."""
        raise NotImplementedError

    @property
    def is_possible(self) -> bool:
        """Whether anything can be done about it now."""
        return self.world.is_up

    def see(self, kind: str, before: Object | None, after: Object | None, now_s: float) -> None:
        """Note what something happened to."""
        thing = after if after is not None else before
        if thing is not None:
            self._touched.update(self.concerned(kind, thing))

    def restored(self, now_s: float) -> None:
        """Begin to count anew."""
        self._lasted_s.clear()
        self._concerned.clear()
        self._touched |= set(self.objects)

    def check(self, now_s: float) -> Iterator[str]:
        """What has been so for longer than it may."""
        passed_s = now_s - (self._last_s if self._last_s is not None else now_s)
        self._last_s = now_s
        if self._concerned:
            self._count(passed_s)
        if self._touched:
            for name in sorted(self._touched):
                self._look(name)
            self._touched.clear()
        for uid, name in self._concerned.items():
            thing, lasted_s = self.objects.get(name), self._lasted_s.get(uid, 0.0)
            if thing is not None and lasted_s > self.bound_s(thing):
                yield self.describe(thing, lasted_s)

    def _count(self, passed_s: float) -> None:
        leader = self.world.deciding
        if self.is_possible and leader is not None and not leader.is_paused:
            for uid in self._concerned:
                self._lasted_s[uid] = self._lasted_s.get(uid, 0.0) + passed_s

    def _look(self, name: str) -> None:
        thing = self.objects.get(name)
        for uid in [uid for uid, known in self._concerned.items() if known == name]:
            if thing is None or uid_of(thing) != uid:
                self._forget(uid)
        if thing is None or not self.is_bounded(thing):
            return
        if self.is_so(thing):
            self._concerned[uid_of(thing)] = name
        else:
            self._forget(uid_of(thing))

    def _forget(self, uid: str) -> None:
        self._concerned.pop(uid, None)
        self._lasted_s.pop(uid, None)


class NotHeldIdle(Bounded):
    """A gang under way is started or released within its bound.

    A gang of which members without a controller are bound is exempt: its condition names the cure instead.
    """

    name = "not held idle"

    def __init__(self, world: StormWorld, starts: Starts) -> None:
        super().__init__(world)
        self._starts = starts

    def is_so(self, group: Object) -> bool:
        """Whether it holds something and has not started."""
        holding = [pod for pod in self.world.ledger.members_of(name_of(group)) if holds(pod)]
        return bool(holding) and not self._starts.is_over(group) and not is_exempt(group, holding)

    def bound_s(self, group: Object) -> float:
        """Its bind time-out, or that of its tree, and a grace for the release."""
        composite = self.world.ledger.composites.get(parent_of(group))
        return bind_timeout_s(group, composite) + GRACE_S

    def describe(self, group: Object, seconds: float) -> str:
        """How much of it is held, and since when."""
        name = name_of(group)
        holding = sum(map(holds, self.world.ledger.members_of(name)))
        return f"gang {name} holds {holding} of {min_count_of(group)} since {seconds:.0f} s"


class TreesNotHeldIdle(Bounded):
    """A tree under way is started or released within its bound, all its groups with it."""

    name = "trees not held idle"

    def __init__(self, world: StormWorld, forest: Forest) -> None:
        super().__init__(world)
        self._forest = forest

    @property
    def objects(self) -> Mapping[str, Object]:
        """Composites by name."""
        return self.world.ledger.composites

    def concerned(self, kind: str, thing: Object) -> Iterable[str]:
        """The composite of a pod or a group, or itself."""
        return [self._forest.tree_of(kind, thing)]

    def is_bounded(self, composite: Object) -> bool:
        """All are."""
        return True

    def is_so(self, composite: Object) -> bool:
        """Whether it holds something and has not started."""
        return not self._forest.has_started(composite) and bool(self._forest.holding(composite))

    def bound_s(self, composite: Object) -> float:
        """Its bind time-out, and a grace for the release."""
        return bind_timeout_s(composite) + GRACE_S

    def describe(self, composite: Object, seconds: float) -> str:
        """Who holds, and since when."""
        held = ", ".join(self._forest.holding(composite))
        return f"tree {name_of(composite)} has not started and holds {held} since {seconds:.0f} s"


class SaysWhatIs(Bounded):
    """What a group says of itself becomes true, or is said anew, soon after the facts have changed."""

    name = "says what is"

    def __init__(self, world: StormWorld, forest: Forest) -> None:
        super().__init__(world)
        self._forest = forest

    def concerned(self, kind: str, thing: Object) -> Iterable[str]:
        """What befalls one group of a tree concerns them all."""
        tree = self._forest.tree_of(kind, thing)
        others = self._forest.groups_of(tree) if tree else ()
        return [*super().concerned(kind, thing), *map(name_of, others)]

    @property
    def is_possible(self) -> bool:
        """Not while the API server refuses what is said."""
        return self.world.is_up and not self.world.door.refuses_status

    def is_so(self, group: Object) -> bool:
        """Whether it says what is not, or does not say what is.

        A group of a tree that is under way, or may be, says that, however whole it is itself.
        """
        if self._forest.may_wait(group):
            return self._forest.is_under_way(group) and says_whole(group)
        members = self.world.ledger.members_of(name_of(group))
        is_whole = sum(counts_for(group, pod) for pod in members) >= (min_count_of(group) or 1)
        if is_whole and not says_scheduled(group):
            return True
        condition = condition_of(group, WHOLE)
        if condition is None or not any(map(holds, members)):
            return False  # a gang that holds nothing any more may leave its last word
        return is_whole != says_whole(group)

    def bound_s(self, group: Object) -> float:
        """The same for all."""
        return SAID_WITHIN_S

    def describe(self, group: Object, seconds: float) -> str:
        """What it says and what is."""
        members = self.world.ledger.members_of(name_of(group))
        placed = sum(counts_for(group, pod) for pod in members)
        whole = (condition_of(group, WHOLE) or {}).get("status", "not said")
        return (
            f"group {name_of(group)} has {placed} of {min_count_of(group)} placed since {seconds:.0f} s, "
            f"is {'' if says_scheduled(group) else 'not '}said to be scheduled, and {WHOLE} is {whole}"
        )


class NoticesBackup:
    """A process that has seen what a restored backup takes back does not go on for long.

    Counted is the time in which it runs and the API server is there.
    """

    name = "notices a backup"

    def __init__(self, world: StormWorld) -> None:
        self._world = world
        self._last_s: float | None = None
        self._went_on_s: dict[str, float] = {}  # by identity

    def check(self, now_s: float) -> Iterator[str]:
        """Processes that go on as if nothing had happened."""
        passed_s = now_s - (self._last_s if self._last_s is not None else now_s)
        self._last_s = now_s
        for replica in self._world.replicas.values():
            if not self._world.is_outdated(replica) or replica.is_paused or not self._world.is_up:
                continue
            lasted_s = self._went_on_s.get(replica.identity, 0.0) + passed_s
            self._went_on_s[replica.identity] = lasted_s
            if lasted_s > NOTICED_WITHIN_S:
                yield f"{replica.identity} goes on for {lasted_s:.0f} s after the store was restored"
