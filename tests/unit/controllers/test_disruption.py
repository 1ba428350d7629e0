"""PodDisruptionBudget status."""

from typing import Any

import pytest
from tests.unit.controllers.small_cluster import SmallCluster

from muster.controllers.disruption import DisruptionStatus
from muster.controllers.objects import rfc3339
from muster.controllers.ports import DISRUPTION_BUDGETS, PODS, Object


@pytest.fixture
def cluster() -> SmallCluster:
    return SmallCluster(DisruptionStatus())


def add_pod(cluster: SmallCluster, name: str, *, ready: bool = True, **meta: Any) -> Object:
    status = {"conditions": [{"type": "Ready", "status": "True" if ready else "False"}]}
    return cluster.create(PODS, name, meta={"labels": {"app": "a"}, **meta}, spec={}, status=status)


def add_budget(cluster: SmallCluster, **spec: Any) -> None:
    selector = {"matchLabels": {"app": "a"}}
    spec = {"selector": selector, **spec}
    cluster.create(DISRUPTION_BUDGETS, "b", meta={"generation": 1}, spec=spec)


def status_of(cluster: SmallCluster) -> tuple[int, int, int, int]:
    status = cluster.get(DISRUPTION_BUDGETS, "b")["status"]
    fields = ("expectedPods", "desiredHealthy", "currentHealthy", "disruptionsAllowed")
    return tuple(status[field] for field in fields)  # type: ignore[return-value]


def reason_of(cluster: SmallCluster) -> tuple[str, str, str]:
    (condition,) = cluster.get(DISRUPTION_BUDGETS, "b")["status"]["conditions"]
    return condition["status"], condition["reason"], condition["message"]


def test_what_is_above_the_minimum_may_go(cluster: SmallCluster) -> None:
    for name in ("p", "q", "r"):
        add_pod(cluster, name)
    add_budget(cluster, minAvailable=2)
    assert status_of(cluster) == (3, 2, 3, 1)
    assert reason_of(cluster) == ("True", "SufficientPods", "")
    assert cluster.get(DISRUPTION_BUDGETS, "b")["status"]["observedGeneration"] == 1


def test_pods_not_ready_or_terminating_do_not_count(cluster: SmallCluster) -> None:
    add_budget(cluster, minAvailable=1)
    add_pod(cluster, "p")
    add_pod(cluster, "q", ready=False)
    add_pod(cluster, "r", finalizers=["example.com/x"])
    assert status_of(cluster) == (3, 1, 2, 1)
    cluster.delete(PODS, "r")
    assert status_of(cluster) == (3, 1, 1, 0)
    assert reason_of(cluster) == ("False", "InsufficientPods", "")


def test_it_follows_pods_as_they_come_and_go(cluster: SmallCluster) -> None:
    add_budget(cluster, minAvailable=1)
    assert status_of(cluster) == (0, 1, 0, 0)
    add_pod(cluster, "p")
    add_pod(cluster, "q")
    assert status_of(cluster) == (2, 1, 2, 1)
    cluster.delete(PODS, "p")
    assert status_of(cluster) == (1, 1, 1, 0)
    cluster.patch(PODS, "q", {"metadata": {"labels": {"app": "other"}}})
    assert status_of(cluster) == (0, 1, 0, 0)


def test_pods_of_no_controller_have_no_scale_for_max_unavailable(cluster: SmallCluster) -> None:
    add_pod(cluster, "p")
    add_budget(cluster, maxUnavailable=1)
    assert status_of(cluster) == (0, 0, 1, 0)


def test_a_share_of_a_controllers_pods_cannot_be_told(cluster: SmallCluster) -> None:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": True}
    add_pod(cluster, "p", ownerReferences=[owner])
    add_budget(cluster, minAvailable="50%")
    assert reason_of(cluster) == ("False", "SyncFailed", 'found no controllers for pod "p"')
    assert cluster.get(DISRUPTION_BUDGETS, "b")["status"]["disruptionsAllowed"] == 0


def test_an_evicted_pod_counts_as_gone_for_two_minutes(cluster: SmallCluster) -> None:
    for name in ("p", "q", "r"):
        add_pod(cluster, name)
    add_budget(cluster, minAvailable=1)
    assert status_of(cluster) == (3, 1, 3, 2)
    evicted = {"disruptedPods": {"p": rfc3339(cluster.now_s)}}
    cluster.patch(DISRUPTION_BUDGETS, "b", {"status": evicted})
    assert status_of(cluster) == (3, 1, 2, 1)
    cluster.run(121)
    assert status_of(cluster) == (3, 1, 3, 2)
    assert not cluster.get(DISRUPTION_BUDGETS, "b")["status"].get("disruptedPods")


def test_a_status_somebody_else_wrote_is_put_right(cluster: SmallCluster) -> None:
    add_pod(cluster, "p")
    add_budget(cluster, minAvailable=1)
    cluster.patch(DISRUPTION_BUDGETS, "b", {"status": {"disruptionsAllowed": 7}})
    assert status_of(cluster) == (1, 1, 1, 0)
