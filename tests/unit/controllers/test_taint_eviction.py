"""Pods leave a node tainted NoExecute."""

from typing import Any

import pytest
from tests.unit.controllers.small_cluster import SmallCluster

from muster.controllers.objects import find_condition
from muster.controllers.ports import NODES, PODS, Object
from muster.controllers.taint_eviction import TaintEviction

LOST = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}
GPU = {"key": "gpu", "value": "broken", "effect": "NoExecute"}


@pytest.fixture
def cluster() -> SmallCluster:
    cluster = SmallCluster(TaintEviction())
    cluster.create(NODES, "n1", namespace="", spec={})
    return cluster


def taint(cluster: SmallCluster, *taints: Object) -> None:
    cluster.patch(NODES, "n1", {"spec": {"taints": list(taints) or None}}, namespace="")


def add_pod(cluster: SmallCluster, *tolerations: Any, **more: Any) -> None:
    cluster.create(PODS, "p", spec={"nodeName": "n1", "tolerations": list(tolerations)}, **more)


def test_who_does_not_tolerate_leaves_at_once_with_the_reason(cluster: SmallCluster) -> None:
    add_pod(cluster, meta={"finalizers": ["example.com/x"]})
    taint(cluster, LOST)
    pod = cluster.get(PODS, "p")
    assert pod["metadata"]["deletionTimestamp"]
    condition = find_condition(pod, "DisruptionTarget")
    assert condition is not None
    assert condition["reason"] == "DeletionByTaintManager"
    assert cluster.events() == [("Normal", "TaintManagerEviction", "Marking for deletion Pod default/p")]


def test_who_tolerates_for_a_while_leaves_after_it(cluster: SmallCluster) -> None:
    add_pod(cluster, {"key": LOST["key"], "operator": "Exists", "tolerationSeconds": 300})
    taint(cluster, LOST)
    cluster.run(299)
    assert cluster.find(PODS, "p") is not None
    cluster.run(2)
    assert cluster.find(PODS, "p") is None


def test_a_taint_that_goes_in_time_evicts_nobody(cluster: SmallCluster) -> None:
    add_pod(cluster, {"key": LOST["key"], "operator": "Exists", "tolerationSeconds": 300})
    taint(cluster, LOST)
    cluster.run(200)
    taint(cluster)
    cluster.run(200)
    assert cluster.find(PODS, "p") is not None
    taint(cluster, LOST)
    cluster.run(299)
    assert cluster.find(PODS, "p") is not None


@pytest.mark.parametrize(
    ("toleration", "stays"),
    [
        pytest.param({"operator": "Exists"}, True, id="everything"),
        pytest.param({"key": "gpu", "operator": "Exists"}, True, id="the-key"),
        pytest.param({"key": "gpu", "value": "broken"}, True, id="key-and-value"),
        pytest.param({"key": "gpu", "value": "other"}, False, id="another-value"),
        pytest.param({"key": "cpu", "operator": "Exists"}, False, id="another-key"),
        pytest.param(
            {"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}, False, id="another-effect"
        ),
        pytest.param({"key": "gpu", "operator": "Exists", "effect": "NoExecute"}, True, id="the-effect"),
    ],
)
def test_what_tolerates(cluster: SmallCluster, toleration: Object, stays: bool) -> None:
    add_pod(cluster, toleration)
    taint(cluster, GPU)
    assert (cluster.find(PODS, "p") is not None) == stays


def test_the_shortest_toleration_of_several_taints_counts(cluster: SmallCluster) -> None:
    add_pod(
        cluster,
        {"key": "gpu", "operator": "Exists", "tolerationSeconds": 60},
        {"key": LOST["key"], "operator": "Exists", "tolerationSeconds": 10},
    )
    taint(cluster, GPU, LOST)
    cluster.run(11)
    assert cluster.find(PODS, "p") is None


def test_a_pod_bound_to_a_tainted_node_is_evicted(cluster: SmallCluster) -> None:
    taint(cluster, LOST)
    add_pod(cluster)
    assert cluster.find(PODS, "p") is None


def test_other_effects_and_ended_pods_are_left_alone(cluster: SmallCluster) -> None:
    add_pod(cluster, status={"phase": "Succeeded"})
    cluster.create(PODS, "q", spec={"nodeName": "n1"})
    taint(cluster, {**LOST, "effect": "NoSchedule"})
    assert cluster.find(PODS, "q") is not None
    taint(cluster, LOST)
    assert cluster.find(PODS, "p") is not None
    assert cluster.find(PODS, "q") is None
