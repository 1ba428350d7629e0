"""What was said of a shape, row by row, kept from cycle to cycle: only rows that changed are asked again.

It holds for rules that judge a row by that row alone (`judges_row_alone` of a plugin).  In come a pod, its
shape and a snapshot or a fork of it, out goes a `Judgment` of all rows.  Next: `assignment.py`, which copies
what it needs of it.
Axes: N node rows, K rows asked for.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from muster.api.core import Node, Pod
from muster.base.arrays import Bool, Float64, Int32, Int64
from muster.cluster.axes import ResourceAxis
from muster.cluster.snapshot import RowHistory, Snapshot
from muster.placement.shapes import ShapeKey

BYTES_MAX = 64 * 1024 * 1024
BYTES_PER_ROW = 25  # of one shape: a bool, a float, an integer, and when the row changed last
BYTES_PER_SHAPE = 1500  # its key, and what holds four arrays: on 20 nodes three times the arrays themselves


class Judgment(NamedTuple):
    """What is said of some rows for one pod.

    Shapes   feasible, score [K]; fits [K]: copies that the row takes, `UNLIMITED` where nobody counts.  Score
             and fits are 0 where the row is not feasible.
    """

    feasible: Bool
    score: Float64
    fits: Int64

    def at(self, rows: Int32) -> "Judgment":
        """Copies of these entries, to be written by whoever asked."""
        if len(rows) == len(self.feasible):
            return self.copy()
        return Judgment(self.feasible[rows], self.score[rows], self.fits[rows])

    def of(self, rows: Int32) -> "Judgment":
        """These entries, refusing writes where they are these very ones.  Shapes: rows ascending [K]."""
        if len(rows) < len(self.feasible):
            return self.at(rows)
        views = Judgment(self.feasible.view(), self.score.view(), self.fits.view())
        for view in views:
            view.flags.writeable = False
        return views

    def copy(self) -> "Judgment":
        """All entries, to be written by whoever asked."""
        return Judgment(self.feasible.copy(), self.score.copy(), self.fits.copy())

    def put(self, indices: Int32 | Int64, news: "Judgment") -> None:
        """Write these entries.  Shapes: indices and every array of news [K]."""
        self.feasible[indices] = news.feasible
        self.score[indices] = news.score
        self.fits[indices] = news.fits


Ask = Callable[[Pod, Snapshot, Int32], Judgment]


class _Known(NamedTuple):
    """A judgment of all rows as they were at one moment of a line of snapshots."""

    history: RowHistory
    axis: ResourceAxis
    nodes: tuple[Node | None, ...]
    judgment: Judgment


class Memory:
    """Judgments by shape; the one not asked for longest is forgotten first.

    On 5,000 nodes a third of a 0.9 ms decision was asking about rows that were as they had been.
    `of_nodes`: what is asked looks at nodes alone, so that pods that come and go change nothing.
    """

    def __init__(self, *, of_nodes: bool = False) -> None:
        self._of_nodes = of_nodes
        self._known: dict[ShapeKey, _Known] = {}

    def recall(self, pod: Pod, shape: ShapeKey, snapshot: Snapshot, ask: Ask) -> Judgment:
        """The judgment of all rows [N], dead ones infeasible; not to be written, good until the next call."""
        known = self._brought_up_to_date(pod, shape, snapshot.origin, ask)
        if not snapshot.moves or self._of_nodes:
            return known
        rows = np.array(sorted({move.row for move in snapshot.moves}), dtype=np.int32)
        here = known.copy()
        here.put(rows, ask(pod, snapshot, rows))
        return here

    def _brought_up_to_date(self, pod: Pod, shape: ShapeKey, origin: Snapshot, ask: Ask) -> Judgment:
        now = origin.history
        known = self._known.pop(shape, None)
        if known is None or known.history.lineage is not now.lineage or known.axis is not origin.axis:
            known = _Known(now, origin.axis, origin.nodes, _ask_all(pod, origin, ask))
        elif known.history.moment > now.moment:  # of an older snapshot: nothing to be remembered
            self._known[shape] = known
            return _ask_all(pod, origin, ask)
        elif known.history.moment < now.moment:
            is_same = self._of_nodes and known.nodes is origin.nodes
            judgment = known.judgment if is_same else _catch_up(pod, origin, known, ask)
            known = _Known(now, origin.axis, origin.nodes, judgment)
        self._known[shape] = known  # the last one is the one asked for last
        bytes_each = BYTES_PER_SHAPE + len(origin.live) * BYTES_PER_ROW
        while len(self._known) * bytes_each > BYTES_MAX and len(self._known) > 1:
            del self._known[next(iter(self._known))]
        return known.judgment


def _ask_all(pod: Pod, origin: Snapshot, ask: Ask) -> Judgment:
    everywhere = _nowhere(len(origin.live))
    rows = origin.live_rows()
    everywhere.put(rows, ask(pod, origin, rows))
    return everywhere


def _catch_up(pod: Pod, origin: Snapshot, known: _Known, ask: Ask) -> Judgment:
    """The judgment known, with the rows asked about again that have changed since."""
    judgment, count = known.judgment, len(origin.live)
    if len(judgment.feasible) < count:
        longer = _nowhere(count)
        longer.put(np.arange(len(judgment.feasible)), judgment)
        judgment = longer
    rows = origin.history.changed_since(known.history.moment).astype(np.int32)
    alive = origin.live[rows]
    if not alive.all():
        dead, rows = rows[~alive], rows[alive]
        judgment.put(dead, _nowhere(dead.size))
    if rows.size:
        judgment.put(rows, ask(pod, origin, rows))
    return judgment


def _nowhere(count: int) -> Judgment:
    return Judgment(
        np.zeros(count, dtype=np.bool_), np.zeros(count, dtype=np.float64), np.zeros(count, dtype=np.int64)
    )
