"""NodeResourcesBalancedAllocation: prefer nodes used evenly, so that no resource is stranded."""

from typing import ClassVar

import numpy as np

from muster.api.core import Pod
from muster.base.arrays import Float64, Int32, pick
from muster.cluster.axes import PODS
from muster.cluster.snapshot import Snapshot


class NodeResourcesBalancedAllocation:
    """Score by how far apart the used shares of the resources asked for would be; 100 is even.

    A pod that asks for fewer than two resources gets 100 everywhere: nothing can get out of balance.
    """

    name: ClassVar[str] = "NodeResourcesBalancedAllocation"
    reads_metadata: ClassVar[bool] = False
    judges_row_alone: ClassVar[bool] = True

    def is_silent(self, pod: Pod, snapshot: Snapshot) -> bool:
        return len(_columns(pod, snapshot)) < 2

    def score(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> Float64:
        request, columns = snapshot.request_of(pod), _columns(pod, snapshot)
        if len(columns) < 2:
            return np.full(len(rows), 100.0)
        # Column by column, and no `std`: half the time on 5,000 rows, a fifth on the few that changed.
        total = np.zeros(len(rows), dtype=np.float64)
        squares = np.zeros(len(rows), dtype=np.float64)
        shares = []
        for column in columns:
            allocatable = pick(snapshot.allocatable[:, column], rows)
            taken = pick(snapshot.requested[:, column], rows) + float(request[column])
            share = np.maximum(taken / np.maximum(allocatable, 1), 0.0)
            np.minimum(share, 1.0, out=share)
            share[allocatable <= 0] = 1.0
            shares.append(share)
            total += share
        mean = total / len(columns)
        for share in shares:
            squares += (share - mean) ** 2
        score: Float64 = 100.0 * (1.0 - np.sqrt(squares / len(columns)))
        return score


def _columns(pod: Pod, snapshot: Snapshot) -> list[int]:
    """Columns of what the pod asks for, "pods" left out."""
    pods = snapshot.axis.column_of(PODS)
    amounts = enumerate(snapshot.request_of(pod).tolist())
    return [column for column, amount in amounts if amount and column != pods]
