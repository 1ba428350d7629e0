"""Claims with devices for pods that only wait are given back, told as stories."""

from msgspec.structs import replace
from tests.unit.cluster.device_objects import given, make_claim, make_class, make_device, make_slice
from tests.unit.scheduling.world import World, key_of

from muster.api.core import PodClaim
from muster.api.devices import Consumer, ResourceClaim
from muster.framework.ports import BindPod, DevicesSeen, PrepareFailed, WriteClaim
from muster.scheduling.idle_claims import ASK_AGAIN_S, IDLE_S

CLAIMS = [PodClaim("gpu", resource_claim_name="c")]


def left_behind(user: str = "g-0", version: str = "5") -> ResourceClaim:
    """What another scheduler has left: a device for a pod that is not bound."""
    claim = make_claim("c", allocation=given("gpu-0"), version=version)
    users = [Consumer("pods", user, f"uid-{user}")]
    return replace(claim, status=replace(claim.status, reserved_for=users))


def make_world(claim: ResourceClaim, **fields: object) -> World:
    """A gang of two of which one member exists, which has a claim."""
    world = World().node("n1", cpu=2)
    for found in (make_class(), make_slice("n1", make_device("gpu-0")), claim):
        world.tell(DevicesSeen(found))
    world.group("g", 2).pod("g-0", uid="uid-g-0", group="g", resource_claims=CLAIMS, **fields)
    return world.run()


def freed(world: World) -> list[WriteClaim]:
    return [write for write in world.of(WriteClaim) if write.clears]


def test_a_gang_that_is_not_tried_gives_back_what_another_scheduler_gave_it() -> None:
    world = make_world(left_behind()).run(IDLE_S - 1)
    assert freed(world) == []
    (write,) = freed(world.run(1))
    assert (write.claim.name, write.version, write.reserved_for) == ("c", "5", ())


def test_so_does_one_that_was_there_when_everything_was_listed() -> None:
    world = World(synced=False).group("g", 2)
    world.tell(DevicesSeen(left_behind())).pod("g-0", uid="uid-g-0", group="g", resource_claims=CLAIMS)
    world.run(100).restart()
    world.tell(DevicesSeen(left_behind(version="6"))).run(IDLE_S)
    assert [write.version for write in freed(world)] == ["6"]


def test_a_claim_of_a_pod_that_is_bound_stays_and_is_not_looked_at_again() -> None:
    world = make_world(left_behind(), node="n1").run(IDLE_S)
    assert freed(world) == []
    assert world._wake_s is None or world._wake_s > world.now_s + IDLE_S


def test_a_claim_that_somebody_else_uses_stays() -> None:
    assert freed(make_world(left_behind(user="stranger")).run(10 * IDLE_S)) == []
    world = make_world(left_behind(user="rival"))
    world.pod("rival", uid="uid-rival", scheduler="rival", resource_claims=CLAIMS)
    assert freed(world.run(10 * IDLE_S)) == []


def test_it_is_asked_again_until_it_is_seen_free() -> None:
    world = make_world(left_behind()).run(IDLE_S)
    (write,) = freed(world)
    world.tell(PrepareFailed(write, 403, "not today")).run(ASK_AGAIN_S)
    assert len(freed(world)) == 2
    world.run(IDLE_S)
    assert len(freed(world)) == 3
    world.tell(DevicesSeen(make_claim("c", version="6"))).run(10 * IDLE_S)
    assert len(freed(world)) == 3


def test_one_that_has_changed_meanwhile_is_asked_back_as_soon_as_that_is_seen() -> None:
    world = make_world(left_behind()).run(IDLE_S)
    world.tell(PrepareFailed(freed(world)[0], 409, "modified"))
    world.forget_effects().tell(DevicesSeen(left_behind(version="7"))).run()
    assert [write.version for write in freed(world)] == ["7"]


def test_nobody_is_bound_with_devices_that_were_asked_back() -> None:
    world = make_world(left_behind()).run(IDLE_S)
    world.members("g", 1).run(3)
    assert world.of(BindPod) == []
    world.forget_effects().tell(DevicesSeen(make_claim("c", version="6"))).run(30)
    (write,) = world.of(WriteClaim)
    assert write.allocation is not None
    uid = world.pods[key_of("g-0")].metadata.uid
    shown = make_claim("c", allocation=write.allocation, version="7")
    status = replace(shown.status, reserved_for=[Consumer("pods", "g-0", uid)])
    world.tell(DevicesSeen(replace(shown, status=status))).run(1)
    assert world.bound == {"g-0", "g-1"}


def test_a_gang_that_is_tried_in_time_uses_what_it_was_given() -> None:
    world = make_world(left_behind()).members("g", 1).run(1)
    assert world.bound == {"g-0", "g-1"}
    assert world.of(WriteClaim) == []
