"""InterPodAffinity: near some pods, away from others, in the domains of a node label; both ways.

Required affinity, required anti-affinity, and the required anti-affinity of pods that are placed already
(whoever placed them) decide; preferences of both sides make the score.  What counts is kept as one number
per node and rule, reckoned once for a snapshot and carried on over what a trial places and removes.
Axes: N node rows, K rows asked for.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, NamedTuple

import numpy as np
from msgspec.structs import replace

from muster.api.core import Pod
from muster.api.selectors import write_selector
from muster.base.arrays import Bool, Float64, Int32, Int64
from muster.cluster.pod_rules import (
    NamespaceLabels,
    PodRules,
    Term,
    has_pod_rules,
    label_keys_read,
    labels_read,
    rules_key,
    rules_of,
)
from muster.cluster.snapshot import PodMove, Snapshot
from muster.framework.events import Change, ClusterEvent, Hint, HintRule, Rejected
from muster.framework.points import ANY_ROW, NodeReason, NodeVerdict
from muster.placement.neighbours import Apart, Near, Rule
from muster.placement.packing import Packing, no_rule

_HARD_WEIGHT = 1  # a required affinity of a placed pod draws those it is about, as in stock
_NEAR, _APART, _AGAINST, _PULL = "near", "apart", "against", "pull"

_AFFINITY_TEXT = "node(s) didn't match pod affinity rules"
_ANTI_AFFINITY_TEXT = "node(s) didn't match pod anti-affinity rules"
_EXISTING_TEXT = "node(s) didn't satisfy existing pods anti-affinity rules"

_Amounts = Mapping[str, Int64]  # topology key → [N]


class _Effect(NamedTuple):
    """What one placed pod means to the pod in question, in its domain of this key."""

    kind: str
    topology_key: str
    amount: int


class _Standing(NamedTuple):
    """How the placed pods stand to one pod.

    Shapes   near [N]: pods that meet all its required affinity terms; apart: pods it must keep away from;
             against: rules of placed pods that keep it away; pull: preferences of both sides, signed.
    `heaviest` is the largest preference at the outset: the scale of the score.
    """

    near: Int64
    apart: _Amounts
    against: _Amounts
    pull: _Amounts
    heaviest: int


class InterPodAffinity:
    """Refuse nodes in whose domain a required rule about other pods is broken; prefer what is preferred.

    A pod whose required affinity nobody meets yet may be the first if it meets it itself.
    """

    name: ClassVar[str] = "InterPodAffinity"
    reads_metadata: ClassVar[bool] = False
    reads_selected_labels: ClassVar[bool] = True
    reads_pods: ClassVar[bool] = True

    def is_silent(self, pod: Pod, snapshot: Snapshot) -> bool:
        return not snapshot.have_rules and not has_pod_rules(pod)

    def filter(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> NodeVerdict:
        left = np.ones(len(rows), dtype=np.bool_)
        rules = rules_of(pod)
        if not rules and not snapshot.have_rules:
            return NodeVerdict(left)
        standing = _standing(pod, rules, snapshot)
        reasons = []
        for text, allowed, resolvable in (
            (_AFFINITY_TEXT, _is_near(pod, rules, standing, snapshot, rows), False),
            (_ANTI_AFFINITY_TEXT, ~_in_domains(standing.apart, snapshot, rows), True),
            (_EXISTING_TEXT, ~_in_domains(standing.against, snapshot, rows), True),
        ):
            rejected = left & ~allowed
            if rejected.any():
                reasons.append(NodeReason(rejected, text, resolvable=resolvable))
                left &= allowed
        return NodeVerdict(left, tuple(reasons))

    def example(self, pod: Pod, snapshot: Snapshot, row: int, text: str) -> str:
        rules = rules_of(pod)
        if text == _AFFINITY_TEXT:
            return _what_is_not_near(rules, _standing(pod, rules, snapshot), snapshot, row)
        kind = _APART if text == _ANTI_AFFINITY_TEXT else _AGAINST
        for other, key, value in _in_the_way(pod, rules, kind, snapshot, row):
            name = f"{other.metadata.namespace}/{other.metadata.name}"
            what = "must be kept away from" if kind == _APART else "keeps such pods away"
            return f"pod {name} in {key}={value} {what}"
        return ""

    def rows_changed(self, placed: Pod, row: int, pod: Pod, snapshot: Snapshot) -> Int32 | None:
        """The domains of the rules between the two, for mask and score; all rows once the first is near."""
        changed: set[int] = set()
        if has_pod_rules(placed) or has_pod_rules(pod):
            rules = rules_of(pod)
            for effect in _effects(pod, rules, placed, snapshot.namespaces):
                if row == ANY_ROW or (effect.kind == _NEAR and _was_first(placed, row, pod, rules, snapshot)):
                    return None
                changed.update(snapshot.labels.column(effect.topology_key).rows_like(row).tolist())
        return np.array(sorted(changed), dtype=np.int32)

    def packing(self, pods: Sequence[Pod], snapshot: Snapshot, rows: Int32) -> Packing | None:
        """Members that keep away from each other, by node or by domain, and members that need others near."""
        feasible = np.ones((len(pods), len(rows)), dtype=np.bool_)
        conflicts: dict[str, Bool] = {}
        for index, pod in enumerate(pods):
            rules = rules_of(pod)
            standing = _standing(pod, rules, snapshot)
            for term in rules.near:
                feasible[index] &= snapshot.labels.column(term.topology_key).ids[rows] >= 0
            for amounts in (standing.apart, standing.against):
                feasible[index] &= ~_in_domains(amounts, snapshot, rows)
            for other, placed in enumerate(pods):
                for effect in _effects(pod, rules, placed, snapshot.namespaces):
                    if effect.kind in (_APART, _AGAINST):
                        conflict = conflicts.setdefault(
                            effect.topology_key, np.zeros((len(pods), len(pods)), dtype=np.bool_)
                        )
                        conflict[index, other] = conflict[other, index] = True
        by_node = np.zeros((len(pods), len(pods)), dtype=np.bool_)
        found: list[Rule] = []
        for key, conflict in conflicts.items():
            if _are_single_nodes(key, snapshot, rows):
                by_node |= conflict
            else:
                found.append(Apart(_domains_at(key, snapshot, rows), conflict))
        found += _near_rules(pods, snapshot, rows)
        return replace(no_rule(len(pods), len(rows)), conflict=by_node, feasible=feasible, rules=tuple(found))

    def score(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> Float64:
        """50 where nothing is preferred; 90 with one pod of the heaviest preference, 10 with one to avoid."""
        rules = rules_of(pod)
        if not rules and not snapshot.have_rules:
            return np.full(len(rows), 50.0)
        standing = _standing(pod, rules, snapshot)
        drawn = np.zeros(len(rows), dtype=np.float64)
        for key, amounts in standing.pull.items():
            column = snapshot.labels.column(key)
            drawn += column.totals(amounts)[column.ids[rows]]
        score: Float64 = 50.0 + 50.0 * drawn / (np.abs(drawn) + max(1, standing.heaviest) / 4.0)
        return score

    def hint_rules(self) -> tuple[HintRule, ...]:
        return (
            HintRule(Change.POD_ASSIGNED, _is_wanted_near),
            HintRule(Change.POD_FREED, _is_of_concern),
            HintRule(Change.POD_RELABELED),
            HintRule(Change.NODE_ADDED, _has_the_labels),
            HintRule(Change.NODE_LABELS_CHANGED, _has_the_labels),
            HintRule(Change.NODE_REMOVED),
            HintRule(Change.NAMESPACE_CHANGED),
            HintRule(Change.POD_UPDATED),
        )


# ── verdicts ─────────────────────────────────────────────────────────────────────────────────────


def _is_near(pod: Pod, rules: PodRules, standing: _Standing, snapshot: Snapshot, rows: Int32) -> Bool:
    """[K] rows in whose domains somebody meets the required affinity, or where the pod may be the first."""
    near = np.ones(len(rows), dtype=np.bool_)
    labelled = np.ones(len(rows), dtype=np.bool_)
    is_alone = True
    for key in {term.topology_key: None for term in rules.near}:
        column = snapshot.labels.column(key)
        totals = column.totals(standing.near)
        ids = column.ids[rows]
        labelled &= ids >= 0
        near &= totals[ids] > 0  # the cell of "no label" is 0
        is_alone &= not totals.any()
    if rules.near and is_alone and _meets_own_affinity(pod, rules, snapshot.namespaces):
        return labelled
    return near


def _in_domains(amounts: _Amounts, snapshot: Snapshot, rows: Int32) -> Bool:
    """[K] rows in a domain of some key where anything is counted."""
    found = np.zeros(len(rows), dtype=np.bool_)
    for key, counted in amounts.items():
        column = snapshot.labels.column(key)
        found |= column.totals(counted)[column.ids[rows]] > 0
    return found


def _near_rules(pods: Sequence[Pod], snapshot: Snapshot, rows: Int32) -> Iterator[Near]:
    """For each required affinity of some of these pods, and each of its keys, who needs and who helps."""
    wanted = [rules_of(pod).near for pod in pods]
    for index, near in enumerate(wanted):
        if not near or near in wanted[:index]:
            continue
        rules = rules_of(pods[index])
        standing = _standing(pods[index], rules, snapshot)
        totals = {
            term.topology_key: snapshot.labels.column(term.topology_key).totals(standing.near)
            for term in near
        }
        for key, total in totals.items():
            yield Near(
                domain=_domains_at(key, snapshot, rows),
                needs=np.array([other == near for other in wanted], dtype=np.bool_),
                helps=np.array(
                    [_meets_affinity(pod, rules, snapshot.namespaces) for pod in pods], dtype=np.bool_
                ),
                is_helped=total[snapshot.labels.column(key).ids[rows]] > 0,
                may_begin=not any(each.any() for each in totals.values()),
            )


def _domains_at(key: str, snapshot: Snapshot, rows: Int32) -> Int64:
    """[K] ids of the domains of these rows, −1 without the label."""
    return np.maximum(snapshot.labels.column(key).ids[rows], -1).astype(np.int64)


def _are_single_nodes(key: str, snapshot: Snapshot, rows: Int32) -> bool:
    """Whether each of these rows is alone in its domain of this label."""
    ids = snapshot.labels.column(key).ids
    found, sizes = np.unique(ids[ids >= 0], return_counts=True)
    return bool((ids[rows] >= 0).all()) and bool((sizes[np.isin(found, ids[rows])] == 1).all())


def _meets_own_affinity(pod: Pod, rules: PodRules, namespaces: NamespaceLabels) -> bool:
    return all(term.audience.includes(pod, namespaces) for term in rules.near)


def _was_first(placed: Pod, row: int, pod: Pod, rules: PodRules, snapshot: Snapshot) -> bool:
    """Whether nobody met the pod's required affinity before `placed` came: all rows may have changed."""
    standing = _standing(pod, rules, snapshot)
    columns = [snapshot.labels.column(term.topology_key) for term in rules.near]
    before = sum(int(column.totals(standing.near).sum()) for column in columns)
    for move in snapshot.moves_since(placed, row):
        if _meets_affinity(move.pod, rules, snapshot.namespaces):
            before -= move.sign * sum(bool(column.ids[move.row] >= 0) for column in columns)
    return before <= 0


