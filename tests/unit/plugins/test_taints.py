"""TaintToleration."""

import numpy as np
import pytest
from hypothesis import given

from muster.api.core import Node, Pod
from muster.api.selectors import find_untolerated
from muster.framework.events import Change, ClusterEvent, Hint, Rejected
from muster.plugins.taints import TaintToleration
from muster.testing.builders import ClusterBuilder, make_cluster, make_node, make_pod
from muster.testing.conformance import check_plugin
from muster.testing.strategies import clusters, pods

INFER = {"key": "dedicated", "value": "infer", "effect": "NoSchedule"}
TOLERANT = make_pod(tolerations=[{"key": "dedicated", "value": "infer"}])


def test_it_keeps_the_contract() -> None:
    check_plugin(TaintToleration(), pods=[TOLERANT])


@given(cluster=clusters(), pod=pods())
def test_every_row_is_judged_by_its_own_taints(cluster: ClusterBuilder, pod: Pod) -> None:
    snapshot = cluster.snapshot()
    rows = snapshot.live_rows()
    nodes = [snapshot.nodes[row] for row in rows.tolist()]
    expected = [
        find_untolerated(node.spec.taints or (), pod.spec.tolerations or (), ("NoSchedule", "NoExecute"))
        is None
        for node in nodes
        if node is not None
    ]
    assert TaintToleration().filter(pod, snapshot, rows).feasible.tolist() == expected


def test_the_reason_names_the_taint() -> None:
    snapshot = make_cluster().node(taints=[INFER]).node(taints=[{**INFER, "value": "train"}]).snapshot()
    verdict = TaintToleration().filter(make_pod(), snapshot, snapshot.live_rows())
    assert [(r.text, r.resolvable) for r in verdict.reasons] == [
        ("node(s) had untolerated taint {dedicated: infer}", False),
        ("node(s) had untolerated taint {dedicated: train}", False),
    ]


def test_soft_taints_cost_score_and_nothing_else() -> None:
    soft = {"key": "spot", "effect": "PreferNoSchedule"}
    more = {"key": "slow", "effect": "PreferNoSchedule"}
    snapshot = make_cluster().node().node(taints=[soft]).node(taints=[soft, more]).snapshot()
    rows = snapshot.live_rows()
    assert TaintToleration().filter(make_pod(), snapshot, rows).feasible.all()
    np.testing.assert_allclose(TaintToleration().score(make_pod(), snapshot, rows), [100, 50, 100 / 3])
    tolerant = make_pod(tolerations=[{"key": "spot", "operator": "Exists"}])
    np.testing.assert_allclose(TaintToleration().score(tolerant, snapshot, rows), [100, 100, 50])


@pytest.mark.parametrize(
    ("pod", "node", "old", "expected"),
    [
        pytest.param(make_pod(), make_node(), make_node(taints=[INFER]), Hint.QUEUE, id="taint-taken-away"),
        pytest.param(make_pod(), make_node(taints=[INFER]), None, Hint.SKIP, id="new-node-tainted"),
        pytest.param(TOLERANT, make_node(taints=[INFER]), None, Hint.QUEUE, id="new-node-tolerated"),
        pytest.param(make_pod(), make_node(), make_node(), Hint.SKIP, id="was-tolerated-before"),
    ],
)
def test_a_node_whose_taints_are_tolerated_now_wakes(
    pod: Pod, node: Node, old: Node | None, expected: Hint
) -> None:
    rules = {rule.change: rule for rule in TaintToleration().hint_rules()}
    for change in (Change.NODE_ADDED, Change.NODE_TAINTS_CHANGED):
        helps = rules[change].helps
        assert helps is not None
        event = ClusterEvent(change, node=node, old_node=old)
        assert helps(Rejected(None, None, (pod,)), event) is expected
