"""What would make members fit that do not fit now: the end of running groups, or more nodes.

Pure arithmetic over snapshot columns: in come what members ask for and who holds what, out go the fewest
endings and the fewest nodes.  Next: `explain.py`, which says it in words.
Axes: N nodes, R resources, H nodes on which one group holds something.
"""

from collections.abc import Sequence
from itertools import combinations
from math import comb
from typing import NamedTuple

import numpy as np

from muster.api.quantity import INT64_MAX
from muster.base.arrays import Bool, Int32, Int64
from muster.cluster.axes import add_saturating
from muster.placement.capacity import UNLIMITED, members_per_node

_CHECKS_MAX = 2_000
_CELLS_MAX = 20_000_000  # matrix cells looked at in one search: some tens of milliseconds
_MODELS_MAX = 16


class Ask(NamedTuple):
    """Members of one shape that want a place.

    `usable` [N]: rows that pass every rule but room.  `per_node_max`: 1 where host ports keep two apart, 0
    where a resource is asked for that no node offers.
    `can_grow`: whether a further node could take one (not if they name their node).
    Shapes   request [R], with 1 of "pods"; usable [N].
    Units    base units of the resource axis.
    """

    request: Int64
    member_count: int
    usable: Bool
    per_node_max: int = UNLIMITED
    can_grow: bool = True


class RunningGroup(NamedTuple):
    """What ends when this group (or lone pod) ends.

    Shapes   rows [H], ascending, each once; requests [H, R] what it takes on each of them.
    """

    name: str
    rows: Int32
    requests: Int64


def count_placeable(free: Int64, asks: Sequence[Ask]) -> int:
    """How many of the members find room at once, shape after shape, lowest rows first.

    Exact for one shape; for several on the safe side (a packing that exists may be missed).
    Shapes   free [N, R], not written.
    """
    left = free
    placed = 0
    for position, ask in enumerate(asks):
        fits = _fits(left, ask, ask.usable)
        before = np.cumsum(fits) - fits
        take = np.clip(ask.member_count - before, 0, fits)
        placed += int(take.sum())
        if position < len(asks) - 1:
            left = left - take[:, np.newaxis] * ask.request
    return placed


def find_fewest_endings(
    free: Int64, asks: Sequence[Ask], needed: int, running: Sequence[RunningGroup]
) -> tuple[str, ...] | None:
    """The fewest running groups after whose end `needed` members fit; None if not even all of them do.

    Among equally few the first by name.  Exact while the number of sets to look at is small; beyond that
    grown greedily by who frees most and then thinned, so that no named group could be left out.
    Shapes   free [N, R].
    """
    search = _Search(free, asks, sorted(running, key=lambda g: g.name))
    helpful = search.groups
    everyone = tuple(range(len(helpful)))
    for size in range(len(helpful) + 1):
        if size == 2 and len(asks) == 1 and search.placeable(everyone) < needed:
            return None  # like members: who ends more never fits fewer
        if search.checks + comb(len(helpful), size) > search.checks_max:
            chosen = _grow_and_thin(search, needed)
            return None if chosen is None else tuple(helpful[index].name for index in chosen)
        for some in combinations(everyone, size):
            if search.placeable(some) >= needed:
                return tuple(helpful[index].name for index in some)
    return None


