"""NodeAffinity: node selector and required node affinity decide, preferred terms add to the score."""

from typing import ClassVar

import numpy as np

from muster.api.core import LabelSelectorRequirement, Node, Pod
from muster.api.selectors import matches_name_field, matches_node_term, matches_requirement
from muster.base.arrays import Float64, Int32
from muster.cluster.snapshot import Snapshot
from muster.framework.events import Change, ClusterEvent, Hint, HintRule, Rejected, opens
from muster.framework.points import NodeReason, NodeVerdict
from muster.placement.node_rules import (
    meets_node_rules,
    node_affinity_of,
    required_terms,
    selector_requirements,
    term_mask,
)


class NodeAffinity:
    """A node must have every label of the node selector and meet one term of the required affinity.

    An empty list of terms, and an empty term, are met by no node.
    """

    name: ClassVar[str] = "NodeAffinity"
    reads_metadata: ClassVar[bool] = False
    judges_row_alone: ClassVar[bool] = True
    reads_pods: ClassVar[bool] = False

    def filter(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> NodeVerdict:
        feasible = meets_node_rules(pod, snapshot, rows)
        if feasible.all():
            return NodeVerdict(feasible)
        text = "node(s) didn't match Pod's node affinity/selector"
        return NodeVerdict(feasible, (NodeReason(~feasible, text, resolvable=False),))

    def example(self, pod: Pod, snapshot: Snapshot, row: int, text: str) -> str:
        node = snapshot.nodes[row]
        return "" if node is None else _unmet(pod, node)

    def rows_changed(self, placed: Pod, row: int, pod: Pod, snapshot: Snapshot) -> Int32 | None:
        return np.empty(0, dtype=np.int32)

    def score(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> Float64:
        """The share of preferred weight that the node earns, 100 for all of it."""
        affinity = node_affinity_of(pod)
        earned = np.zeros(len(rows), dtype=np.float64)
        total = 0
        for entry in (affinity.preferred or ()) if affinity is not None else ():
            if entry.preference is not None and entry.weight > 0:
                total += entry.weight
                earned += entry.weight * term_mask(entry.preference, snapshot, rows)
        return 100.0 * earned / total if total else earned

    def hint_rules(self) -> tuple[HintRule, ...]:
        return (
            HintRule(Change.NODE_ADDED, _matches_now),
            HintRule(Change.NODE_LABELS_CHANGED, _matches_now),
            HintRule(Change.POD_UPDATED),
        )


def _unmet(pod: Pod, node: Node) -> str:
    """The first rule of the pod that the node does not meet; of the required terms, the first one's."""
    labels = node.metadata.labels or {}
    for requirement in selector_requirements(pod):
        if not matches_requirement(requirement, labels.get(requirement.key)):
            return _asks("nodeSelector", requirement, labels.get(requirement.key))
    terms = required_terms(pod)
    if terms is None or any(matches_node_term(term, node) for term in terms):
        return ""
    if not terms:
        return "the required node affinity has no terms"
    number = f"1st of {len(terms)} affinity terms" if len(terms) > 1 else "node affinity"
    for requirement in terms[0].match_expressions or ():
        if not matches_requirement(requirement, labels.get(requirement.key)):
            return _asks(number, requirement, labels.get(requirement.key))
    for field in terms[0].match_fields or ():
        if not matches_name_field(field, node.metadata.name):
            return _asks(number, field, node.metadata.name)
    return f"{number} is empty, which no node meets"


def _asks(rule: str, requirement: LabelSelectorRequirement, value: str | None) -> str:
    """What the rule asks of one label or field, and what is there."""
    values = f" ({', '.join(requirement.values)})" if requirement.values else ""
    there = "is not there" if value is None else f"is {value}"
    return f"{rule} asks {requirement.key} {requirement.operator}{values}, which {there}"


def _matches_now(rejected: Rejected, event: ClusterEvent) -> Hint:
    """A node that some waiting pod may use, and could not before."""
    return opens(rejected, event, _matches)


def _matches(pod: Pod, node: Node) -> bool:
    labels = node.metadata.labels or {}
    if not all(matches_requirement(r, labels.get(r.key)) for r in selector_requirements(pod)):
        return False
    terms = required_terms(pod)
    return terms is None or any(matches_node_term(term, node) for term in terms)
