"""Where to go and who must go for it, chosen together: the least important victims, then the fewest.

Stock removes everything weaker, fixes the place by score, and spares whom that place allows; what the place
costs it never asks.  Here that is one candidate of several.  The others: without touching what budgets
protect; without touching any but the least important priorities; each member where it costs least; each
domain; at last, where few enough of them can matter, every smaller set of victims.  What does not fit with
all of them gone may need some to stay, which is tried in fewer ways.  In come units, a fork without them and
a way to try the preemptor on a fork; out comes the cheapest (`Cost`), of equals the one found first.  A
search is advanced by so much work at a time.  Next: `plugins/group_preemption.py`.
Axes: N node rows, K rows asked for, R resources.
"""

from collections.abc import Generator, Iterable, Iterator, Sequence
from itertools import chain, combinations, islice
from operator import itemgetter
from typing import Protocol

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from muster.api.core import Pod
from muster.base.arrays import Int32
from muster.cluster.budgets import Budget
from muster.cluster.snapshot import Snapshot
from muster.placement.evictable import UnitColumns
from muster.placement.reprieve import Reprieve
from muster.placement.scoring import best_first
from muster.placement.steering import Steer, Steering
from muster.placement.victims import NOBODY, Cost, Judge, Seats, Unit, cost_of, split_by_budgets

TRIES_MAX = 256
TRIES_MIN = 8
TRY_WORK = 1_000  # what any try costs besides: the questions to the plugins
_WORK_MAX = 500_000  # members × nodes × tries
_ROWS_MAX = 32  # compared one by one for a single member
_SMALL = 20  # so many units that can matter are searched for every smaller set
_SETS_PER_TRY = 16
_STAYING_TRIES = 64  # where all the others together were of no help
_LEVELS_MAX = 8


class Trial(Struct, frozen=True):
    """What came of trying the preemptor on a fork: its seats in the order in which they were taken.

    Where it was refused: by which plugins (`rejectors`), one pod of each shape that found no room
    (`refused`), and how many members more would have to (`missing`, 0 where that cannot be said).
    """

    ok: bool
    message: str
    seats: Seats = ()
    rejectors: frozenset[str] = frozenset()
    refused: tuple[Pod, ...] = ()
    missing: int = 0


class On(Protocol):
    """Try the preemptor on this fork, in these rows (None: all).

    Each member goes on the feasible row that `steer` scores highest (None: as always).  `explain`: whether a
    refusal must say what refused it, which costs as much again.
    """

    def __call__(
        self, fork: Snapshot, rows: Int32 | None, steer: Steer | None, explain: bool = True
    ) -> Trial: ...


class Try(Struct, frozen=True):
    """How to try the preemptor.

    `members`: how many wait.  `work`: what a try costs, in rows judged.  `domains`: rows to be tried on their
    own besides.  `rows`: those that any placement of it may use, None: all.
    """

    on: On
    members: int
    work: int = 1
    domains: tuple[Int32, ...] = ()
    rows: Int32 | None = None


class Eviction(Struct, frozen=True):
    """Seats and those that must leave for them (`victims`; some may be leaving already)."""

    seats: Seats
    victims: tuple[Unit, ...]
    cost: Cost


def choose_eviction(
    units: Sequence[Unit], budgets: Sequence[Budget], snapshot: Snapshot, judge: Judge, trial: Try
) -> Eviction | Trial:
    """The cheapest way to place as many members as fit when all these units are gone.

    `units`: the most important first.  A `Trial` (not ok) where the preemptor does not fit even then, with
    all that refused it.
    """
    search = EvictionSearch(units, budgets, snapshot, judge, trial)
    while not search.advance(TRY_WORK):
        pass
    return search.answer


def repeat_eviction(
    found: Eviction,
    units: Sequence[Unit],
    budgets: Sequence[Budget],
    snapshot: Snapshot,
    judge: Judge,
    trial: Try,
) -> Eviction | None:
    """What was found on an earlier snapshot, on this one: as many seats for the same units or fewer.

    Where they are not enough any more, those less important than any of them may go as well, or instead, for
    they may have come since.  None where that is not possible either, or one of them is not the same.
    """
    pods_of = {unit.name: _uids(unit) for unit in found.victims}
    lowest = min((unit.priority for unit in found.victims), default=NOBODY)
    victims = [
        unit
        for unit in units
        if unit.is_leaving or unit.priority < lowest or pods_of.get(unit.name) == _uids(unit)
    ]
    those = [unit for unit in victims if unit.is_leaving or pods_of.get(unit.name) == _uids(unit)]
    for chosen in (those, victims):  # among more units a search cut short may find what costs more
        search = EvictionSearch(chosen, budgets, snapshot, judge, trial)
        search.advance(trial.work + TRY_WORK)
        again = search.answer
        if isinstance(again, Eviction) and len(again.seats) >= len(found.seats):
            return again
    return None


