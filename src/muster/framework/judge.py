"""The node-wise plugins of a profile as one judge: which rows, how good, how many copies.

Plugins that say they judge a row by that row alone (`judges_row_alone`) are asked once a shape and then only
about rows that changed (`placement/memory.py`); those that read no pods either (`reads_pods` False) not even
about rows where pods came and went.  The others are asked every time, about the rows left over, but for those
that have nothing to say about such a pod (`is_silent`).  Next: `runner.py`, which has one.
Axes: N node rows, K rows asked for.
"""

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Any, NamedTuple

import numpy as np

from muster.api.core import Pod
from muster.base.arrays import Bool, Int32, Int64
from muster.cluster.snapshot import Snapshot
from muster.framework.blame import blamed
from muster.framework.points import Capacity, Filter, Score, Silence
from muster.placement.capacity import UNLIMITED
from muster.placement.memory import Judgment, Memory
from muster.placement.shapes import ShapeKey


class _Reach(Enum):
    """What a plugin looks at to judge a row: its node, its node and pods, or anything."""

    NODE = "node"
    ROW = "row"
    ALL = "all"


class _Bench(NamedTuple):
    """Plugins that are asked together; `filters` that count are in `capacities` alone: no copy is a no."""

    filters: tuple[Filter, ...]
    capacities: tuple[Capacity, ...]
    scores: tuple[tuple[Score, float], ...]

    def without(self, silent: frozenset[str]) -> "_Bench":
        """Those that have something to say."""
        return _Bench(
            tuple(plugin for plugin in self.filters if plugin.name not in silent),
            tuple(plugin for plugin in self.capacities if plugin.name not in silent),
            tuple(pair for pair in self.scores if pair[0].name not in silent),
        )


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
        self._of_nodes, self._alone, self._wide = (
            _Bench(
                tuple(each for each in filters if _reach(each) == reach and id(each) not in counting),
                tuple(each for each in capacities if _reach(each) == reach),
                tuple(pair for pair in scores if _reach(pair[0]) == reach),
            )
            for reach in _Reach
        )
        plugins: dict[int, Any] = {
            id(each): each for each in (*filters, *capacities, *(plugin for plugin, _ in scores))
        }
        self._silences = [each for each in plugins.values() if isinstance(each, Silence)]
        self._left_by_silent: dict[frozenset[str], tuple[_Bench, _Bench]] = {}
        self._node_memory = Memory(of_nodes=True)
        self._memory = Memory()

    def judge(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> Judgment:
        """Mask, weighted score and copies of these rows.  Shapes: [K].  Raises PluginError."""
        by_row, wide = self._not_silent(pod, snapshot)
        of_nodes = self._ask_of_nodes(pod, snapshot, rows)
        return _ask(wide, pod, snapshot, rows, _ask(by_row, pod, snapshot, rows, of_nodes))

    def recall(self, pod: Pod, shape: ShapeKey, snapshot: Snapshot, rows: Int32) -> Judgment:
        """What `judge` says, by memory where no row has changed; not to be written, good until the next."""
        # Of eight of Muster's own that look further none minds most pods: 0.14 of 0.54 ms to ask them all.
        by_row, wide = self._not_silent(pod, snapshot)
        of_nodes = self._node_memory.recall(pod, shape, snapshot, self._ask_of_nodes)

        def ask_alone(pod: Pod, snapshot: Snapshot, rows: Int32) -> Judgment:
            return _ask(by_row, pod, snapshot, rows, of_nodes.at(rows))

        alone = self._memory.recall(pod, shape, snapshot, ask_alone).of(rows)
        return _ask(wide, pod, snapshot, rows, alone.copy()) if any(wide) else alone

    def silent(self, pod: Pod, snapshot: Snapshot) -> frozenset[str]:
        """Names of the plugins that have nothing to say about this pod, nor about copies of it."""
        silent = []
        with blamed("", "is_silent", pod.metadata.name) as blame:
            for plugin in self._silences:
                blame.plugin = plugin.name
                if plugin.is_silent(pod, snapshot):
                    silent.append(plugin.name)
        return frozenset(silent)

    def _not_silent(self, pod: Pod, snapshot: Snapshot) -> tuple[_Bench, _Bench]:
        """Those that judge a row by itself, and those that look further, if they have something to say."""
        silent = self.silent(pod, snapshot)
        left = self._left_by_silent.get(silent)  # few sets there are: sorting them out is 10 µs a decision
        if left is None:
            left = self._left_by_silent[silent] = (self._alone.without(silent), self._wide.without(silent))
        return left

    def _ask_of_nodes(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> Judgment:
        fresh = Judgment(
            np.ones(len(rows), dtype=np.bool_),
            np.zeros(len(rows), dtype=np.float64),
            np.full(len(rows), UNLIMITED, dtype=np.int64),
        )
        return _ask(self._of_nodes, pod, snapshot, rows, fresh)


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
    """Ask about the rows that are feasible so far, and write what is said into the judgment given.

    Who counts is asked first: of 450 changed rows of a full cluster none is left to ask the others about.
    """
    name = pod.metadata.name
    feasible, score, fits = so_far
    left = _Left(rows, feasible)
    for counting in bench.capacities:
        if not len(left.rows):
            break
        with blamed(counting.name, "capacity", name):
            copies = counting.capacity(pod, snapshot, left.rows)
        fits[left.where] = np.minimum(fits[left.where], copies)
        left.keep(copies > 0)
    for plugin in bench.filters:
        if not len(left.rows):
            break
        with blamed(plugin.name, "filter", name):
            left.keep(plugin.filter(pod, snapshot, left.rows).feasible)
    for scoring, weight in bench.scores:
        if not len(left.rows):
            break
        with blamed(scoring.name, "score", name):
            score[left.where] += weight * scoring.score(pod, snapshot, left.rows)
    if len(left.rows) < len(rows):
        feasible[:] = False
        feasible[left.where] = True
        score[~feasible] = 0.0
        fits[~feasible] = 0
    return so_far


def _reach(plugin: Any) -> _Reach:
    if not getattr(plugin, "judges_row_alone", False):
        return _Reach.ALL
    is_of_nodes = getattr(plugin, "reads_pods", True) is False and not isinstance(plugin, Capacity)
    return _Reach.NODE if is_of_nodes else _Reach.ROW
