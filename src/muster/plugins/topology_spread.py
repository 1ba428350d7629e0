"""PodTopologySpread: pods of one kind evenly over the domains of a node label.

`DoNotSchedule` constraints decide, `ScheduleAnyway` constraints make the score.  A constraint counts pods of
the pod's own namespace that its selector takes and that are not going, on nodes that have every label which
the constraints of its kind ask for and that its node policies let count.  The count per node is reckoned once
for a snapshot and carried on over what a trial places and removes.
Axes: N node rows, K rows asked for, D domains of a constraint.
"""

from collections.abc import Hashable, Sequence
from typing import ClassVar, NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace

from muster.api.core import Pod, TopologySpreadConstraint
from muster.api.selectors import matches_selector
from muster.base.arrays import Bool, Float64, Int32, Int64
from muster.cluster.pod_rules import Audience, with_own_labels
from muster.cluster.snapshot import PodMove, Snapshot
from muster.cluster.topology import LabelColumn
from muster.framework.events import Change, ClusterEvent, Hint, HintRule, Rejected
from muster.framework.points import ANY_ROW, NodeReason, NodeVerdict
from muster.placement.neighbours import Even
from muster.placement.node_rules import meets_node_rules, tolerates_hard_taints
from muster.placement.packing import Packing, no_rule

_SKEW_TEXT = "node(s) didn't match pod topology spread constraints"
_LABEL_TEXT = "node(s) didn't match pod topology spread constraints (missing required label)"
_STATED_DOMAINS_MAX = 200  # beyond that the integer program grows too large to be worth it
_HARD, _SOFT = "DoNotSchedule", "ScheduleAnyway"

_ENCODER = msgspec.msgpack.Encoder(order="deterministic")


class _Spread(NamedTuple):
    """One constraint as it applies to one pod.  Shapes: counted [N], rows that count for it."""

    max_skew: int
    min_domains: int
    column: LabelColumn
    audience: Audience
    counts_itself: bool
    counted: Bool


class _Domains(NamedTuple):
    """How many pods each domain has.  Shapes: pods, exists [D + 1]; the last cell is "no label"."""

    pods: Int64
    exists: Bool

    def fewest(self, min_domains: int) -> int:
        """The count of the emptiest domain; 0 where there are fewer domains than there should be."""
        if int(self.exists.sum()) < max(1, min_domains):
            return 0
        return int(self.pods[self.exists].min())


