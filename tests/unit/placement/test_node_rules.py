"""Which nodes a pod may use by its rules about nodes, against asking node by node."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from muster.api.selectors import find_untolerated, matches_node_term
from muster.cluster.snapshot import Snapshot
from muster.placement.node_rules import (
    HARD_EFFECTS,
    meets_node_rules,
    node_affinity_of,
    required_terms,
    selector_requirements,
    term_mask,
    tolerates_hard_taints,
)
from muster.testing.builders import ClusterBuilder, make_cluster, make_pod
from muster.testing.strategies import clusters

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def required(*terms: dict[str, object]) -> dict[str, object]:
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}


def rack(operator: str, *values: str) -> dict[str, object]:
    return {"matchExpressions": [{"key": "rack", "operator": operator, "values": list(values)}]}


BY_NAME = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
TERMS = st.sampled_from(
    [rack("In", "r1"), rack("NotIn", "r1"), rack("Exists"), rack("DoesNotExist"), {}, BY_NAME]
)


@given(cluster=clusters(), terms=st.lists(TERMS, max_size=3), selector=st.sampled_from([{}, {"rack": "r2"}]))
def test_masks_are_what_each_node_answers(
    cluster: ClusterBuilder, terms: list[dict[str, object]], selector: dict[str, str]
) -> None:
    snapshot: Snapshot = cluster.snapshot()
    pod = make_pod(affinity=required(*terms), node_selector=selector)
    mask = meets_node_rules(pod, snapshot, np.arange(len(snapshot.live), dtype=np.int32))
    asked = required_terms(pod)
    assert asked is not None
    for row in snapshot.live_rows().tolist():
        node = snapshot.nodes[row]
        assert node is not None
        labels = node.metadata.labels or {}
        selected = all(labels.get(key) == value for key, value in selector.items())
        assert mask[row] == (selected and any(matches_node_term(term, node) for term in asked))
        for term in asked:
            one = np.array([row], dtype=np.int32)
            assert term_mask(term, snapshot, one)[0] == matches_node_term(term, node)


def test_without_rules_every_row_is_met() -> None:
    snapshot = make_cluster().nodes(2).snapshot()
    assert meets_node_rules(make_pod(), snapshot, snapshot.live_rows()).tolist() == [True, True]
    assert node_affinity_of(make_pod()) is None
    assert required_terms(make_pod()) is None
    assert list(selector_requirements(make_pod())) == []


@given(cluster=clusters())
def test_hard_taints_are_tolerated_or_not_node_by_node(cluster: ClusterBuilder) -> None:
    snapshot: Snapshot = cluster.snapshot()
    pod = make_pod(tolerations=[{"key": "dedicated", "operator": "Exists"}])
    rows = snapshot.live_rows()
    slow = [
        find_untolerated(node.spec.taints or (), pod.spec.tolerations or (), HARD_EFFECTS) is None
        for node in snapshot.nodes
        if node is not None
    ]
    assert np.array_equal(tolerates_hard_taints(pod, snapshot)[rows], slow)