def _uids(unit: Unit) -> frozenset[str]:
    return frozenset(pod.metadata.uid for pod, _ in unit.pods)


class EvictionSearch:
    """One search; counts its tries, so that a large one ends."""

    def __init__(
        self, units: Sequence[Unit], budgets: Sequence[Budget], snapshot: Snapshot, judge: Judge, trial: Try
    ) -> None:
        self._budgets = budgets
        self._try = trial
        self._columns = UnitColumns(units, snapshot)
        self._reprieve = Reprieve(self._columns, budgets, judge)
        self._judge = judge
        self._units = self._columns.units
        self._snapshot = snapshot
        self._ground = snapshot.fork()  # without any unit that may go
        self._columns.remove(self._ground, range(len(self._columns.pods)))
        work = max(1, trial.members) * max(1, int(snapshot.live.sum()))
        self._tries_left = min(TRIES_MAX, max(TRIES_MIN, _WORK_MAX // work))
        self._wanted = 0
        self._best: Eviction | None = None
        self._everything_gone = Trial(False, "")
        self._rejectors: frozenset[str] = frozenset()
        self._work = 0
        self._steps = self._run()

    def advance(self, work: int) -> bool:
        """Go on until so much work has been done, or more by one step; whether it is finished."""
        end = self._work + work
        while self._work < end:
            if next(self._steps, False) is False:
                return True
        return False

    @property
    def answer(self) -> Eviction | Trial:
        """The cheapest eviction so far; where there is none, what became of the preemptor alone."""
        alone = self._everything_gone
        return self._best or replace(alone, rejectors=alone.rejectors | self._rejectors)

    def _run(self) -> Iterator[bool]:
        """The steps of the search; each gives True."""
        self._work += self._try.work + TRY_WORK + len(self._units)
        found = self._everything_gone = self._try.on(self._ground, None, None)
        if not found.ok or not found.seats:
            for _ in self._try_with_some_staying(found):
                yield True
            return
        self._wanted = len(found.seats)
        self._consider(found.seats, self._units, self._ground)
        yield True
        for search in (
            self._spare_all,
            self._spare_protected,
            self._spare_important,
            self._steer,
            self._try_domains,
            self._try_rows,
            self._try_smaller_sets,
        ):
            for _ in search():
                yield True
                if self.best.cost.is_nothing:
                    return

    @property
    def best(self) -> Eviction:
        """The cheapest so far."""
        assert self._best is not None
        return self._best

    def _consider(self, seats: Seats, units: Sequence[Unit], ground: Snapshot) -> None:
        """Find who must go for these seats, and keep it if that is cheaper."""
        self._work += len(units)
        victims = self._reprieve.find_needed(units, seats, ground)
        cost = cost_of(victims, self._budgets)
        if self._best is None or cost < self._best.cost:
            self._best = Eviction(seats, victims, cost)

    def _attempt(
        self, ground: Snapshot, units: Sequence[Unit], rows: Int32 | None = None, steer: Steer | None = None
    ) -> bool:
        """Try on a ground without `units`; whether as many as wanted found a seat."""
        if self._tries_left <= 0:
            return False
        self._tries_left -= 1
        self._work += self._try.work + TRY_WORK
        found = self._try.on(ground, rows, steer, explain=self._best is None)  # beside an answer nobody asks
        if not found.ok or len(found.seats) < self._wanted:
            self._rejectors |= found.rejectors
            return False
        self._consider(found.seats, units, ground)
        return True

    def _without(self, away: Sequence[Unit]) -> Snapshot:
        """A ground without these units alone, of those that may still go; the shorter way to it."""
        if 2 * len(away) < len(self._units):
            ground, moved = self._snapshot.fork(), self._columns.positions(away)
            self._columns.remove(ground, moved)
        else:
            gone = {id(unit) for unit in away}
            back = [unit for unit in self._units if id(unit) not in gone]
            ground, moved = self._ground.fork(), self._columns.positions(back)
            self._columns.put_back(ground, moved)
        self._work += len(moved)
        return ground

    def _narrow(self, kept: Sequence[Unit]) -> bool:
        """Try without evicting `kept`; if that does, they are out of the question from now on."""
        if not kept:
            return True
        staying = {id(unit) for unit in kept}
        away = tuple(unit for unit in self._units if id(unit) not in staying)
        ground = self._without(away)
        if not self._attempt(ground, away):
            return False
        self._ground, self._units = ground, away
        return True

    def _staying(self) -> list[Unit]:
        return [unit for unit in self._units if id(unit) not in self._columns.leaving]

    def _spare_all(self) -> Iterator[bool]:
        """Wait for those who are leaving anyway, if that is enough."""
        staying = self._staying()
        if len(staying) < len(self._units):
            yield self._narrow(staying)

    def _spare_protected(self) -> Iterator[bool]:
        """Leave alone all that budgets protect, if the others are enough."""
        protected, _ = split_by_budgets(self._staying(), self._budgets)
        yield self._narrow(protected)

    def _spare_important(self) -> Iterator[bool]:
        """Find the lowest priority above which nobody need go, by halving."""
        if self.best.cost.violations:
            return  # a budget broken weighs more than any priority
        priorities = sorted({unit.priority for unit in self._staying()})
        low, high = 0, len(priorities) - 1
        while low < high:
            middle = (low + high) // 2
            if self._narrow([unit for unit in self._staying() if unit.priority > priorities[middle]]):
                high = middle
            else:
                low = middle + 1
            yield True

    def _steer(self) -> Iterator[bool]:
        """Place each member where it costs least at that moment."""
        self._steering = Steering(self._units, self._budgets, self._columns)
        yield self._attempt(self._ground, self._units, None, self._steering)

    def _try_domains(self) -> Iterator[bool]:
        for rows in self._try.domains:
            yield self._attempt(self._ground, self._units, rows, self._steering)

    def _try_rows(self) -> Iterator[bool]:
        """One member: compare the rows that seem to cost least, and try the cheapest."""
        if self._wanted > 1:
            return
        (pod, _), *_rest = self.best.seats
        rows = np.array(
            sorted({row for unit in self._units for _, row in unit.pods if row >= 0}), dtype=np.int32
        )
        rows = rows[self._judge.usable(pod, self._ground)[rows]]
        if not rows.size:
            return
        rows = rows[best_first(self._steering.score(pod, self._ground, rows))[:_ROWS_MAX]]
        if not self._reprieve.is_by_counting(self.best.seats[:1], self._ground):
            for row in rows:
                yield self._attempt(self._ground, self._units, row[np.newaxis])
            return
        self._work += len(self._units)
        rows = np.sort(rows[self._judge.filter(pod, self._ground, rows).feasible])
        needed = self._reprieve.find_needed_on_each(pod, rows, self._units, self._ground)
        costs = sorted((cost_of(needed[row], self._budgets), row) for row in rows.tolist())
        for cost, row in costs:
            if cost >= self.best.cost:
                return
            yield self._attempt(self._ground, self._units, np.array([row], dtype=np.int32))

    def _try_with_some_staying(self, alone: Trial) -> Iterator[bool]:
        """It does not fit with everybody gone, but may where some stay, whose company or number it needs.

        Without the less important alone; on each row without the units of that row alone; without every small
        set.  Not asked where those it was refused for mind nothing but room: of that there is most already.
        """
        pods = [*alone.refused, *(pod for pod, _ in alone.seats)]
        if alone.refused and self._reprieve.is_by_counting([(pod, 0) for pod in pods], self._ground):
            return
        self._wanted = 1
        self._tries_left = min(self._tries_left, _STAYING_TRIES)
        staying = self._staying()
        for priority in sorted({unit.priority for unit in staying})[:-1][:_LEVELS_MAX]:
            yield self._attempt_without([unit for unit in staying if unit.priority <= priority])
        usable = [self._judge.usable(pod, self._ground) for pod in alone.refused]
        rows = [
            (cost_of(on_row, self._budgets), row, on_row)
            for row, on_row in _by_row(staying).items()
            if not usable or any(may[row] for may in usable)
        ]
        for _, row, on_row in sorted(rows, key=itemgetter(0, 1))[:_ROWS_MAX]:
            only = np.array([row], dtype=np.int32) if self._try.members == 1 else None
            yield self._attempt_without(on_row, only)
        if candidates := (yield from self._few(staying, pods)):
            yield from self._try_sets((), _by_size(candidates))

    def _attempt_without(self, away: Sequence[Unit], rows: Int32 | None = None) -> bool:
        """Try without these and those that are leaving anyway."""
        gone = [*(unit for unit in self._units if id(unit) in self._columns.leaving), *away]
        return self._attempt(self._without(gone), gone, rows)

    def _try_smaller_sets(self) -> Iterator[bool]:
        """Try every set of victims cheaper than the best, cheapest first, while the tries last."""
        self._widen()
        pods = [*self._everything_gone.refused, *(pod for pod, _ in self.best.seats)]
        candidates = yield from self._few(self._staying(), pods)
        if not candidates:
            return
        victims = {id(unit) for unit in self.best.victims}
        needed: list[Unit] = []
        if self._wanted == 1 and self._reprieve.is_by_counting(self.best.seats, self._ground):
            sets = _of_one_row(candidates)
        else:
            for unit in candidates:
                if id(unit) in victims:
                    if self._is_needed(unit):
                        needed.append(unit)
                    yield True
            sets = _by_size([unit for unit in candidates if not any(unit is other for other in needed)])
        yield from self._try_sets(needed, sets)

    def _widen(self) -> None:
        """Let all be in question again that may be among cheaper victims.

        Whom a budget has protected beside others may go in their place.
        """
        best = self.best.cost
        if best.violations:
            return  # nobody has been spared
        units = tuple(
            unit
            for unit in self._columns.units
            if unit.priority <= best.highest or id(unit) in self._columns.leaving
        )
        if len(units) > len(self._units):
            self._units, self._ground = units, self._snapshot.fork()
            self._columns.remove(self._ground, self._columns.positions(units))

    def _few(self, units: Sequence[Unit], pods: Sequence[Pod]) -> Generator[bool, None, Sequence[Unit]]:
        """These units, or of many those that can matter to such pods; none where these are many, too."""
        if len(units) <= _SMALL:
            return units
        concern = self._reprieve.concern(pods, self._ground, self._try.rows)
        few: list[Unit] = []
        for unit in units:
            self._work += concern.work
            if concern.covers(unit):
                few.append(unit)
            if len(few) > _SMALL:
                return ()
            yield True
        return few

    def _try_sets(self, needed: Sequence[Unit], sets: Iterator[tuple[Unit, ...]]) -> Iterator[bool]:
        """Try these sets of victims, those needed added to each, that are cheaper than the best."""
        cheaper: list[tuple[Cost, tuple[Unit, ...]]] = []
        for chosen in islice(sets, self._tries_left * _SETS_PER_TRY):
            away = (*needed, *chosen)
            cost = cost_of(away, self._budgets)
            if self._best is None or cost < self._best.cost:
                cheaper.append((cost, away))
        self._work += self._tries_left * _SETS_PER_TRY
        cheaper.sort(key=lambda pair: pair[0])
        for cost, away in cheaper:
            if self._tries_left <= 0 or (self._best is not None and cost >= self._best.cost):
                return
            yield self._attempt_without(away)

    def _is_needed(self, unit: Unit) -> bool:
        """Whether there is no placement beside it; False where that was not tried."""
        if self._tries_left <= 0:
            return False
        others = [other for other in self._units if other is not unit]
        return not self._attempt(self._without(others), others)


def _by_size(units: Sequence[Unit]) -> Iterator[tuple[Unit, ...]]:
    """Sets of units, the smallest first, of one size the least important first."""
    for size in range(len(units) + 1):
        yield from combinations(reversed(units), size)


def _of_one_row(units: Sequence[Unit]) -> Iterator[tuple[Unit, ...]]:
    """Sets of units that have a row in common, in the same order: nothing else makes room for one member."""
    on_row = [here[::-1] for _, here in sorted(_by_row(units).items())]
    for size in range(len(units) + 1):
        yield from chain.from_iterable(combinations(here, size) for here in on_row)


def _by_row(units: Iterable[Unit]) -> dict[int, list[Unit]]:
    """Who has pods on each row, in the order given."""
    found: dict[int, list[Unit]] = {}
    for unit in units:
        for row in {row for _, row in unit.pods if row >= 0}:
            found.setdefault(row, []).append(unit)
    return found
