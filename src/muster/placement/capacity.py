"""How many identical members fit, per node and per topology domain.

Pure functions over snapshot columns: no plugin, no clock, no logging.
Axes: N nodes (or the K rows asked for), R resources, D domains.
"""

from collections.abc import Sequence

import numpy as np

from muster.base.arrays import Bool, Int64

UNLIMITED = 2**31 - 1  # copies on one node; sums over any number of nodes stay far inside int64


def members_per_node(free: Int64, request: Int64, feasible: Bool) -> Int64:
    """Count how many copies of `request` fit on each node.

    Shapes   free [N, R]; request [R]; feasible [N]; returns [N], at most UNLIMITED.
    Units    base units of the resource axis; int64, never floats.
    Raises   ValueError if `request` asks for nothing: then nothing limits it.
    """
    asked = np.flatnonzero(request > 0).tolist()
    if not asked:
        raise ValueError("request asks for no resource; include the 'pods' column")
    fits = copies_by_column([free[:, column] for column in asked], request[asked].tolist())
    fits[~feasible] = 0
    return fits


def copies_by_column(free: Sequence[Int64], asked: Sequence[int]) -> Int64:
    """Count copies by the columns asked for alone: a quarter of the time that rows of all columns take.

    Shapes   free [len(asked)] of [N]; asked, all more than 0; returns [N], at most UNLIMITED.
    """
    counts = [room if amount == 1 else room // amount for room, amount in zip(free, asked, strict=True)]
    fits = np.minimum(counts[0], UNLIMITED)
    for count in counts[1:]:
        np.minimum(fits, count, out=fits)
    return np.maximum(fits, 0, out=fits)  # an overcommitted node has no room, not a debt
