"""Simulated kubelets: pods start, run their time, end, are refused, and let go."""

from typing import Any

import pytest
from tests.unit.controllers.small_cluster import START_S, SmallCluster

from muster.controllers.kubelet import KUBELET_ANNOTATION, LEASE_NAMESPACE, STOPPED, Kubelets
from muster.controllers.objects import find_condition, phase_of, rfc3339
from muster.controllers.ports import LEASES, NODES, PODS, Object


@pytest.fixture
def cluster() -> SmallCluster:
    cluster = SmallCluster(Kubelets())
    add_node(cluster, "n1")
    return cluster


def add_node(cluster: SmallCluster, name: str, **allocatable: str) -> Object:
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "110", **allocatable}
    return cluster.create(NODES, name, namespace="", spec={}, status={"allocatable": amounts})


def add_pod(cluster: SmallCluster, name: str = "p", *, cpu: str = "1", **more: Any) -> Object:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    spec = {"nodeName": "n1", "containers": [container], **more.pop("spec", {})}
    meta = {"annotations": {f"muster.dev/{k}": v for k, v in more.pop("notes", {}).items()}}
    return cluster.create(PODS, name, meta=meta, spec=spec, status=more.pop("status", {"phase": "Pending"}))


def phase(cluster: SmallCluster, name: str = "p") -> str:
    return phase_of(cluster.get(PODS, name))


def ready(obj: Object) -> str | None:
    condition = find_condition(obj, "Ready")
    return condition["status"] if condition else None


def test_a_new_node_reports_ready_and_holds_a_lease(cluster: SmallCluster) -> None:
    node = cluster.get(NODES, "n1", namespace="")
    assert ready(node) == "True"
    assert {c["type"]: c["status"] for c in node["status"]["conditions"]} == {
        "MemoryPressure": "False",
        "DiskPressure": "False",
        "PIDPressure": "False",
        "Ready": "True",
    }
    lease = cluster.get(LEASES, "n1", namespace=LEASE_NAMESPACE)
    assert lease["spec"]["holderIdentity"] == "n1"
    assert lease["metadata"]["ownerReferences"][0]["uid"] == node["metadata"]["uid"]


def test_a_node_says_what_it_is_unless_a_client_has(cluster: SmallCluster) -> None:
    known = {"kubeletVersion": "v1.30.0"}
    cluster.create(NODES, "n2", namespace="", spec={}, status={"nodeInfo": known})
    assert cluster.get(NODES, "n1", namespace="")["status"]["nodeInfo"]["osImage"] == "simulated by Muster"
    assert cluster.get(NODES, "n2", namespace="")["status"]["nodeInfo"] == known


def test_the_lease_is_renewed_every_ten_seconds(cluster: SmallCluster) -> None:
    def renewed() -> str:
        return str(cluster.get(LEASES, "n1", namespace=LEASE_NAMESPACE)["spec"]["renewTime"])

    first = renewed()
    cluster.run(9.9)
    assert renewed() == first
    cluster.run(0.2)
    assert renewed() > first


def test_nodes_that_come_together_do_not_all_renew_at_once(cluster: SmallCluster) -> None:
    for number in range(2, 21):
        add_node(cluster, f"n{number}")
    renewals = []
    for _ in range(10):
        before = len(cluster.server.requests)
        cluster.run(1)
        renewals.append(sum("leases" in request.path for request in cluster.server.requests[before:]))
    assert max(renewals) == 2
    assert sum(renewals) == 20


def test_what_a_client_says_of_a_node_stays(cluster: SmallCluster) -> None:
    conditions = [{"type": "Ready", "status": "False", "reason": "Mine"}]
    cluster.create(NODES, "n2", namespace="", spec={}, status={"conditions": conditions})
    cluster.run(30)
    assert cluster.get(NODES, "n2", namespace="")["status"]["conditions"] == conditions


def test_a_bound_pod_runs(cluster: SmallCluster) -> None:
    scheduled = [{"type": "PodScheduled", "status": "True"}]
    add_pod(cluster, status={"phase": "Pending", "conditions": scheduled})
    status = cluster.get(PODS, "p")["status"]
    assert status["phase"] == "Running"
    assert status["startTime"] == rfc3339(START_S)
    assert scheduled[0] in status["conditions"]
    assert ready(cluster.get(PODS, "p")) == "True"
    assert status["containerStatuses"][0]["ready"] is True


def test_a_waiting_pod_does_not_run(cluster: SmallCluster) -> None:
    add_pod(cluster, spec={"nodeName": ""})
    cluster.run(60)
    assert phase(cluster) == "Pending"


