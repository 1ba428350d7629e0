"""Members along the topology: few domains, and neighbours by rank near each other.

`packing_ranks` says in which order the domains of preferred levels are filled; `lay_in_order` which of like
members goes to which of the rows chosen.  In come rows and label ids; next: `scheduling/tree.py`.
Axes: K rows asked for.
"""

from collections.abc import Sequence

import numpy as np

from muster.base.arrays import Int32, Int64

NOWHERE = -1  # the id of a row without the label


def packing_ranks(fits: Int64, levels: Sequence[Int32], count: int) -> Int64:
    """Order rows so that `count` like members, filling them in that order, lie in few domains of every level.

    Of each level, widest first: the tightest domain that holds all that is left, else the one that holds
    most; equals by id.  Rows without the label come last.

    Shapes   fits [K] members a row takes; levels [K] each, ids or negative; returns [K], 0 is filled first,
             equal for rows of one domain.
    """
    order = _order(np.arange(len(fits)), fits, levels, count)
    ranks = np.zeros(len(fits), dtype=np.int64)
    for rank, rows in enumerate(order):
        ranks[rows] = rank
    return ranks


def _order(rows: Int64, fits: Int64, levels: Sequence[Int32], count: int) -> list[Int64]:
    """Parts of these rows in the order of filling."""
    if not levels:
        return [rows]
    ids = levels[0][rows]
    left = {int(each): rows[ids == each] for each in np.unique(ids)}
    parts: list[Int64] = []
    while left:
        domain = _next_domain({each: int(fits[found].sum()) for each, found in left.items()}, count)
        found = left.pop(domain)
        taken = min(count, int(fits[found].sum()))
        parts += _order(found, fits, levels[1:], taken)
        count -= taken
    return parts


def _next_domain(holds: dict[int, int], count: int) -> int:
    """The domain to fill next: the tightest that holds all that is left, else the largest."""
    named = {domain: held for domain, held in holds.items() if domain >= 0} or holds
    enough = [(held, domain) for domain, held in named.items() if held >= count]
    if enough and count > 0:
        return min(enough)[1]
    return min((-held, domain) for domain, held in named.items())[1]


def lay_in_order(rows: Int32, levels: Sequence[Int32]) -> Int64:
    """Indices of `rows` along the topology: by the ids of each level, widest first, then by row.

    Shapes   rows [P]; levels [N] ids of all rows; returns [P].
    """
    keys = [rows, *(level[rows] for level in reversed(levels))]
    order: Int64 = np.lexsort(keys)
    return order
