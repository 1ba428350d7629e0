"""Which nodes a pod may use by its own rules about nodes: selector and required affinity, and taints.

In come a pod and a snapshot, out go masks; each distinct value of a label, and each distinct list of taints,
is judged once.  Several plugins ask: one refuses by these rules, another counts only such nodes.
Axes: N node rows, K rows asked for.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from muster.api.core import LabelSelectorRequirement, NodeAffinity, NodeSelectorTerm, Pod
from muster.api.selectors import find_untolerated, matches_name_field, matches_requirement
from muster.base.arrays import Bool, Int32
from muster.cluster.snapshot import Snapshot

HARD_EFFECTS = ("NoSchedule", "NoExecute")


def meets_node_rules(pod: Pod, snapshot: Snapshot, rows: Int32) -> Bool:
    """[K] which rows meet the node selector and one term of the required node affinity."""
    mask = np.ones(len(rows), dtype=np.bool_)
    for requirement in selector_requirements(pod):
        mask &= _requirement_mask(requirement, snapshot, rows)
    terms = required_terms(pod)
    if terms is not None:
        any_term = np.zeros_like(mask)
        for term in terms:
            any_term |= term_mask(term, snapshot, rows)
        mask &= any_term
    return mask


def tolerates_hard_taints(pod: Pod, snapshot: Snapshot) -> Bool:
    """[N] rows without a NoSchedule or NoExecute taint that the pod does not tolerate."""
    tolerations = pod.spec.tolerations or ()
    free = [find_untolerated(taints, tolerations, HARD_EFFECTS) is None for taints in snapshot.taints.sets]
    mask: Bool = np.array(free, dtype=np.bool_)[snapshot.taints.set_of]
    return mask


def node_affinity_of(pod: Pod) -> NodeAffinity | None:
    """The pod's node affinity, if it has one."""
    return pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None


def required_terms(pod: Pod) -> Sequence[NodeSelectorTerm] | None:
    """The terms of which one must be met; None where no required affinity was written."""
    affinity = node_affinity_of(pod)
    if affinity is None or affinity.required is None:
        return None
    return affinity.required.node_selector_terms or []


def selector_requirements(pod: Pod) -> Iterable[LabelSelectorRequirement]:
    """The node selector as requirements, each of which must be met."""
    for key, value in (pod.spec.node_selector or {}).items():
        yield LabelSelectorRequirement(key=key, operator="In", values=[value])


def term_mask(term: NodeSelectorTerm, snapshot: Snapshot, rows: Int32) -> Bool:
    """[K] which rows meet every expression and field of the term; none if it is empty."""
    expressions, fields = term.match_expressions or (), term.match_fields or ()
    mask = np.full(len(rows), bool(expressions or fields), dtype=np.bool_)
    for requirement in expressions:
        mask &= _requirement_mask(requirement, snapshot, rows)
    for field in fields:
        names = snapshot.node_names
        mask &= np.array([matches_name_field(field, names[row]) for row in rows.tolist()], dtype=np.bool_)
    return mask


def _requirement_mask(requirement: LabelSelectorRequirement, snapshot: Snapshot, rows: Int32) -> Bool:
    column = snapshot.labels.column(requirement.key)
    matching = np.array([matches_requirement(requirement, value) for value in column.values], dtype=np.bool_)
    return column.mask(matching, rows, missing=matches_requirement(requirement, None))
