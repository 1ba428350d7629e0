"""A stage whose nodes have a device each and whose classes make volumes."""

from tests.unit.sim.storm.stage import Stage, generator

from muster.sim.client import node_manifest
from muster.sim.loop import Checker
from muster.sim.storm.supplies import TEMPLATE, Supplies
from muster.sim.view import Object

DEVICE: Object = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": TEMPLATE}]}


def supplied(*checkers: Checker, nodes: int = 2) -> tuple[Stage, Supplies]:
    """Nodes s0, s1, … with eight processors and one device each, and nobody who meddles."""
    stage = Stage(nodes=0, checkers=checkers)
    supplies = Supplies(stage.world, generator(), storm_s=60.0)
    supplies.start()
    supplies.calm()
    for number in range(nodes):
        manifest = node_manifest(f"s{number}", {"cpu": "8", "pods": "20"})
        supplies.add_to_node(manifest, number, devices=1)
        stage.world.client.create("node", manifest)
    stage.run(10.0)
    return stage, supplies