def test_without_the_annotation_it_runs_for_ever(cluster: SmallCluster) -> None:
    add_pod(cluster)
    cluster.run(100_000)
    assert phase(cluster) == "Running"


@pytest.mark.parametrize(
    ("notes", "expected", "code"),
    [
        pytest.param({}, "Succeeded", 0, id="zero-unless-said"),
        pytest.param({"exit-code": "0"}, "Succeeded", 0, id="zero"),
        pytest.param({"exit-code": "3"}, "Failed", 3, id="three"),
    ],
)
def test_it_ends_after_its_seconds_with_its_code(
    cluster: SmallCluster, notes: dict[str, str], expected: str, code: int
) -> None:
    add_pod(cluster, notes={"run-seconds": "2.5", **notes})
    cluster.run(2.4)
    assert phase(cluster) == "Running"
    cluster.run(0.2)
    assert phase(cluster) == expected
    state = cluster.get(PODS, "p")["status"]["containerStatuses"][0]["state"]
    assert state["terminated"]["exitCode"] == code
    assert ready(cluster.get(PODS, "p")) == "False"


@pytest.mark.parametrize("text", ["soon", "-1", "nan", "inf", "1e300", ""])
def test_seconds_that_are_none_are_as_if_not_said(cluster: SmallCluster, text: str) -> None:
    add_pod(cluster, notes={"run-seconds": text})
    cluster.run(1000)
    assert phase(cluster) == "Running"


@pytest.mark.parametrize("said", ["Running", "Succeeded", "Failed"])
def test_a_phase_that_a_client_set_stays(cluster: SmallCluster, said: str) -> None:
    status = {"phase": said, "startTime": "2020-01-01T00:00:00Z"}
    add_pod(cluster, status=status)
    cluster.run(60)
    assert cluster.get(PODS, "p")["status"] == status


def test_a_start_time_that_a_client_set_stays(cluster: SmallCluster) -> None:
    add_pod(cluster, status={"phase": "Pending", "startTime": "2020-01-01T00:00:00Z"})
    status = cluster.get(PODS, "p")["status"]
    assert (status["phase"], status["startTime"]) == ("Running", "2020-01-01T00:00:00Z")


@pytest.mark.parametrize(
    ("more", "reason", "message"),
    [
        pytest.param(
            {"cpu": "2500m"},
            "OutOfcpu",
            "Node didn't have enough resource: cpu, requested: 2500, used: 2000, capacity: 4000",
            id="cpu-in-thousandths",
        ),
        pytest.param(
            {
                "cpu": "0",
                "spec": {"containers": [{"name": "c", "resources": {"requests": {"memory": "9Gi"}}}]},
            },
            "OutOfmemory",
            "Node didn't have enough resource: memory, requested: 9663676416, used: 0, capacity: 8589934592",
            id="memory-in-bytes",
        ),
    ],
)
def test_what_the_node_cannot_hold_is_refused_in_the_kubelets_words(
    cluster: SmallCluster, more: dict[str, Any], reason: str, message: str
) -> None:
    add_pod(cluster, "first", cpu="2")
    add_pod(cluster, "second", **more)
    status = cluster.get(PODS, "second")["status"]
    assert (status["phase"], status["reason"]) == ("Failed", reason)
    assert status["message"] == f"Pod was rejected: {message}"
    assert ("Warning", reason, message) in cluster.events()
    assert phase(cluster, "first") == "Running"


def test_a_node_holds_no_more_pods_than_it_says(cluster: SmallCluster) -> None:
    cluster.patch(NODES, "n1", {"status": {"allocatable": {"pods": "1"}}}, namespace="")
    add_pod(cluster, "first")
    add_pod(cluster, "second")
    assert cluster.get(PODS, "second")["status"]["reason"] == "OutOfpods"


def test_what_has_ended_leaves_its_room(cluster: SmallCluster) -> None:
    add_pod(cluster, "first", cpu="4", notes={"run-seconds": "1"})
    cluster.run(2)
    add_pod(cluster, "second", cpu="4")
    assert phase(cluster, "second") == "Running"


def test_a_device_the_node_does_not_know_is_not_its_business(cluster: SmallCluster) -> None:
    container = {"name": "c", "resources": {"requests": {"example.com/x": "1"}}}
    add_pod(cluster, spec={"containers": [container]})
    assert phase(cluster) == "Running"


def test_a_deleted_pod_ends_and_goes_within_its_grace(cluster: SmallCluster) -> None:
    add_pod(cluster, spec={"terminationGracePeriodSeconds": 30}, notes={"stop-seconds": "5"})
    cluster.delete(PODS, "p")
    cluster.run(4)
    assert phase(cluster) == "Running"
    cluster.run(2)
    assert cluster.find(PODS, "p") is None