# ── examples ─────────────────────────────────────────────────────────────────────────────────────


def _what_is_not_near(rules: PodRules, standing: _Standing, snapshot: Snapshot, row: int) -> str:
    """The first required affinity term that nobody meets in this row's domain."""
    for term in rules.near:
        column = snapshot.labels.column(term.topology_key)
        domain = int(column.ids[row])
        if domain < 0:
            return f"has no label {term.topology_key}"
        if not column.totals(standing.near)[domain]:
            where = f"{term.topology_key}={column.values[domain]}"
            wanted = " with " + write_selector(term.audience.selector) if len(rules.near) == 1 else ""
            return f"no pod{wanted} in {where}"
    return ""


def _in_the_way(
    pod: Pod, rules: PodRules, kind: str, snapshot: Snapshot, row: int
) -> Iterator[tuple[Pod, str, str]]:
    """Pods of this row's domains that stand against the pod by a rule of this kind; lowest rows first."""
    standing = _standing(pod, rules, snapshot)
    for key, amounts in (standing.apart if kind == _APART else standing.against).items():
        column = snapshot.labels.column(key)
        inside = column.rows_like(row)
        for there in inside[amounts[inside] > 0].tolist():
            for other in snapshot.pods_on(there):
                effects = _effects(pod, rules, other, snapshot.namespaces)
                if any(effect.kind == kind and effect.topology_key == key for effect in effects):
                    yield other, key, column.values[int(column.ids[row])]


