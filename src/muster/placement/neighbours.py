"""Rules about whole domains of nodes: who keeps away from whom there, who needs whom, who spreads evenly.

A `Packing` carries them beside what single nodes take; they speak of the members that are placed in the end,
whatever the order.  Next: `packing.py`, which checks them, and `program.py`, which states them to the solver.
Axes: S shapes, N nodes, V domains of a rule.
"""

from collections.abc import Iterator

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from muster.base.arrays import Bool, Int64


class Apart(Struct, frozen=True):
    """Shapes that exclude each other in a whole domain (on the diagonal: one member at most).

    Shapes   domain [N], ids of V, −1 where the rule does not apply; conflict [S, S], symmetric.
    """

    domain: Int64
    conflict: Bool


class Near(Struct, frozen=True):
    """Shapes that need somebody in their domain: one who is there already, or a member of another shape.

    Shapes   domain [N], ids of V; needs, helps [S]; is_helped [N]: the domain has somebody already.
    In one domain, and only if `may_begin` (nobody who would do is anywhere), one that both needs and helps
    may be the first.  Shapes that need the same stand in one rule: they do not help each other to begin.
    """

    domain: Int64
    needs: Bool
    helps: Bool
    is_helped: Bool
    may_begin: bool


class Even(Struct, frozen=True):
    """Shapes of which no domain that has one may have `max_skew` more than the emptiest has.

    Shapes   domain [N], ids of V, −1 where nobody counts; carries, counts [S]: who keeps the rule, and who
    counts for it (they do themselves); before [V], who counts there already, on other nodes as well.
    `is_short`: there are fewer domains than there should be, so that the emptiest counts as having none.
    Of members that count without keeping the rule it is left open who comes first: then this is what any
    order needs, and some order may need more.
    """

    domain: Int64
    carries: Bool
    counts: Bool
    before: Int64
    max_skew: int
    is_short: bool


Rule = Apart | Near | Even


def minds_order(rule: Rule) -> bool:
    """Whether members that keep the rule in the end may break it in an order that is badly chosen."""
    return not isinstance(rule, Apart)


def domains_of(rule: Rule) -> Iterator[Int64]:
    """The nodes of each domain of the rule."""
    ids = rule.domain
    return (np.flatnonzero(ids == domain) for domain in np.unique(ids[ids >= 0]))


def allows(rule: Rule, counts: Int64) -> bool:
    """Tell whether members of each shape on each node, counts [S, N], keep the rule."""
    if isinstance(rule, Even):
        return _is_even(rule, counts)
    begun = 0
    for nodes in domains_of(rule):
        here = counts[:, nodes].sum(axis=1)
        if isinstance(rule, Apart):
            together = np.outer(here > 0, here > 0)
            np.fill_diagonal(together, here > 1)
            if (together & rule.conflict).any():
                return False
        elif (here[rule.needs] > 0).any() and not rule.is_helped[nodes[0]]:
            if (here[rule.helps & ~rule.needs] > 0).any():
                continue
            begun += 1
            if not (here[rule.helps & rule.needs] > 0).any():
                return False
    return not begun or (isinstance(rule, Near) and rule.may_begin and begun == 1)


def _is_even(rule: Even, counts: Int64) -> bool:
    carriers = np.zeros(len(rule.before), dtype=np.int64)
    total = rule.before.copy()
    labelled = rule.domain >= 0
    np.add.at(carriers, rule.domain[labelled], counts[rule.carries].sum(axis=0)[labelled])
    np.add.at(total, rule.domain[labelled], counts[rule.counts].sum(axis=0)[labelled])
    fewest = 0 if rule.is_short else int(total.min(initial=total.max(initial=0)))
    above = rule.before + carriers - fewest > rule.max_skew
    return not (above & (carriers > 0)).any()


def at(rule: Rule, nodes: Int64) -> Rule:
    """The rule for these nodes only."""
    if not isinstance(rule, Near):
        return replace(rule, domain=rule.domain[nodes])
    return replace(rule, domain=rule.domain[nodes], is_helped=rule.is_helped[nodes])


def is_equal(one: Rule, other: Rule) -> bool:
    """Whether both say the same."""
    return type(one) is type(other) and all(
        np.array_equal(getattr(one, field), getattr(other, field)) for field in one.__struct_fields__
    )
