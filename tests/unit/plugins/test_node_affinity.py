"""NodeAffinity: node selector, required and preferred terms."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given

from muster.api.core import Node, Pod
from muster.api.selectors import matches_node_term
from muster.framework.events import Change, ClusterEvent, Hint, Rejected
from muster.plugins.node_affinity import NodeAffinity
from muster.testing.builders import ClusterBuilder, make_cluster, make_node, make_pod
from muster.testing.conformance import check_plugin
from muster.testing.strategies import clusters, pods

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
IN_R1 = {"key": "rack", "operator": "In", "values": ["r1"]}


def requiring(*terms: dict[str, Any]) -> Pod:
    return make_pod(affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}})


def feasible(pod: Pod, cluster: ClusterBuilder) -> list[bool]:
    snapshot = cluster.snapshot()
    answer: list[bool] = NodeAffinity().filter(pod, snapshot, snapshot.live_rows()).feasible.tolist()
    return answer


def racks() -> ClusterBuilder:
    return make_cluster().node(labels={"rack": "r1"}).node(labels={"rack": "r2"}).node()


def test_it_keeps_the_contract() -> None:
    check_plugin(NodeAffinity(), pods=[requiring(), requiring({"matchExpressions": [IN_R1]})])


def allowed(pod: Pod, node: Node) -> bool:
    """The slow twin: scalar matching of one node."""
    labels = node.metadata.labels or {}
    if any(labels.get(key) != value for key, value in (pod.spec.node_selector or {}).items()):
        return False
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    if affinity is None or affinity.required is None:
        return True
    return any(matches_node_term(term, node) for term in affinity.required.node_selector_terms or ())


@given(cluster=clusters(), pod=pods())
def test_columns_say_the_same_as_node_by_node(cluster: ClusterBuilder, pod: Pod) -> None:
    snapshot = cluster.snapshot()
    nodes = [snapshot.nodes[row] for row in snapshot.live_rows().tolist()]
    assert feasible(pod, cluster) == [allowed(pod, node) for node in nodes if node is not None]


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(make_pod(node_selector={"rack": "r2"}), [False, True, False], id="node-selector"),
        pytest.param(requiring({"matchExpressions": [IN_R1]}), [True, False, False], id="one-term"),
        pytest.param(
            requiring(
                {"matchExpressions": [IN_R1]},
                {"matchExpressions": [{"key": "rack", "operator": "DoesNotExist"}]},
            ),
            [True, False, True],
            id="terms-are-alternatives",
        ),
        pytest.param(requiring(), [False] * 3, id="no-term-is-met-by-no-node"),
        pytest.param(requiring({}), [False] * 3, id="an-empty-term-is-met-by-no-node"),
        pytest.param(
            requiring({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n3"]}]}),
            [False, False, True],
            id="match-fields",
        ),
        pytest.param(
            requiring(
                {
                    "matchExpressions": [IN_R1],
                    "matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n1"]}],
                }
            ),
            [False] * 3,
            id="expressions-and-fields-together",
        ),
    ],
)
def test_required(pod: Pod, expected: list[bool]) -> None:
    assert feasible(pod, racks()) == expected


def test_the_reason_is_worded_as_in_stock() -> None:
    snapshot = racks().snapshot()
    verdict = NodeAffinity().filter(make_pod(node_selector={"a": "b"}), snapshot, snapshot.live_rows())
    assert [(r.text, r.resolvable) for r in verdict.reasons] == [
        ("node(s) didn't match Pod's node affinity/selector", False)
    ]


def test_preferred_terms_earn_their_share_of_the_weight() -> None:
    terms = [
        {"weight": 3, "preference": {"matchExpressions": [IN_R1]}},
        {"weight": 1, "preference": {"matchExpressions": [{"key": "rack", "operator": "Exists"}]}},
        {"weight": 5, "preference": {}},
    ]
    snapshot = racks().snapshot()
    pod = make_pod(affinity={"nodeAffinity": {PREFERRED: terms}})
    score = NodeAffinity().score(pod, snapshot, snapshot.live_rows())
    np.testing.assert_allclose(score, [400 / 9, 100 / 9, 0])


def test_without_preferences_every_node_is_equal() -> None:
    snapshot = racks().snapshot()
    assert not NodeAffinity().score(make_pod(), snapshot, snapshot.live_rows()).any()


@pytest.mark.parametrize(
    ("node", "old", "expected"),
    [
        pytest.param(make_node(labels={"rack": "r1"}), None, Hint.QUEUE, id="a-matching-node-comes"),
        pytest.param(make_node(), None, Hint.SKIP, id="another-node-comes"),
        pytest.param(make_node(labels={"rack": "r1"}), make_node(), Hint.QUEUE, id="gets-the-label"),
        pytest.param(
            make_node(labels={"rack": "r1", "a": "b"}),
            make_node(labels={"rack": "r1"}),
            Hint.SKIP,
            id="matched-before",
        ),
    ],
)
def test_a_node_that_matches_now_wakes(node: Node, old: Node | None, expected: Hint) -> None:
    rejected = Rejected(None, None, (requiring({"matchExpressions": [IN_R1]}),))
    rules = {rule.change: rule for rule in NodeAffinity().hint_rules()}
    for change in (Change.NODE_ADDED, Change.NODE_LABELS_CHANGED):
        helps = rules[change].helps
        assert helps is not None
        assert helps(rejected, ClusterEvent(change, node=node, old_node=old)) is expected


@pytest.mark.parametrize(
    ("pod", "shown"),
    [
        pytest.param(
            make_pod(node_selector={"rack": "r2"}),
            "nodeSelector asks rack In (r2), which is r1",
            id="selector",
        ),
        pytest.param(
            requiring({"matchExpressions": [{"key": "disk", "operator": "Exists"}]}),
            "node affinity asks disk Exists, which is not there",
            id="label-that-is-not-there",
        ),
        pytest.param(
            requiring(
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n9"]}]},
                {"matchExpressions": [{"key": "rack", "operator": "NotIn", "values": ["r1"]}]},
            ),
            "1st of 2 affinity terms asks metadata.name In (n9), which is n1",
            id="first-of-several-terms",
        ),
        pytest.param(requiring({}), "node affinity is empty, which no node meets", id="empty-term"),
        pytest.param(requiring(), "the required node affinity has no terms", id="no-terms"),
    ],
)
def test_the_example_names_the_rule_that_is_not_met_and_what_is_there(pod: Pod, shown: str) -> None:
    assert NodeAffinity().example(pod, racks().snapshot(), 0, "any") == shown
