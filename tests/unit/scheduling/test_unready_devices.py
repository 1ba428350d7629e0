"""Devices that must become ready before anybody is bound, told as stories."""

from msgspec.structs import replace
from tests.unit.cluster.device_objects import DRIVER, make_claim, make_class, make_device, make_slice
from tests.unit.scheduling.world import World, key_of

from muster.api.core import PodClaim
from muster.api.devices import Allocation, Consumer, DeviceStatus
from muster.api.meta import Condition
from muster.api.times import format_seconds
from muster.framework.ports import BindPod, DevicesSeen, WriteClaim
from muster.scheduling.preparations import UNPREPARED_S_MAX


def make_world() -> World:
    """A gang of two, one of which claims a device that must become ready."""
    device = replace(make_device("gpu"), binding_conditions=["ready"], binding_failure_conditions=["broken"])
    world = World().node("n1", cpu=2)
    for found in (make_class(), make_slice("n1", device), make_claim("c")):
        world.tell(DevicesSeen(found))
    claims = [PodClaim("gpu", resource_claim_name="c")]
    world.group("g", 2).pod("g-0", group="g", resource_claims=claims).members("g", 1)
    return world.run()


def writes(world: World) -> list[WriteClaim]:
    return [effect for effect in world.effects if isinstance(effect, WriteClaim)]


def allocation_of(world: World) -> Allocation:
    (write,) = writes(world)
    assert write.allocation is not None
    return write.allocation


def show(world: World, *conditions: Condition) -> World:
    """The claim as the API shows it after the write, with what the driver says."""
    claim = make_claim("c", allocation=allocation_of(world), version="6")
    said = [DeviceStatus(DRIVER, "n1", "gpu", None, list(conditions))]
    user = Consumer("pods", "g-0", world.pods[key_of("g-0")].metadata.uid)
    status = replace(claim.status, reserved_for=[user], devices=said)
    return world.tell(DevicesSeen(replace(claim, status=status)))


def test_the_allocation_says_when_it_was_made() -> None:
    world = make_world()
    assert allocation_of(world).allocation_timestamp == format_seconds(world.now_s)


def test_nobody_of_the_gang_is_bound_before_the_device_is_ready() -> None:
    world = make_world()
    show(world).run(60)
    assert world.of(BindPod) == []
    show(world, Condition("ready", "True")).run()
    assert world.bound == {"g-0", "g-1"}


def test_a_device_that_fails_goes_back_and_the_gang_is_decided_anew() -> None:
    world = make_world()
    show(world, Condition("broken", "True", message="no link"))
    world.forget_effects().run()
    assert [(write.clears, write.reserved_for) for write in writes(world)] == [(True, ())]
    world.forget_effects().tell(DevicesSeen(make_claim("c", version="7"))).run(30)
    assert allocation_of(world).devices.results is not None
    assert world.bound == set()


def test_a_device_that_is_not_ready_in_time_goes_back() -> None:
    world = make_world()
    show(world).run(UNPREPARED_S_MAX - 1)
    assert len(writes(world)) == 1
    world.forget_effects().run(2)
    assert [write.clears for write in writes(world)] == [True]


def restart_with(*, neighbour: str = "") -> World:
    """A new scheduler finds the claim as given and reserved, for a neighbour on this node as well."""
    found = make_claim("c", allocation=allocation_of(make_world()))
    users = [Consumer("pods", "g-0", "uid-0")] + ([Consumer("pods", "beside", "uid-1")] if neighbour else [])
    broken = [DeviceStatus(DRIVER, "n1", "gpu", None, [Condition("broken", "True")])]
    status = replace(found.status, reserved_for=users)
    world = World().node("n1", cpu=3).tell(DevicesSeen(make_class()))
    world.tell(DevicesSeen(replace(found, status=status)))
    claims = [PodClaim("gpu", resource_claim_name="c")]
    if neighbour:
        world.pod("beside", uid="uid-1", node=neighbour, resource_claims=claims)
    world.group("g", 1).pod("g-0", uid="uid-0", group="g", resource_claims=claims)
    return world.tell(DevicesSeen(replace(found, status=replace(status, devices=broken)))).run()


def test_what_a_decision_before_a_restart_had_given_goes_back_unless_a_bound_pod_uses_it() -> None:
    assert [write.clears for write in writes(restart_with())] == [True]
    assert writes(restart_with(neighbour="n1")) == []
