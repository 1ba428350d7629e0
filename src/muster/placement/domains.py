"""Candidate placements: named sets of rows, and sums over each of them in one go.

In come rows and the label ids of nodes; out go `Placements`, one per topology domain, which may be cut with
those of another rule.  Next: `choice.py`, which says where a group could go and which place is best.
Axes: N node rows, D placements, M the rows of all placements one after another.
"""

from functools import cached_property

import numpy as np
from msgspec import Struct

from muster.base.arrays import Bool, Float64, Int32, Int64


class Placements(Struct, frozen=True, dict=True):
    """Named sets of rows.

    Shapes   names [D]; rows [M], ascending inside each placement; bounds [D + 1], where each begins.
    """

    names: tuple[str, ...]
    rows: Int32
    bounds: Int64

    @property
    def count(self) -> int:
        """D."""
        return len(self.names)

    def rows_of(self, index: int) -> Int32:
        """The rows of one placement, ascending."""
        found: Int32 = self.rows[self.bounds[index] : self.bounds[index + 1]]
        return found

    def all_rows(self) -> Int32:
        """The rows that are in some placement, ascending, each once; not to be written."""
        return self._every

    @cached_property
    def _every(self) -> Int32:
        if not self.rows.size:
            return self.rows
        inside = np.zeros(int(self.rows.max()) + 1, dtype=np.bool_)
        inside[self.rows] = True  # for 5,000 rows 20 µs; sorting them takes 250
        every = np.flatnonzero(inside).astype(np.int32)
        every.flags.writeable = False
        return every

    def totals(self, values: Int64) -> Int64:
        """Add up a value per node over each placement.  Shapes: values [N] → [D], or [N, R] → [D, R]."""
        if not self.count:
            return np.zeros((0, *values.shape[1:]), dtype=np.int64)
        sums: Int64 = np.add.reduceat(values[self.rows], self.bounds[:-1], axis=0)
        return sums

    def float_totals(self, values: Int64) -> Float64:
        """The same in floating point, where a sum may leave int64.  Shapes: values [N, R] → [D, R]."""
        if not self.count:
            return np.zeros((0, *values.shape[1:]), dtype=np.float64)
        return np.add.reduceat(values[self.rows].astype(np.float64), self.bounds[:-1], axis=0)

    def keep(self, kept: Bool) -> "Placements":
        """Only these placements.  Shapes: kept [D]."""
        sizes = np.diff(self.bounds)
        return Placements(
            tuple(name for name, keeps in zip(self.names, kept.tolist(), strict=True) if keeps),
            self.rows[np.repeat(kept, sizes)],
            _bounds(sizes[kept]),
        )


def one_placement(rows: Int32, name: str = "") -> Placements:
    """All these rows as the only placement; none if there are no rows."""
    if not rows.size:
        return Placements((), rows, np.zeros(1, dtype=np.int64))
    return Placements((name,), rows, np.array([0, rows.size], dtype=np.int64))


def partition(rows: Int32, ids: Int32, names: tuple[str, ...]) -> Placements:
    """The rows by the id each has, in order of the id; rows with a negative id are in no placement.

    Shapes   rows [K] ascending; ids [K], indices into `names`.
    """
    inside = ids >= 0
    order = np.argsort(ids[inside], kind="stable")
    sorted_ids = ids[inside][order]
    found, sizes = np.unique(sorted_ids, return_counts=True)
    return Placements(tuple(names[index] for index in found.tolist()), rows[inside][order], _bounds(sizes))


def intersect(left: Placements, right: Placements) -> Placements:
    """Every placement of one cut with every one of the other; empty ones are left out.

    Names are joined by a slash; a name that is empty adds nothing.
    """
    by_row = np.argsort(right.rows, kind="stable")
    right_rows, right_index = right.rows[by_row], _index_of(right)[by_row]
    first = np.searchsorted(right_rows, left.rows, side="left")
    past = np.searchsorted(right_rows, left.rows, side="right")
    times = past - first
    rows = np.repeat(left.rows, times)
    lefts = np.repeat(_index_of(left), times)
    begun = np.repeat(first - (np.cumsum(times) - times), times)
    rights = right_index[np.arange(rows.size) + begun]
    order = np.lexsort((rows, rights, lefts))
    pairs = np.stack((lefts[order], rights[order]), axis=1)
    found, sizes = np.unique(pairs, axis=0, return_counts=True)
    names = tuple("/".join(filter(None, (left.names[i], right.names[j]))) for i, j in found.tolist())
    return Placements(names, rows[order], _bounds(sizes))


def _index_of(placements: Placements) -> Int64:
    """[M] which placement each of `rows` belongs to."""
    return np.repeat(np.arange(placements.count), np.diff(placements.bounds))


def _bounds(sizes: Int64) -> Int64:
    return np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(sizes)))
