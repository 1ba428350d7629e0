"""The groups of a tree as an exact search sees them: how many members or groups each needs, and where.

A `Part` is one group.  What it may be in are its domains, each inside a domain of the part above; the
members of a pod group are its lots.  Everything here is about the tree alone; what nodes take is
`packing.py`'s, which is next.  Axes: L lots, N nodes, D domains of a part.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from msgspec import Struct

from muster.base.arrays import Int64


class Part(Struct, frozen=True):
    """One group: at least `needed` members of its lots, of a composite `needed` of its parts, in one domain.

    Shapes   domains: D arrays of indices into N, ascending; inside [D] which domain of the part above each is
             in (of the root: 0); lots: indices into L.
    A composite has `parts` and no lots.  A part that needs nothing more is placed wherever it has a domain.
    """

    needed: int
    domains: tuple[Int64, ...]
    inside: tuple[int, ...]
    lots: tuple[int, ...] = ()
    parts: tuple["Part", ...] = ()

    def domains_in(self, above: int) -> Iterator[int]:
        """Indices of the domains inside this one of the part above."""
        return (index for index, outer in enumerate(self.inside) if outer == above)

    def all_lots(self) -> Iterator[int]:
        """The lots of the whole subtree."""
        yield from self.lots
        for part in self.parts:
            yield from part.all_lots()


def is_placed(part: Part, counts: Int64, above: int = 0) -> bool:
    """Tell whether the part has what it needs inside this domain of the part above, and nobody is astray.

    Shapes   counts [L, N].
    Astray are members in no domain of their part, and those of a part that has less than it needs.
    """
    occupied = np.flatnonzero(counts[list(part.all_lots())].any(axis=0))
    return any(
        bool(np.isin(occupied, part.domains[index]).all()) and _holds(part, counts, index)
        for index in part.domains_in(above)
    )


def _holds(part: Part, counts: Int64, index: int) -> bool:
    if not part.parts:
        return int(counts[list(part.lots)].sum()) >= part.needed
    placed = [is_placed(child, counts, index) for child in part.parts]
    strays = any(
        not found and counts[list(child.all_lots())].any()
        for found, child in zip(placed, part.parts, strict=True)
    )
    return not strays and sum(placed) >= part.needed


def may_hold(part: Part, index: int, copies: Int64, available: Int64) -> bool:
    """Tell whether this domain could be enough for the part, were each lot and each part there alone.

    Shapes   copies [L, N] of each lot a node takes alone; available [L].
    """
    if not part.parts:
        lots = list(part.lots)
        most = copies[lots][:, part.domains[index]].sum(axis=1)
        return int(np.minimum(most, available[lots]).sum()) >= part.needed
    able = sum(
        any(may_hold(child, inner, copies, available) for inner in child.domains_in(index))
        for child in part.parts
    )
    return able >= part.needed


def is_no_easier(part: Part, than: Part) -> bool:
    """Tell whether whoever places `part` places `than`, too, members and nodes being the same for both."""
    return _maps(part, than, {0: 0})


def _maps(part: Part, than: Part, outer: dict[int, int]) -> bool:
    """`outer`: for each domain of the part above one of the other's that contains it."""
    if part.lots != than.lots or len(part.parts) != len(than.parts) or part.needed < than.needed:
        return False
    mapped: dict[int, int] = {}
    for index, domain in enumerate(part.domains):
        above = outer[part.inside[index]]
        found = next((i for i in than.domains_in(above) if np.isin(domain, than.domains[i]).all()), None)
        if found is None:
            return False
        mapped[index] = found
    return all(_maps(one, other, mapped) for one, other in zip(part.parts, than.parts, strict=True))


def regions(part: Part, index: int, labels: Sequence[Int64] = ()) -> Sequence[Int64]:
    """The nodes of this domain, those together that no domain of an inner part tells apart, ascending.

    Nor does any of the labels [N], numbers from −1 up.
    """
    nodes = part.domains[index]
    region = np.zeros(len(nodes), dtype=np.int64)
    for domain in _distinct_domains(part, index):
        _, region = np.unique(2 * region + np.isin(nodes, domain), return_inverse=True)
    for label in labels:
        above = int(label.max(initial=0)) + 2
        _, region = np.unique(above * region + label[nodes] + 1, return_inverse=True)
    return [nodes[region == number] for number in range(int(region.max(initial=-1)) + 1)]


def _distinct_domains(part: Part, index: int) -> Sequence[Int64]:
    found: dict[bytes, Int64] = {}
    for child in part.parts:
        for inner in child.domains_in(index):
            found.setdefault(child.domains[inner].tobytes(), child.domains[inner])
            for domain in _distinct_domains(child, inner):
                found.setdefault(domain.tobytes(), domain)
    return list(found.values())