# ── what placed pods mean to a pod ───────────────────────────────────────────────────────────────


def _standing(pod: Pod, rules: PodRules, snapshot: Snapshot) -> _Standing:
    """How the pods of the snapshot, and those placed and removed on this fork, stand to the pod."""
    keys = snapshot.label_keys_read | label_keys_read(pod)
    alike = (
        "InterPodAffinity",
        pod.metadata.namespace,
        rules_key(pod) if rules else b"",
        labels_read(pod, keys),
    )
    namespaces = snapshot.namespaces

    def carry_on(standing: _Standing, moves: Sequence[PodMove]) -> _Standing:
        return _carry_on(standing, moves, pod, rules, namespaces)

    return snapshot.fold(alike, lambda origin: _reckon(pod, rules, origin), carry_on)


def _reckon(pod: Pod, rules: PodRules, snapshot: Snapshot) -> _Standing:
    """Count over all placed pods."""
    columns, namespaces, count = snapshot.pod_columns, snapshot.namespaces, len(snapshot.node_names)
    near = np.zeros(count, dtype=np.int64)
    if rules.near:
        masks = [columns.mask_of(term.audience, namespaces) for term in rules.near]
        near = columns.count_by_row(np.logical_and.reduce(masks), count)
    apart: dict[str, Int64] = {}
    pull: dict[str, Int64] = {}
    for terms, into in ((rules.apart, apart), (rules.preferred, pull)):
        for term in terms:
            counted = columns.count_by_row(columns.mask_of(term.audience, namespaces), count)
            _add(into, term.topology_key, counted * (term.weight or 1))
    against: dict[str, Int64] = {}
    weights: dict[tuple[str, str], Int64] = {}
    heaviest = max((abs(term.weight) for term in rules.preferred), default=0)
    for index, theirs in enumerate(columns.rules):
        for effect in _effects_of_rules(theirs, pod, namespaces):
            where = (effect.kind, effect.topology_key)
            if where not in weights:
                weights[where] = np.zeros(len(columns.rules), dtype=np.int64)
            weights[where][index] += effect.amount
    for (kind, key), weight_of_rule in weights.items():
        _add(against if kind == _AGAINST else pull, key, columns.sum_by_row(weight_of_rule, count))
        if kind == _PULL and not rules.preferred:
            heaviest = max(heaviest, int(np.abs(weight_of_rule).max()))
    return _Standing(near, apart, against, pull, heaviest)


