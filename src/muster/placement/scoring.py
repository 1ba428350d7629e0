"""Which feasible row is best.

In come a mask and scores, out goes a row; ties go to the lowest row, so equal input gives equal output.
Axis: K rows asked for.
"""

import numpy as np

from muster.base.arrays import Bool, Float64, Int64


def find_best(feasible: Bool, score: Float64) -> int | None:
    """The index of the feasible row with the highest score, lowest on a tie; None if none is feasible.

    Shapes   feasible, score [K].
    """
    if not feasible.any():
        return None
    return int(np.argmax(np.where(feasible, score, -np.inf)))


def best_first(score: Float64) -> Int64:
    """Indices in order of score, highest first, lowest index first on a tie.  Shapes: [K] → [K]."""
    order: Int64 = np.argsort(-score, kind="stable")
    return order
