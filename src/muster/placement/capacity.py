"""How many identical members fit, per node and per topology domain.

Pure functions over snapshot columns: no plugin, no clock, no logging.
Axes: N nodes (or the K rows asked for), R resources, D domains.
"""

import numpy as np

from muster.base.arrays import Bool, Int64

UNLIMITED = 2**31 - 1  # copies on one node; sums over any number of nodes stay far inside int64


def members_per_node(free: Int64, request: Int64, feasible: Bool) -> Int64:
    """Count how many copies of `request` fit on each node.

    Shapes   free [N, R]; request [R]; feasible [N]; returns [N], at most UNLIMITED.
    Units    base units of the resource axis; int64, never floats.
    Raises   ValueError if `request` asks for nothing: then nothing limits it.
    """
    asked = np.flatnonzero(request > 0)
    if not asked.size:
        raise ValueError("request asks for no resource; include the 'pods' column")
    room = np.maximum(free[:, asked], 0)  # an overcommitted node has no room, not a debt
    fits: Int64 = (room // request[asked]).min(axis=1)
    return np.where(feasible, np.minimum(fits, UNLIMITED), 0)
