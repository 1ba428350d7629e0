"""Pods through the server: creation, status, deletion, the table."""

import pytest
from tests.unit.apiserver.strategies.full_server import CONTAINER, NODES, PODS, FullServer

from muster.apiserver.strategies.pods import pod_grace_s, timestamp

LOST = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"]


def test_a_pod_begins_pending_with_its_quality() -> None:
    pod = FullServer().pod("p")
    assert pod["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
    assert pod["metadata"]["generation"] == 1


def test_a_gated_pod_says_so_and_still_does_when_the_gate_is_gone() -> None:
    server = FullServer()
    gated = server.pod("p", schedulingGates=[{"name": "g"}])["status"]["conditions"]
    assert [(c["type"], c["status"], c["reason"]) for c in gated] == [
        ("PodScheduled", "False", "SchedulingGated")
    ]
    assert server.change(PODS, "p", spec={"schedulingGates": None})["status"]["conditions"] == gated


def test_a_status_given_at_creation_is_dropped() -> None:
    pod = FullServer().create(PODS, "p", spec={"containers": [CONTAINER]}, status={"phase": "Running"})
    assert pod["status"]["phase"] == "Pending"


def test_a_pod_stays_five_minutes_on_a_lost_node_unless_it_says_otherwise() -> None:
    server = FullServer()
    tolerations = server.pod("p")["spec"]["tolerations"]
    assert [(t["key"], t["tolerationSeconds"]) for t in tolerations] == [(key, 300) for key in LOST]
    everything = [{"operator": "Exists"}]
    assert server.pod("q", tolerations=everything)["spec"]["tolerations"] == everything


def test_a_put_need_not_say_what_admission_filled_in() -> None:
    server = FullServer()
    server.pod("p")
    body = {"metadata": {"name": "p", "labels": {"a": "b"}}, "spec": {"containers": [CONTAINER]}}
    put = server.object("PUT", f"{PODS}/p", body)
    assert (put["spec"]["priority"], put["metadata"]["generation"]) == (0, 1)


def test_a_negative_grace_is_one_second() -> None:
    pod = FullServer().pod("p", terminationGracePeriodSeconds=-1)
    assert pod["spec"]["terminationGracePeriodSeconds"] == 1


def test_the_group_of_a_pod_needs_its_gate_and_stays_once_stored() -> None:
    server = FullServer()
    server.pod("p", schedulingGroup={"podGroupName": "g"})
    server.api.gates = frozenset()
    assert server.change(PODS, "p", metadata={"labels": {"a": "b"}})["spec"]["schedulingGroup"]
    assert "schedulingGroup" not in server.pod("q", schedulingGroup={"podGroupName": "g"})["spec"]


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        pytest.param({"runtimeClassName": "x"}, 'RuntimeClass "x" not found', id="no such runtime"),
        pytest.param(
            {"overhead": {"cpu": "1"}},
            "Pod Overhead set without corresponding RuntimeClass defined Overhead",
            id="overhead of no runtime",
        ),
    ],
)
def test_what_needs_a_runtime_class_is_refused(spec: dict[str, object], why: str) -> None:
    body = {"metadata": {"name": "p"}, "spec": {"containers": [CONTAINER], **spec}}
    assert FullServer().refusal("POST", PODS, body) == (403, f'pods "p" is forbidden: pod rejected: {why}')


def test_a_pod_created_on_a_node_carries_its_zone() -> None:
    server = FullServer()
    server.create(NODES, "n", metadata={"labels": {"topology.kubernetes.io/zone": "z", "rack": "r"}})
    assert server.pod("p", {"a": "b"}, nodeName="n")["metadata"]["labels"] == {
        "a": "b",
        "topology.kubernetes.io/zone": "z",
    }


def test_what_is_probably_not_meant_is_warned_of() -> None:
    body = {"metadata": {"name": "a.b"}, "spec": {"containers": [CONTAINER]}}
    response = FullServer().ask("POST", PODS, body)
    assert response.status == 201
    assert "a DNS label is recommended: [must not contain dots]" in dict(response.headers)["Warning"]


def test_a_status_takes_labels_along_and_no_spec() -> None:
    server = FullServer()
    server.pod("p")
    answer = server.change(PODS, "p/status", metadata={"labels": {"l": "m"}}, spec={"schedulerName": "z"})
    assert answer["metadata"]["labels"] == {"l": "m"}
    assert answer["spec"]["schedulerName"] == "default-scheduler"


def test_the_first_address_is_the_address() -> None:
    server = FullServer()
    server.pod("p")
    answer = server.change(PODS, "p/status", status={"podIP": "10.0.0.1"})
    assert answer["status"]["podIPs"] == [{"ip": "10.0.0.1"}]


@pytest.mark.parametrize(
    ("node", "phase", "asked", "grace_s"),
    [
        pytest.param("", "Pending", None, 0, id="nothing runs yet"),
        pytest.param("n", "Running", None, 30, id="as the spec says"),
        pytest.param("n", "Running", 5, 5, id="as asked"),
        pytest.param("n", "Running", -1, 1, id="never less than nothing"),
        pytest.param("n", "Succeeded", None, 0, id="it has ended"),
    ],
)
def test_the_grace_of_a_pod(node: str, phase: str, asked: int | None, grace_s: int) -> None:
    pod = {"spec": {"nodeName": node, "terminationGracePeriodSeconds": 30}, "status": {"phase": phase}}
    assert pod_grace_s(pod, asked) == grace_s


def test_times_are_whole_seconds() -> None:
    assert timestamp(10.9) == "1970-01-01T00:00:10Z"


def test_the_status_of_a_pod_says_nothing_of_its_deletion() -> None:
    server = FullServer()
    server.pod("p")
    answer = server.change(PODS, "p/status", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    assert "deletionTimestamp" not in answer["metadata"]
