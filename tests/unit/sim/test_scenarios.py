"""Churn acts for as long as it says, differently for every seed, and calm undoes what holds pods back."""

import numpy as np

from muster.sim.client import group_manifest, pod_manifest, pod_spec
from muster.sim.loop import Simulation
from muster.sim.scenarios import GATE, SCENARIOS
from muster.sim.view import is_gated
from muster.sim.world import ProductWorld

START_S = 1_767_225_600.0


def play(seed: int, *, calm: bool = False) -> tuple[ProductWorld, Simulation]:
    streams = np.random.default_rng(seed).spawn(3)
    world = ProductWorld(now_s=START_S, server_generator=streams[0], line_generator=streams[1])
    simulation = Simulation(world, start_s=START_S)
    scenario = SCENARIOS["churn"](world, simulation, streams[2])
    scenario.start()
    simulation.run_until(START_S + scenario.churn_s)
    if calm:
        spec = pod_spec({"cpu": "1"}, scheduler="muster", group="held", gates=(GATE,))
        world.client.create("group", group_manifest("held", 1))
        world.client.create("pod", pod_manifest("held-0", spec))
        for name in world.view().nodes:
            world.client.patch("node", name, {"spec": {"unschedulable": True}})
        scenario.calm()
    return world, simulation


def test_things_of_every_kind_come() -> None:
    world, _ = play(5)
    assert len(world.view().nodes) > 1
    assert len(world.view().groups) > 3
    assert len(world.view().pods) > 10
    assert world.client.codes[201] > 20


def test_equal_seeds_act_equally_and_others_do_not() -> None:
    pods = [list(play(seed)[0].view().pods) for seed in (5, 5, 6)]
    assert pods[0] == pods[1]
    assert pods[0] != pods[2]


def test_calm_uncordons_and_lifts_gates() -> None:
    view = play(5, calm=True)[0].view()
    assert not any(node["spec"].get("unschedulable") for node in view.nodes.values())
    assert not any(is_gated(pod) for pod in view.pods.values())