def test_stopping_takes_no_longer_than_the_grace(cluster: SmallCluster) -> None:
    add_pod(cluster, spec={"terminationGracePeriodSeconds": 3}, notes={"stop-seconds": "500"})
    cluster.delete(PODS, "p")
    cluster.run(2)
    assert cluster.find(PODS, "p") is not None
    cluster.run(2)
    assert cluster.find(PODS, "p") is None


def test_a_deleted_pod_held_by_a_finalizer_has_failed(cluster: SmallCluster) -> None:
    add_pod(cluster, spec={"terminationGracePeriodSeconds": 30})
    cluster.patch(PODS, "p", {"metadata": {"finalizers": ["example.com/x"]}})
    cluster.delete(PODS, "p")
    pod = cluster.get(PODS, "p")
    assert pod["metadata"]["deletionGracePeriodSeconds"] == 0
    assert phase_of(pod) == "Failed"
    assert pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 143


def stop(cluster: SmallCluster) -> None:
    note = {"metadata": {"annotations": {KUBELET_ANNOTATION: STOPPED}}}
    cluster.patch(NODES, "n1", note, namespace="")


def start(cluster: SmallCluster) -> None:
    note = {"metadata": {"annotations": {KUBELET_ANNOTATION: None}}}
    cluster.patch(NODES, "n1", note, namespace="")


def test_a_stopped_kubelet_does_nothing(cluster: SmallCluster) -> None:
    add_pod(cluster, "running", notes={"run-seconds": "5"}, spec={"terminationGracePeriodSeconds": 5})
    stop(cluster)
    before = cluster.get(LEASES, "n1", namespace=LEASE_NAMESPACE)
    add_pod(cluster, "new")
    cluster.run(60)
    cluster.delete(PODS, "running")
    cluster.run(60)
    assert phase(cluster, "new") == "Pending"
    assert phase(cluster, "running") == "Running"
    assert cluster.get(LEASES, "n1", namespace=LEASE_NAMESPACE) == before


def test_a_started_kubelet_catches_up(cluster: SmallCluster) -> None:
    add_pod(cluster, "running", notes={"run-seconds": "5"})
    add_pod(cluster, "deleted", spec={"terminationGracePeriodSeconds": 5})
    stop(cluster)
    add_pod(cluster, "new")
    cluster.delete(PODS, "deleted")
    cluster.run(60)
    start(cluster)
    assert phase(cluster, "running") == "Succeeded"
    assert phase(cluster, "new") == "Running"
    assert cluster.find(PODS, "deleted") is None


def test_a_pod_bound_before_its_node_comes_starts_when_it_does(cluster: SmallCluster) -> None:
    add_pod(cluster, spec={"nodeName": "n2"})
    assert phase(cluster) == "Pending"
    add_node(cluster, "n2")
    assert phase(cluster) == "Running"


def test_nothing_is_remembered_of_pods_and_nodes_that_are_gone(cluster: SmallCluster) -> None:
    kubelets = Kubelets()
    cluster = SmallCluster(kubelets)
    add_node(cluster, "n1")
    add_pod(cluster, notes={"run-seconds": "500"})
    cluster.delete(PODS, "p", gracePeriodSeconds=0)
    cluster.delete(NODES, "n1", namespace="")
    assert (kubelets._renewed_s, kubelets._started_s) == ({}, {})
    assert len(kubelets._rooms) == 0


def test_pods_started_in_one_breath_count_against_each_other(cluster: SmallCluster) -> None:
    for number in range(6):
        row = cluster.server.catalog.by_name["pods"]
        container = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
        meta = {"name": f"p{number}", "namespace": "default", "uid": f"u{number}"}
        pod = {"metadata": meta, "spec": {"nodeName": "n1", "containers": [container]}, "kind": "Pod"}
        cluster.server.store.create(row, {"apiVersion": "v1", **pod}, cluster.now_s)
    cluster.settle()
    assert [phase(cluster, f"p{number}") for number in range(6)] == ["Running"] * 4 + ["Failed"] * 2


def test_a_pod_that_a_client_calls_running_takes_room(cluster: SmallCluster) -> None:
    add_pod(cluster, "first", cpu="3", status={"phase": "Running"})
    add_pod(cluster, "second", cpu="2")
    assert phase(cluster, "second") == "Failed"
    cluster.patch(PODS, "first", {"status": {"phase": "Succeeded"}})
    add_pod(cluster, "third", cpu="4")
    assert phase(cluster, "third") == "Running"
