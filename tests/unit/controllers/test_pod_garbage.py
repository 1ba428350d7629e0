"""Pods of nodes that are gone."""

import pytest
from tests.unit.controllers.small_cluster import SmallCluster

from muster.controllers.objects import find_condition, phase_of
from muster.controllers.pod_garbage import PodGarbage
from muster.controllers.ports import NODES, PODS


@pytest.fixture
def cluster() -> SmallCluster:
    cluster = SmallCluster(PodGarbage())
    cluster.create(NODES, "n1", namespace="", spec={})
    return cluster


def test_pods_of_a_deleted_node_go_after_forty_seconds(cluster: SmallCluster) -> None:
    spec = {"nodeName": "n1", "terminationGracePeriodSeconds": 30}
    cluster.create(PODS, "p", spec=spec)
    cluster.run(100)
    cluster.delete(NODES, "n1", namespace="")
    cluster.run(39)
    assert cluster.find(PODS, "p") is not None
    cluster.run(2)
    assert cluster.find(PODS, "p") is None


def test_they_have_failed_and_say_why(cluster: SmallCluster) -> None:
    cluster.create(PODS, "p", meta={"finalizers": ["example.com/x"]}, spec={"nodeName": "n1"})
    cluster.delete(NODES, "n1", namespace="")
    cluster.run(41)
    pod = cluster.get(PODS, "p")
    condition = find_condition(pod, "DisruptionTarget")
    assert phase_of(pod) == "Failed"
    assert condition is not None
    assert condition["message"] == "PodGC: node no longer exists"


def test_a_node_that_comes_back_in_time_keeps_its_pods(cluster: SmallCluster) -> None:
    cluster.create(PODS, "p", spec={"nodeName": "n1"})
    cluster.delete(NODES, "n1", namespace="")
    cluster.run(30)
    cluster.create(NODES, "n1", namespace="", spec={})
    cluster.run(30)
    cluster.delete(NODES, "n1", namespace="")
    cluster.run(30)
    assert cluster.find(PODS, "p") is not None


def test_a_pod_bound_to_a_node_that_never_was_goes_too(cluster: SmallCluster) -> None:
    cluster.create(PODS, "p", spec={"nodeName": "ghost"})
    cluster.run(41)
    assert cluster.find(PODS, "p") is None


def test_what_ended_keeps_its_phase(cluster: SmallCluster) -> None:
    held = {"finalizers": ["example.com/x"]}
    cluster.create(PODS, "p", meta=held, spec={"nodeName": "ghost"}, status={"phase": "Succeeded"})
    cluster.run(41)
    assert phase_of(cluster.get(PODS, "p")) == "Succeeded"


def test_a_later_pod_of_the_lost_node_has_its_own_forty_seconds(cluster: SmallCluster) -> None:
    cluster.create(PODS, "p", spec={"nodeName": "ghost"})
    cluster.run(60)
    cluster.create(PODS, "q", spec={"nodeName": "ghost"})
    cluster.run(30)
    assert cluster.find(PODS, "q") is not None
