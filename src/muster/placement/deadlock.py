"""Which groups can never start because each holds what another needs.

A pure function over amounts: no plugin, no clock.  In come what is free, what each group holds and what each
still wants; next: `cli/findings.py`, which puts names to the rows.  Axes: G groups, N nodes, R resources,
W members a group still wants.
"""

from collections.abc import Sequence

import numpy as np

from muster.base.arrays import Bool, Int64


def find_stuck(free: Int64, held: Int64, wanted: Sequence[Int64]) -> Bool:
    """Find the groups that could not get all they want even if every other group that can run ends.

    Lets one group after another have its wanted members, run to its end and give back what it holds; who is
    left over is stuck.  Those among them that hold something are a deadlock; the others starve behind it.
    Members are put on the first node with room, largest first: exact for members of one shape, and for
    unlike ones on the safe side of nothing (a packing that exists may be missed).

    Shapes   free [N, R]; held [G, N, R]; wanted, for each group [W, R].
    Units    base units of the resource axis.
    Returns  [G], True where the group is stuck.  The arguments are not written.
    Source   the detection after Coffman, Elphick and Shoshani 1971, with nodes.
    """
    left = np.maximum(free, 0)
    stuck = np.ones(len(wanted), dtype=np.bool_)
    progress = True
    while progress:
        progress = False
        for group in np.flatnonzero(stuck).tolist():
            if _all_fit(left, wanted[group]):
                left = left + held[group]
                stuck[group] = False
                progress = True
    return stuck


def _all_fit(left: Int64, wanted: Int64) -> bool:
    """Tell whether all members find room at once; `left` [N, R] is not written."""
    room = left.copy()
    for request in sorted(wanted.tolist(), reverse=True):
        fits = np.flatnonzero((room >= request).all(axis=1))
        if not fits.size:
            return False
        room[fits[0]] -= request
    return True
