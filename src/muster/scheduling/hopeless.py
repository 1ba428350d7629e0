"""Groups that this cluster could not take even if nothing ran in it.

They are told so at once, and tried again when a node comes or changes, not by backoff.

An upper bound by counting: members on empty nodes, inside one placement where the group asks for one; rules
that look at other pods are left out.  What is said to be impossible is; what is not said may be.  In comes
the cast of a failed try and its snapshot; next: `cycle.py`, which says it.
Axes: N node rows.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from muster.api.core import Pod
from muster.base.arrays import Int32, Int64
from muster.cluster.snapshot import Snapshot
from muster.framework.runner import Runner
from muster.framework.status import Status
from muster.placement.capacity import members_per_node
from muster.placement.domains import Placements, one_placement
from muster.placement.shapes import ShapeKey
from muster.scheduling.contradictions import find_fault, pinned_members
from muster.scheduling.members import Cast, EntityKey

_Shapes = Sequence[tuple[Pod, int, Int64]]  # a pod of the shape, how many, copies on each empty node [N]


class Never(NamedTuple):
    """Why not even the empty cluster has room ("" if it may have), and how many places are missing there.

    `missing` is 0 where it cannot be said: members of several shapes may stand in each other's way.
    """

    text: str = ""
    missing: int = 0


MAYBE = Never()


class Hopes:
    """Answers for entities as they are, kept until a node or a member of theirs changes, or they are gone."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._allocatable: Int64 | None = None
        self._answers: dict[EntityKey, tuple[tuple[int, ...], Never]] = {}  # with what was asked

    def why_never(self, entity: EntityKey, cast: Cast, snapshot: Snapshot) -> Never:
        """Why the cluster could not take it even if it were empty.  Raises PluginError."""
        if self._allocatable is not snapshot.allocatable:
            self._allocatable = snapshot.allocatable
            self._answers = {}
        asked = (cast.missing_count, *(leaf.version for leaf in cast.leaves()))
        known = self._answers.get(entity)
        if known is None or known[0] != asked:
            known = self._answers[entity] = (asked, why_never(cast, snapshot, self._runner))
        return known[1]

    def forget(self, entity: EntityKey) -> None:
        """The entity is gone, or is no root any more."""
        self._answers.pop(entity, None)


def why_never(cast: Cast, snapshot: Snapshot, runner: Runner) -> Never:
    """Why the cluster could not take this group (or lone pod) even if it were empty."""
    if find_fault(cast) is not None or not snapshot.live.any():
        return MAYBE
    return _Empty(snapshot, runner).why_never(cast, snapshot.live_rows())


class _Empty:
    """The cluster without its pods."""

    def __init__(self, snapshot: Snapshot, runner: Runner) -> None:
        self._snapshot = snapshot
        self._runner = runner
        self._copies: dict[ShapeKey, Int64] = {}

    def why_never(self, cast: Cast, rows: Int32) -> Never:
        """The answer for these rows."""
        placements = self._placements(cast, rows)
        if placements is None:
            return MAYBE
        if not placements.count:
            keys = " and ".join(cast.group.topology_keys) if cast.group is not None else ""
            return Never(f"no node has the label {keys}" if keys else "")
        shapes = self._shapes(cast)
        needed = max(1, cast.missing_count)
        fitting = np.zeros(placements.count, dtype=np.int64)
        for _, count, copies in shapes:
            fitting += np.minimum(placements.totals(copies), count)
        if not shapes:
            return MAYBE
        if (fitting < needed).all():
            missing = needed - int(fitting.max()) if len(shapes) == 1 and not cast.is_composite else 0
            return Never(_too_small(cast, placements, fitting, needed), missing)
        if not cast.is_composite:
            return MAYBE
        reasons = [self._why_no_children(cast, placements.rows_of(i)) for i in range(placements.count)]
        return MAYBE if not all(reasons) else Never(reasons[int(np.argmax(fitting))])

    def _why_no_children(self, cast: Cast, rows: Int32) -> str:
        """Why too few groups of a composite could be in these rows, each looked at by itself."""
        needed = cast.group.needed if cast.group is not None else 1
        reasons = []
        for child in cast.sorted_children():
            reason = self.why_never(child, rows).text if child.missing_count else ""
            if reason and child.group is not None:
                reasons.append(f"{child.group.key}: {reason}")
        return reasons[0] if len(cast.children) - len(reasons) < needed and reasons else ""

    def _placements(self, cast: Cast, rows: Int32) -> Placements | None:
        """Where the group may be; None where its members contradict themselves."""
        if cast.group is None:
            return one_placement(rows)
        pinned = pinned_members(cast, self._snapshot)
        found = self._runner.placements(cast.group, self._snapshot, rows, pinned=pinned)
        return None if isinstance(found, Status) else found

    def _shapes(self, cast: Cast) -> _Shapes:
        labels = self._runner.labels_read(self._snapshot.label_keys_read)
        counts: dict[ShapeKey, int] = {}
        pods: dict[ShapeKey, Pod] = {}
        for member in cast.waiting():
            shape = member.shape(metadata=self._runner.reads_metadata, labels=labels)
            counts[shape] = counts.get(shape, 0) + 1
            pods.setdefault(shape, member.pod)
        return [(pods[shape], count, self._copies_of(shape, pods[shape])) for shape, count in counts.items()]

    def _copies_of(self, shape: ShapeKey, pod: Pod) -> Int64:
        known = self._copies.get(shape)
        if known is None:
            snapshot = self._snapshot
            usable = self._runner.usable_when_empty(pod, snapshot)
            if snapshot.unknown_resources(pod):
                usable = np.zeros_like(usable)
            known = members_per_node(snapshot.allocatable, snapshot.request_of(pod), usable)
            self._copies[shape] = known
        return known


def _too_small(cast: Cast, placements: Placements, fitting: Int64, needed: int) -> str:
    nearest = int(np.argmax(fitting))
    most = int(fitting[nearest])
    if cast.group is None or (needed == 1 and most == 0):
        who = "it" if cast.group is None else "a member"
        return f"no node could take {who} even if it were empty"
    if not placements.names[nearest]:
        return f"the cluster could take {most} of the {needed} members it needs even if it were empty"
    keys = " and ".join(cast.group.topology_keys)
    return (
        f"none of {placements.count} domains of {keys} could take the {needed} members it needs even if it "
        f"were empty: {placements.names[nearest]} is the largest and takes {most}"
    )
