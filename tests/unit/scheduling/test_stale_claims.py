"""Claims whose devices are where their pods cannot go, told as stories."""

import pytest
from msgspec.structs import replace
from tests.unit.cluster.device_objects import make_claim, make_class, make_device, make_slice
from tests.unit.scheduling.world import World

from muster.api.core import LabelSelectorRequirement, NodeSelector, NodeSelectorTerm, PodClaim
from muster.api.devices import AllocatedDevice, Allocation, Consumer, DeviceAllocation, ResourceClaim
from muster.framework.ports import DevicesSeen, WriteClaim

CLAIMS = [PodClaim("gpu", resource_claim_name="c")]


def given_on(node_name: str, *users: Consumer) -> ResourceClaim:
    """The claim has a device of this node, which only this node reaches."""
    here = LabelSelectorRequirement("metadata.name", "In", [node_name])
    result = AllocatedDevice("r", "gpu.example.com", node_name, "gpu")
    selector = NodeSelector([NodeSelectorTerm(match_fields=[here])])
    claim = make_claim("c", allocation=Allocation(DeviceAllocation([result]), selector))
    return replace(claim, status=replace(claim.status, reserved_for=list(users)))


def make_world(claim: ResourceClaim, *, cpu: int = 1) -> World:
    """A pod of a gang of one whose claim is pinned to a node; there is another node with a device."""
    world = World().node("full", cpu=cpu).node("free", cpu=1)
    slices = [make_slice(name, make_device("gpu")) for name in ("full", "free")]
    for found in (make_class(), *slices, claim):
        world.tell(DevicesSeen(found))
    world.pod("neighbour", cpu=1, node="full")
    return world.group("g", 1).pod("g-0", uid="uid-0", group="g", cpu=1, resource_claims=CLAIMS).run()


def freed(world: World) -> list[str]:
    return [write.claim.name for write in world.of(WriteClaim) if write.clears]


@pytest.mark.parametrize("users", [(), (Consumer("pods", "g-0", "uid-0"),)], ids=["nobody", "itself"])
def test_a_claim_on_a_node_that_is_full_is_freed_and_gets_devices_elsewhere(
    users: tuple[Consumer, ...],
) -> None:
    world = make_world(given_on("full", *users))
    assert freed(world) == ["c"]
    world.forget_effects().tell(DevicesSeen(make_claim("c", version="6"))).run(30)
    (write,) = world.of(WriteClaim)
    assert write.allocation is not None
    assert [result.pool for result in write.allocation.devices.results] == ["free"]


def test_a_claim_on_a_node_that_is_gone_is_freed() -> None:
    assert freed(make_world(given_on("gone"))) == ["c"]


def test_a_claim_that_somebody_else_uses_stays() -> None:
    assert freed(make_world(given_on("full", Consumer("pods", "stranger", "uid-x")))) == []
    assert freed(make_world(given_on("full", Consumer("pods", "neighbour", "uid-neighbour")))) == []


def test_a_claim_with_which_the_pod_can_be_placed_stays() -> None:
    world = make_world(given_on("full"), cpu=2)
    assert freed(world) == []
    assert [write.allocation for write in world.of(WriteClaim)] == [None]


def test_a_claim_that_is_not_in_the_way_stays() -> None:
    claim = given_on("full")
    allocation = claim.status.allocation
    assert allocation is not None
    everywhere = replace(claim.status, allocation=replace(allocation, node_selector=None))
    world = make_world(replace(claim, status=everywhere))
    assert freed(world.forget_effects()) == []
    world.pod("other", cpu=5, resource_claims=CLAIMS).run()
    assert freed(world) == []


def test_a_member_beyond_the_minimum_has_its_claim_freed() -> None:
    world = World().node("full", cpu=1).node("free", cpu=2)
    slices = [make_slice(name, make_device("gpu")) for name in ("full", "free")]
    for found in (make_class(), *slices, given_on("full")):
        world.tell(DevicesSeen(found))
    world.pod("neighbour", cpu=1, node="full").group("g", 1).pod("g-0", group="g", cpu=1)
    world.pod("g-1", group="g", cpu=1, resource_claims=CLAIMS).run()
    assert ("g-0" in world.bound, freed(world)) == (True, ["c"])


def test_a_claim_of_somebody_in_preparation_stays() -> None:
    """The claim is on `full`: who came first has room there, and is about to be named on the claim."""
    world = World().node("full", cpu=2).node("free", cpu=1)
    for found in (make_class(), make_slice("full", make_device("gpu")), given_on("full")):
        world.tell(DevicesSeen(found))
    world.group("g", 1).pod("g-0", group="g", cpu=1, resource_claims=CLAIMS).run()
    world.pod("late", cpu=2, resource_claims=CLAIMS).run()
    assert freed(world) == []


def test_nothing_is_called_impossible_for_devices_that_nobody_uses() -> None:
    """Both have claims whose devices are on the node that has room for one."""
    world = World().node("full", cpu=1).node("free", cpu=1)
    slices = [make_slice(name, make_device("gpu"), make_device("gpu-1")) for name in ("full", "free")]
    for found in (make_class(), *slices, given_on("full"), make_claim("d")):
        world.tell(DevicesSeen(found))
    wanted = [*CLAIMS, PodClaim("other", resource_claim_name="d")]
    world.group("g", 2)
    for index in (0, 1):
        world.pod(f"g-{index}", group="g", cpu=1, resource_claims=wanted)
    condition = world.run().condition("g")
    assert condition is not None
    assert condition.message is not None
    assert "impossible" not in condition.message
    assert "no placement as long as claim default/c keeps devices" in condition.message
    assert freed(world) == ["c"]
    world.tell(DevicesSeen(make_claim("c", version="6"))).run(30)
    condition = world.condition("g")
    assert condition is not None
    assert "proved impossible on the 2 nodes as they are" in (condition.message or "")
