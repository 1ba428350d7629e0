"""A silent node becomes NotReady and tainted, and comes back."""

from typing import Any

import pytest
from tests.unit.controllers.small_cluster import SmallCluster

from muster.controllers.kubelet import KUBELET_ANNOTATION, STOPPED, Kubelets
from muster.controllers.node_lifecycle import NodeLifecycle
from muster.controllers.objects import find_condition
from muster.controllers.ports import NODES, PODS


@pytest.fixture
def cluster() -> SmallCluster:
    cluster = SmallCluster(Kubelets(), NodeLifecycle())
    cluster.create(NODES, "n1", namespace="", spec={}, status={"allocatable": {"cpu": "4", "pods": "9"}})
    return cluster


def tell(cluster: SmallCluster, kubelet: str | None) -> None:
    note = {"metadata": {"annotations": {KUBELET_ANNOTATION: kubelet}}}
    cluster.patch(NODES, "n1", note, namespace="")


def taints(cluster: SmallCluster) -> list[tuple[str, str]]:
    spec = cluster.get(NODES, "n1", namespace="")["spec"]
    return [(taint["key"], taint["effect"]) for taint in spec.get("taints") or ()]


def condition(cluster: SmallCluster, type_: str = "Ready") -> dict[str, Any]:
    found = find_condition(cluster.get(NODES, "n1", namespace=""), type_)
    assert found is not None
    return found


def test_a_node_with_a_kubelet_stays_ready(cluster: SmallCluster) -> None:
    cluster.run(600)
    assert condition(cluster)["status"] == "True"
    assert taints(cluster) == []


def test_after_fifty_seconds_of_silence_it_is_unknown_and_tainted(cluster: SmallCluster) -> None:
    tell(cluster, STOPPED)
    cluster.run(49)
    assert condition(cluster)["status"] == "True"
    cluster.run(2)
    assert condition(cluster)["status"] == "Unknown"
    assert condition(cluster)["reason"] == "NodeStatusUnknown"
    assert condition(cluster)["message"] == "Kubelet stopped posting node status."
    assert condition(cluster, "MemoryPressure")["status"] == "Unknown"
    assert taints(cluster) == [
        ("node.kubernetes.io/unreachable", "NoSchedule"),
        ("node.kubernetes.io/unreachable", "NoExecute"),
    ]
    assert ("Normal", "NodeNotReady", "Node n1 status is now: NodeNotReady") in cluster.events()


def test_its_pods_count_as_not_ready(cluster: SmallCluster) -> None:
    cluster.create(PODS, "p", spec={"nodeName": "n1", "containers": [{"name": "c"}]})
    tell(cluster, STOPPED)
    cluster.run(60)
    ready = find_condition(cluster.get(PODS, "p"), "Ready")
    assert ready is not None
    assert ready["status"] == "False"


def test_when_it_speaks_again_it_is_ready_and_free_of_taints(cluster: SmallCluster) -> None:
    tell(cluster, STOPPED)
    cluster.run(120)
    tell(cluster, None)
    assert condition(cluster)["status"] == "True"
    assert taints(cluster) == []
    cluster.run(600)
    assert condition(cluster)["status"] == "True"


def test_a_node_that_never_spoke_is_told_so() -> None:
    cluster = SmallCluster(NodeLifecycle())
    cluster.create(NODES, "n1", namespace="", spec={})
    cluster.run(60)
    assert condition(cluster)["reason"] == "NodeStatusNeverUpdated"


@pytest.mark.parametrize(
    ("type_", "status", "expected"),
    [
        pytest.param(
            "Ready",
            "False",
            [("node.kubernetes.io/not-ready", "NoSchedule"), ("node.kubernetes.io/not-ready", "NoExecute")],
            id="not-ready",
        ),
        pytest.param(
            "MemoryPressure", "True", [("node.kubernetes.io/memory-pressure", "NoSchedule")], id="memory"
        ),
        pytest.param("DiskPressure", "True", [("node.kubernetes.io/disk-pressure", "NoSchedule")], id="disk"),
    ],
)
def test_conditions_become_taints(
    cluster: SmallCluster, type_: str, status: str, expected: list[tuple[str, str]]
) -> None:
    conditions = [{"type": "Ready", "status": "True"}, {"type": type_, "status": status}]
    conditions = [entry for entry in conditions if entry["type"] != type_ or entry["status"] == status]
    cluster.patch(NODES, "n1", {"status": {"conditions": conditions}}, namespace="")
    assert taints(cluster) == expected


def test_cordoning_taints_and_uncordoning_frees_and_taints_of_others_stay(cluster: SmallCluster) -> None:
    other = {"key": "example.com/x", "effect": "NoSchedule"}
    cluster.patch(NODES, "n1", {"spec": {"unschedulable": True, "taints": [other]}}, namespace="")
    assert taints(cluster) == [
        ("example.com/x", "NoSchedule"),
        ("node.kubernetes.io/unschedulable", "NoSchedule"),
    ]
    cluster.patch(NODES, "n1", {"spec": {"unschedulable": None}}, namespace="")
    assert taints(cluster) == [("example.com/x", "NoSchedule")]
