"""What pods take and nodes offer, summed over candidate placements and kept from decision to decision.

Racks stay while pods come and go: only rows that changed are added up anew.  In come placements and a
snapshot, or a fork of it; out go the sums that `Placements.float_totals` gives, to the last bit.  Next:
`scheduling/room.py`, which weighs placements by them.
Axes: N node rows, D placements, R resources.
"""

import numpy as np

from muster.base.arrays import Float64, Int64
from muster.cluster.axes import ResourceAxis
from muster.cluster.snapshot import RowHistory, Snapshot
from muster.placement.domains import Placements

_EXACT_BELOW = 2**53  # whole numbers up to it, and sums of them, are exact in floating point


class _Known:
    """Sums of one set of placements as they were at one moment of a line of snapshots.

    Shapes   domain_of [N], -1 where a row is in no placement; requested [N, R] and sums [D, R] of it;
             offered [D, R], sums of `allocatable`.
    """

    def __init__(self, placements: Placements, snapshot: Snapshot) -> None:
        self.placements = placements
        self.history: RowHistory = snapshot.history
        self.axis: ResourceAxis = snapshot.axis
        self._see_nodes(snapshot.allocatable)
        self.requested = snapshot.requested.copy()
        self.sums = placements.totals(snapshot.requested)
        self.domain_of = np.full(len(snapshot.live), -1, dtype=np.int64)
        sizes = np.diff(placements.bounds)
        self.domain_of[placements.rows] = np.repeat(np.arange(placements.count), sizes)
        self.largest = _EXACT_BELOW // max(1, int(sizes.max(initial=0)))

    def is_of(self, snapshot: Snapshot) -> bool:
        """Whether these sums can be brought up to the snapshot's moment."""
        now = snapshot.history
        return (
            self.history.lineage is now.lineage
            and self.history.moment <= now.moment
            and self.axis is snapshot.axis
            and len(self.domain_of) == len(snapshot.live)
        )

    def go_on(self, snapshot: Snapshot) -> bool:
        """Add up what has changed; False where that is not exact, and these sums are good for nothing."""
        if self.history is snapshot.history:
            return True
        rows = snapshot.history.changed_since(self.history.moment)
        requested = snapshot.requested[rows]
        if int(requested.max(initial=0)) >= self.largest:
            return False
        more = requested - self.requested[rows]
        self.requested[rows] = requested
        domains = self.domain_of[rows]
        inside = domains >= 0
        np.add.at(self.sums, domains[inside], more[inside])
        self.history = snapshot.history
        if self.allocatable is not snapshot.allocatable:
            self._see_nodes(snapshot.allocatable)
        return True

    def _see_nodes(self, allocatable: Int64) -> None:
        self.allocatable = allocatable
        self.offered = self.placements.float_totals(allocatable)
        self.offered.flags.writeable = False


class DomainTotals:
    """The sums of the placements asked for last.

    On 5,000 nodes in 50 racks adding them all up was 0.16 ms of a decision of 0.9.
    """

    def __init__(self) -> None:
        self._asked: Placements | None = None
        self._known: _Known | None = None

    def of(self, placements: Placements, snapshot: Snapshot) -> tuple[Float64, Float64]:
        """Sums of what pods take and of what nodes offer.  Shapes: [D, R] each, not to be written."""
        known = self._known
        if known is None or known.placements is not placements or not known.is_of(snapshot):
            known = self._begin(placements, snapshot)
        if known is None or snapshot.moves or not known.go_on(snapshot):
            return (
                placements.float_totals(snapshot.requested),
                placements.float_totals(snapshot.allocatable),
            )
        return known.sums.astype(np.float64), known.offered

    def _begin(self, placements: Placements, snapshot: Snapshot) -> _Known | None:
        """Placements that were asked for before are likely to be asked for again."""
        is_again, self._asked = self._asked is placements, placements
        if not is_again or snapshot.moves or not placements.count:
            return None
        known = _Known(placements, snapshot)
        largest = int(snapshot.requested[placements.rows].max(initial=0))
        self._known = known if largest < known.largest else None
        return self._known
