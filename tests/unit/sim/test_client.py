"""The client says what a user would, and knows a server's fault from a refusal."""

from typing import Any

import pytest

from muster.sim.client import (
    MERGE_PATCH,
    Client,
    ServerError,
    group_manifest,
    job_manifest,
    pod_manifest,
    pod_spec,
)

Sent = tuple[str, str, dict[str, Any] | None, str]


class Server:
    """Answers every request with one code, and remembers them."""

    def __init__(self, code: int) -> None:
        self.code = code
        self.sent: list[Sent] = []

    def call(
        self, method: str, path: str, body: dict[str, Any] | None, content_type: str
    ) -> tuple[int, dict[str, Any]]:
        self.sent.append((method, path, body, content_type))
        return self.code, {"items": [{"metadata": {"name": "x"}}], "message": "no"}


def test_requests_go_to_the_collection_of_their_kind() -> None:
    server = Server(200)
    client = Client(server.call)
    client.create("group", group_manifest("g", 2))
    client.patch("pod", "p", {"a": 1}, subresource="status")
    client.delete("node", "n", gracePeriodSeconds=0)
    assert [(method, path) for method, path, _, _ in server.sent] == [
        ("POST", "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups"),
        ("PATCH", "/api/v1/namespaces/default/pods/p/status"),
        ("DELETE", "/api/v1/nodes/n"),
    ]
    assert server.sent[1][3] == MERGE_PATCH
    assert server.sent[2][2] == {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}


def test_a_refusal_is_an_answer_and_is_counted() -> None:
    client = Client(Server(409).call)
    assert client.create("group", group_manifest("g", 2)) is None
    assert client.list("pod") == []
    assert client.codes == {409: 2}


def test_a_fault_of_the_server_is_raised() -> None:
    with pytest.raises(ServerError, match=": 500 no"):
        Client(Server(500).call).create("group", group_manifest("g", 2))


def test_policies_and_limits_of_manifests() -> None:
    assert group_manifest("g", None)["spec"] == {"schedulingPolicy": {"basic": {}}}
    assert group_manifest("g", 3)["spec"] == {"schedulingPolicy": {"gang": {"minCount": 3}}}
    spec = pod_spec({"cpu": "1", "nvidia.com/gpu": "2"}, scheduler="muster", group="g", gates=("x",))
    assert spec["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu": "2"}
    assert spec["schedulingGroup"] == {"podGroupName": "g"}
    assert pod_manifest("p", spec)["spec"]["schedulingGates"] == [{"name": "x"}]
    job = job_manifest("j", spec, parallelism=2, completions=4, gang=False)
    assert "scheduling" not in job["spec"]
