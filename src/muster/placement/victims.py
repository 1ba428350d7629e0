"""Who would have to go: victim units, how important each is, what budgets protect, what a set costs.

A unit is what is evicted together or not at all (KEP-5710): a pod, or all pods of a group whose disruption
mode is `all`.  In come units and budgets; out go costs, to be compared.  Next: `reprieve.py`, who may stay.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from msgspec import Struct

from muster.api.core import Pod
from muster.base.arrays import Bool, Int32, Int64
from muster.cluster.budgets import Budget
from muster.cluster.snapshot import Snapshot

Seats = Sequence[tuple[Pod, int]]  # pods of the preemptor with their rows, in the order they were taken in
NOBODY = -(2**63)
Importance = tuple[int, bool, int, float, str]
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
    def importance(self) -> Importance:
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
    """Those whose eviction would break a budget, and the others; given and returned most important first.

    The least important use up what a budget allows: they are the likeliest to go.  (Stock lets the most
    important use it up, and then spares the less important as protected.)
    """
    if not budgets:
        return (), tuple(units)
    left = {index: budget.allowed for index, budget in enumerate(budgets)}
    protected: list[Unit] = []
    unprotected: list[Unit] = []
    for unit in reversed(units):
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


class Judged(Protocol):
    """What all filters together say of some rows."""

    @property
    def feasible(self) -> Bool:
        """[K] rows that every filter allows."""
        ...


class Judge(Protocol):
    """The filters of a profile as one (`framework/runner.py`)."""

    @property
    def reads_metadata(self) -> bool: ...

    def labels_read(self, keys: frozenset[str]) -> frozenset[str]: ...

    def filter(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> Judged: ...

    def usable(self, pod: Pod, snapshot: Snapshot) -> Bool: ...

    def rows_changed(self, placed: Pod, row: int, pod: Pod, snapshot: Snapshot) -> Int32 | None: ...

    def capacity(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> Int64 | None: ...

    def counts_only(self, others: Sequence[Pod], pod: Pod, snapshot: Snapshot) -> bool: ...
