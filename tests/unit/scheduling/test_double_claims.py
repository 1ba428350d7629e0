"""One device in two claims: what is given back, what is kept, and who is told, as stories."""

from msgspec.structs import replace
from tests.unit.cluster.device_objects import given, make_claim, make_class, make_device, make_slice
from tests.unit.scheduling.world import World, key_of

from muster.api.core import PodClaim
from muster.api.devices import Consumer, ResourceClaim
from muster.framework.ports import BindPod, DevicesSeen, PrepareFailed, RecordEvent, WriteClaim


def make_world() -> World:
    """A gang of two on two devices, each member with a claim of its own; both claims are being written."""
    world = World().node("n1", cpu=2)
    devices = [make_device("gpu-0"), make_device("gpu-1")]
    for found in (make_class(), make_slice("n1", *devices), make_claim("c0"), make_claim("c1")):
        world.tell(DevicesSeen(found))
    world.group("g", 2)
    for index in range(2):
        world.pod(f"g-{index}", group="g", resource_claims=[PodClaim("gpu", f"c{index}")])
    return world.run()


def ours(world: World, index: int, version: str) -> ResourceClaim:
    """A claim of the gang as the watch shows it after the write."""
    claim = make_claim(f"c{index}", allocation=given(f"gpu-{index}"), version=version)
    user = Consumer("pods", f"g-{index}", world.pods[key_of(f"g-{index}")].metadata.uid)
    return replace(claim, status=replace(claim.status, reserved_for=[user]))


def rival(version: str) -> ResourceClaim:
    return make_claim("rival", allocation=given("gpu-0"), users=("other",), version=version)


def warnings(world: World) -> list[tuple[str, str]]:
    events = [each for each in world.of(RecordEvent) if each.reason == "DeviceInTwoClaims"]
    return [(each.regarding.key.name, each.note) for each in events]


def clears(world: World) -> list[str]:
    return sorted(write.claim.name for write in world.of(WriteClaim) if write.clears)


def test_nobody_is_bound_before_the_watch_shows_our_own_writes() -> None:
    world = make_world().run(60)
    assert len(world.of(WriteClaim)) == 2
    world.tell(DevicesSeen(ours(world, 0, "6"))).run(60)
    assert world.of(BindPod) == []
    world.tell(DevicesSeen(ours(world, 1, "7"))).run()
    assert world.bound == {"g-0", "g-1"}


def test_a_device_that_a_rival_wrote_first_goes_back_with_all_others_of_the_gang() -> None:
    world = make_world().tell(DevicesSeen(rival("6")))
    world.tell(DevicesSeen(ours(world, 0, "7"))).tell(DevicesSeen(ours(world, 1, "8"))).run(5)
    assert world.of(BindPod) == []
    assert clears(world) == ["c0", "c1"]
    assert warnings(world) == []


def test_a_rival_that_wrote_later_does_not_stop_the_gang_and_is_reported() -> None:
    world = make_world()
    world.tell(DevicesSeen(ours(world, 0, "6"))).tell(DevicesSeen(rival("7")))
    world.tell(DevicesSeen(ours(world, 1, "8"))).run()
    assert world.bound == {"g-0", "g-1"}
    ((name, note),) = warnings(world)
    assert name == "g-0"
    assert note == (
        "device gpu.example.com/n1/gpu-0 is in claim default/c0, which this pod uses, and in claim "
        "default/rival: two schedulers gave it away in the same moment"
    )


def test_a_rival_that_does_not_look_is_reported_on_the_pod_that_runs() -> None:
    world = make_world()
    world.tell(DevicesSeen(ours(world, 0, "6"))).tell(DevicesSeen(ours(world, 1, "7"))).run()
    world.tell(DevicesSeen(rival("8"))).run()
    assert [name for name, _ in warnings(world)] == ["g-0"]
    world.tell(DevicesSeen(rival("9"))).run()  # nothing new about it
    assert len(warnings(world)) == 1


def test_our_own_claim_is_written_again_when_another_scheduler_was_there_first() -> None:
    world = make_world()
    (first, *_) = [write for write in world.of(WriteClaim) if write.claim.name == "c0"]
    world.forget_effects().tell(PrepareFailed(first, 409, "changed"))
    taken = make_claim("c0", allocation=given("gpu-1"), version="9")  # by another, for a pod of its own
    world.tell(DevicesSeen(taken)).run(30)
    again = [write for write in world.of(WriteClaim) if write.claim.name == "c0" and write.reserved_for]
    assert [(write.version, write.allocation) for write in again] == [("9", None)]
