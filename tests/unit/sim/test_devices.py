"""The checker of devices complains of what it is for, and of nothing else."""

from tests.unit.sim.scene import Scene

from muster.sim.devices import GPU_INDEX, DevicesApart
from muster.sim.view import GPU, GPU_MILLI


def scene_with(*pods: tuple[str, int, str]) -> Scene:
    """A node with two GPUs and bound pods: name, thousandths (0: a whole GPU), devices."""
    scene = Scene()
    scene.node("n1", 8)
    scene.nodes["n1"]["status"]["allocatable"][GPU] = "2"
    for name, milli, index in pods:
        scene.pod(name, node="n1")
        scene.pods[name]["spec"]["containers"][0]["resources"]["requests"][GPU] = "1"
        said = {GPU_MILLI: str(milli), GPU_INDEX: index} if milli else {}
        scene.pods[name]["metadata"]["annotations"] = said
    return scene


def complaints(*pods: tuple[str, int, str]) -> list[str]:
    return list(DevicesApart(scene_with(*pods).look).check(0.0))


def test_parts_that_fill_a_device_beside_a_whole_one_are_right() -> None:
    assert complaints(("a", 600, "0"), ("b", 400, "0"), ("c", 0, "")) == []


def test_a_device_given_away_twice_is_seen() -> None:
    assert complaints(("a", 600, "0"), ("b", 500, "0")) == [
        "node n1: thousandths taken of its devices: {0: 1100}"
    ]


def test_a_whole_gpu_on_a_shared_device_is_seen() -> None:
    assert complaints(("a", 600, "0"), ("b", 300, "1"), ("c", 0, "")) == [
        "node n1: 1 whole GPUs and 2 shared ones, of 2"
    ]


def test_a_part_without_a_device_or_on_one_that_is_not_there_is_seen() -> None:
    assert complaints(("a", 600, "")) == ["pod a has devices [] of the 2 of node n1"]
    assert complaints(("a", 600, "2")) == ["pod a has devices [2] of the 2 of node n1"]
