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

    def score(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> Float64:
        request, pods = snapshot.request_of(pod), snapshot.axis.column_of(PODS)
        columns = [column for column in np.flatnonzero(request).tolist() if column != pods]
        if len(columns) < 2:
            return np.full(len(rows), 100.0)
        allocatable = pick(snapshot.allocatable, rows)[:, columns].astype(np.float64)
        taken = pick(snapshot.requested, rows)[:, columns].astype(np.float64) + request[columns]
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(allocatable > 0, taken / allocatable, 1.0).clip(0.0, 1.0)
        score: Float64 = 100.0 * (1.0 - share.std(axis=1))
        return score
