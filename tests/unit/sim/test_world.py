"""The world does what is due, looks through the API, and lets the scheduler come and go."""

import numpy as np
from msgspec import Struct

from muster.framework.ports import Effect, Event, PodSeen
from muster.sim.client import group_manifest, node_manifest, pod_manifest, pod_spec
from muster.sim.view import node_of
from muster.sim.world import ProductWorld

START_S = 1_767_225_600.0


class Notes(Struct):
    """An observer that remembers which pods the scheduler was told of."""

    pods: list[str] = []
    resets: int = 0

    def observe(self, event: Event, effects: tuple[Effect, ...], now_s: float) -> None:
        if isinstance(event, PodSeen):
            self.pods.append(event.pod.metadata.name)

    def reset(self) -> None:
        self.pods.clear()
        self.resets += 1


def make_world(*, notes: Notes | None = None, kubelets: bool = True) -> ProductWorld:
    streams = np.random.default_rng(3).spawn(2)
    world = ProductWorld(
        now_s=START_S,
        server_generator=streams[0],
        line_generator=streams[1],
        observers=[notes] if notes else [],
        kubelets=kubelets,
    )
    world.client.create("node", node_manifest("n1", {"cpu": "4", "memory": "8Gi", "pods": "10"}))
    return world


def add_gang(world: ProductWorld, size: int) -> None:
    world.client.create("group", group_manifest("g", size))
    for number in range(size):
        spec = pod_spec({"cpu": "1"}, scheduler="muster", group="g")
        pod = pod_manifest(f"g-{number}", spec, annotations={"muster.dev/run-seconds": "20"})
        world.client.create("pod", pod)


def test_nothing_happens_until_time_is_given() -> None:
    world = make_world()
    add_gang(world, 3)
    assert not world.is_settled
    assert not any(node_of(pod) for pod in world.view().pods.values())
    world.run_until(START_S + 1)
    assert world.is_settled
    assert [node_of(pod) for pod in world.view().pods.values()] == ["n1"] * 3


def test_the_view_is_made_anew_only_when_something_was_written() -> None:
    world = make_world()
    world.run_until(START_S + 1)
    first = world.view()
    assert world.view() is first
    add_gang(world, 1)
    assert world.view() is not first


def test_while_the_scheduler_is_stopped_nothing_is_placed_and_the_next_one_knows_all() -> None:
    notes = Notes()
    world = make_world(notes=notes)
    world.stop_scheduler()
    add_gang(world, 2)
    world.run_until(START_S + 60)
    assert world.scheduler is None
    assert not any(node_of(pod) for pod in world.view().pods.values())
    world.start_scheduler()
    world.run_until(START_S + 61)
    assert set(notes.pods) == {"g-0", "g-1"}
    assert notes.resets == 2
    assert all(node_of(pod) for pod in world.view().pods.values())


def test_kubelets_end_pods_after_their_time() -> None:
    world = make_world()
    add_gang(world, 2)
    world.run_until(START_S + 60)
    assert {pod["status"]["phase"] for pod in world.view().pods.values()} == {"Succeeded"}
    assert world.is_quiet


def test_a_refused_request_comes_back_with_its_code() -> None:
    code, found = make_world().call("GET", "/api/v1/namespaces/default/pods/none", None, "")
    assert (code, found["reason"]) == (404, "NotFound")
