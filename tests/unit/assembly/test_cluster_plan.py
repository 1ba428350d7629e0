"""Tests of assembly/cluster_plan.py: the parts that are asked for are there, and no others."""

import numpy as np
import pytest

from muster.apiserver.exchange import Request
from muster.apiserver.server import DEFAULT_GATES
from muster.assembly.cluster_plan import ClusterPlan, build_cluster
from muster.assembly.config import Config
from muster.assembly.embedded import EmbeddedCluster
from muster.assembly.node_manifests import nodes_from_shape
from muster.base.errors import ConfigError

NOW_S = 1_800_000_000.0


def build(plan: ClusterPlan) -> EmbeddedCluster:
    return build_cluster(plan, np.random.default_rng(1), NOW_S)


def test_the_nodes_are_there_as_they_were_given() -> None:
    cluster = build(ClusterPlan(nodes_from_shape(2, "cpu=3,memory=1Gi")))
    answer = cluster.request(Request("GET", "/api/v1/nodes/n2"), NOW_S).object
    assert answer is not None
    assert answer["status"]["allocatable"]["cpu"] == "3"


def test_its_gates_are_those_of_the_server() -> None:
    assert build(ClusterPlan([])).server.gates == DEFAULT_GATES
    assert build(ClusterPlan([], gates=frozenset({"GenericWorkload"}))).server.gates == {"GenericWorkload"}


def test_without_a_scheduler_there_is_none() -> None:
    assert build(ClusterPlan([], scheduler=None)).schedulers == ()
    assert len(build(ClusterPlan([], scheduler=Config())).schedulers) == 1


@pytest.mark.parametrize(("kubelets", "ready"), [(True, True), (False, False)], ids=["with", "without"])
def test_only_kubelets_make_nodes_ready(kubelets: bool, ready: bool) -> None:
    cluster = build(ClusterPlan(nodes_from_shape(1, "cpu=3"), kubelets=kubelets))
    while cluster.advance(NOW_S) == NOW_S:
        pass
    answer = cluster.request(Request("GET", "/api/v1/nodes/n1"), NOW_S).object
    assert answer is not None
    conditions = answer["status"].get("conditions", [])
    assert any(entry["type"] == "Ready" and entry["status"] == "True" for entry in conditions) is ready


def test_a_node_that_the_server_refuses_is_named_with_its_words() -> None:
    nodes = nodes_from_shape(1, "cpu=3")
    nodes[0]["metadata"]["name"] = "A_B"
    with pytest.raises(ConfigError, match=r"nodes\.yaml: node 'A_B': Node \"A_B\" is invalid"):
        build(ClusterPlan(nodes, "nodes.yaml"))