class _Search:
    """Counts what fits after some of the groups have ended, and how often that had to be computed.

    `groups`: those whose end frees something that some ask wants on a node it may use.
    """

    def __init__(self, free: Int64, asks: Sequence[Ask], running: Sequence[RunningGroup]) -> None:
        self.checks = 0
        self.checks_max = min(_CHECKS_MAX, _CELLS_MAX // max(free.size * len(asks), 1))
        self._free = free
        self._asks = asks
        self._known: dict[tuple[int, ...], int] = {}
        self.groups = _helpful(running, asks)
        if len(asks) == 1:
            self._fits = _fits(free, asks[0], asks[0].usable)
            self._total = int(self._fits.sum())
            self._learn_single_endings(asks[0])

    def _learn_single_endings(self, ask: Ask) -> None:
        """What each group's end alone would do, for all groups in one go."""
        if not self.groups:
            return
        rows, requests, owner = _flatten(self.groups)
        gained = _fits(_plus(self._free[rows], requests), ask, ask.usable[rows]) - self._fits[rows]
        totals = np.full(len(self.groups), self._total, dtype=np.int64)
        np.add.at(totals, owner, gained)
        for index, total in enumerate(np.minimum(totals, ask.member_count).tolist()):
            self._known[(index,)] = total

    def placeable(self, chosen: Sequence[int]) -> int:
        """How many members fit once these groups (by index, ascending) have ended."""
        key = tuple(chosen)
        if key not in self._known:
            self.checks += 1
            self._known[key] = self._count(key)
        return self._known[key]

    def _count(self, chosen: tuple[int, ...]) -> int:
        if not chosen:
            return count_placeable(self._free, self._asks)
        rows, left = self._room_after(chosen)
        if len(self._asks) == 1:  # like members: only rows where something ends can hold more
            ask = self._asks[0]
            fits = _fits(left, ask, ask.usable[rows])
            return min(self._total - int(self._fits[rows].sum()) + int(fits.sum()), ask.member_count)
        free = self._free.copy()
        free[rows] = left
        return count_placeable(free, self._asks)

    def _room_after(self, chosen: tuple[int, ...]) -> tuple[Int32, Int64]:
        """Rows where something ends [T], ascending, and what is free there then [T, R]."""
        all_rows, requests, _ = _flatten([self.groups[index] for index in chosen])
        rows, where = np.unique(all_rows, return_inverse=True)
        freed = np.zeros((len(rows), requests.shape[1]), dtype=np.int64)
        np.add.at(freed, where, np.minimum(requests, INT64_MAX // len(chosen)))  # no sum can wrap
        return rows, _plus(self._free[rows], freed)


def _grow_and_thin(search: _Search, needed: int) -> list[int] | None:
    """Add whoever frees most until it is enough, then leave out who is not needed, last name first.

    None if it is never enough.
    """
    chosen: list[int] = []
    gains = [search.placeable([index]) for index in range(len(search.groups))]
    for index in sorted(range(len(gains)), key=lambda i: (-gains[i], i)):
        chosen = sorted([*chosen, index])
        if search.placeable(chosen) >= needed:
            break
    else:
        return None
    for index in sorted(chosen, reverse=True):
        without = [other for other in chosen if other != index]
        if search.placeable(without) >= needed:
            chosen = without
    return chosen


def _helpful(running: Sequence[RunningGroup], asks: Sequence[Ask]) -> list[RunningGroup]:
    """The groups whose end frees something that some ask wants on a node it may use."""
    holding = [group for group in running if group.rows.size]
    if not holding:
        return []
    rows, requests, owner = _flatten(holding)
    wanted = np.zeros(len(rows), dtype=np.bool_)
    for ask in asks:
        wanted |= ask.usable[rows] & (requests[:, ask.request > 0] > 0).any(axis=1)
    return [holding[index] for index in np.unique(owner[wanted]).tolist()]


def _flatten(groups: Sequence[RunningGroup]) -> tuple[Int32, Int64, Int64]:
    """All that the groups hold as one list: rows [T], requests [T, R], and whose it is, by index [T]."""
    owner = np.repeat(np.arange(len(groups)), [group.rows.size for group in groups])
    rows = np.concatenate([group.rows for group in groups])
    return rows, np.concatenate([group.requests for group in groups]), owner


def _fits(free: Int64, ask: Ask, usable: Bool) -> Int64:
    return np.minimum(members_per_node(free, ask.request, usable), ask.per_node_max)


def _plus(free: Int64, held: Int64) -> Int64:
    """Give back; `free` may be negative, so only sums that start positive can leave the range of int64."""
    return np.where(free > 0, add_saturating(np.maximum(free, 0), held), free + held)


def find_fewest_nodes(
    free: Int64, allocatable: Int64, live: Bool, asks: Sequence[Ask], needed: int
) -> tuple[int, int] | None:
    """How many more nodes like an existing one would be enough, and the row of that one.

    The kind that needs fewest wins, the lowest row on a tie; None if no number of any kind is enough.
    Nodes are of one kind if they offer the same of what is asked for, and the same members may use them.
    Shapes   free, allocatable [N, R]; live [N].
    """
    best: tuple[int, int] | None = None
    for row in _models(allocatable, live, asks):
        most = best[0] - 1 if best is not None else needed  # each new node takes at least one member
        count = _count_nodes(free, allocatable[row], row, asks, needed, most)
        if count is not None:
            best = (count, row)
    return best


def _models(allocatable: Int64, live: Bool, asks: Sequence[Ask]) -> list[int]:
    """The lowest row of each kind of node on which a member of some ask fits when it is empty."""
    growing = [ask for ask in asks if ask.can_grow and ask.per_node_max > 0]
    fits = np.zeros(len(live), dtype=np.bool_)
    for ask in growing:
        fits |= ask.usable & (allocatable >= ask.request).all(axis=1)
    rows = np.flatnonzero(fits & live)
    if not rows.size:
        return []
    kind = np.zeros(len(rows), dtype=np.int64)
    asked = np.any([ask.request > 0 for ask in growing], axis=0)
    for facts in (*allocatable[rows][:, asked].T, *(ask.usable[rows] for ask in growing)):
        _, value = np.unique(facts, return_inverse=True)
        _, kind = np.unique(kind * len(rows) + value, return_inverse=True)
    _, first = np.unique(kind, return_index=True)
    models: list[int] = np.sort(rows[first])[:_MODELS_MAX].tolist()
    return models


def _count_nodes(
    free: Int64, like: Int64, row: int, asks: Sequence[Ask], needed: int, most: int
) -> int | None:
    """The fewest nodes like this row, 1..most, that are enough; None if even `most` are not."""

    def is_enough(extra: int) -> bool:
        room = np.concatenate([free, np.broadcast_to(like, (extra, len(like)))])
        grown = [
            ask._replace(usable=np.append(ask.usable, np.full(extra, ask.usable[row] and ask.can_grow)))
            for ask in asks
        ]
        return count_placeable(room, grown) >= needed

    if most < 1 or not is_enough(most):
        return None
    low, high = 1, most
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle + 1, high)
    return low
