"""Worlds with volumes that come late, for the tests of what waits for them."""

from tests.unit.cluster.volume_objects import make_claim, make_class, make_volume, mounts
from tests.unit.scheduling.world import World

from muster.framework.ports import SelectNode, StorageSeen


def with_claim(world: World, name: str = "c", *, provisioner: str = "example.com/slow") -> World:
    """A claim of a class whose volumes are made where their pod will be."""
    return world.tell(StorageSeen(make_class(provisioner=provisioner))).tell(StorageSeen(make_claim(name)))


def make_world(*, provisioner: str = "example.com/slow") -> World:
    """Two nodes, a class that waits, and a gang of two of which the first asks for a volume."""
    world = with_claim(World().node("n1", cpu=1).node("n2", cpu=1), provisioner=provisioner)
    return world.group("g", 2).pod("g-0", group="g", volumes=mounts("c")).members("g", 1)


def provision(world: World, node_name: str, *, claim: str = "c", volume: str = "v") -> None:
    """What a provisioner and the volume controller do in the end."""
    world.tell(StorageSeen(make_claim(claim, node=node_name)))
    world.tell(StorageSeen(make_volume(volume, claim=claim)))
    world.tell(StorageSeen(make_claim(claim, node=node_name, volume=volume)))


def selected_last(world: World) -> str:
    """The node that a volume was asked for last."""
    return [write.node_name for write in world.of(SelectNode)][-1]