def _carry_on(
    standing: _Standing, moves: Sequence[PodMove], pod: Pod, rules: PodRules, namespaces: NamespaceLabels
) -> _Standing:
    """Count on over further moves; what is given is left as it is."""
    near, count = standing.near, len(standing.near)
    by_kind = {_APART: dict(standing.apart), _AGAINST: dict(standing.against), _PULL: dict(standing.pull)}
    copied: set[tuple[str, str]] = set()
    for move in moves:
        for effect in _effects(pod, rules, move.pod, namespaces):
            if effect.kind == _NEAR:
                continue
            amounts = by_kind[effect.kind]
            where = (effect.kind, effect.topology_key)
            if where not in copied:
                copied.add(where)
                old = amounts.get(effect.topology_key)
                amounts[effect.topology_key] = np.zeros(count, dtype=np.int64) if old is None else old.copy()
            amounts[effect.topology_key][move.row] += move.sign * effect.amount
        if rules.near and _meets_affinity(move.pod, rules, namespaces):
            near = near.copy()
            near[move.row] += move.sign
    return _Standing(near, by_kind[_APART], by_kind[_AGAINST], by_kind[_PULL], standing.heaviest)


def _effects(pod: Pod, rules: PodRules, placed: Pod, namespaces: NamespaceLabels) -> Iterator[_Effect]:
    """All that a placed pod means to the pod, by the rules of either."""
    if _meets_affinity(placed, rules, namespaces):
        for term in rules.near:
            yield _Effect(_NEAR, term.topology_key, 1)
    for term in rules.apart:
        if term.audience.includes(placed, namespaces):
            yield _Effect(_APART, term.topology_key, 1)
    for term in rules.preferred:
        if term.audience.includes(placed, namespaces):
            yield _Effect(_PULL, term.topology_key, term.weight)
    if has_pod_rules(placed):
        yield from _effects_of_rules(rules_of(placed), pod, namespaces)


