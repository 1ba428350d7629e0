"""Who may stay beside seats that are taken (KEP-5710, reprieve): the most important first, each unit whole.

In come units, seats and a fork without either; out go those that cannot stay.  Where units matter to the
seats by the room of their own rows alone, those of different rows are let back at once and the seats counted;
else one by one, each seat that may mind asked again.  Next: `eviction.py`.
Axes: V pods of units, N node rows, K rows asked for.
"""

from collections.abc import Collection, Sequence

import numpy as np

from muster.api.core import Pod
from muster.base.arrays import Bool, Int32, Int64
from muster.cluster.budgets import Budget
from muster.cluster.snapshot import Snapshot
from muster.placement.concern import Concern, Reach, rows_reached
from muster.placement.evictable import UnitColumns
from muster.placement.shapes import ShapeKey, shape_key
from muster.placement.victims import Judge, Seats, Unit, split_by_budgets


class Reprieve:
    """Finds who cannot stay, for one search: what is learned about units and shapes is kept."""

    def __init__(self, columns: UnitColumns, budgets: Sequence[Budget], judge: Judge) -> None:
        self._columns = columns
        self._budgets = budgets
        self._judge = judge
        self._reach: Reach = {}
        self._by_counting: dict[ShapeKey, bool] = {}
        self._shape_of: dict[tuple[int, frozenset[str]], tuple[Pod, ShapeKey]] = {}  # by identity, held

    def find_needed(self, units: Sequence[Unit], seats: Seats, ground: Snapshot) -> tuple[Unit, ...]:
        """Who of these cannot stay when the preemptor takes these seats.

        `units`: the most important first; `ground`: a fork without them and without the preemptor.  Protected
        ones are let back first, then the others; those that are leaving anyway stay away.
        """
        leaving = tuple(unit for unit in units if id(unit) in self._columns.leaving)
        staying = [unit for unit in units if id(unit) not in self._columns.leaving]
        protected, unprotected = split_by_budgets(staying, self._budgets)
        order = (*protected, *unprotected)
        if self.is_by_counting(seats, ground):
            return leaving + self._needed_by_counting(order, seats, ground.fork())
        beside = _Beside(seats, ground.fork(), self._judge, self._reach)
        return leaving + tuple(_kept_out(order, beside))

    def is_by_counting(self, seats: Seats, ground: Snapshot) -> bool:
        """Whether no unit matters to any seat but by the room of its own rows."""
        return all(self._counts(shape, pod, ground) for shape, pod in self._shapes(seats, ground).items())

    def _counts(self, shape: ShapeKey, pod: Pod, ground: Snapshot) -> bool:
        if shape not in self._by_counting:
            self._by_counting[shape] = self._judge.counts_only(self._columns.pods, pod, ground)
        return self._by_counting[shape]

    def find_needed_on_each(
        self, pod: Pod, rows: Int32, units: Sequence[Unit], ground: Snapshot
    ) -> dict[int, list[Unit]]:
        """For each of these rows, who could not stay were the pod there; only where all goes by counting.

        `units`, `ground` as for `find_needed`; none of those that are leaving is named.
        """
        columns = self._columns
        staying = [unit for unit in units if id(unit) not in columns.leaving]
        protected, unprotected = split_by_budgets(staying, self._budgets)
        wanted = np.zeros(len(ground.live), dtype=np.bool_)
        wanted[rows] = True
        parts: list[tuple[Unit, list[int]]] = []
        for unit in (*protected, *unprotected):
            by_row: dict[int, list[int]] = {}
            for position in columns.pods_of(unit):
                if wanted[columns.rows[position]]:
                    by_row.setdefault(int(columns.rows[position]), []).append(position)
            parts += [(unit, positions) for positions in by_row.values()]
        seats = [(pod, row) for row in rows.tolist()]
        needed: dict[int, list[Unit]] = {row: [] for row in rows.tolist()}
        for index in self._let_back([positions for _, positions in parts], seats, ground.fork()):
            unit, positions = parts[index]
            needed[int(columns.rows[positions[0]])].append(unit)
        return needed

    def concern(self, pods: Sequence[Pod], ground: Snapshot, rows: Int32 | None) -> Concern:
        """Asks which units can matter to one of these pods.

        `ground`: a fork without the units in question; `rows`: where the pods may be, None: anywhere.
        """
        concern = Concern(self._columns, ground, self._judge, self._reach)
        for shape, pod in self._shapes([(pod, 0) for pod in pods], ground).items():
            concern.add(pod, shape, rows, by_counting=self._counts(shape, pod, ground))
        return concern

    def _needed_by_counting(self, order: Sequence[Unit], seats: Seats, ground: Snapshot) -> tuple[Unit, ...]:
        columns = self._columns
        has_seat = np.zeros(len(ground.live), dtype=np.bool_)
        has_seat[[row for _, row in seats]] = True
        at_seat = has_seat[columns.rows]
        near = np.zeros(len(columns.units), dtype=np.bool_)
        near[columns.owner[at_seat]] = True
        touching = [unit for unit in order if near[columns.index_of[id(unit)]]]
        parts = [[at for at in columns.pods_of(unit) if at_seat[at]] for unit in touching]
        return tuple(touching[index] for index in self._let_back(parts, seats, ground))

    def _let_back(self, parts: Sequence[list[int]], seats: Seats, ground: Snapshot) -> list[int]:
        """Put these sets of pods back on `ground`, in order, where all seats hold; which could not be.

        Those that share no row do not mind each other, and are put back together.
        """
        columns = self._columns
        waves: list[list[int]] = []
        next_wave: dict[int, int] = {}  # by row: the first wave in which nobody is put back there yet
        rows_of = [set(columns.rows[positions].tolist()) for positions in parts]
        for index, rows in enumerate(rows_of):
            wave = max((next_wave.get(row, 0) for row in rows), default=0)
            next_wave.update(dict.fromkeys(rows, wave + 1))
            if wave == len(waves):
                waves.append([])
            waves[wave].append(index)
        count = _Count(seats, self._shapes_of(seats, ground), len(ground.live), self._judge)
        kept_out: list[int] = []
        for members in waves:
            columns.put_back(ground, [at for index in members for at in parts[index]])
            rows_back = np.array(sorted({row for index in members for row in rows_of[index]}), dtype=np.int32)
            full = set(rows_back[~count.holding(ground, rows_back)].tolist())
            failed = [index for index in members if rows_of[index] & full]
            columns.remove(ground, [at for index in failed for at in parts[index]])
            kept_out += failed
        return sorted(kept_out)

    def _shapes_of(self, seats: Seats, ground: Snapshot) -> list[ShapeKey]:
        labels = self._judge.labels_read(ground.label_keys_read)
        for pod, _ in seats:
            if (id(pod), labels) not in self._shape_of:
                shape = shape_key(pod, metadata=self._judge.reads_metadata, labels=labels)
                self._shape_of[id(pod), labels] = (pod, shape)
        return [self._shape_of[id(pod), labels][1] for pod, _ in seats]

    def _shapes(self, seats: Seats, ground: Snapshot) -> dict[ShapeKey, Pod]:
        """A pod of each shape."""
        return {shape: pod for shape, (pod, _) in zip(self._shapes_of(seats, ground), seats, strict=True)}


