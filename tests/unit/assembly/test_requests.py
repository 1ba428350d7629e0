"""Effects and writes become exactly the requests that the API wants."""

import pytest

from muster.api.meta import Condition
from muster.assembly.requests import Call, mark_of, request_of, request_of_write
from muster.controllers.ports import Kind, Write
from muster.framework.groups import ObjectKey
from muster.framework.ports import (
    BindPod,
    EvictPod,
    ObjectReference,
    PatchGroupStatus,
    PatchPodStatus,
    RecordEvent,
    WriteClaim,
)

POD = ObjectKey("ml", "worker-0")
PODS = Kind("", "v1", "pods")
NODES = Kind("", "v1", "nodes")


def make_event(**change: object) -> RecordEvent:
    regarding = ObjectReference("v1", "Pod", POD, "u1")
    values: dict[str, object] = {
        "regarding": regarding,
        "type": "Normal",
        "reason": "Scheduled",
        "action": "Binding",
        "note": "done",
        "scheduler_name": "muster",
    }
    return RecordEvent(**{**values, **change})  # type: ignore[arg-type]


def test_a_binding_names_the_pod_by_uid_and_the_node() -> None:
    call = request_of(BindPod(POD, "u1", "n1", "muster"), now_s=0.0)
    assert call == Call(
        "POST",
        "/api/v1/namespaces/ml/pods/worker-0/binding",
        "application/json",
        {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": "worker-0", "namespace": "ml", "uid": "u1"},
            "target": {"apiVersion": "v1", "kind": "Node", "name": "n1"},
        },
    )


@pytest.mark.parametrize(
    ("nominated", "expected"),
    [
        pytest.param(None, {}, id="left-alone"),
        pytest.param("", {"nominatedNodeName": None}, id="cleared"),
        pytest.param("n1", {"nominatedNodeName": "n1"}, id="set"),
    ],
)
def test_a_nomination_is_left_cleared_or_set(nominated: str | None, expected: dict[str, object]) -> None:
    call = request_of(PatchPodStatus(POD, "u1", nominated_node_name=nominated), now_s=0.0)
    assert call.path == "/api/v1/namespaces/ml/pods/worker-0/status"
    assert call.body == {"metadata": {"uid": "u1"}, "status": expected}


def test_a_pod_condition_keeps_an_empty_message_and_leaves_out_what_it_does_not_say() -> None:
    condition = Condition("PodScheduled", "False", "Unschedulable", "", "2026-01-01T00:00:00Z")
    call = request_of(PatchPodStatus(POD, "u1", condition), now_s=0.0)
    assert call.content_type == "application/strategic-merge-patch+json"
    assert call.body["status"]["conditions"] == [
        {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
    ]


def test_a_condition_of_unknown_status_still_says_so() -> None:
    call = request_of(PatchPodStatus(POD, "u1", Condition("PodScheduled")), now_s=0.0)
    assert call.body["status"]["conditions"] == [{"type": "PodScheduled", "status": "Unknown"}]


def test_a_group_patch_sets_and_removes_conditions_in_one_write() -> None:
    effect = PatchGroupStatus(
        ObjectKey("ml", "g"),
        "u2",
        set_conditions=(Condition("PodGroupInitiallyScheduled", "True", "Scheduled", ""),),
        remove_conditions=("muster.dev/Waiting",),
    )
    call = request_of(effect, now_s=0.0)
    assert call.path == "/apis/scheduling.k8s.io/v1beta1/namespaces/ml/podgroups/g/status"
    assert call.body == {
        "metadata": {"uid": "u2"},
        "status": {
            "conditions": [
                {
                    "type": "PodGroupInitiallyScheduled",
                    "status": "True",
                    "reason": "Scheduled",
                    "message": "",
                },
                {"$patch": "delete", "type": "muster.dev/Waiting"},
            ]
        },
    }


def test_an_event_carries_its_time_and_who_says_it() -> None:
    call = request_of(make_event(), now_s=1.5)
    assert call.path == "/apis/events.k8s.io/v1/namespaces/ml/events"
    assert call.body["eventTime"] == "1970-01-01T00:00:01.500000Z"
    assert call.body["reportingController"] == "muster"
    assert call.body["regarding"] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": "ml",
        "name": "worker-0",
        "uid": "u1",
    }
    assert "related" not in call.body


