"""NodeAffinity: node selector and required node affinity decide, preferred terms add to the score."""

from collections.abc import Iterable
from typing import ClassVar

import numpy as np

from muster.api import core
from muster.api.core import LabelSelectorRequirement, Node, NodeSelectorTerm, Pod
from muster.api.selectors import matches_name_field, matches_node_term, matches_requirement
from muster.base.arrays import Bool, Float64, Int32
from muster.cluster.snapshot import Snapshot
from muster.framework.events import Change, ClusterEvent, Hint, HintRule, Rejected
from muster.framework.points import NodeReason, NodeVerdict


class NodeAffinity:
    """A node must have every label of the node selector and meet one term of the required affinity.

    An empty list of terms, and an empty term, are met by no node.
    """

    name: ClassVar[str] = "NodeAffinity"
    reads_metadata: ClassVar[bool] = False

    def filter(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> NodeVerdict:
        feasible = np.ones(len(rows), dtype=np.bool_)
        for requirement in _selector_requirements(pod):
            feasible &= _requirement_mask(requirement, snapshot)[rows]
        terms = _required_terms(pod)
        if terms is not None:
            any_term = np.zeros(len(rows), dtype=np.bool_)
            for term in terms:
                any_term |= _term_mask(term, snapshot)[rows]
            feasible &= any_term
        if feasible.all():
            return NodeVerdict(feasible)
        text = "node(s) didn't match Pod's node affinity/selector"
        return NodeVerdict(feasible, (NodeReason(~feasible, text, resolvable=False),))

    def rows_changed(self, placed: Pod, row: int, pod: Pod, snapshot: Snapshot) -> Int32 | None:
        return np.empty(0, dtype=np.int32)

    def score(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> Float64:
        """The share of preferred weight that the node earns, 100 for all of it."""
        affinity = _node_affinity(pod)
        earned = np.zeros(len(rows), dtype=np.float64)
        total = 0
        for entry in (affinity.preferred or ()) if affinity is not None else ():
            if entry.preference is not None and entry.weight > 0:
                total += entry.weight
                earned += entry.weight * _term_mask(entry.preference, snapshot)[rows]
        return 100.0 * earned / total if total else earned

    def hint_rules(self) -> tuple[HintRule, ...]:
        return (
            HintRule(Change.NODE_ADDED, _matches_now),
            HintRule(Change.NODE_LABELS_CHANGED, _matches_now),
            HintRule(Change.POD_UPDATED),
        )


def _node_affinity(pod: Pod) -> core.NodeAffinity | None:
    return pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None


def _required_terms(pod: Pod) -> list[NodeSelectorTerm] | None:
    """The terms of which one must be met; None where no required affinity was written."""
    affinity = _node_affinity(pod)
    if affinity is None or affinity.required is None:
        return None
    return affinity.required.node_selector_terms or []


def _selector_requirements(pod: Pod) -> Iterable[LabelSelectorRequirement]:
    for key, value in (pod.spec.node_selector or {}).items():
        yield LabelSelectorRequirement(key=key, operator="In", values=[value])


def _term_mask(term: NodeSelectorTerm, snapshot: Snapshot) -> Bool:
    """[N] which rows meet every expression and field of the term; none if it is empty."""
    expressions, fields = term.match_expressions or (), term.match_fields or ()
    mask = np.full(len(snapshot.node_names), bool(expressions or fields), dtype=np.bool_)
    for requirement in expressions:
        mask &= _requirement_mask(requirement, snapshot)
    for field in fields:
        mask &= np.array([matches_name_field(field, name) for name in snapshot.node_names], dtype=np.bool_)
    return mask


def _requirement_mask(requirement: LabelSelectorRequirement, snapshot: Snapshot) -> Bool:
    column = snapshot.labels.column(requirement.key)
    matching = np.array([matches_requirement(requirement, value) for value in column.values], dtype=np.bool_)
    return column.mask(matching, missing=matches_requirement(requirement, None))


def _matches_now(rejected: Rejected, event: ClusterEvent) -> Hint:
    """A node that some waiting pod may use, and could not before."""
    node, old_node = event.node, event.old_node
    if node is None:
        return Hint.QUEUE
    for pod in rejected.pods:
        if _matches(pod, node) and not (old_node is not None and _matches(pod, old_node)):
            return Hint.QUEUE
    return Hint.SKIP


def _matches(pod: Pod, node: Node) -> bool:
    labels = node.metadata.labels or {}
    if not all(matches_requirement(r, labels.get(r.key)) for r in _selector_requirements(pod)):
        return False
    terms = _required_terms(pod)
    return terms is None or any(matches_node_term(term, node) for term in terms)