class _Count:
    """Whether seats hold, by counting the copies of each shape that their rows take."""

    def __init__(self, seats: Seats, shapes: Sequence[ShapeKey], row_count: int, judge: Judge) -> None:
        self._judge = judge
        found: dict[ShapeKey, tuple[Pod, Int64]] = {}
        for (pod, row), shape in zip(seats, shapes, strict=True):
            _, seats_at = found.setdefault(shape, (pod, np.zeros(row_count, dtype=np.int64)))
            seats_at[row] += 1
        self._wanted = list(found.values())

    def holding(self, ground: Snapshot, rows: Int32) -> Bool:
        """[K] rows with room for all their seats on `ground`, which has none of them.  Shapes: rows [K]."""
        holds = np.ones(len(rows), dtype=np.bool_)
        fork = ground if len(self._wanted) == 1 else ground.fork()
        for turn, (pod, seats_at) in enumerate(self._wanted, start=1):
            here = np.flatnonzero(seats_at[rows])
            if not here.size:
                continue
            at, wanted = rows[here], seats_at[rows[here]]
            fits = self._judge.capacity(pod, fork, at)
            if fits is not None:
                holds[here] &= fits >= wanted
            if turn < len(self._wanted):
                fork.place_many((pod,) * int(wanted.sum()), np.repeat(at, wanted))
        return holds


# ── one by one: where rules look beyond a row ────────────────────────────────────────────────────


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
            pod = self._seats[next(iter(by_row.values()))[0]][0]
            rows = rows_reached(self._reach, self._judge, unit, shape, pod, self._empty)
            for row in by_row if rows is None else by_row.keys() & rows:
                touched.update(by_row[row])
        return touched

    def _holds(self, touched: set[int]) -> bool:
        """Whether these seats still hold: beside all the others, or else in the order all were taken in.

        Who was the first of its kind may be so only before those who sat down after it.
        """
        later = range(min(touched), len(self._seats))
        return self._hold_beside(touched, touched) or (
            len(later) > len(touched) and self._hold_beside(touched, later)
        )

    def _hold_beside(self, asked: Collection[int], moved: Collection[int]) -> bool:
        """Whether those asked hold when those moved are seated again one after the other."""
        fork = self._ground.fork()
        for index in moved:
            fork.remove(*self._seats[index])
        for index in sorted(moved):
            pod, row = self._seats[index]
            is_fit = index not in asked or self._judge.filter(pod, fork, _only(row)).feasible[0]
            if not is_fit:
                return False
            fork.place(pod, row)
        return True


def _kept_out(order: Sequence[Unit], beside: _Beside) -> list[Unit]:
    """Who cannot come back, asked again until all others have: a seat may need the company of these first."""
    kept_out = [unit for unit in order if not beside.let_back(unit)]
    while kept_out:
        again = [unit for unit in kept_out if not beside.let_back(unit)]
        if len(again) == len(kept_out):
            break
        kept_out = again
    return kept_out


def _only(row: int) -> Int32:
    return np.array([row], dtype=np.int32)
