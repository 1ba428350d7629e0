"""What a pod takes: containers, init containers, sidecars, overhead, pod level, resize."""

from typing import Any

import pytest
from msgspec.structs import replace

from muster.api.codec import decode_object
from muster.api.core import Pod
from muster.api.quantity import INT64_MAX
from muster.cluster.requests import HostPort, host_ports, pod_requests
from muster.testing.builders import make_pod


def pod_of(spec: dict[str, Any], status: dict[str, Any] | None = None) -> Pod:
    return decode_object({"metadata": {"name": "p"}, "spec": spec, "status": status or {}}, Pod)


def container(cpu: str, name: str = "c", **more: Any) -> dict[str, Any]:
    return {"name": name, "resources": {"requests": {"cpu": cpu}}, **more}


@pytest.mark.parametrize(
    ("spec", "milli"),
    [
        pytest.param({"containers": [container("1"), container("500m")]}, 1500, id="containers-add-up"),
        pytest.param(
            {"containers": [container("1")], "initContainers": [container("3"), container("2")]},
            3000,
            id="largest-init-container",
        ),
        pytest.param(
            {
                "containers": [container("1")],
                "initContainers": [container("2", restartPolicy="Always")],
            },
            3000,
            id="sidecars-run-along",
        ),
        pytest.param(
            {
                "containers": [container("1")],
                "initContainers": [container("2", restartPolicy="Always"), container("5")],
            },
            7000,
            id="sidecars-run-beside-later-init-containers",
        ),
        pytest.param(
            {
                "containers": [container("1")],
                "initContainers": [container("5"), container("2", restartPolicy="Always")],
            },
            5000,
            id="not-beside-earlier-ones",
        ),
        pytest.param(
            {"containers": [container("1")], "overhead": {"cpu": "250m"}}, 1250, id="overhead-on-top"
        ),
        pytest.param(
            {
                "containers": [container("1")],
                "resources": {"requests": {"cpu": "4"}},
                "overhead": {"cpu": "1"},
            },
            5000,
            id="pod-level-replaces-the-sum",
        ),
        pytest.param(
            {"containers": [container("1")], "resources": {"limits": {"cpu": "4"}}},
            1000,
            id="pod-level-limit-yields-to-container-requests",
        ),
        pytest.param(
            {"containers": [{"resources": {"limits": {"cpu": "2"}}}]}, 2000, id="a-limit-alone-asks-for-it"
        ),
    ],
)
def test_cpu_of_a_pod(spec: dict[str, Any], milli: int) -> None:
    assert pod_requests(pod_of(spec))["cpu"] == milli


def test_pod_level_extended_resources_are_not_a_thing() -> None:
    spec = {"containers": [container("1")], "resources": {"requests": {"nvidia.com/gpu": 4}}}
    assert "nvidia.com/gpu" not in pod_requests(pod_of(spec))


def test_a_pod_that_asks_for_nothing_takes_one_of_pods() -> None:
    assert pod_requests(pod_of({"containers": [{}]})) == {"pods": 1}


def test_nobody_asks_for_more_pods_than_one() -> None:
    assert pod_requests(make_pod(requests={"pods": 5})) == {"pods": 1}


def test_sums_saturate() -> None:
    spec = {"containers": [container("9e30"), container("9e30")]}
    assert pod_requests(pod_of(spec))["cpu"] == INT64_MAX


def test_an_amount_that_cannot_be_read_fits_nowhere() -> None:
    assert pod_requests(make_pod(cpu="many"))["cpu"] == INT64_MAX


def resized(condition: str) -> Pod:
    held = {"name": "c", "resources": {"requests": {"cpu": "3"}}, "allocatedResources": {"cpu": "2"}}
    status = {
        "containerStatuses": [held],
        "conditions": [{"type": "PodResizePending", "status": "True", "reason": condition}],
    }
    return pod_of({"nodeName": "n1", "containers": [container("5")]}, status)


def test_a_resize_in_progress_counts_the_larger() -> None:
    assert pod_requests(resized("Deferred"))["cpu"] == 5000


def test_a_resize_that_cannot_happen_counts_what_is_held() -> None:
    assert pod_requests(resized("Infeasible"))["cpu"] == 3000


def test_statuses_of_a_pod_without_a_node_say_nothing() -> None:
    pod = resized("Infeasible")
    assert pod_requests(replace(pod, spec=replace(pod.spec, node_name="")))["cpu"] == 5000


@pytest.mark.parametrize(
    ("wanted", "held", "reason", "milli"),
    [
        pytest.param("2", "6", "Deferred", 6000, id="shrinks-when-the-kubelet-has-done-it"),
        pytest.param("6", "2", "Deferred", 6000, id="grows-at-once"),
        pytest.param("6", "2", "Infeasible", 2000, id="cannot-grow"),
    ],
)
def test_a_resize_of_the_whole_pod_counts_what_is_held(
    wanted: str, held: str, reason: str, milli: int
) -> None:
    spec = {
        "nodeName": "n1",
        "containers": [container("1")],
        "resources": {"requests": {"cpu": wanted}},
    }
    status = {
        "resources": {"requests": {"cpu": held}},
        "allocatedResources": {"cpu": held},
        "conditions": [{"type": "PodResizePending", "status": "True", "reason": reason}],
    }
    assert pod_requests(pod_of(spec, status))["cpu"] == milli


def test_host_ports_of_containers_and_sidecars_count_once() -> None:
    port = {"containerPort": 80, "hostPort": 80}
    inner = {"containerPort": 81}
    udp = {"containerPort": 80, "hostPort": 80, "protocol": "UDP", "hostIP": "10.0.0.1"}
    spec = {
        "containers": [container("1", ports=[port, inner]), container("1", ports=[port])],
        "initContainers": [
            container("1", ports=[udp], restartPolicy="Always"),
            container("1", ports=[{**port, "hostPort": 9}]),
        ],
    }
    assert host_ports(pod_of(spec)) == (
        HostPort("TCP", "0.0.0.0", 80),
        HostPort("UDP", "10.0.0.1", 80),
    )
