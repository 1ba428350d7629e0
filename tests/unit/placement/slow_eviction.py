"""The search as it was before it was made fast: one unit, one row, one member at a time.

The oracle of `test_eviction.py` and `test_reprieve.py`: what is fast must be no worse than this.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, islice

import numpy as np

from muster.api.core import Pod
from muster.base.arrays import Float64, Int32
from muster.cluster.budgets import Budget
from muster.cluster.snapshot import Snapshot
from muster.placement.eviction import Eviction, Trial
from muster.placement.reprieve import remove_unit, return_unit
from muster.placement.scoring import best_first
from muster.placement.victims import Cost, Judge, Seats, Unit, cost_of

TRIES_MAX = 256
TRIES_MIN = 8
_WORK_MAX = 500_000
_ROWS_MAX = 32
_SMALL = 20
_SETS_PER_TRY = 16
_BUDGET_PENALTY = 2.0**45

Score = Callable[[Pod, Snapshot, Int32], Float64]


class SlowTry:
    """As `Try`, but steered by a score alone."""

    def __init__(
        self,
        on: Callable[[Snapshot, Int32 | None, Score | None], Trial],
        members: int,
        domains: tuple[Int32, ...] = (),
    ) -> None:
        self.on, self.members, self.domains = on, members, domains


def choose_slowly(
    units: Sequence[Unit], budgets: Sequence[Budget], snapshot: Snapshot, judge: Judge, trial: SlowTry
) -> Eviction | Trial:
    """The cheapest placement that the slow search finds."""
    return _Search(units, budgets, snapshot, judge, trial).run()


class _Search:
    """One search; counts its tries, so that a large one ends."""

    def __init__(
        self,
        units: Sequence[Unit],
        budgets: Sequence[Budget],
        snapshot: Snapshot,
        judge: Judge,
        trial: SlowTry,
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
        victims = find_needed(units, seats, ground, self._budgets, self._judge)
        cost = cost_of(victims, self._budgets)
        if self._best is None or cost < self._best.cost:
            self._best = Eviction(seats, victims, cost)

    def _attempt(
        self, ground: Snapshot, units: Sequence[Unit], rows: Int32 | None = None, steer: Score | None = None
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


def split_by_budgets(
    units: Sequence[Unit], budgets: Sequence[Budget]
) -> tuple[tuple[Unit, ...], tuple[Unit, ...]]:
    """Those whose eviction would break a budget, and the others; each most important first.

    The least important use up what a budget allows: they are the likeliest to go.  (Stock lets the most
    important use it up, and then spares the less important as protected.)
    """
    left = {index: budget.allowed for index, budget in enumerate(budgets)}
    protected: list[Unit] = []
    unprotected: list[Unit] = []
    for unit in sorted(units, key=lambda unit: unit.importance, reverse=True):
        charges = {
            index: charged
            for index, budget in enumerate(budgets)
            if (charged := sum(budget.counts(pod) for pod in unit.staying))
        }
        if any(charged > left[index] for index, charged in charges.items()):
            protected.append(unit)
            continue
        for index, charged in charges.items():
            left[index] -= charged
        unprotected.append(unit)
    return tuple(reversed(protected)), tuple(reversed(unprotected))


def find_needed(
    units: Sequence[Unit],
    seats: Seats,
    ground: Snapshot,
    budgets: Sequence[Budget],
    judge: Judge,
) -> tuple[Unit, ...]:
    """Who of these cannot stay, when the preemptor takes these seats (KEP-5710, reprieve).

    `ground`: a fork without the units and without the preemptor.  The protected are let back first, then the
    others, the most important before the less important; a unit comes back whole or not at all.  Those that
    are leaving anyway stay away.
    """
    leaving = tuple(unit for unit in units if unit.is_leaving)
    protected, unprotected = split_by_budgets([unit for unit in units if not unit.is_leaving], budgets)
    beside = _Beside(seats, ground.fork(), judge)
    return leaving + tuple(unit for unit in (*protected, *unprotected) if not beside.let_back(unit))


class _Beside:
    """Seats that are taken, and units let back one by one: every seat is asked each time."""

    def __init__(self, seats: Seats, ground: Snapshot, judge: Judge) -> None:
        self._seats, self._ground, self._judge = seats, ground, judge

    def let_back(self, unit: Unit) -> bool:
        """Let the unit back, whole; False, and nothing changed, where a seat would not hold."""
        return_unit(self._ground, unit)
        if self._holds():
            return True
        remove_unit(self._ground, unit)
        return False

    def _holds(self) -> bool:
        """Whether the seats still hold, asked in the order in which they were taken."""
        fork = self._ground.fork()
        for pod, row in self._seats:
            if not self._judge.filter(pod, fork, np.array([row], dtype=np.int32)).feasible[0]:
                return False
            fork.place(pod, row)
        return True
