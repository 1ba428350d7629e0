"""The node-wise plugins of a profile as one judge: which rows, how good, how many copies.

Plugins that say they judge a row by that row alone (`judges_row_alone`) are asked once a shape and then only
about rows that changed (`placement/memory.py`); the others are asked every time, about the rows left over.
Next: `runner.py`, which has one.
Axes: N node rows, K rows asked for.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from muster.api.core import Pod
from muster.base.arrays import Bool, Int32, Int64
from muster.cluster.snapshot import Snapshot
from muster.framework.blame import blamed
from muster.framework.points import Capacity, Filter, Score
from muster.placement.capacity import UNLIMITED
from muster.placement.memory import Judgment, Memory
from muster.placement.shapes import ShapeKey


class _Bench(NamedTuple):
    """Plugins that are asked together; `filters` that count are in `capacities` alone: no copy is a no."""

    filters: tuple[Filter, ...]
    capacities: tuple[Capacity, ...]
    scores: tuple[tuple[Score, float], ...]


class NodeJudge:
    """Asks filters, capacities and weighted scores, those that judge a row by itself first."""

    def __init__(
        self,
        filters: Iterable[Filter],
        capacities: Iterable[Capacity],
        scores: Sequence[tuple[Score, float]],
    ) -> None:
        filters, capacities = tuple(filters), tuple(capacities)
        counting = {id(plugin) for plugin in capacities}
        self.capacities = capacities
        self.scores = tuple(scores)
        self._alone, self._wide = (
            _Bench(
                tuple(
                    plugin
                    for plugin in filters
                    if _judges_row_alone(plugin) is is_alone and id(plugin) not in counting
                ),
                tuple(plugin for plugin in capacities if _judges_row_alone(plugin) is is_alone),
                tuple(pair for pair in scores if _judges_row_alone(pair[0]) is is_alone),
            )
            for is_alone in (True, False)
        )
        self._memory = Memory(self._ask_alone)

    def judge(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> Judgment:
        """Mask, weighted score and copies of these rows.  Shapes: [K].  Raises PluginError."""
        return self._ask_wide(pod, snapshot, rows, self._ask_alone(pod, snapshot, rows))

    def recall(self, pod: Pod, shape: ShapeKey, snapshot: Snapshot, rows: Int32) -> Judgment:
        """What `judge` says, by memory where no row has changed; the caller may write it."""
        return self._ask_wide(pod, snapshot, rows, self._memory.recall(pod, shape, snapshot).at(rows))

    def _ask_alone(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> Judgment:
        fresh = Judgment(
            np.ones(len(rows), dtype=np.bool_),
            np.zeros(len(rows), dtype=np.float64),
            np.full(len(rows), UNLIMITED, dtype=np.int64),
        )
        return _ask(self._alone, pod, snapshot, rows, fresh)

    def _ask_wide(self, pod: Pod, snapshot: Snapshot, rows: Int32, judgment: Judgment) -> Judgment:
        return _ask(self._wide, pod, snapshot, rows, judgment)


class _Left:
    """Rows that are feasible so far; `where` they stand among the rows asked for."""

    __slots__ = ("rows", "where")

    def __init__(self, rows: Int32, feasible: Bool) -> None:
        self.rows = rows
        self.where: Int64 | slice = slice(None)  # picking all of 5,000 rows one by one costs 36 µs
        self.keep(feasible)

    def keep(self, allowed: Bool) -> None:
        """Only those of them that are allowed.  Shapes: as `rows`."""
        if not allowed.all():
            kept = np.flatnonzero(allowed)
            self.where = kept if isinstance(self.where, slice) else self.where[kept]
            self.rows = self.rows[kept]


def _ask(bench: _Bench, pod: Pod, snapshot: Snapshot, rows: Int32, so_far: Judgment) -> Judgment:
    """Ask about the rows that are feasible so far, and write what is said into the judgment given."""
    name = pod.metadata.name
    feasible, score, fits = so_far
    left = _Left(rows, feasible)
    for plugin in bench.filters:
        with blamed(plugin.name, "filter", name):
            left.keep(plugin.filter(pod, snapshot, left.rows).feasible)
    for counting in bench.capacities:
        with blamed(counting.name, "capacity", name):
            copies = counting.capacity(pod, snapshot, left.rows)
        fits[left.where] = np.minimum(fits[left.where], copies)
        left.keep(copies > 0)
    for scoring, weight in bench.scores:
        with blamed(scoring.name, "score", name):
            score[left.where] += weight * scoring.score(pod, snapshot, left.rows)
    if len(left.rows) < len(rows):
        feasible[:] = False
        feasible[left.where] = True
        score[~feasible] = 0.0
        fits[~feasible] = 0
    return so_far


def _judges_row_alone(plugin: Any) -> bool:
    return bool(getattr(plugin, "judges_row_alone", False))
