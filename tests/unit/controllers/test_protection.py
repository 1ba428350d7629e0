"""A PodGroup stays until its pods have ended (cases F-02 to F-07 of the conformance suite)."""

import pytest
from tests.unit.controllers.small_cluster import SmallCluster

from muster.controllers.ports import POD_GROUPS, PODS, Object
from muster.controllers.protection import FINALIZER, GroupProtection


@pytest.fixture
def cluster() -> SmallCluster:
    cluster = SmallCluster(GroupProtection())
    cluster.create(POD_GROUPS, "g", meta={"finalizers": [FINALIZER]}, spec={})
    return cluster


def add_pod(cluster: SmallCluster, name: str, *, group: str = "g", **more: object) -> Object:
    return cluster.create(PODS, name, spec={"schedulingGroup": {"podGroupName": group}}, **more)  # type: ignore[arg-type]


def test_a_group_without_pods_goes_at_once(cluster: SmallCluster) -> None:
    cluster.delete(POD_GROUPS, "g")
    assert cluster.find(POD_GROUPS, "g") is None


def test_a_group_that_is_not_deleted_keeps_its_finalizer(cluster: SmallCluster) -> None:
    add_pod(cluster, "p")
    cluster.delete(PODS, "p")
    assert cluster.get(POD_GROUPS, "g")["metadata"]["finalizers"] == [FINALIZER]


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_group_goes_when_its_last_pod_ends(cluster: SmallCluster, phase: str) -> None:
    add_pod(cluster, "p")
    add_pod(cluster, "q")
    cluster.delete(POD_GROUPS, "g")
    cluster.patch(PODS, "p", {"status": {"phase": phase}})
    assert cluster.get(POD_GROUPS, "g")["metadata"]["deletionTimestamp"]
    cluster.patch(PODS, "q", {"status": {"phase": phase}})
    assert cluster.find(POD_GROUPS, "g") is None
    assert cluster.get(PODS, "p")


def test_a_waiting_pod_keeps_the_group_until_it_is_gone(cluster: SmallCluster) -> None:
    add_pod(cluster, "p")
    cluster.delete(POD_GROUPS, "g")
    assert cluster.find(POD_GROUPS, "g") is not None
    cluster.delete(PODS, "p")
    assert cluster.find(POD_GROUPS, "g") is None


def test_a_terminating_pod_still_keeps_the_group(cluster: SmallCluster) -> None:
    add_pod(cluster, "p", meta={"finalizers": ["example.com/x"]})
    cluster.delete(POD_GROUPS, "g")
    cluster.delete(PODS, "p")
    assert cluster.find(POD_GROUPS, "g") is not None
    cluster.patch(PODS, "p", {"metadata": {"finalizers": None}})
    assert cluster.find(POD_GROUPS, "g") is None


def test_a_pod_of_another_namespace_does_not_keep_it(cluster: SmallCluster) -> None:
    group = {"schedulingGroup": {"podGroupName": "g"}}
    cluster.create(PODS, "p", namespace="other", spec=group)
    cluster.delete(POD_GROUPS, "g")
    assert cluster.find(POD_GROUPS, "g") is None


def test_a_pod_that_leaves_the_group_no_longer_keeps_it(cluster: SmallCluster) -> None:
    add_pod(cluster, "p")
    cluster.delete(POD_GROUPS, "g")
    cluster.patch(PODS, "p", {"spec": {"schedulingGroup": None}})
    assert cluster.find(POD_GROUPS, "g") is None


def test_finalizers_of_others_stay(cluster: SmallCluster) -> None:
    cluster.patch(POD_GROUPS, "g", {"metadata": {"finalizers": [FINALIZER, "example.com/x"]}})
    cluster.delete(POD_GROUPS, "g")
    assert cluster.get(POD_GROUPS, "g")["metadata"]["finalizers"] == ["example.com/x"]


def test_a_refused_write_is_tried_again(cluster: SmallCluster) -> None:
    cluster.server.refusals.append(("PATCH", "podgroups", 500, "broken"))
    cluster.delete(POD_GROUPS, "g")
    assert cluster.find(POD_GROUPS, "g") is not None
    cluster.server.refusals.clear()
    cluster.run(1)
    assert cluster.find(POD_GROUPS, "g") is None
