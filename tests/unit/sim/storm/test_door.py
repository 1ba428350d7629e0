"""Policies that refuse, and what befalls a pod right after its binding."""

import pytest
from tests.unit.sim.storm.stage import Stage

from muster.apiserver.exchange import Request, Response
from muster.assembly.requests import JSON
from muster.sim.storm.weather import CALM, Weather
from muster.sim.view import node_of


def bind(stage: Stage, pod: str, node: str = "n0") -> Response:
    body = {"metadata": {"name": pod, "namespace": "default"}, "target": {"kind": "Node", "name": node}}
    path = f"/api/v1/namespaces/default/pods/{pod}/binding"
    answer = stage.world.serve(
        Request("POST", path, headers={"content-type": JSON}, body=body, user="muster-a-1")
    )
    stage.run(0.5)
    return answer


def staged(weather: Weather = CALM) -> Stage:
    stage = Stage(weather=weather, replicas=False)
    stage.pod("p")
    stage.run(1.0)
    return stage


@pytest.mark.parametrize(
    ("weather", "code"),
    [
        (Weather(bind_denied=1.0), 403),
        (Weather(bind_conflict=1.0), 409),
        (Weather(bind_missing=1.0), 404),
        (Weather(bind_throttled=1.0), 429),
    ],
)
def test_a_binding_is_refused(weather: Weather, code: int) -> None:
    stage = staged(weather)
    assert bind(stage, "p").status == code
    assert stage.bound() == []


def test_a_binding_is_accepted_though_the_node_is_gone() -> None:
    stage = staged(Weather(node_gone=1.0))
    assert bind(stage, "p").status == 201
    assert "n0" not in stage.world.ledger.nodes


def test_a_node_may_fall_silent_before_its_pod_starts() -> None:
    stage = staged(Weather(node_dies=1.0))
    assert bind(stage, "p").status == 201
    assert (node_of(stage.object("p")), stage.object("p")["status"]["phase"]) == ("n0", "Pending")


@pytest.mark.parametrize(
    ("weather", "reason"),
    [
        (Weather(out_of_cpu=1.0), "OutOfcpu"),
        (Weather(unexpected_admission=1.0), "UnexpectedAdmissionError"),
    ],
)
def test_a_kubelet_refuses_a_pod(weather: Weather, reason: str) -> None:
    stage = staged(weather)
    bind(stage, "p")
    status = stage.object("p")["status"]
    assert (status["phase"], status["reason"]) == ("Failed", reason)


def test_another_pod_of_the_name_may_be_there_by_then() -> None:
    stage = staged()
    first = stage.object("p")
    first["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u", "controller": True}
    ]
    stage.sky.weather = Weather(made_anew=1.0)
    stage.world.door.handle(
        Request(
            "POST",
            "/api/v1/namespaces/default/pods/p/binding",
            headers={"content-type": JSON},
            body={
                "metadata": {"name": "p", "namespace": "default", "uid": first["metadata"]["uid"]},
                "target": {"kind": "Node", "name": "n0"},
            },
        ),
        stage.world.now_s(),
    )
    assert stage.counts["pod made anew under its binding"] == 1
    assert stage.landings == []
    pods = stage.world.store.list(stage.world.watched["pods"])
    assert [pod["metadata"]["uid"] != first["metadata"]["uid"] for pod in pods] == [True]


def test_a_quota_refuses_the_pod_that_is_too_many() -> None:
    stage = staged()
    stage.world.door.quota = 2
    stage.pod("q")
    stage.pod("r")
    stage.run(0.5)
    assert sorted(stage.world.ledger.pods) == ["p", "q"]


def test_a_policy_denies_one_gang_only() -> None:
    stage = staged()
    stage.gang("g", 1)
    stage.world.door.bound_max["g"] = 0
    assert bind(stage, "g-0").status == 403
    assert bind(stage, "p").status == 201


def test_a_policy_lets_some_members_of_a_gang_be_bound() -> None:
    stage = staged()
    stage.gang("g", 3)
    stage.world.door.bound_max["g"] = 2
    assert [bind(stage, f"g-{number}").status for number in range(3)] == [201, 201, 403]
    assert bind(stage, "p").status == 201


def test_who_bound_what_is_kept() -> None:
    stage = staged()
    bind(stage, "p")
    assert [(landed.node_name, landed.user) for landed in stage.landings] == [("n0", "muster-a-1")]
