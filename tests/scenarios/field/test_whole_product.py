"""Reported faults that show only over time: the whole product with its kubelets, on virtual time.

The name of a test ends with the id of its case in `tests/conformance/field_cases.yaml`.
"""

from functools import partial

import numpy as np

from muster.sim.client import group_manifest, job_manifest, node_manifest, pod_manifest, pod_spec
from muster.sim.loop import Simulation
from muster.sim.view import has_ended, is_placed, is_waiting, min_count_of, node_of, takes_pods
from muster.sim.world import ProductWorld

START_S = 1_767_225_600.0
GPU = "nvidia.com/gpu"
ROOM = {"cpu": "64", "memory": "64Gi", "pods": "110"}


def make_world() -> tuple[ProductWorld, Simulation]:
    streams = np.random.default_rng(1).spawn(2)
    world = ProductWorld(now_s=START_S, server_generator=streams[0], line_generator=streams[1])
    return world, Simulation(world, start_s=START_S)


def test_sixty_gangs_over_two_nodes_all_get_their_turn_b012() -> None:
    world, simulation = make_world()
    for name in ("n1", "n2"):
        world.client.create("node", node_manifest(name, ROOM | {GPU: "8"}))

    def submit(number: int) -> None:
        size, name = number % 8 + 1, f"g{number}"
        world.client.create("group", group_manifest(name, size))
        for member in range(size):
            spec = pod_spec({"cpu": "1", GPU: "1"}, scheduler="muster", group=name)
            pod = pod_manifest(f"{name}-{member}", spec, annotations={"muster.dev/run-seconds": "30"})
            world.client.create("pod", pod)

    for number in range(60):
        simulation.post(partial(submit, number), delay_s=15.0 * number)
    idle_since_s: float | None = None
    while simulation.step() and simulation.now_s < START_S + 3600:
        idle_since_s = (idle_since_s or simulation.now_s) if _some_gang_would_fit(world) else None
        assert idle_since_s is None or simulation.now_s - idle_since_s < 12, "room and a gang that fits it"
    members = world.view().pods.values()
    assert len(members) == sum(number % 8 + 1 for number in range(60))
    assert all(has_ended(pod) for pod in members)


def _some_gang_would_fit(world: ProductWorld) -> bool:
    view = world.view()
    free = sum(
        max(0, view.room_left[name][GPU]) // 1000 for name, node in view.nodes.items() if takes_pods(node)
    )
    waiting = [
        min_count_of(group) or 1
        for name, group in view.groups.items()
        if sum(is_waiting(pod) for pod in view.members(name)) >= (min_count_of(group) or 1)
        and not any(is_placed(pod) for pod in view.members(name))
    ]
    return min(waiting, default=free + 1) <= free


def test_pods_that_a_node_refuses_are_replaced_ever_more_slowly_b031() -> None:
    world, simulation = make_world()
    for name in ("n1", "n2"):
        world.client.create("node", node_manifest(name, ROOM | {"cpu": "8"}))
    template = pod_spec({"cpu": "8"}, scheduler="muster")
    job = job_manifest("j", template, parallelism=2, completions=2, gang=True)
    job["spec"]["backoffLimit"] = 1000
    world.client.create("job", job)
    made: set[str] = set()

    def refuse_on_first_node() -> None:
        for name, pod in world.view().pods.items():
            made.add(name)
            if node_of(pod) == "n1" and not has_ended(pod):
                status = {"phase": "Failed", "reason": "TopologyAffinityError"}
                world.client.patch("pod", name, {"status": status}, subresource="status")
        simulation.post(refuse_on_first_node, delay_s=1.0)

    refuse_on_first_node()
    simulation.run_until(START_S + 600)
    assert 3 <= len(made) <= 20
    assert sum(is_placed(pod) for pod in world.view().pods.values()) >= 1