def _effects_of_rules(theirs: PodRules, pod: Pod, namespaces: NamespaceLabels) -> Iterator[_Effect]:
    """What the rules of a placed pod mean to the pod."""
    for term in theirs.apart:
        if term.audience.includes(pod, namespaces):
            yield _Effect(_AGAINST, term.topology_key, 1)
    for term in theirs.near:
        if term.audience.includes(pod, namespaces):
            yield _Effect(_PULL, term.topology_key, _HARD_WEIGHT)
    for term in theirs.preferred:
        if term.audience.includes(pod, namespaces):
            yield _Effect(_PULL, term.topology_key, term.weight)


def _meets_affinity(placed: Pod, rules: PodRules, namespaces: NamespaceLabels) -> bool:
    """Whether a placed pod meets all required affinity terms at once: only such a pod counts, as in stock."""
    return bool(rules.near) and all(term.audience.includes(placed, namespaces) for term in rules.near)


def _add(amounts: dict[str, Int64], key: str, more: Int64) -> None:
    amounts[key] = amounts[key] + more if key in amounts else more


# ── wakes ────────────────────────────────────────────────────────────────────────────────────────


def _may_be_about(terms: Sequence[Term], other: Pod) -> bool:
    """Whether one of these terms may be about the other pod, whatever the labels of its namespace are."""
    return any(
        term.audience.namespace_selector is not None or term.audience.includes(other, {}) for term in terms
    )


def _is_wanted_near(rejected: Rejected, event: ClusterEvent) -> Hint:
    """Somebody was placed whom a waiting pod must be near."""
    if event.pod is None:
        return Hint.QUEUE
    helps = any(_may_be_about(rules_of(pod).near, event.pod) for pod in rejected.pods)
    return Hint.QUEUE if helps else Hint.SKIP


def _is_of_concern(rejected: Rejected, event: ClusterEvent) -> Hint:
    """Somebody went who kept a waiting pod away by either's rule, or whose absence lets one be the first."""
    gone = event.pod
    if gone is None:
        return Hint.QUEUE
    theirs = rules_of(gone)
    for pod in rejected.pods:
        rules = rules_of(pod)
        if _may_be_about(rules.apart + rules.near, gone):
            return Hint.QUEUE
        if _may_be_about(theirs.apart, pod):
            return Hint.QUEUE
    return Hint.SKIP


def _has_the_labels(rejected: Rejected, event: ClusterEvent) -> Hint:
    """A node that has every label over which some waiting pod must be near others."""
    if event.node is None:
        return Hint.QUEUE
    labels = event.node.metadata.labels or {}
    helps = any(all(term.topology_key in labels for term in rules_of(pod).near) for pod in rejected.pods)
    return Hint.QUEUE if helps else Hint.SKIP
