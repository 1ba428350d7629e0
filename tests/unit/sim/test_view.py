"""The slow arithmetic of the checkers."""

import pytest
from tests.unit.sim.scene import Scene

from muster.sim.view import amount, copies, is_placed, is_waiting, requests_of


@pytest.mark.parametrize(
    ("text", "thousandths"),
    [
        pytest.param("2", 2000, id="whole"),
        pytest.param("500m", 500, id="milli"),
        pytest.param("1Ki", 1_024_000, id="binary"),
        pytest.param(3, 3000, id="number"),
    ],
)
def test_amounts_are_thousandths(text: str | int, thousandths: int) -> None:
    assert amount(text) == thousandths


def test_room_left_is_what_pods_on_the_node_leave() -> None:
    scene = Scene()
    scene.node("n1", 4)
    scene.pod("a", cpu="1500m", node="n1")
    scene.pod("ended", cpu="2", node="n1", phase="Failed")
    scene.pod("elsewhere", cpu="2", node="n2")
    assert scene.look().room_left == {"n1": {"cpu": 2500, "pods": 9000}}


def test_copies_are_counted_per_node_and_the_scarcest_resource_decides() -> None:
    scene = Scene()
    scene.pod("p", cpu="2")
    request = requests_of(scene.pods["p"])
    rooms = [{"cpu": 5000, "pods": 9000}, {"cpu": 1999, "pods": 9000}, {"cpu": 8000, "pods": 1000}]
    assert copies(rooms, request) == 3
    assert copies([{"cpu": -5000, "pods": 9000}], request) == 0


def test_what_counts_as_waiting_and_as_placed() -> None:
    scene = Scene()
    scene.pod("new")
    scene.pod("bound", node="n1")
    scene.pod("succeeded", node="n1", phase="Succeeded")
    scene.pod("failed", node="n1", phase="Failed")
    assert [name for name, pod in scene.pods.items() if is_waiting(pod)] == ["new"]
    assert [name for name, pod in scene.pods.items() if is_placed(pod)] == ["bound", "succeeded"]


def test_what_a_claim_stands_for_is_not_taken_of_the_node() -> None:
    scene = Scene()
    scene.pod("p", cpu="2")
    pod = scene.pods["p"]
    pod["spec"]["containers"][0]["resources"]["requests"]["example.com/gpu"] = "1"
    assert requests_of(pod)["example.com/gpu"] == 1000
    mapping = {"containerName": "c", "resourceName": "example.com/gpu", "requestName": "r"}
    said = {"resourceClaimName": "x", "requestMappings": [mapping]}
    pod["status"]["extendedResourceClaimStatus"] = said
    assert requests_of(pod) == {"cpu": 2000, "pods": 1000}
