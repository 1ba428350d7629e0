"""Victim units as columns: what each of their pods takes and where, so that many come and go at once.

In come units and a snapshot; out go arrays, and forks without some of the units.  Next: `reprieve.py` and
`steering.py`, which work on them.
Axes: U units, V pods of the units that are on known nodes, R resources.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from muster.api.core import Pod
from muster.base.arrays import Int32, Int64
from muster.cluster.snapshot import Snapshot
from muster.placement.victims import Unit


class UnitColumns:
    """Units, the most important first, and their pods in the same order.

    `leaving` holds the ids of units of which all pods are being deleted already; `priority` is each unit's,
    `staying` how many of its pods nobody has asked to delete yet.
    Shapes   priority, staying [U]; rows, owner [V], owner as an index into `units`; requests [V, R].
    """

    def __init__(self, units: Sequence[Unit], snapshot: Snapshot) -> None:
        self.units = tuple(units)
        self.index_of = {id(unit): index for index, unit in enumerate(self.units)}
        self.pods: list[Pod] = []
        rows: list[int] = []
        owner: list[int] = []
        staying: list[int] = []
        for index, unit in enumerate(self.units):
            left = 0
            for pod, row in unit.pods:
                left += not pod.is_terminating
                if row >= 0:
                    self.pods.append(pod)
                    rows.append(row)
                    owner.append(index)
            staying.append(left)
        self.leaving = frozenset(id(unit) for unit, left in zip(self.units, staying, strict=True) if not left)
        self.staying: Int64 = np.array(staying, dtype=np.int64)
        self.priority: Int64 = np.array([unit.priority for unit in self.units], dtype=np.int64)
        self.rows: Int32 = np.array(rows, dtype=np.int32)
        self.owner: Int64 = np.array(owner, dtype=np.int64)
        self.requests = _requests_of(self.pods, snapshot)
        self._starts = np.searchsorted(self.owner, np.arange(len(self.units) + 1)).tolist()

    def pods_of(self, unit: Unit) -> range:
        """Where the pods of a unit stand."""
        index = self.index_of[id(unit)]
        return range(self._starts[index], self._starts[index + 1])

    def positions(self, units: Iterable[Unit]) -> list[int]:
        """Where the pods of several units stand."""
        return [position for unit in units for position in self.pods_of(unit)]

    def remove(self, fork: Snapshot, positions: Sequence[int]) -> None:
        """Take these pods off a fork."""
        if positions and len(positions) == len(self.pods):
            fork.remove_each(self.pods, self.rows, self.requests)
        elif positions:
            pods = [self.pods[position] for position in positions]
            fork.remove_each(pods, self.rows[positions], self.requests[positions])

    def put_back(self, fork: Snapshot, positions: Sequence[int]) -> None:
        """Put these pods back where they were."""
        if positions:
            pods = [self.pods[position] for position in positions]
            fork.place_each(pods, self.rows[positions], self.requests[positions])


def _requests_of(pods: Sequence[Pod], snapshot: Snapshot) -> Int64:
    """[V, R] what each pod takes; equal amounts are turned into a row once."""
    kinds: dict[tuple[tuple[str, int], ...], int] = {}
    kind_of = [kinds.setdefault(tuple(snapshot.amounts_of(pod).items()), len(kinds)) for pod in pods]
    table = [snapshot.axis.row(dict(amounts)) for amounts in kinds]
    return np.array(table, dtype=np.int64).reshape(len(kinds), len(snapshot.axis))[kind_of]
