"""Members → rows inside one placement.

In come members in their order, a fork of the snapshot, the rows of the placement and a judge (the plugins of
the profile, `framework/runner.py`); out go rows, and the fork has the members placed.  Two ways: members of
one shape by counting capacity, and one by one with masks and scores that are asked again only for rows that
an assignment could have changed.
Axes: K rows of the placement, P members.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import Protocol

import numpy as np

from muster.api.core import Pod
from muster.base.arrays import Float64, Int32, Int64
from muster.cluster.snapshot import Snapshot
from muster.placement.memory import Judgment
from muster.placement.scoring import best_first, find_best
from muster.placement.shapes import ShapeKey

UNPLACED = -1


class Judge(Protocol):
    """The node-wise plugins of a profile as one; the meanings are those of `framework/points.py`."""

    def recall(self, pod: Pod, shape: ShapeKey, snapshot: Snapshot, rows: Int32) -> Judgment:
        """What `judge` says of these rows, by memory where nothing has changed; not to be written."""
        ...

    def judge(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> Judgment:
        """Mask, score and copies of these rows.  Shapes: [K]."""
        ...

    def rows_changed(self, placed: Pod, row: int, pod: Pod, snapshot: Snapshot) -> Int32 | None: ...

    def lay(
        self, pod: Pod, snapshot: Snapshot, rows: Int32, fits: Int64, score: Float64, count: int
    ) -> Int64:
        """Spread like members over the rows they fit on; `fill` is the usual way."""
        ...


class _Shape:
    """What is known of one shape, by row of the placement, and the assignments not yet looked at.

    `is_own`: the judgment is nobody else's, and may be written.
    """

    __slots__ = ("is_own", "judgment", "news")

    def __init__(self, judgment: Judgment) -> None:
        self.judgment = judgment
        self.is_own = False
        self.news: list[tuple[Pod, int]] = []


class Assigner:
    """Places members on a fork, one placement (`rows`, ascending) at a time; throw both away together."""

    def __init__(self, fork: Snapshot, judge: Judge, rows: Int32) -> None:
        self.fork = fork
        self._judge = judge
        self._rows = rows
        self._shapes: dict[ShapeKey, _Shape] = {}

    def assign_one(self, pod: Pod, shape: ShapeKey, *, prefer: int | None = None) -> int | None:
        """Place a member on the best row it fits on, or on `prefer` if it fits there; None if on none."""
        known = self._known(pod, shape)
        index = self._find_index(prefer) if prefer is not None else None
        if index is None or not known.feasible[index]:
            index = find_best(known.feasible, known.score)
        if index is None:
            return None
        row = int(self._rows[index])
        self.fork.place(pod, row)
        self._tell(pod, [row])
        return row

    def assign_alike(self, pods: Sequence[Pod], shape: ShapeKey) -> Int32:
        """Place members of one shape by counting: the best row is filled first, then the next best.

        Only where every filter that changes with assignments counts copies.
        Returns  [P] a row each; UNPLACED at the end for those that found no room.
        """
        known = self._known(pods[0], shape)
        fits, score = known.fits, known.score
        chosen = self._rows[self._judge.lay(pods[0], self.fork, self._rows, fits, score, len(pods))]
        placed = tuple(pods[: len(chosen)])
        self.fork.place_many(placed, chosen)
        self._tell(pods[0], list(dict.fromkeys(chosen.tolist())))
        rows = np.full(len(pods), UNPLACED, dtype=np.int32)
        rows[: len(chosen)] = chosen
        return rows

    def _known(self, pod: Pod, shape: ShapeKey) -> Judgment:
        known = self._shapes.get(shape)
        if known is None:
            known = _Shape(self._judge.recall(pod, shape, self.fork, self._rows))
            self._shapes[shape] = known
        elif known.news:
            self._catch_up(known, pod)
        return known.judgment

    def _catch_up(self, known: _Shape, pod: Pod) -> None:
        """Judge again what the assignments since the last time could have changed, in one go."""
        news, known.news = known.news, []
        changed: set[int] = set()
        for placed, row in news:
            rows = self._judge.rows_changed(placed, row, pod, self.fork)
            if rows is None:
                known.judgment, known.is_own = self._judge.judge(pod, self.fork, self._rows), True
                return
            changed.update(rows.tolist(), (row,))
        indices = np.flatnonzero(np.isin(self._rows, sorted(changed)))
        if indices.size and not known.is_own:
            known.judgment, known.is_own = known.judgment.copy(), True
        if indices.size:
            known.judgment.put(indices, self._judge.judge(pod, self.fork, self._rows[indices]))

    def _find_index(self, row: int) -> int | None:
        """Where this row stands among the rows of the placement."""
        index = int(np.searchsorted(self._rows, row))
        return index if index < len(self._rows) and self._rows[index] == row else None

    def _tell(self, placed: Pod, rows: Sequence[int]) -> None:
        for known in self._shapes.values():
            known.news += [(placed, row) for row in rows]


def assign_members(
    pods: Sequence[Pod], shapes: Sequence[ShapeKey], assigner: Assigner, *, count_alike: bool
) -> Int32:
    """Place members in their order; one that does not fit does not stop the others.

    `count_alike`: neighbours of one shape may be placed by counting (`Assigner.assign_alike`).
    Returns  [P] the row of each member, UNPLACED where there is none.
    """
    rows: list[Int32] = []
    for shape, run in groupby(range(len(pods)), key=lambda i: shapes[i]):
        alike = [pods[i] for i in run]
        if count_alike and len(alike) > 1:
            rows.append(assigner.assign_alike(alike, shape))
        else:
            found = [_or_unplaced(assigner.assign_one(pod, shape)) for pod in alike]
            rows.append(np.array(found, dtype=np.int32))
    return np.concatenate(rows) if rows else np.empty(0, dtype=np.int32)


def fill(fits: Int64, score: Float64, count: int) -> Int64:
    """Spread `count` like members over the rows, best row full before the next is begun.

    Shapes   fits, score [K]; returns [≤ count] an index into them per member; fewer if there is no more room.
    """
    if not fits.size:
        return np.empty(0, dtype=np.int64)
    # Most gangs are small: no sorting (0.15 ms for 5,000 rows), and no picking of the rows that take somebody
    # either (20 µs) where the best of all is among them.
    best = int(np.argmax(score))
    if fits[best] >= count:
        return np.full(count, best, dtype=np.int64)
    roomy = np.flatnonzero(fits)
    if not roomy.size:
        return roomy
    scores = score if roomy.size == score.size else score[roomy]
    if (
        roomy.size > count
    ):  # no more rows than members can be needed: the best so many, and who equals the last
        least = np.partition(scores, -count)[-count]
        roomy = roomy[scores >= least]
        scores = score[roomy]
    order = roomy[best_first(scores)]
    take = np.minimum(fits[order], count)
    take = np.minimum(take, np.maximum(count - (np.cumsum(take) - take), 0))
    return np.repeat(order, take)


def _or_unplaced(row: int | None) -> int:
    return UNPLACED if row is None else row
