"""Parts of GPUs from the pod's annotation to the binding, told as stories."""

import pytest
from tests.unit.scheduling.world import World, key_of

from muster.cluster.gpu_annotations import GPU_INDEX, GPU_MILLI, indices_of
from muster.framework.ports import BindPod


def part(milli: int | str) -> dict[str, object]:
    return {"gpu": 1, "annotations": {GPU_MILLI: str(milli)}}


def devices(world: World) -> dict[str, tuple[int, ...]]:
    """Pod → devices, as its last binding says."""
    return {bind.key.name: bind.devices for bind in world.of(BindPod)}


def test_members_of_a_gang_share_a_device_and_their_bindings_say_which() -> None:
    world = World().node("n1", gpu=2).group("g", 3).members("g", 0, 1, 2, **part(400)).run()
    assert devices(world) == {"g-0": (0,), "g-1": (0,), "g-2": (1,)}
    assert indices_of(world.pods[key_of("g-2")]) == (1,)


def test_a_gang_of_parts_that_does_not_fit_on_devices_is_not_placed_though_the_sum_would() -> None:
    world = World().node("n1", gpu=2).group("g", 3).members("g", 0, 1, 2, **part(600)).run()
    assert not world.of(BindPod)
    assert "no GPU with 600 thousandths left" in world.condition("g").message  # type: ignore[union-attr]


def test_unlike_parts_get_the_devices_on_which_they_were_tried() -> None:
    world = World().node("n1", gpu=2).group("g", 4)
    for index, milli in enumerate((700, 600, 300, 400)):
        world.pod(f"g-{index}", group="g", **part(milli))
    assert devices(world.run()) == {"g-0": (0,), "g-1": (1,), "g-2": (0,), "g-3": (1,)}


def test_whole_gpus_are_told_their_devices_only_if_they_ask() -> None:
    world = World().node("n1", gpu=4).pod("plain", gpu=2).run()
    world.pod("told", gpu=2, annotations={GPU_MILLI: "1000"}).run()
    assert devices(world) == {"plain": (), "told": (2, 3)}


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (part("0.5"), "metadata.annotations[muster.dev/gpu-milli]"),
        ({**part(500), "gpu": 2}, "metadata.annotations[muster.dev/gpu-milli]"),
        ({"annotations": {GPU_INDEX: "0"}}, "metadata.annotations[muster.dev/gpu-index]"),
    ],
)
def test_a_bad_annotation_holds_pod_and_gang_and_is_named(words: dict[str, object], field: str) -> None:
    world = World().node("n1", gpu=2).group("g", 1).pod("g-0", group="g", **words).pod("alone", **words).run()
    assert not world.of(BindPod)
    assert field in world.condition("g").message  # type: ignore[union-attr]
    assert any(name == "alone" and field in note for name, note in world.notes("FailedScheduling"))


def test_a_device_that_becomes_free_wakes_who_waits_for_a_part() -> None:
    world = World().node("n1", gpu=1).pod("first", **part(700)).run().pod("second", **part(400)).run()
    assert "second" not in devices(world)
    world.end("first").run()
    assert devices(world)["second"] == (0,)


def test_a_scheduler_that_starts_anew_has_the_same_books() -> None:
    world = World().node("n1", gpu=3).pod("whole", gpu=1).run()
    for name, milli in (("a", 700), ("b", 600), ("c", 300)):
        world.pod(name, **part(milli)).run()
    again = World().node("n1", gpu=3)
    for pod in reversed(list(world.pods.values())):
        again.put(pod)
    again.run()
    before, after = (each.scheduler.state.snapshot().gpus for each in (world, again))
    assert after.left.tolist() == before.left.tolist()
    assert after.holds_on(0) == before.holds_on(0)