class PodTopologySpread:
    """Refuse nodes in whose domain the pod would be more than `maxSkew` above the emptiest; prefer emptier.

    The defaults that stock applies to pods of Services and ReplicaSets without constraints are not applied.
    """

    name: ClassVar[str] = "PodTopologySpread"
    reads_metadata: ClassVar[bool] = False
    reads_selected_labels: ClassVar[bool] = True
    reads_pods: ClassVar[bool] = True

    def is_silent(self, pod: Pod, snapshot: Snapshot) -> bool:
        return not pod.spec.topology_spread_constraints

    def filter(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> NodeVerdict:
        left = np.ones(len(rows), dtype=np.bool_)
        unlabelled, over = np.zeros_like(left), np.zeros_like(left)
        for spread in _spreads(pod, _HARD, snapshot):
            ids = spread.column.ids[rows]
            domains = _domains(spread, snapshot)
            skew = domains.pods[ids] + spread.counts_itself - domains.fewest(spread.min_domains)
            missing = left & (ids < 0)
            refused = left & ~missing & (skew > spread.max_skew)
            unlabelled |= missing
            over |= refused
            left &= ~missing & ~refused
        reasons = []
        if unlabelled.any():
            reasons.append(NodeReason(unlabelled, _LABEL_TEXT, resolvable=False))
        if over.any():
            reasons.append(NodeReason(over, _SKEW_TEXT))
        return NodeVerdict(left, tuple(reasons))

    def example(self, pod: Pod, snapshot: Snapshot, row: int, text: str) -> str:
        for constraint, spread in zip(_constraints(pod, _HARD), _spreads(pod, _HARD, snapshot), strict=True):
            key, domain = constraint.topology_key, int(spread.column.ids[row])
            if domain < 0:
                return f"has no label {key}"
            domains = _domains(spread, snapshot)
            would, fewest = (
                int(domains.pods[domain]) + spread.counts_itself,
                domains.fewest(spread.min_domains),
            )
            if would - fewest > spread.max_skew:
                few = int(domains.exists.sum())
                lowest = f"the emptiest has {fewest}"
                if few < spread.min_domains:
                    lowest = f"0 counts as the fewest, as there are {few} of minDomains {spread.min_domains}"
                where = f"{key}={spread.column.values[domain]}"
                return f"{where} would have {would} such pods, {lowest}, maxSkew is {spread.max_skew}"
        return ""

    def rows_changed(self, placed: Pod, row: int, pod: Pod, snapshot: Snapshot) -> Int32 | None:
        """The domain that got a pod, for mask and score; all rows if only that domain was the emptiest."""
        changed: set[int] = set()
        for kind in (_HARD, _SOFT) if pod.spec.topology_spread_constraints else ():
            for spread in _spreads(pod, kind, snapshot):
                if not _counts(spread, placed):
                    continue
                if row == ANY_ROW:
                    return None
                if not spread.counted[row]:
                    continue
                now = _domains(spread, snapshot)
                before = now.pods.copy()
                for move in snapshot.moves_since(placed, row):
                    if _counts(spread, move.pod) and spread.counted[move.row]:
                        before[spread.column.ids[move.row]] -= move.sign
                earlier = _Domains(before, now.exists)
                if earlier.fewest(spread.min_domains) != now.fewest(spread.min_domains):
                    return None
                changed.update(spread.column.rows_like(row).tolist())
        return np.array(sorted(changed), dtype=np.int32)

    def packing(self, pods: Sequence[Pod], snapshot: Snapshot, rows: Int32) -> Packing | None:
        """A rule for each constraint, shared by those that have the same one.

        None, not stated: a constraint that does not take its own pod, or one of too many domains.
        """
        feasible = np.ones((len(pods), len(rows)), dtype=np.bool_)
        carriers: dict[Hashable, list[int]] = {}
        spreads: dict[Hashable, _Spread] = {}
        for index, pod in enumerate(pods):
            for spread in _spreads(pod, _HARD, snapshot):
                if not spread.counts_itself:
                    return None
                feasible[index] &= spread.column.ids[rows] >= 0
                key = _key_of(spread)
                carriers.setdefault(key, []).append(index)
                spreads[key] = spread
        rules = [_even(spread, carriers[key], pods, snapshot, rows) for key, spread in spreads.items()]
        if any(len(rule.before) > _STATED_DOMAINS_MAX for rule in rules):
            return None
        return replace(no_rule(len(pods), len(rows)), feasible=feasible, rules=tuple(rules))

    def score(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> Float64:
        """The mean over constraints of 100 in the emptiest domain, 50 with `maxSkew` pods more, 33 with twice
        as many more, and so on; 0 on nodes without the label.
        """
        score = np.zeros(len(rows), dtype=np.float64)
        spreads = _spreads(pod, _SOFT, snapshot)
        for spread in spreads:
            ids = spread.column.ids[rows]
            domains = _domains(spread, snapshot)
            above = np.maximum(domains.pods[ids] - domains.fewest(0), 0)
            score += np.where(ids >= 0, 100.0 / (1.0 + above / max(1, spread.max_skew)), 0.0)
        return score / len(spreads) if spreads else score

    def hint_rules(self) -> tuple[HintRule, ...]:
        return (
            HintRule(Change.POD_ASSIGNED, _is_counted),
            HintRule(Change.POD_FREED, _is_counted),
            HintRule(Change.POD_RELABELED),
            HintRule(Change.NODE_ADDED, _has_the_labels),
            HintRule(Change.NODE_LABELS_CHANGED),
            HintRule(Change.NODE_REMOVED, _has_the_labels),
            HintRule(Change.NODE_TAINTS_CHANGED, _counts_by_taints),
            HintRule(Change.POD_UPDATED),
        )


# ── constraints ──────────────────────────────────────────────────────────────────────────────────


def _constraints(pod: Pod, kind: str) -> tuple[TopologySpreadConstraint, ...]:
    return tuple(c for c in pod.spec.topology_spread_constraints or () if c.when_unsatisfiable == kind)


def _spreads(pod: Pod, kind: str, snapshot: Snapshot) -> tuple[_Spread, ...]:
    """The constraints of one kind with the rows that count for each: those with all their labels."""
    constraints = _constraints(pod, kind)
    if not constraints:
        return ()
    columns = [snapshot.labels.column(constraint.topology_key) for constraint in constraints]
    labelled = np.logical_and.reduce([column.ids >= 0 for column in columns])
    return tuple(
        _spread(pod, constraint, column, labelled, snapshot)
        for constraint, column in zip(constraints, columns, strict=True)
    )


def _spread(
    pod: Pod, constraint: TopologySpreadConstraint, column: LabelColumn, labelled: Bool, snapshot: Snapshot
) -> _Spread:
    """Node affinity is honoured unless the constraint says otherwise, taints only if it says so."""
    counted = labelled
    if constraint.node_affinity_policy != "Ignore":
        counted = counted & meets_node_rules(pod, snapshot, np.arange(counted.size, dtype=np.int32))
    if constraint.node_taints_policy == "Honor":
        counted = counted & tolerates_hard_taints(pod, snapshot)
    audience = _audience(pod, constraint)
    return _Spread(
        max_skew=constraint.max_skew,
        min_domains=constraint.min_domains or 1,
        column=column,
        audience=audience,
        counts_itself=matches_selector(audience.selector, pod.metadata.labels),
        counted=counted,
    )


def _key_of(spread: _Spread) -> Hashable:
    """Equal for constraints that say the same."""
    audience = spread.audience
    selector = _ENCODER.encode(audience.selector)
    limits = (spread.max_skew, spread.min_domains)
    return (*limits, spread.column.ids.tobytes(), spread.counted.tobytes(), audience.namespaces, selector)


def _even(
    spread: _Spread, carriers: Sequence[int], pods: Sequence[Pod], snapshot: Snapshot, rows: Int32
) -> Even:
    """The constraint as the exact search is told of it; `carriers`: which of these pods have it."""
    domains = _domains(spread, snapshot)
    existing = np.flatnonzero(domains.exists[:-1])
    ids = spread.column.ids[rows]
    carries = np.zeros(len(pods), dtype=np.bool_)
    carries[carriers] = True
    return Even(
        domain=np.where(spread.counted[rows], np.searchsorted(existing, ids), -1).astype(np.int64),
        carries=carries,
        counts=np.array([_counts(spread, pod) for pod in pods], dtype=np.bool_),
        before=domains.pods[existing].astype(np.int64),
        max_skew=spread.max_skew,
        is_short=len(existing) < max(1, spread.min_domains),
    )


def _audience(pod: Pod, constraint: TopologySpreadConstraint) -> Audience:
    """Pods of the same namespace that the selector takes, narrowed by `matchLabelKeys`."""
    selector = with_own_labels(
        constraint.label_selector, pod.metadata.labels, same=constraint.match_label_keys or ()
    )
    return Audience(frozenset((pod.metadata.namespace,)), selector)


def _counts(spread: _Spread, other: Pod) -> bool:
    """Whether a placed pod counts for the constraint; one that is going does not."""
    return not other.is_terminating and spread.audience.includes(other, {})


def _domains(spread: _Spread, snapshot: Snapshot) -> _Domains:
    """Pods per domain, on rows that count."""
    per_row = np.where(spread.counted, _count_per_row(spread, snapshot), 0)
    exists = np.zeros(len(spread.column.values) + 1, dtype=np.bool_)
    exists[spread.column.ids[spread.counted]] = True
    return _Domains(spread.column.totals(per_row), exists)


def _count_per_row(spread: _Spread, snapshot: Snapshot) -> Int64:
    """[N] pods that count, placed and removed on this fork included."""
    audience = spread.audience

    def carry_on(count: Int64, moves: Sequence[PodMove]) -> Int64:
        count = count.copy()
        for move in moves:
            if _counts(spread, move.pod):
                count[move.row] += move.sign
        return count

    def reckon(origin: Snapshot) -> Int64:
        columns = origin.pod_columns
        mask = columns.mask_of(audience, {}) & ~columns.leaving
        return columns.count_by_row(mask, len(origin.node_names))

    key = ("PodTopologySpread", audience.namespaces, _ENCODER.encode(audience.selector))
    return snapshot.fold(key, reckon, carry_on)


# ── wakes ────────────────────────────────────────────────────────────────────────────────────────


def _is_counted(rejected: Rejected, event: ClusterEvent) -> Hint:
    """A pod came or went that some constraint of a waiting pod counts."""
    other = event.pod
    if other is None:
        return Hint.QUEUE
    helps = any(
        _audience(pod, constraint).includes(other, {})
        for pod in rejected.pods
        for constraint in _constraints(pod, _HARD)
    )
    return Hint.QUEUE if helps else Hint.SKIP


def _has_the_labels(rejected: Rejected, event: ClusterEvent) -> Hint:
    """A node that counts for the constraints of some waiting pod."""
    if event.node is None:
        return Hint.QUEUE
    labels = event.node.metadata.labels or {}
    helps = any(all(c.topology_key in labels for c in _constraints(pod, _HARD)) for pod in rejected.pods)
    return Hint.QUEUE if helps else Hint.SKIP


def _counts_by_taints(rejected: Rejected, event: ClusterEvent) -> Hint:
    """Taints decide which nodes count for some waiting pod."""
    helps = any(c.node_taints_policy == "Honor" for pod in rejected.pods for c in _constraints(pod, _HARD))
    return Hint.QUEUE if helps else Hint.SKIP
