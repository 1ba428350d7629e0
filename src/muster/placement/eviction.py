"""Where to go and who must go for it, chosen together: the least important victims, then the fewest.

Stock removes everything weaker, fixes the place by score, and spares whom that place allows; what the place
costs it never asks.  Here that is one candidate of several.  The others: without touching what budgets
protect; without touching any but the least important priorities; each member where it costs least; each
domain; at last, where there are few enough of them, every smaller set of victims.  In come units, a fork
without them and a way to try the preemptor on a fork; out comes the cheapest (`Cost`), of equals the one
found first.  Next: `plugins/group_preemption.py`.
Axes: N node rows, K rows asked for, R resources.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, islice

import numpy as np
from msgspec import Struct

from muster.api.core import Pod
from muster.base.arrays import Float64, Int32
from muster.cluster.budgets import Budget
from muster.cluster.snapshot import Snapshot
from muster.placement.scoring import best_first
from muster.placement.victims import (
    Cost,
    Judge,
    Reach,
    Seats,
    Unit,
    cost_of,
    find_needed,
    remove_unit,
    return_unit,
    split_by_budgets,
)

TRIES_MAX = 256
TRIES_MIN = 8
_WORK_MAX = 500_000  # members × nodes × tries
_ROWS_MAX = 32  # tried one by one for a single member
_SMALL = 20  # so many units may be searched for every smaller set
_SETS_PER_TRY = 16
_BUDGET_PENALTY = 2.0**45  # more than any number of victims that no budget protects

Steer = Callable[[Pod, Snapshot, Int32], Float64]


class Trial(Struct, frozen=True):
    """What came of trying the preemptor on a fork: its seats in the order in which they were taken."""

    ok: bool
    message: str
    seats: Seats = ()


class Try(Struct, frozen=True):
    """How to try the preemptor.

    `on`: on this fork, in these rows (None: all), each member on the feasible row that `steer` scores highest
    (None: as always).  `members`: how many wait.  `domains`: rows to be tried on their own besides.
    """

    on: Callable[[Snapshot, Int32 | None, Steer | None], Trial]
    members: int
    domains: tuple[Int32, ...] = ()


class Eviction(Struct, frozen=True):
    """Seats and those that must leave for them (`victims`; some may be leaving already)."""

    seats: Seats
    victims: tuple[Unit, ...]
    cost: Cost


def choose_eviction(
    units: Sequence[Unit], budgets: Sequence[Budget], snapshot: Snapshot, judge: Judge, trial: Try
) -> Eviction | Trial:
    """The cheapest way to place as many members as fit when all these units are gone.

    A `Trial` (not ok) where the preemptor does not fit even then.
    """
    search = _Search(units, budgets, snapshot, judge, trial)
    return search.run()


class _Search:
    """One search; counts its tries, so that a large one ends."""

    def __init__(
        self, units: Sequence[Unit], budgets: Sequence[Budget], snapshot: Snapshot, judge: Judge, trial: Try
    ) -> None:
        self._budgets = budgets
        self._judge = judge
        self._try = trial
        self._ground = snapshot.fork()  # without any unit that may go
        for unit in units:
            remove_unit(self._ground, unit)
        self._units = tuple(sorted(units, key=lambda unit: unit.importance))
        work = max(1, trial.members) * max(1, int(snapshot.live.sum()))
        self._tries_left = min(TRIES_MAX, max(TRIES_MIN, _WORK_MAX // work))
        self._reach: Reach = {}
        self._wanted = 0
        self._best: Eviction | None = None

    def run(self) -> Eviction | Trial:
        everything_gone = self._try.on(self._ground, None, None)
        if not everything_gone.ok or not everything_gone.seats:
            self._try_row_by_row()
            return self._best or everything_gone
        self._wanted = len(everything_gone.seats)
        self._consider(everything_gone.seats, self._units, self._ground)
        for search in (
            self._spare_all,
            self._spare_protected,
            self._spare_important,
            self._steer,
            self._try_domains,
            self._try_rows,
            self._try_smaller_sets,
        ):
            if self.best.cost.is_nothing:
                break
            search()
        return self.best

    @property
    def best(self) -> Eviction:
        """The cheapest so far."""
        assert self._best is not None
        return self._best

    def _consider(self, seats: Seats, units: Sequence[Unit], ground: Snapshot) -> None:
        """Find who must go for these seats, and keep it if that is cheaper."""
        victims = find_needed(units, seats, ground, self._budgets, self._judge, self._reach)
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
        found = self._try.on(ground, rows, steer)
        if not found.ok or len(found.seats) < self._wanted:
            return False
        self._consider(found.seats, units, ground)
        return True

    def _narrow(self, kept: Sequence[Unit]) -> bool:
        """Try without evicting `kept`; if that does, they are out of the question from now on."""
        if not kept:
            return True
        ground = self._ground.fork()
        for unit in kept:
            return_unit(ground, unit)
        staying = {id(unit) for unit in kept}
        away = [unit for unit in self._units if id(unit) not in staying]
        if not self._attempt(ground, away):
            return False
        self._ground, self._units = ground, tuple(away)
        return True

    def _staying(self) -> list[Unit]:
        return [unit for unit in self._units if not unit.is_leaving]

    def _spare_all(self) -> None:
        """Wait for those who are leaving anyway, if that is enough."""
        staying = self._staying()
        if len(staying) < len(self._units):
            self._narrow(staying)

    def _spare_protected(self) -> None:
        """Leave alone all that budgets protect, if the others are enough."""
        protected, _ = split_by_budgets(self._staying(), self._budgets)
        self._narrow(protected)

    def _spare_important(self) -> None:
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

    def _steer(self) -> None:
        """Place each member where it costs least at that moment."""
        steer = _Steering(self._units, self._budgets)
        self._attempt(self._ground, self._units, None, steer.score)

    def _try_domains(self) -> None:
        for rows in self._try.domains:
            self._attempt(self._ground, self._units, rows, _Steering(self._units, self._budgets).score)

    def _try_rows(self) -> None:
        """One member: try the rows one by one, those that seem to cost least first."""
        if self._wanted > 1:
            return
        (pod, _), *_rest = self.best.seats
        rows = np.array(
            sorted({row for unit in self._units for _, row in unit.pods if row >= 0}), dtype=np.int32
        )
        scores = _Steering(self._units, self._budgets).score(pod, self._ground, rows)
        for index in best_first(scores)[:_ROWS_MAX].tolist():
            self._attempt(self._ground, self._units, rows[index : index + 1])

    def _try_row_by_row(self) -> None:
        """One member that needs some of those to stay: on each row, without the units of that row alone."""
        if self._try.members > 1:
            return
        self._wanted = 1
        for row in sorted({row for unit in self._units for _, row in unit.pods if row >= 0})[:_ROWS_MAX]:
            away = [unit for unit in self._units if any(at == row for _, at in unit.pods)]
            gone, ground = {id(unit) for unit in away}, self._ground.fork()
            for unit in self._units:
                if id(unit) not in gone:
                    return_unit(ground, unit)
            self._attempt(ground, away, np.array([row], dtype=np.int32))

    def _try_smaller_sets(self) -> None:
        """Try every set of victims cheaper than the best, cheapest first, while the tries last."""
        candidates = self._staying()
        if len(candidates) > _SMALL:
            return
        victims = {id(unit) for unit in self.best.victims}
        needed = [unit for unit in candidates if id(unit) in victims and self._is_needed(unit)]
        others = [unit for unit in candidates if not any(unit is other for other in needed)]
        cheaper: list[tuple[Cost, tuple[Unit, ...]]] = []
        for chosen in islice(_by_size(others), self._tries_left * _SETS_PER_TRY):
            away = (*needed, *chosen)
            cost = cost_of(away, self._budgets)
            if cost < self.best.cost:
                cheaper.append((cost, away))
        cheaper.sort(key=lambda pair: pair[0])
        for cost, away in cheaper:
            if cost >= self.best.cost or self._tries_left <= 0:
                return
            self._attempt_with_only(away)

    def _is_needed(self, unit: Unit) -> bool:
        """Whether there is no placement beside it; False where that was not tried."""
        if self._tries_left <= 0:
            return False
        ground = self._ground.fork()
        return_unit(ground, unit)
        return not self._attempt(ground, [other for other in self._units if other is not unit])

    def _attempt_with_only(self, away: Sequence[Unit]) -> None:
        ground, gone = self._ground.fork(), {id(unit) for unit in away}
        for unit in self._staying():
            if id(unit) not in gone:
                return_unit(ground, unit)
        leaving = [unit for unit in self._units if unit.is_leaving]
        self._attempt(ground, [*leaving, *away])


def _by_size(units: Sequence[Unit]) -> Iterator[tuple[Unit, ...]]:
    """Sets of units, the smallest first, of one size the least important first."""
    for size in range(len(units) + 1):
        yield from combinations(reversed(units), size)


_Amounts = tuple[tuple[int, int], ...]  # column and amount, of what is asked for


class _Steering:
    """Scores rows by whom a member more would drive out, by resources alone; higher is better.

    What went for a member placed before costs nothing again.
    """

    def __init__(self, units: Sequence[Unit], budgets: Sequence[Budget]) -> None:
        protected, unprotected = split_by_budgets([u for u in units if not u.is_leaving], budgets)
        self._by_row: dict[int, list[tuple[float, Unit]]] = {}
        for index, unit in enumerate((*protected, *unprotected)):
            penalty = _BUDGET_PENALTY if index < len(protected) else 0.0
            price = len(unit.staying) * (unit.priority + 2.0**31 + penalty)
            for row in sorted({row for _, row in unit.pods if row >= 0}):
                self._by_row.setdefault(row, []).append((price, unit))
        self._priced: dict[int, list[tuple[float, _Amounts]]] = {}

    def score(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> Float64:
        """Shapes: rows [K], returns [K]."""
        request = snapshot.request_of(pod).tolist()
        return np.array([-self._marginal(snapshot, request, row) for row in rows.tolist()], dtype=np.float64)

    def _marginal(self, snapshot: Snapshot, request: list[int], row: int) -> float:
        if row not in self._by_row:
            return 0.0
        room = snapshot.free_at(np.array([row], dtype=np.int32))[0].tolist()
        left = [free - asked for free, asked in zip(room, request, strict=True)]
        on_row = self._on_row(snapshot, row)
        return _driven_out(on_row, left) - _driven_out(on_row, room)

    def _on_row(self, snapshot: Snapshot, row: int) -> list[tuple[float, _Amounts]]:
        """Price and amounts of the units on this row, in the order in which they would be let back."""
        known = self._priced.get(row)
        if known is None:
            known = self._priced[row] = [
                (price, _amounts_of(snapshot, unit, row)) for price, unit in self._by_row[row]
            ]
        return known


def _driven_out(on_row: Sequence[tuple[float, _Amounts]], room: Sequence[int]) -> float:
    """The price of those that do not fit into this room, the most important let in first."""
    price = 0.0
    left = list(room)
    for unit_price, amounts in on_row:
        if any(amount > left[column] for column, amount in amounts):
            price += unit_price
            continue
        for column, amount in amounts:
            left[column] -= amount
    return price


def _amounts_of(snapshot: Snapshot, unit: Unit, row: int) -> _Amounts:
    """What the unit takes on this row."""
    total = snapshot.axis.row({})
    for pod, at in unit.pods:
        if at == row:
            total = total + snapshot.request_of(pod)
    return tuple((column, int(total[column])) for column in np.flatnonzero(total).tolist())
