"""NodeName."""

from muster.framework.events import Change, ClusterEvent, Hint, Rejected
from muster.plugins.node_name import NodeName
from muster.testing.builders import make_cluster, make_node, make_pod
from muster.testing.conformance import check_plugin


def test_it_keeps_the_contract() -> None:
    check_plugin(NodeName(), pods=[make_pod(node="n1"), make_pod(node="none")])


def test_a_pod_that_names_its_node_goes_there_only() -> None:
    snapshot = make_cluster().nodes(3).snapshot()
    verdict = NodeName().filter(make_pod(node="n2"), snapshot, snapshot.live_rows())
    assert verdict.feasible.tolist() == [False, True, False]
    assert [(reason.text, reason.resolvable) for reason in verdict.reasons] == [
        ("node(s) didn't match the requested node name", False)
    ]


def test_a_pod_that_names_none_goes_anywhere() -> None:
    snapshot = make_cluster().nodes(2).snapshot()
    assert NodeName().filter(make_pod(), snapshot, snapshot.live_rows()).feasible.all()


def test_only_the_named_node_wakes_it() -> None:
    (rule,) = NodeName().hint_rules()
    assert rule.helps is not None
    rejected = Rejected(None, None, (make_pod(node="n2"),))
    for name, hint in (("n1", Hint.SKIP), ("n2", Hint.QUEUE)):
        assert rule.helps(rejected, ClusterEvent(Change.NODE_ADDED, node=make_node(name))) is hint
