"""Binding, eviction and logs."""

from typing import Any

import pytest
from tests.unit.apiserver.strategies.full_server import BUDGETS, CONTAINER, NODES, PODS, SPACES, FullServer

from muster.apiserver.exchange import Response
from muster.apiserver.kinds import Object
from muster.apiserver.strategies.pod_verbs import with_condition


def bind(server: FullServer, name: str = "p", query: str = "", **body: Any) -> Response:
    whole = {"metadata": {"name": name}, "target": {"kind": "Node", "name": "n"}, **body}
    return server.ask("POST", f"{PODS}/{name}/binding{query}", whole)


def message(response: Response) -> tuple[int, str]:
    assert response.object is not None
    return response.status, response.object.get("message", "")


def test_a_bound_pod_has_its_node_condition_and_annotations_and_no_nomination() -> None:
    server = FullServer()
    server.pod("p")
    server.change(PODS, "p/status", status={"nominatedNodeName": "n"})
    assert bind(server, metadata={"name": "p", "annotations": {"from": "binding"}}).status == 201
    pod = server.object("GET", f"{PODS}/p")
    assert pod["spec"]["nodeName"] == "n"
    assert pod["metadata"]["annotations"] == {"from": "binding"}
    assert pod["metadata"]["generation"] == 1
    assert "nominatedNodeName" not in pod["status"]
    assert [(c["type"], c["status"]) for c in pod["status"]["conditions"]] == [("PodScheduled", "True")]


def test_a_pod_is_bound_once() -> None:
    server = FullServer()
    server.pod("p", nodeName="n")
    text = 'Operation cannot be fulfilled on pods/binding "p": pod p is already assigned to node "n"'
    assert message(bind(server)) == (409, text)


def test_neither_gated_nor_going_pods_are_bound() -> None:
    server = FullServer()
    server.pod("p", schedulingGates=[{"name": "g"}])
    assert message(bind(server))[1].endswith("pod p has non-empty .spec.schedulingGates")
    server.create(PODS, "q", metadata={"finalizers": ["a.b/c"]}, spec={"containers": [CONTAINER]})
    server.ask("DELETE", f"{PODS}/q")
    assert message(bind(server, "q"))[1].endswith("pod q is being deleted, cannot be assigned to a host")


@pytest.mark.parametrize(
    ("body", "code", "text"),
    [
        pytest.param({"target": {}}, 500, "target.name: Required value", id="no target"),
        pytest.param(
            {"target": {"kind": "Pod", "name": "n"}},
            500,
            'target.kind: Unsupported value: "Pod": supported values: "Node", "<empty>"',
            id="to a pod",
        ),
        pytest.param(
            {"metadata": {"name": "q"}}, 400, "name in URL does not match name in Binding object", id="name"
        ),
        pytest.param(
            {"metadata": {"name": "p", "namespace": "x"}},
            400,
            "the namespace of the provided object does not match the namespace sent on the request",
            id="namespace",
        ),
    ],
)
def test_a_bad_binding_is_refused(body: dict[str, Any], code: int, text: str) -> None:
    server = FullServer()
    server.pod("p")
    assert message(bind(server, **body)) == (code, text)


def test_a_binding_for_another_pod_of_the_name_is_refused() -> None:
    server = FullServer()
    server.pod("p")
    code, text = message(bind(server, metadata={"name": "p", "uid": "other"}))
    assert code == 409
    assert "Precondition failed: UID in precondition: other" in text
    assert bind(server, metadata={"name": "p", "resourceVersion": "1"}).status == 409
    version = server.object("GET", f"{PODS}/p")["metadata"]["resourceVersion"]
    assert bind(server, metadata={"name": "p", "resourceVersion": version}).status == 201


