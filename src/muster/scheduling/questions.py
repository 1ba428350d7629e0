"""What an exact search is asked about a group or a tree of groups whose greedy try has failed.

In come the cast and the snapshot; out comes the packing problem with what its axes stand for, a sentence
where it is too large to be searched, or nothing where the greedy way finds whatever there is.  Candidate
placements are enumerated level by level, those of a group inside each of its parent's.  Next: `search.py`.
"""

from collections.abc import Container, Iterator, Sequence

import numpy as np
from msgspec import Struct

from muster.base.arrays import Float64, Int32, Int64
from muster.cluster.snapshot import Snapshot
from muster.framework.groups import Group
from muster.framework.points import PlacementTotals
from muster.framework.runner import Runner
from muster.framework.status import Status
from muster.placement.domains import Placements
from muster.placement.packing import Problem
from muster.placement.parts import Part
from muster.placement.shapes import ShapeKey
from muster.scheduling.contradictions import pinned_members
from muster.scheduling.likeness import is_one_of_a_kind, likeness_of, shared_claims
from muster.scheduling.members import Cast, Member
from muster.scheduling.searches import Lot, Question

SHAPES_MAX = 16  # for the integer program
BACKTRACK_SHAPES_MAX = 64
DOMAINS_MAX = 2000  # candidate placements of all groups of a tree together
AMOUNT_MAX = 2.0**52  # sums of what members ask for stay exact below this


class _Alike(Struct, frozen=True):
    """Members of one shape in one pod group."""

    lot: Lot
    members: tuple[Member, ...]


def find_question(cast: Cast, snapshot: Snapshot, runner: Runner) -> Question | str | None:
    """The packing problem of an entity whose members the greedy way may place badly; None if there is none.

    A sentence where the problem is too large.
    """
    group = cast.group
    if group is None or _is_hopeless(cast, snapshot):
        return None
    shared = shared_claims([member.pod for member in cast.waiting()], snapshot)
    lots = tuple(lot for leaf in cast.leaves() for lot in _lots(leaf, snapshot, runner, shared))
    shapes = tuple(dict.fromkeys(each.lot.shape for each in lots))
    if not shapes or not (cast.is_composite or _is_worth_asking(cast, lots)):
        return None
    pods = {each.lot.shape: each.members[0].pod for each in lots}
    if len(shapes) == 1 and not cast.is_composite:
        (pod,) = pods.values()
        if runner.can_count(pod, snapshot, snapshot.live_rows()):
            return None
    pinned = pinned_members(cast, snapshot)
    placements = runner.placements(group, snapshot, snapshot.live_rows(), pinned=pinned)
    if isinstance(placements, Status) or not placements.count:
        return None
    rows = placements.all_rows()
    root = _Tree(snapshot, runner, rows, lots).root(cast, group, placements)
    if root is None:
        return None
    if isinstance(root, str):
        return root
    if len(shapes) > BACKTRACK_SHAPES_MAX:
        return too_many(len(shapes))
    packing, is_exact, narrows = runner.packing([pods[shape] for shape in shapes], snapshot, rows)
    if len(shapes) > SHAPES_MAX and not narrows:
        return too_many(len(shapes))
    is_exact = is_exact and narrows  # else members may keep every rule, and break one on the way there
    if len(shapes) == 1 and is_exact and not packing.rules and _is_simple(cast, root, snapshot, runner):
        return None
    problem = Problem(
        packing=packing,
        shape_of_lot=np.array([shapes.index(each.lot.shape) for each in lots], dtype=np.int64),
        available=np.array([len(each.members) for each in lots], dtype=np.int64),
        root=root,
        is_exact=is_exact,
    )
    asked = problem.available_of_shape.astype(np.float64) @ packing.need.astype(np.float64)
    if asked.max(initial=0.0) > AMOUNT_MAX:
        return None
    return Question(
        problem=problem,
        lots=tuple(each.lot for each in lots),
        members=tuple(each.members for each in lots),
        rows=rows,
        node_names=tuple(snapshot.node_names[row] for row in rows.tolist()),
        narrows=narrows,
    )


def too_many(shapes: int) -> str:
    """What is said where members are of too many shapes for the integer program."""
    return f"gave up the search for a placement: members of {shapes} shapes, more than {SHAPES_MAX}"


def _is_worth_asking(cast: Cast, lots: Sequence[_Alike]) -> bool:
    """Whether a pod group has enough members; a single one that is missing is placed wherever it can be."""
    return 2 <= cast.missing_count <= sum(len(each.members) for each in lots)