def test_the_same_event_said_twice_at_one_instant_gets_two_names() -> None:
    names = [request_of(make_event(), now_s=1.0, sequence=n).body["metadata"]["name"] for n in (0, 1, 0)]
    assert names[0] == names[2] != names[1]
    assert names[0].startswith("worker-0.")


def test_the_name_of_an_event_about_a_long_name_is_still_a_name() -> None:
    regarding = ObjectReference("v1", "Pod", ObjectKey("ml", "a" * 253), "u1")
    name = request_of(make_event(regarding=regarding), now_s=1.0).body["metadata"]["name"]
    assert len(name) == 253


def test_an_event_about_a_node_goes_to_the_default_namespace() -> None:
    regarding = ObjectReference("v1", "Node", ObjectKey("", "n1"), "u1")
    call = request_of(make_event(regarding=regarding), now_s=1.0)
    assert call.path == "/apis/events.k8s.io/v1/namespaces/default/events"
    assert call.body["regarding"] == {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "u1"}


@pytest.mark.parametrize(
    ("write", "expected"),
    [
        pytest.param(
            Write("create", PODS, "ml", "", {"kind": "Pod"}),
            Call("POST", "/api/v1/namespaces/ml/pods", "application/json", {"kind": "Pod"}),
            id="create-goes-to-the-collection",
        ),
        pytest.param(
            Write("create", PODS, "ml", "p", {"kind": "Eviction"}, subresource="eviction"),
            Call("POST", "/api/v1/namespaces/ml/pods/p/eviction", "application/json", {"kind": "Eviction"}),
            id="create-of-a-subresource-names-the-object",
        ),
        pytest.param(
            Write("patch", NODES, "", "n1", {"status": {}}, subresource="status", uid="u"),
            Call(
                "PATCH",
                "/api/v1/nodes/n1/status",
                "application/merge-patch+json",
                {"status": {}, "metadata": {"uid": "u"}},
            ),
            id="patch-is-a-merge-patch-with-the-uid-in-it",
        ),
        pytest.param(
            Write("delete", PODS, "ml", "p", {"gracePeriodSeconds": 0}, uid="u"),
            Call(
                "DELETE",
                "/api/v1/namespaces/ml/pods/p",
                "application/json",
                {
                    "apiVersion": "v1",
                    "kind": "DeleteOptions",
                    "gracePeriodSeconds": 0,
                    "preconditions": {"uid": "u"},
                },
            ),
            id="delete-has-the-uid-as-precondition",
        ),
    ],
)
def test_writes_of_controllers(write: Write, expected: Call) -> None:
    assert request_of_write(write) == expected


def test_a_victim_is_marked_and_then_deleted_by_its_uid() -> None:
    effect = EvictPod(ObjectKey("default", "p"), "u", Condition("DisruptionTarget", "True", reason="R"))
    mark, deletion = mark_of(effect), request_of(effect, now_s=0.0)
    assert (mark.method, mark.path) == ("PATCH", "/api/v1/namespaces/default/pods/p/status")
    assert mark.body["metadata"] == {"uid": "u"}
    assert mark.body["status"]["conditions"][0]["type"] == "DisruptionTarget"
    assert (deletion.method, deletion.path) == ("DELETE", "/api/v1/namespaces/default/pods/p")
    assert deletion.body["preconditions"] == {"uid": "u"}


def test_a_binding_names_the_version_of_the_pod_that_was_decided_on() -> None:
    call = request_of(BindPod(POD, "u1", "n1", "muster", version="41"), now_s=0.0)
    assert call.body["metadata"] == {
        "name": POD.name,
        "namespace": POD.namespace,
        "uid": "u1",
        "resourceVersion": "41",
    }


def test_a_claim_loses_its_devices_only_if_it_is_still_as_it_was_seen() -> None:
    key = ObjectKey("ns", "c")
    call = request_of(WriteClaim(ObjectKey("ns", "p"), key, "u", "5", None, (), clears=True), now_s=0.0)
    assert call.body == {
        "metadata": {"uid": "u", "resourceVersion": "5"},
        "status": {"reservedFor": None, "allocation": None},
    }