def test_a_dry_binding_binds_nothing_and_the_collection_binds_too() -> None:
    server = FullServer()
    server.pod("p")
    assert bind(server, query="?dryRun=All").status == 201
    assert "nodeName" not in server.object("GET", f"{PODS}/p")["spec"]
    body = {"metadata": {"name": "p"}, "target": {"name": "n"}}
    assert server.ask("POST", "/api/v1/namespaces/default/bindings", body).status == 201
    assert server.object("GET", f"{PODS}/p")["spec"]["nodeName"] == "n"


def running(server: FullServer, name: str, *, ready: bool = True) -> None:
    server.pod(name, {"app": "a"}, nodeName="n", terminationGracePeriodSeconds=0)
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    server.change(PODS, f"{name}/status", status={"phase": "Running", "conditions": conditions})


def budget(server: FullServer, name: str = "d", **status: int) -> None:
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}}
    server.create(BUDGETS, name, spec=spec)
    seen = {"observedGeneration": 1, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}
    server.change(BUDGETS, f"{name}/status", status=seen | status)


def evict(server: FullServer, name: str = "p", **body: Any) -> Response:
    return server.ask("POST", f"{PODS}/{name}/eviction", {"metadata": {"name": name}, **body})


def gone(server: FullServer, name: str = "p") -> bool:
    return server.ask("GET", f"{PODS}/{name}").status == 404


def causes(response: Response) -> list[Object]:
    assert response.object is not None
    found: list[Object] = response.object["details"]["causes"]
    return found


def test_an_eviction_deletes_where_no_budget_forbids() -> None:
    server = FullServer()
    running(server, "p")
    assert evict(server).status == 201
    assert gone(server)


def test_a_spent_budget_refuses_and_says_what_it_needs() -> None:
    server = FullServer()
    running(server, "p")
    budget(server, disruptionsAllowed=0)
    response = evict(server)
    assert message(response) == (429, "Cannot evict pod as it would violate the pod's disruption budget.")
    assert causes(response) == [
        {
            "reason": "DisruptionBudget",
            "message": "The disruption budget d needs 1 healthy pods and has 1 currently",
        }
    ]
    assert not gone(server)


