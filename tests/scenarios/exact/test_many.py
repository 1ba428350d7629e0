"""Many gangs of unlike members on few nodes, with faults: whatever fits the empty cluster has its turn."""

from functools import partial

import numpy as np
import pytest

from muster.framework.ports import Effect, Event, Search
from muster.sim.client import group_manifest, node_manifest, pod_manifest, pod_spec
from muster.sim.faults import Faults
from muster.sim.loop import Simulation
from muster.sim.view import has_ended
from muster.sim.world import ProductWorld

START_S = 1_767_225_600.0
NODES, CPUS, GANGS = 3, 10, 8


class SearchCount:
    """How many searches were asked for."""

    def __init__(self) -> None:
        self.searches = 0

    def observe(self, event: Event, effects: tuple[Effect, ...], now_s: float) -> None:
        self.searches += sum(isinstance(effect, Search) for effect in effects)

    def reset(self) -> None:
        pass


def fits_the_empty_cluster(sizes: list[int]) -> bool:
    """Largest first, each on the first node with room: what succeeds is a placement."""
    free = [CPUS] * NODES
    for size in sorted(sizes, reverse=True):
        node = next((node for node, room in enumerate(free) if room >= size), None)
        if node is None:
            return False
        free[node] -= size
    return True


@pytest.mark.parametrize("seed", range(2))
def test_every_mixed_gang_that_fits_ends(seed: int) -> None:
    streams = np.random.default_rng(seed).spawn(3)
    chance, count = streams[2], SearchCount()
    world = ProductWorld(
        now_s=START_S,
        server_generator=streams[0],
        line_generator=streams[1],
        observers=(count,),
        faults=Faults.draw(chance),
    )
    simulation = Simulation(world, start_s=START_S)
    for number in range(NODES):
        room = {"cpu": str(CPUS), "memory": "64Gi", "pods": "110"}
        world.client.create("node", node_manifest(f"n{number}", room))

    def submit(name: str, sizes: list[int]) -> None:
        world.client.create("group", group_manifest(name, len(sizes)))
        for member, size in enumerate(sizes):
            spec = pod_spec({"cpu": str(size)}, scheduler="muster", group=name)
            pod = pod_manifest(f"{name}-{member}", spec, annotations={"muster.dev/run-seconds": "20"})
            world.client.create("pod", pod)

    total = 0
    for number in range(GANGS):
        small, large = int(chance.integers(1, 6)), int(chance.integers(4, 8))
        sizes = [small] * int(chance.integers(1, 5)) + [large] * int(chance.integers(1, 4))
        if fits_the_empty_cluster(sizes):
            simulation.post(partial(submit, f"g{number}", sizes), delay_s=float(chance.uniform(0, 20)))
            total += len(sizes)
    simulation.run_until(START_S + 1500)
    pods = world.view().pods.values()
    assert len(pods) == total
    assert all(has_ended(pod) for pod in pods)
    assert count.searches > 0