def _is_simple(cast: Cast, root: Part, snapshot: Snapshot, runner: Runner) -> bool:
    """Whether neither the order of groups nor the domain of an inner one can matter."""
    return _has_no_domains(root) and is_one_of_a_kind(cast, snapshot, runner)


def _has_no_domains(part: Part) -> bool:
    """Whether every group below may be wherever its parent is."""
    return all(
        len(child.domains) == len(part.domains)
        and all(len(part.domains[outer]) == len(inner) for outer, inner in _pairs(child))
        and _has_no_domains(child)
        for child in part.parts
    )


def _pairs(part: Part) -> Iterator[tuple[int, Int64]]:
    return zip(part.inside, part.domains, strict=True)


def _is_hopeless(cast: Cast, snapshot: Snapshot) -> bool:
    """Whether some group is refused for what no placement can cure: no object, or no node with its label."""
    group = cast.group
    if group is None:
        return True
    live = snapshot.live
    levels = (snapshot.labels.column(key).ids[live] for key in group.preferred_levels)
    return any((ids < 0).all() for ids in levels) or any(
        _is_hopeless(child, snapshot) for child in cast.children.values()
    )


def _lots(
    leaf: Cast, snapshot: Snapshot, runner: Runner, shared: Container[tuple[str, str]]
) -> Iterator[_Alike]:
    """Members to place that can be, shapes in the order of their first member."""
    by_shape: dict[ShapeKey, list[Member]] = {}
    for member in leaf.waiting():
        shape = likeness_of(member, snapshot, runner, shared)
        by_shape.setdefault(shape, []).append(member)
    for shape, alike in by_shape.items():
        if leaf.group is not None and not runner.unsupported(alike[0].pod):
            yield _Alike(Lot(leaf.group.key, shape), tuple(alike))


class _Tree:
    """Makes parts of casts: each group's domains inside those of its parent."""

    def __init__(self, snapshot: Snapshot, runner: Runner, rows: Int32, lots: Sequence[_Alike]) -> None:
        self._snapshot = snapshot
        self._runner = runner
        self._rows = rows
        self._lots = lots
        self._domain_count = 0

    def root(self, cast: Cast, group: Group, placements: Placements) -> Part | str | None:
        """The root part, its domains best first; None where a plugin refuses, a sentence if too large."""
        order = self._best_first(cast, group, placements)
        rows = [placements.rows_of(index) for index in order]
        part = self._part(cast, group, rows, (0,) * len(rows))
        if self._domain_count > DOMAINS_MAX:
            return f"gave up the search for a placement: more than {DOMAINS_MAX} candidate domains"
        return part

    def _part(self, cast: Cast, group: Group, rows: Sequence[Int32], inside: tuple[int, ...]) -> Part | None:
        self._domain_count += len(rows)
        children = []
        for child in cast.sorted_children():
            part = self._child(child, rows)
            if part is None or self._domain_count > DOMAINS_MAX:
                return None
            children.append(part)
        lots = (index for index, each in enumerate(self._lots) if each.lot.group == group.key)
        return Part(
            needed=group.needed if cast.is_composite else cast.missing_count,
            domains=tuple(np.searchsorted(self._rows, each).astype(np.int64) for each in rows),
            inside=inside,
            lots=() if cast.is_composite else tuple(lots),
            parts=tuple(children),
        )

    def _child(self, cast: Cast, above: Sequence[Int32]) -> Part | None:
        """The part of a group below; a plugin that finds its placed members in contradiction ends it all."""
        group = cast.group
        if group is None:
            return None
        pinned = pinned_members(cast, self._snapshot)
        rows: list[Int32] = []
        inside: list[int] = []
        for index, outer in enumerate(above):
            found = self._runner.placements(group, self._snapshot, outer, pinned=pinned)
            if isinstance(found, Status):
                return None
            rows += [found.rows_of(each) for each in range(found.count)]
            inside += [index] * found.count
        return self._part(cast, group, rows, tuple(inside))

    def _best_first(self, cast: Cast, group: Group, placements: Placements) -> list[int]:
        """Placements in the order of their score with all members in them; of equals the one named first."""
        snapshot = self._snapshot
        request: Float64 = np.zeros(len(snapshot.axis.names))
        for each in self._lots:
            request += len(each.members) * snapshot.request_of(each.members[0].pod).astype(np.float64)
        count = cast.placed_count + sum(len(each.members) for each in self._lots)
        totals = PlacementTotals(
            snapshot=snapshot,
            requested=placements.float_totals(snapshot.requested) + request,
            allocatable=placements.float_totals(snapshot.allocatable),
            member_count=np.full(placements.count, count, dtype=np.int64),
        )
        order: list[int] = np.argsort(-self._runner.score_placements(group, totals), kind="stable").tolist()
        return order
