"""One Protocol per extension point, in the order a group meets them.

A plugin is any class with a `name` and the methods of the points it serves; no base class.  Plugins get
values and return values: never a client, a clock, a queue or another plugin.  Node-wise points are
evaluated for *rows* of the snapshot at once: the cycle asks once per distinct pod shape for all live
rows, and after each assignment again only for the rows that the assignment could have changed.
Axes: N node rows, K rows asked for, R resources, D candidate placements.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Protocol, runtime_checkable

from msgspec import Struct

from muster.api.core import Node, Pod
from muster.base.arrays import Bool, Float64, Int32, Int64
from muster.cluster.budgets import Budget
from muster.cluster.devices import Devices
from muster.cluster.snapshot import Snapshot
from muster.framework.events import HintRule
from muster.framework.groups import Group, PodKey, Subgroup, UnsupportedField
from muster.framework.ports import Prepare
from muster.framework.status import Status
from muster.placement.domains import Placements
from muster.placement.eviction import Eviction, EvictionSearch, Trial, Try
from muster.placement.packing import Packing
from muster.placement.victims import Judge, Unit

ANY_ROW = -1  # for `Filter.rows_changed`: not one row but the question whether there is one


class Entity(Struct, frozen=True):
    """What the queue orders: a lone pod or a root group.

    `priority` is the group's (a lone pod's own); `queued_s` when it first could have been tried;
    `sequence` breaks ties in order of arrival.
    """

    name: str
    priority: int
    queued_s: float
    sequence: int


@runtime_checkable
class QueueSort(Protocol):
    """Order of the active queue; exactly one plugin of a profile serves it."""

    name: ClassVar[str]

    def sort_key(self, entity: Entity) -> tuple[float, ...]:
        """Give a key; the smallest is tried first.  Must be total: end with `sequence`."""
        ...


@runtime_checkable
class PreEnqueue(Protocol):
    """Whether a group (or lone pod: `group` is None) may enter the queue at all."""

    name: ClassVar[str]

    def pre_enqueue(
        self,
        group: Group | None,
        *,
        waiting: tuple[Pod, ...],
        placed: int,
        children: tuple[Subgroup, ...] = (),
    ) -> Status:
        """Judge by the members not placed yet and the count of those that are (bound, assumed, succeeded).

        Of a composite group these are all the pods below it; `children` is the tree they are in.
        Anything but success gates the entity: no attempt, no backoff.  The message is shown to the user.
        """
        ...


@runtime_checkable
class MemberCheck(Protocol):
    """Refuse a member (or lone pod) for something it asks for that is not built, naming the field."""

    name: ClassVar[str]

    def unsupported(self, pod: Pod) -> tuple[UnsupportedField, ...]:
        """The fields that cannot be honoured; empty when all can."""
        ...


class NodeVerdict(Struct, frozen=True):
    """Which of the rows asked for could take the member, and why the others not.

    `feasible` [K]; each reason's `rejected` [K] is a subset of the infeasible rows.  Reasons of one
    verdict may overlap (short of cpu *and* of memory).
    """

    feasible: Bool
    reasons: tuple["NodeReason", ...] = ()


class NodeReason(Struct, frozen=True):
    """`text` in the field's words ("Insufficient cpu"); unresolvable: evicting pods there cannot help.

    `is_unsure`: the filter gave up there; nothing is proved by its refusal.
    """

    rejected: Bool
    text: str
    resolvable: bool = True
    is_unsure: bool = False


@runtime_checkable
class PlacementGenerator(Protocol):
    """Which sets of nodes may hold a whole group (KEP-5732); those of several generators are cut together."""

    name: ClassVar[str]

    def placements(
        self, group: Group, snapshot: Snapshot, rows: Int32, *, pinned: Sequence[tuple[Pod, int]]
    ) -> Placements | Status:
        """Candidate placements inside `rows` [K] ascending, which are what the parent group leaves.

        `pinned`: members placed already with their rows (-1: on a node that is not known).  No opinion is
        one placement with all rows.  A Status (error) where the members placed contradict the rule.
        """
        ...


class PlacementTotals(Struct, frozen=True):
    """What each candidate placement would be with the group in it.

    Shapes   requested, allocatable [D, R] sums over the nodes of the placement, the group's proposed members
             included; member_count [D] members of the group placed there, those placed before included.
    """

    snapshot: Snapshot
    requested: Float64
    allocatable: Float64
    member_count: Int64


@runtime_checkable
class PlacementScore(Protocol):
    """How good a candidate placement is for a group; 0..100, higher is better."""

    name: ClassVar[str]

    def score_placements(self, group: Group, totals: PlacementTotals) -> Float64:
        """Score the placements in which the group fits, all at once.  Shapes: returns [D]."""
        ...


@runtime_checkable
class Filter(Protocol):
    """Which nodes could take a member.

    A filter, capacity or score that has `judges_row_alone` True says that its answers for a row depend on the
    pod's shape and on that row alone (node, pods, room), not on other rows: they are remembered and asked
    for again only when the row changes.  Without the attribute it is asked at every decision.

    One that has `only_narrows` True refuses a row for good: placing others never lets in whom it refused.
    """

    name: ClassVar[str]

    def filter(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> NodeVerdict:
        """Judge these rows for this pod.  Shapes: rows [K], masks [K].  Nothing is written."""
        ...

    def rows_changed(self, placed: Pod, row: int, pod: Pod, snapshot: Snapshot) -> Int32 | None:
        """Rows to judge again for `pod` after `placed` was assigned to `row`; None: all live rows.

        `row` ANY_ROW: whether there is a row that would change anything; none given: there is not.
        """
        ...


@runtime_checkable
class Example(Protocol):
    """A filter that can show on one node what its refusal rests on; every filter of Muster's own serves it.

    Asked for what users are told, once for a reason that is news, never while nodes are judged.
    """

    name: ClassVar[str]

    def example(self, pod: Pod, snapshot: Snapshot, row: int, text: str) -> str:
        """Say what on this row the reason `text` is about, to follow the node's name: "4 cpu asked, 2 free".

        One clause, with amounts, taints, terms, domains and pods by name; "" if the row is not refused.
        """
        ...


@runtime_checkable
class Capacity(Protocol):
    """A filter that can also say how many copies of a member each row takes (the fast path of large gangs).

    The cycle uses it only where every filter of the profile either serves this point or does not change
    with assignments (`rows_changed` gives no rows).  A pod that comes or goes must change the count of its
    own row only.
    """

    name: ClassVar[str]

    def capacity(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> Int64:
        """Count copies of `pod` per row, at most `UNLIMITED`.  Shapes: rows [K], returns [K]."""
        ...


@runtime_checkable
class PackingRule(Protocol):
    """A filter that can state in integers which members may share a node (for the exact search).

    Of filters that do not serve it and do not change with assignments, the mask is all there is to know.  One
    that changes and cannot state itself is left out of the search: a placement that is found may be refused
    afterwards, and nothing is called impossible on the filter's account.
    """

    name: ClassVar[str]

    def packing(self, pods: Sequence[Pod], snapshot: Snapshot, rows: Int32) -> Packing | None:
        """State the rule for one pod per shape on these rows; None where it cannot be stated.

        Shapes: pods [S], rows [K].  It must allow all that the filter allows member by member, in some order.
        What is about whole domains goes into `rules` (`placement/neighbours.py`).
        """
        ...


@runtime_checkable
class Score(Protocol):
    """How good a feasible row is for a member; 0..100, higher is better."""

    name: ClassVar[str]

    def score(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> Float64:
        """Score these rows.  Shapes: rows [K], returns [K]."""
        ...


@runtime_checkable
class Silence(Protocol):
    """A filter, capacity or score that can say that it makes no difference to a pod: it is not asked then."""

    name: ClassVar[str]

    def is_silent(self, pod: Pod, snapshot: Snapshot) -> bool:
        """Whether every row passes, scores alike and takes any number of copies, and will with copies placed.

        Nor may the coming or going of any pod here, or gone on this fork, change that: of all these
        `rows_changed` gives no rows, and whoever drives out pods does not ask about each of them.

        Asked at every decision, so it looks at the pod and at what the snapshot knows as a whole, not at
        rows; one that `judges_row_alone` at the pod and the axis only, for what it says is remembered.
        """
        ...


@runtime_checkable
class PlacementFeasible(Protocol):
    """The early verdict on a group while its members are being placed (KEP-4671)."""

    name: ClassVar[str]

    def placement_feasible(self, group: Group, *, assigned: int, remaining: int) -> Status:
        """Success: enough; wait: may still become enough; unschedulable: stop at once."""
        ...


class Preemptor(Struct, frozen=True):
    """A lone pod or a root group that found no room, and all that may be known to make some.

    `kind` as users are told it; `policy` its preemption policy; `is_draining`: pods it preempted before are
    still leaving.  `units`: those weaker than it, each to be evicted whole or not at all, most important
    first.  `snapshot`: the cluster with the room that is promised to others already taken.  `work`: how much
    may be done at once, in rows judged.  `found`: what a search that was put off has found since, on the
    cluster as it was when it began.
    """

    kind: str
    priority: int
    policy: str
    is_draining: bool
    units: tuple[Unit, ...]
    budgets: tuple[Budget, ...]
    snapshot: Snapshot
    judge: Judge
    trial: Try
    work: int = 100_000
    found: Eviction | Trial | None = None


class Rescue(Struct, frozen=True):
    """What may be done for a preemptor: on success there is an eviction, else the status says why not.

    With status `wait` there is a search that is not finished: it is gone on with between other decisions.
    `refused`: why the preemptor finds no room even without all who may go; what can end that wakes it, too.
    """

    status: Status
    eviction: Eviction | None = None
    search: EvictionSearch | None = None
    refused: Trial | None = None


@runtime_checkable
class PostFilter(Protocol):
    """Makes room for what found none.  Plugins are asked in order; the first success or unresolvable ends."""

    name: ClassVar[str]

    def post_filter(self, preemptor: Preemptor) -> Rescue:
        """Say who should leave and which seats that gives; nothing is carried out here."""
        ...


@runtime_checkable
class ClaimGate(Protocol):
    """Whether the claims for devices of waiting pods are there; who lacks one is not tried."""

    name: ClassVar[str]

    def check_claims(self, waiting: Sequence[Pod], devices: Devices) -> Status:
        """Anything but success gates the entity; it is asked again whenever a claim changes."""
        ...


@runtime_checkable
class PreBind(Protocol):
    """What must be written, and then be true, before members may be bound: their volumes, their claims."""

    name: ClassVar[str]

    def prepare(
        self, placed: Sequence[tuple[Pod, int]], snapshot: Snapshot
    ) -> Mapping[PodKey, tuple[Prepare, ...]]:
        """The writes of members that need something before they are bound; who is missing needs nothing.

        `placed` are all members of one decision with their rows; `snapshot` is the one before any of them was
        placed.  A member may need to wait without any write of its own: its tuple is empty.
        """
        ...

    def is_ready(self, pod: Pod, node: Node, snapshot: Snapshot) -> Status:
        """Success: bind it; wait: not yet, and what for; anything else: it never will be on this node."""
        ...


@runtime_checkable
class Hints(Protocol):
    """Which cluster events can end a rejection by this plugin; every rejecting plugin serves it."""

    name: ClassVar[str]

    def hint_rules(self) -> tuple[HintRule, ...]:
        """Rules in any order; the strongest answer of all counts."""
        ...
