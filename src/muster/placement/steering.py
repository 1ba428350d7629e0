"""Where a member would drive out least: rows scored by the price of the units that could not stay.

By resources alone, so it is a guess that the search checks; but for all rows at once.  In come units in
columns; out go scores, and ways to lay many like members where each costs least at that moment.  Next:
`eviction.py`, which steers by it.
Axes: K rows asked for, S units by row (a unit on several rows stands on each of them), R resources.
"""

from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from typing import ClassVar, Protocol

import numpy as np

from muster.api.core import Pod
from muster.base.arrays import Float64, Int32, Int64
from muster.cluster.budgets import Budget
from muster.cluster.snapshot import Snapshot
from muster.placement.evictable import UnitColumns
from muster.placement.victims import Unit, split_by_budgets

_BUDGET_PENALTY = 2.0**45  # more than any number of victims that no budget protects


class Steer(Protocol):
    """A way of choosing rows; meanings as in `placement/assignment.py`."""

    name: ClassVar[str]

    def score(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> Float64: ...

    def lay(
        self, pod: Pod, snapshot: Snapshot, rows: Int32, fits: Int64, score: Float64, count: int
    ) -> Int64: ...


class Steering:
    """Scores rows by whom a member more would drive out; what went for one placed before costs nothing again.

    `units`: those that may go, the most important first.
    """

    name: ClassVar[str] = "fewest victims"

    def __init__(self, units: Sequence[Unit], budgets: Sequence[Budget], columns: UnitColumns) -> None:
        staying = [unit for unit in units if id(unit) not in columns.leaving]
        protected, unprotected = split_by_budgets(staying, budgets)
        order = (*protected, *unprotected)  # as they would be let back
        ordered = np.array([columns.index_of[id(unit)] for unit in order], dtype=np.int64)
        turns = np.arange(len(order))
        price = columns.staying[ordered] * (
            columns.priority[ordered] + 2.0**31 + _BUDGET_PENALTY * (turns < len(protected))
        )
        turn_of_unit = np.full(len(columns.units), -1, dtype=np.int64)
        turn_of_unit[ordered] = turns
        turn = turn_of_unit[columns.owner]
        positions = np.flatnonzero(turn >= 0)
        turn, rows = turn[positions], columns.rows[positions].astype(np.int64)
        keys, which = np.unique(rows * max(len(order), 1) + turn, return_inverse=True)
        self._amounts = np.zeros((len(keys), columns.requests.shape[1]), dtype=np.int64)
        np.add.at(self._amounts, which, columns.requests[positions])
        self._prices = price[keys % max(len(order), 1)] if len(keys) else np.zeros(0)
        self._row_of = keys // max(len(order), 1)

    def score(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> Float64:
        """Shapes: rows [K], returns [K]."""
        room = snapshot.free_at(rows)
        left = room - snapshot.request_of(pod)
        marginal: Float64 = self._driven_out(rows, left) - self._driven_out(rows, room)
        return -marginal

    def lay(
        self, pod: Pod, snapshot: Snapshot, rows: Int32, fits: Int64, score: Float64, count: int
    ) -> Int64:
        """Each copy on the row that scores highest at that moment, of equals the lowest.

        Shapes   rows, fits, score [K], of no copy more; returns [≤ count] an index into them per copy.
        """
        request = snapshot.request_of(pod)
        able = np.flatnonzero(fits > 0)
        waiting = [(-value, index) for value, index in zip(score[able].tolist(), able.tolist(), strict=True)]
        heapify(waiting)
        taken: dict[int, int] = {}
        room: dict[int, Int64] = {}
        chosen: list[int] = []
        while waiting and len(chosen) < count:
            _, index = heappop(waiting)
            chosen.append(index)
            taken[index] = taken.get(index, 0) + 1
            if taken[index] < fits[index]:
                row = rows[index : index + 1]
                before = room.get(index)
                now = (snapshot.free_at(row) if before is None else before) - request
                room[index] = now
                more = self._driven_out(row, now - request) - self._driven_out(row, now)
                heappush(waiting, (float(more[0]), index))
        return np.array(chosen, dtype=np.int64)

    def _driven_out(self, rows: Int32, room: Int64) -> Float64:
        """[K] the price of those that do not fit into this room, let in in their order."""
        price: Float64 = np.zeros(len(rows), dtype=np.float64)
        left = room.copy()
        first = np.searchsorted(self._row_of, rows)
        count = np.searchsorted(self._row_of, rows, side="right") - first
        for turn in range(int(count.max(initial=0))):
            here = np.flatnonzero(count > turn)
            units = first[here] + turn
            amounts = self._amounts[units]
            stays = ((amounts <= left[here]) | (amounts == 0)).all(axis=1)
            price[here[~stays]] += self._prices[units[~stays]]
            left[here[stays]] -= amounts[stays]
        return price
