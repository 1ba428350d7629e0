"""Claims made in place of extended resources, told as stories."""

from msgspec.structs import replace
from tests.unit.cluster.device_objects import (
    given,
    in_place,
    make_claim,
    make_class,
    make_device,
    make_slice,
)
from tests.unit.scheduling.world import World

from muster.api.core import ExtendedResourceClaimStatus
from muster.api.devices import Allocation, Consumer, ResourceClaim
from muster.framework.ports import (
    BindPod,
    DevicesGone,
    DevicesSeen,
    DropClaim,
    MakeClaim,
    PrepareFailed,
)

GPU = "nvidia.com/gpu"


def make_world(*found: ResourceClaim, devices: int = 1) -> World:
    """A class that backs GPUs, and a node with so many devices and no such resource."""
    world = World().node("n", cpu=8)
    backing = make_class()
    world.tell(DevicesSeen(replace(backing, spec=replace(backing.spec, extended_resource_name=GPU))))
    world.tell(DevicesSeen(make_slice("n", *(make_device(f"gpu-{index}") for index in range(devices)))))
    for each in found:
        world.tell(DevicesSeen(each))
    return world


def made_for(
    pod: str, allocation: Allocation | None, name: str = "made", version: str = "6"
) -> ResourceClaim:
    claim = in_place(make_claim(name, allocation=allocation, version=version), pod, f"uid-{pod}")
    users = [Consumer("pods", pod, f"uid-{pod}")] if allocation is not None else None
    return replace(claim, status=replace(claim.status, reserved_for=users))


def show(world: World, pod: str, claim: ResourceClaim) -> None:
    """The watch shows the claim, and that the pod names it."""
    world.tell(DevicesSeen(claim))
    named = ExtendedResourceClaimStatus([], claim.metadata.name)
    world.change(
        pod, lambda seen: replace(seen, status=replace(seen.status, extended_resource_claim_status=named))
    )
    world.run()


def bound(world: World) -> list[str]:
    return [effect.key.name for effect in world.of(BindPod)]


def test_nobody_is_bound_before_the_claims_of_all_can_be_seen() -> None:
    world = make_world(devices=2).group("g", 2)
    for name in ("g-0", "g-1"):
        world.pod(name, uid=f"uid-{name}", group="g", gpu=1)
    world.run()
    first, second = world.of(MakeClaim)
    assert not bound(world)
    given = [each.device for make in (first, second) for each in make.allocation.devices.results or ()]
    assert sorted(given) == ["gpu-0", "gpu-1"]
    show(world, "g-0", made_for("g-0", first.allocation, "c0"))
    assert not bound(world)
    show(world, "g-1", made_for("g-1", second.allocation, "c1"))
    assert bound(world) == ["g-0", "g-1"]


def test_devices_are_kept_for_a_claim_that_is_not_seen_yet() -> None:
    world = make_world().pod("a", uid="uid-a", gpu=1).run()
    world.pod("b", uid="uid-b", gpu=1).run()
    assert [make.key.name for make in world.of(MakeClaim)] == ["a"]


def test_a_claim_that_could_not_be_made_gives_the_place_back() -> None:
    world = make_world().pod("a", uid="uid-a", gpu=1).run()
    (make,) = world.of(MakeClaim)
    world.tell(DevicesSeen(made_for("a", None))).forget_effects()
    world.tell(PrepareFailed(make, 0, "no answer")).run()
    assert [drop.claim.name for drop in world.of(DropClaim)] == ["made"]
    world.tell(DevicesGone(ResourceClaim, ("default", "made"), "uid-made")).run(60)
    assert [again.allocation.devices for again in world.of(MakeClaim)] == [make.allocation.devices]
    assert not bound(world)


def test_a_claim_that_appears_when_its_pod_has_given_up_is_dropped() -> None:
    world = make_world().pod("a", uid="uid-a", gpu=1).run()
    (make,) = world.of(MakeClaim)
    world.tell(PrepareFailed(make, 0, "no answer")).run()
    assert not world.of(DropClaim)
    world.forget_effects().tell(DevicesSeen(made_for("a", make.allocation))).run()
    assert [drop.claim_uid for drop in world.of(DropClaim)] == ["uid-made"]


def test_a_claim_left_by_an_earlier_scheduler_is_dropped_and_what_it_had_given_anew() -> None:
    world = make_world().pod("a", uid="uid-a", gpu=1).run()
    (make,) = world.of(MakeClaim)
    later = make_world(made_for("a", make.allocation)).pod("a", uid="uid-a", gpu=1).run()
    assert [drop.claim.name for drop in later.of(DropClaim)] == ["made"]
    assert not later.of(MakeClaim)
    later.tell(DevicesGone(ResourceClaim, ("default", "made"), "uid-made")).run(60)
    assert [again.allocation.devices for again in later.of(MakeClaim)] == [make.allocation.devices]


def test_who_waits_for_the_devices_of_a_claim_is_placed_when_it_is_gone() -> None:
    other = make_claim("other", allocation=given("gpu-0", node="n"))
    world = make_world(other).pod("a", uid="uid-a", gpu=1).run(30)
    assert not world.of(MakeClaim)
    world.tell(DevicesGone(ResourceClaim, ("default", "other"), "uid-other")).run(15)
    assert [make.key.name for make in world.of(MakeClaim)] == ["a"]
