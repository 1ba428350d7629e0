"""NodeUnschedulable."""

import pytest

from muster.api.core import Node, Pod
from muster.framework.events import Change, ClusterEvent, Hint, Rejected
from muster.plugins.node_unschedulable import NodeUnschedulable
from muster.testing.builders import make_cluster, make_node, make_pod
from muster.testing.conformance import check_plugin

TOLERANT = make_pod(tolerations=[{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}])
OPEN, CORDONED = make_node(), make_node(unschedulable=True)


def hint(change: Change, pod: Pod, node: Node | None = None, old: Node | None = None) -> Hint:
    (rule,) = [rule for rule in NodeUnschedulable().hint_rules() if rule.change is change]
    assert rule.helps is not None
    event = ClusterEvent(change, node=node, old_node=old, pod=pod)
    return rule.helps(Rejected(None, None, (pod,)), event)


def test_it_keeps_the_contract() -> None:
    check_plugin(NodeUnschedulable(), pods=[TOLERANT])


def test_a_cordoned_node_is_refused_and_eviction_would_not_help() -> None:
    snapshot = make_cluster().node().node(unschedulable=True).snapshot()
    verdict = NodeUnschedulable().filter(make_pod(), snapshot, snapshot.live_rows())
    assert verdict.feasible.tolist() == [True, False]
    assert [(r.text, r.resolvable) for r in verdict.reasons] == [("node(s) were unschedulable", False)]


def test_a_pod_that_tolerates_the_cordon_may_go_there() -> None:
    snapshot = make_cluster().node(unschedulable=True).snapshot()
    assert NodeUnschedulable().filter(TOLERANT, snapshot, snapshot.live_rows()).feasible.all()


@pytest.mark.parametrize(
    ("change", "node", "old", "expected"),
    [
        pytest.param(Change.NODE_ADDED, OPEN, None, Hint.QUEUE, id="an-open-node-comes"),
        pytest.param(Change.NODE_ADDED, CORDONED, None, Hint.SKIP, id="a-cordoned-node-comes"),
        pytest.param(Change.NODE_TAINTS_CHANGED, OPEN, CORDONED, Hint.QUEUE, id="uncordoned"),
        pytest.param(Change.NODE_TAINTS_CHANGED, OPEN, OPEN, Hint.SKIP, id="was-open-before"),
    ],
)
def test_an_opened_node_wakes(change: Change, node: Node, old: Node | None, expected: Hint) -> None:
    assert hint(change, make_pod(), node, old) is expected
