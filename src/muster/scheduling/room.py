"""How many members of a leaf each candidate placement could take, by counting.

For members of one shape the count is exact, and so is the score that follows from it: fifty racks are weighed
in one go, and only the best is tried.  For members of several shapes it is an upper bound, which spares the
trial of placements that are too small.  In come a board and placements; next: `tree.py`.
Axes: N node rows, D placements, R resources.
"""

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from muster.base.arrays import Bool, Float64, Int64
from muster.cluster.snapshot import Snapshot
from muster.framework.groups import Group
from muster.framework.points import PlacementTotals
from muster.framework.runner import Runner
from muster.framework.status import Verdict
from muster.placement.capacity import UNLIMITED
from muster.placement.domains import Placements
from muster.placement.shapes import ShapeKey
from muster.scheduling.members import Member


class Room(Struct, frozen=True):
    """What each placement takes of the members still to place.

    Shapes   takes [D], holds [D]: were there any number of members; proposed [D, R] what those
             that are taken ask for.
    `is_exact`: the members have one shape and counting answers for them.
    """

    takes: Int64
    holds: Int64
    is_exact: bool
    proposed: Float64


def find_room(waiting: Sequence[Member], snapshot: Snapshot, placements: Placements, runner: Runner) -> Room:
    """Count for each placement how many of these members it takes, at most all of them."""
    shapes: dict[ShapeKey, list[Member]] = {}
    labels = runner.labels_read(snapshot.label_keys_read)
    for member in waiting:
        shapes.setdefault(member.shape(metadata=runner.reads_metadata, labels=labels), []).append(member)
    takes = np.zeros(placements.count, dtype=np.int64)
    holds = np.zeros(placements.count, dtype=np.int64)
    proposed = np.zeros((placements.count, len(snapshot.axis.names)), dtype=np.float64)
    is_exact = len(shapes) == 1
    for shape, alike in shapes.items():
        fits, counted = _copies(alike[0], shape, snapshot, placements, runner)
        totals = placements.totals(fits)
        holds += totals
        taken = np.minimum(totals, len(alike))
        takes += taken
        proposed += taken[:, np.newaxis] * snapshot.request_of(alike[0].pod).astype(np.float64)
        is_exact = is_exact and counted
    return Room(takes, holds, is_exact, proposed)


def _copies(
    member: Member, shape: ShapeKey, snapshot: Snapshot, placements: Placements, runner: Runner
) -> tuple[Int64, bool]:
    """[N] copies of this member per node, and whether that is exact rather than an upper bound."""
    pod, rows = member.pod, placements.all_rows()
    copies = np.zeros(len(snapshot.live), dtype=np.int64)
    if runner.unsupported(pod):
        return copies, True
    counted = runner.can_count(pod, snapshot, rows)
    if counted:
        fits = runner.recall(pod, shape, snapshot, rows).fits
        if len(rows) == len(copies):
            return fits, True
        copies[rows] = fits
    else:
        most = runner.capacity(pod, snapshot, rows)
        copies[rows] = np.where(runner.usable(pod, snapshot)[rows], UNLIMITED if most is None else most, 0)
    return copies, counted


def are_enough(group: Group, assigned: Int64, runner: Runner) -> Bool:
    """[D] whether so many members placed, and none left to try, satisfy the group."""
    counts = assigned.tolist()
    is_enough = {
        count: runner.placement_feasible(group, assigned=count, remaining=0).verdict is Verdict.SUCCESS
        for count in sorted(set(counts))  # of 50 racks: `np.unique` takes six times as long
    }
    return np.array([is_enough[count] for count in counts], dtype=np.bool_)


def score_by_counting(
    group: Group, room: Room, snapshot: Snapshot, placements: Placements, *, before: int, runner: Runner
) -> Float64:
    """[D] the scores when each placement takes what `room` says; `before`: members placed already."""
    requested, allocatable = runner.domain_totals.of(placements, snapshot)
    totals = PlacementTotals(
        snapshot=snapshot,
        requested=requested + room.proposed,
        allocatable=allocatable,
        member_count=room.takes + before,
    )
    return runner.score_placements(group, totals)
