"""Who would have to go: victim units, how important each is, what budgets protect, what a set costs.

A unit is what is evicted together or not at all (KEP-5710): a pod, or all pods of a group whose disruption
mode is `all`.  In come units and a placement of the preemptor; out go those that cannot stay beside it.
Next: `eviction.py`, which chooses place and victims together.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from msgspec import Struct

from muster.api.core import Pod
from muster.base.arrays import Int32
from muster.cluster.budgets import Budget
from muster.cluster.snapshot import Snapshot
from muster.placement.assignment import Judged
from muster.placement.shapes import ShapeKey, shape_key

Seats = Sequence[tuple[Pod, int]]
NOBODY = -(2**63)
_OFFSET = 2**31 + 1  # makes every priority positive, so that one victim more always costs more


class Unit(Struct, frozen=True):
    """Pods that go together, each with its row (-1: on a node that is not known).

    `is_group`: a whole group, or a member of one that is evicted alone.  `start_s`: when its first pod
    started, infinity where none has.
    """

    name: str
    priority: int
    pods: tuple[tuple[Pod, int], ...]
    is_group: bool = False
    start_s: float = np.inf

    @property
    def is_leaving(self) -> bool:
        """Whether all of it is being deleted already: its end costs nothing more."""
        return all(pod.is_terminating for pod, _ in self.pods)

    @property
    def staying(self) -> tuple[Pod, ...]:
        """Pods that nobody has asked to delete yet."""
        return tuple(pod for pod, _ in self.pods if not pod.is_terminating)

    @property
    def importance(self) -> tuple[int, bool, int, float, str]:
        """Sorts the most important first: priority, group before lone pod, larger, started earlier, name."""
        size = len(self.pods) if self.is_group else 0
        return (-self.priority, not self.is_group, -size, self.start_s, self.name)


class Cost(NamedTuple):
    """What a set of victims costs; the smallest is best.  As stock ranks nodes for a lone pod.

    `violations`: pods beyond what budgets allow; `highest`: priority of the most important victim; `total`:
    their priorities added up, each made positive first, so that fewer victims cost less; `pods` how
    many; `groups`: how many units of them are groups or of groups; `recency`: minus the start of the longest
    running of the most important.
    """

    violations: int = 0
    highest: int = NOBODY
    total: int = 0
    pods: int = 0
    groups: int = 0
    recency: float = -np.inf

    @property
    def is_nothing(self) -> bool:
        """Whether nobody is evicted."""
        return self.pods == 0


def cost_of(units: Iterable[Unit], budgets: Sequence[Budget]) -> Cost:
    """What evicting these costs; pods that are leaving anyway are not counted."""
    found = [(unit, pod) for unit in units for pod in unit.staying]
    if not found:
        return Cost()
    highest = max(unit.priority for unit, _ in found)
    violations = 0
    for budget in budgets:
        charged = sum(budget.counts(pod) for _, pod in found)
        violations += max(0, charged - budget.allowed)
    return Cost(
        violations=violations,
        highest=highest,
        total=sum(unit.priority + _OFFSET for unit, _ in found),
        pods=len(found),
        groups=sum(unit.is_group for unit in {unit.name: unit for unit, _ in found}.values()),
        recency=-min(unit.start_s for unit, _ in found if unit.priority == highest),
    )


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


class Judge(Protocol):
    """The filters of a profile as one (`framework/runner.py`)."""

    @property
    def reads_metadata(self) -> bool: ...

    def labels_read(self, keys: frozenset[str]) -> frozenset[str]: ...

    def filter(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> Judged: ...

    def rows_changed(self, placed: Pod, row: int, pod: Pod, snapshot: Snapshot) -> Int32 | None: ...


def remove_unit(fork: Snapshot, unit: Unit) -> None:
    """Take a unit off a fork."""
    for pod, row in unit.pods:
        if row >= 0:
            fork.remove(pod, row)


def return_unit(fork: Snapshot, unit: Unit) -> None:
    """Put it back."""
    for pod, row in unit.pods:
        if row >= 0:
            fork.place(pod, row)


Reach = dict[tuple[int, ShapeKey], frozenset[int] | None]
"""Rows a unit (by id) can matter to for pods of a shape, None: all; kept over one search."""


def find_needed(
    units: Sequence[Unit],
    seats: Seats,
    ground: Snapshot,
    budgets: Sequence[Budget],
    judge: Judge,
    reach: Reach | None = None,
) -> tuple[Unit, ...]:
    """Who of these cannot stay, when the preemptor takes these seats (KEP-5710, reprieve).

    `ground`: a fork without the units and without the preemptor.  The protected are let back first, then the
    others, the most important before the less important; a unit comes back whole or not at all.  Those that
    are leaving anyway stay away.
    """
    leaving = tuple(unit for unit in units if unit.is_leaving)
    protected, unprotected = split_by_budgets([unit for unit in units if not unit.is_leaving], budgets)
    beside = _Beside(seats, ground.fork(), judge, {} if reach is None else reach)
    return leaving + tuple(unit for unit in (*protected, *unprotected) if not beside.let_back(unit))


class _Beside:
    """Seats that are taken, and units let back one by one as long as every seat holds."""

    def __init__(self, seats: Seats, ground: Snapshot, judge: Judge, reach: Reach) -> None:
        self._seats = seats
        self._ground = ground
        self._judge = judge
        self._reach = reach
        self._empty = ground.fork()  # with the seats on it nobody would be the first whom a seat may need
        self._seats_of_shape: dict[ShapeKey, dict[int, list[int]]] = {}  # by row
        labels = judge.labels_read(ground.label_keys_read)
        for index, (pod, row) in enumerate(seats):
            shape = shape_key(pod, metadata=judge.reads_metadata, labels=labels)
            self._seats_of_shape.setdefault(shape, {}).setdefault(row, []).append(index)
            ground.place(pod, row)

    def let_back(self, unit: Unit) -> bool:
        """Let the unit back, whole; False, and nothing changed, where a seat would not hold."""
        touched = self._touched(unit)
        if not touched:
            return True
        return_unit(self._ground, unit)
        if self._holds(touched):
            return True
        remove_unit(self._ground, unit)
        return False

    def _touched(self, unit: Unit) -> set[int]:
        """Which seats the return of the unit can matter to."""
        touched: set[int] = set()
        for shape, by_row in self._seats_of_shape.items():
            rows = self._rows_reached(unit, shape, by_row)
            for row in by_row if rows is None else by_row.keys() & rows:
                touched.update(by_row[row])
        return touched

    def _rows_reached(
        self, unit: Unit, shape: ShapeKey, by_row: Mapping[int, Sequence[int]]
    ) -> frozenset[int] | None:
        key = (id(unit), shape)
        if key not in self._reach:
            pod = self._seats[next(iter(by_row.values()))[0]][0]
            self._reach[key] = _rows_of(self._judge, unit, pod, self._empty)
        return self._reach[key]

    def _holds(self, touched: set[int]) -> bool:
        """Whether these seats still hold, asked in the order in which they were taken."""
        fork = self._ground.fork()
        for index in touched:
            fork.remove(*self._seats[index])
        for index in sorted(touched):
            pod, row = self._seats[index]
            if not self._judge.filter(pod, fork, np.array([row], dtype=np.int32)).feasible[0]:
                return False
            fork.place(pod, row)
        return True


def _rows_of(judge: Judge, unit: Unit, pod: Pod, ground: Snapshot) -> frozenset[int] | None:
    """Rows on which the unit's return may change what is said of `pod`; None: all."""
    rows: set[int] = set()
    for back, row in unit.pods:
        if row < 0:
            continue
        changed = judge.rows_changed(back, row, pod, ground)
        if changed is None:
            return None
        rows.update((row, *changed.tolist()))
    return frozenset(rows)
