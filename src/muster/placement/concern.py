"""Who can matter to whom: which of those who may be driven out change what becomes of a pod.

In come units, a fork without them and pods of the preemptor; out comes whether each unit can matter, by room
or by a rule between pods, and on which rows its return is felt.  Next: `reprieve.py`.
Axes: U units, N node rows.
"""

import numpy as np

from muster.api.core import Pod
from muster.base.arrays import Bool, Int32
from muster.cluster.snapshot import Snapshot
from muster.placement.evictable import UnitColumns
from muster.placement.shapes import ShapeKey
from muster.placement.victims import Judge, Unit

ASK_WORK = 300  # asking every rule about a unit and a pod, in rows judged
Reach = dict[tuple[int, ShapeKey], frozenset[int] | None]
"""Rows a unit (by id) can matter to for pods of a shape, None: all; kept over one search."""


class Concern:
    """Which units can matter to some pods: on rows that these could have with all units gone."""

    def __init__(self, columns: UnitColumns, ground: Snapshot, judge: Judge, reach: Reach) -> None:
        self._columns = columns
        self._ground = ground
        self._judge = judge
        self._reach = reach
        self._near: Bool = np.zeros(len(columns.units), dtype=np.bool_)
        self._minding: list[tuple[ShapeKey, Pod, Bool]] = []

    def add(self, pod: Pod, shape: ShapeKey, rows: Int32 | None, *, by_counting: bool) -> None:
        """Think of a pod, too; `by_counting`: whether units matter to it by the room of their rows alone."""
        able = self._judge.usable(pod, self._ground)
        if rows is not None:
            able &= np.isin(np.arange(len(able)), rows)
        open_rows = np.flatnonzero(able).astype(np.int32)
        fits = self._judge.capacity(pod, self._ground, open_rows)
        if fits is not None:
            able[open_rows] = fits > 0
        self._near[self._columns.owner[able[self._columns.rows]]] = True
        if able.any() and not by_counting:
            self._minding.append((shape, pod, able))

    def covers(self, unit: Unit) -> bool:
        """Whether the unit can matter to one of them."""
        return bool(self._near[self._columns.index_of[id(unit)]]) or any(
            self._is_reached(unit, shape, pod, able) for shape, pod, able in self._minding
        )

    @property
    def work(self) -> int:
        """What it costs to ask about a unit, in rows judged."""
        return 1 + ASK_WORK * len(self._minding)

    def _is_reached(self, unit: Unit, shape: ShapeKey, pod: Pod, able: Bool) -> bool:
        rows = rows_reached(self._reach, self._judge, unit, shape, pod, self._ground)
        return rows is None or bool(able[list(rows)].any())


def rows_reached(
    reach: Reach, judge: Judge, unit: Unit, shape: ShapeKey, pod: Pod, ground: Snapshot
) -> frozenset[int] | None:
    """Rows on which the unit's return may change what is said of `pod`; None: all."""
    key = (id(unit), shape)
    if key not in reach:
        reach[key] = _rows_of(judge, unit, pod, ground)
    return reach[key]


def _rows_of(judge: Judge, unit: Unit, pod: Pod, ground: Snapshot) -> frozenset[int] | None:
    rows: set[int] = set()
    for back, row in unit.pods:
        if row < 0:
            continue
        changed = judge.rows_changed(back, row, pod, ground)
        if changed is None:
            return None
        rows.update((row, *changed.tolist()))
    return frozenset(rows)