def test_an_eviction_uses_the_budget_up_and_marks_the_pod() -> None:
    server = FullServer()
    server.create(
        PODS,
        "p",
        metadata={"labels": {"app": "a"}, "finalizers": ["a.b/c"]},
        spec={"containers": [CONTAINER]},
    )
    server.change(
        PODS, "p/status", status={"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    )
    budget(server, disruptionsAllowed=1)
    assert evict(server).status == 201
    status = server.object("GET", f"{BUDGETS}/d")["status"]
    assert status["disruptionsAllowed"] == 0
    assert list(status["disruptedPods"]) == ["p"]
    assert status["conditions"][0]["reason"] == "InsufficientPods"
    last = server.object("GET", f"{PODS}/p")["status"]["conditions"][-1]
    assert (last["type"], last["reason"]) == ("DisruptionTarget", "EvictionByEvictionAPI")


def test_a_budget_that_was_not_looked_at_yet_refuses_for_a_while() -> None:
    server = FullServer()
    running(server, "p")
    budget(server, disruptionsAllowed=1)
    server.change(BUDGETS, "d", spec={"minAvailable": 2})
    response = evict(server)
    assert dict(response.headers)["Retry-After"] == "10"
    assert causes(response)[0]["message"].endswith("is still being processed by the server.")


def test_two_budgets_are_an_error() -> None:
    server = FullServer()
    running(server, "p")
    budget(server, "d")
    budget(server, "e")
    assert message(evict(server)) == (
        500,
        "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
    )


def test_an_unready_pod_goes_while_enough_others_are_healthy() -> None:
    server = FullServer()
    running(server, "p", ready=False)
    budget(server, disruptionsAllowed=0)
    assert evict(server).status == 201


def test_a_budget_may_let_every_unready_pod_go() -> None:
    server = FullServer()
    running(server, "p", ready=False)
    budget(server, disruptionsAllowed=0, desiredHealthy=2)
    assert evict(server).status == 429
    server.change(BUDGETS, "d", spec={"unhealthyPodEvictionPolicy": "AlwaysAllow"})
    assert evict(server).status == 201


def test_a_pending_pod_ignores_budgets_and_a_dry_eviction_deletes_nothing() -> None:
    server = FullServer()
    server.pod("p", {"app": "a"})
    budget(server, disruptionsAllowed=0)
    assert evict(server, deleteOptions={"dryRun": ["All"]}).status == 201
    assert not gone(server)
    assert evict(server).status == 201
    assert gone(server)


def test_a_log_is_empty_before_a_pod_has_a_node() -> None:
    server = FullServer()
    server.pod("p")
    assert server.ask("GET", f"{PODS}/p/log").status == 204
    text = "container zz is not valid for pod p"
    assert server.refusal("GET", f"{PODS}/p/log?container=zz") == (400, text)


def test_a_log_needs_a_kubelet() -> None:
    server = FullServer()
    server.create(NODES, "n")
    server.pod("p", nodeName="n", containers=[CONTAINER, {"name": "d", "image": "i"}])
    choice = "a container name must be specified for pod p, choose one of: [c d]"
    assert server.refusal("GET", f"{PODS}/p/log") == (400, choice)
    nobody = "no preferred addresses found; known addresses: []"
    assert server.refusal("GET", f"{PODS}/p/log?container=c") == (500, nobody)
    server.change(NODES, "n/status", status={"addresses": [{"type": "InternalIP", "address": "10.0.0.9"}]})
    assert server.refusal("GET", f"{PODS}/p/log?container=c")[1].endswith("connect: connection refused")


def test_a_condition_keeps_its_time_while_it_keeps_its_value() -> None:
    old = {"conditions": [{"type": "A", "status": "True", "lastTransitionTime": "then", "reason": "Old"}]}
    same = with_condition(old, {"type": "A", "status": "True"}, 10.0)
    assert same["conditions"] == [
        {"lastProbeTime": None, "lastTransitionTime": "then", "type": "A", "status": "True"}
    ]
    other = with_condition(old, {"type": "A", "status": "False"}, 10.0)
    assert other["conditions"][0]["lastTransitionTime"] == "1970-01-01T00:00:10Z"


def test_an_eviction_may_speak_the_older_version() -> None:
    server = FullServer()
    server.pod("p")
    old = {"apiVersion": "policy/v1beta1", "kind": "Eviction"}
    assert server.ask("POST", f"{PODS}/p/eviction", {**old, "metadata": {"name": "p"}}).status == 201
    wrong = {**old, "apiVersion": "policy/v1beta2", "metadata": {"name": "p"}}
    assert server.ask("POST", f"{PODS}/p/eviction", wrong).status == 400


def test_pods_of_a_namespace_that_goes_are_neither_bound_nor_evicted() -> None:
    server = FullServer()
    server.create(SPACES, "going")
    pods = f"{SPACES}/going/pods"
    spec = {"containers": [CONTAINER]}
    server.create(pods, "p", metadata={"finalizers": ["example.com/f"]}, spec=spec)
    assert server.ask("DELETE", f"{SPACES}/going").status == 200
    binding = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}
    why = "unable to create new content in namespace going because it is being terminated"
    for path, body, resource in (
        (f"{pods}/p/binding", binding, "pods"),
        (f"{pods}/p/eviction", {"metadata": {"name": "p"}}, "pods"),
        (f"{SPACES}/going/bindings", binding, "bindings"),
    ):
        assert message(server.ask("POST", path, body)) == (403, f'{resource} "p" is forbidden: {why}')
    assert "nodeName" not in server.object("GET", f"{pods}/p")["spec"]


def test_where_there_is_no_namespace_that_is_what_is_told() -> None:
    answer = FullServer().ask("POST", f"{SPACES}/none/pods/p/eviction", {"metadata": {"name": "p"}})
    assert message(answer) == (404, 'namespaces "none" not found')
