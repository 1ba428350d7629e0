"""NodePorts."""

from typing import Any

import numpy as np
import pytest

from muster.api.core import Pod
from muster.framework.events import Change, ClusterEvent, Hint, Rejected
from muster.placement.capacity import UNLIMITED
from muster.plugins.node_ports import NodePorts
from muster.testing.builders import make_cluster, make_pod
from muster.testing.conformance import check_plugin


def pod_with(port: dict[str, Any], name: str = "p", node: str = "") -> Pod:
    return make_pod(name, node=node, containers=[{"ports": [{"containerPort": 1, **port}]}])


def test_it_keeps_the_contract() -> None:
    check_plugin(NodePorts(), pods=[make_pod(host_ports=[443]), make_pod(host_ports=[80, 443])])


@pytest.mark.parametrize(
    ("wanted", "free"),
    [
        pytest.param({"hostPort": 80}, False, id="same-port-all-addresses"),
        pytest.param({"hostPort": 81}, True, id="another-port"),
        pytest.param({"hostPort": 80, "protocol": "UDP"}, True, id="another-protocol"),
        pytest.param({"hostPort": 80, "hostIP": "10.0.0.1"}, False, id="same-address"),
        pytest.param({"hostPort": 80, "hostIP": "10.0.0.2"}, True, id="another-address"),
        pytest.param({"hostPort": 0}, True, id="no-host-port"),
    ],
)
def test_a_taken_port_is_refused(wanted: dict[str, Any], free: bool) -> None:
    cluster = make_cluster().node()
    cluster.state.apply_pod(pod_with({"hostPort": 80, "hostIP": "10.0.0.1"}, name="old", node="n1"))
    snapshot = cluster.snapshot()
    verdict = NodePorts().filter(pod_with(wanted), snapshot, snapshot.live_rows())
    assert verdict.feasible.tolist() == [free]
    texts = [reason.text for reason in verdict.reasons]
    assert texts == ([] if free else ["node(s) didn't have free ports for the requested pod ports"])


def test_one_copy_fits_where_the_port_is_free_and_any_number_without_ports() -> None:
    snapshot = make_cluster().nodes(2).running("old", "n1", host_ports=[80]).snapshot()
    rows = snapshot.live_rows()
    assert NodePorts().capacity(make_pod(host_ports=[80]), snapshot, rows).tolist() == [0, 1]
    assert NodePorts().capacity(make_pod(), snapshot, rows).tolist() == [UNLIMITED] * 2


def test_only_pods_that_share_a_port_change_each_others_rows() -> None:
    snapshot = make_cluster().nodes(2).snapshot()
    web, other = make_pod(host_ports=[80]), make_pod(host_ports=[443])
    changed = NodePorts().rows_changed(web, 1, web, snapshot)
    assert changed is not None
    assert changed.tolist() == [1]
    assert np.array_equal(NodePorts().rows_changed(web, 1, other, snapshot), np.array([], dtype=np.int32))


def test_members_that_want_one_port_exclude_each_other() -> None:
    snapshot = make_cluster().node("n1").node("n2").running("old", "n1", host_ports=[80]).snapshot()
    pods = [make_pod("web", host_ports=[80]), make_pod("api", host_ports=[80, 81]), make_pod("job")]
    packing = NodePorts().packing(pods, snapshot, snapshot.live_rows())
    assert packing is not None
    assert packing.conflict.tolist() == [[True, True, False], [True, True, False], [False, False, False]]
    assert packing.feasible.tolist() == [[False, True], [False, True], [True, True]]


def test_a_pod_that_frees_a_wanted_port_wakes() -> None:
    rules = {rule.change: rule for rule in NodePorts().hint_rules()}
    helps = rules[Change.POD_FREED].helps
    assert helps is not None
    rejected = Rejected(None, None, (make_pod(host_ports=[80]),))
    for ports, hint in (([80], Hint.QUEUE), ([81], Hint.SKIP), ([], Hint.SKIP)):
        event = ClusterEvent(Change.POD_FREED, pod=make_pod(host_ports=ports))
        assert helps(rejected, event) is hint
