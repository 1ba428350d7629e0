"""Claims that are reserved for a group, told as stories."""

from msgspec.structs import replace
from tests.unit.cluster.device_objects import make_claim, make_class, make_device, make_slice
from tests.unit.scheduling.world import World

from muster.api.core import PodClaim
from muster.framework.groups import ObjectKey
from muster.framework.ports import BindPod, DevicesSeen, WriteClaim
from muster.scheduling.claim_users import is_bound, is_waiting

CLAIMS = [PodClaim("gpu", resource_claim_name="c")]
CLAIM = ObjectKey("default", "c")


def make_world() -> World:
    """A gang of two that shares the claim of its group."""
    world = World().node("n1", cpu=2)
    for found in (make_class(), make_slice("n1", make_device("gpu")), make_claim("c")):
        world.tell(DevicesSeen(found))
    world.group("g", 2).change_group("g", claims=tuple(CLAIMS))
    for index in (0, 1):
        world.pod(f"g-{index}", group="g", resource_claims=CLAIMS)
    return world.run()


def writes(world: World) -> list[WriteClaim]:
    return [effect for effect in world.effects if isinstance(effect, WriteClaim)]


def show(world: World) -> World:
    """The claim as the API shows it after the write."""
    (write,) = writes(world)
    claim = make_claim("c", allocation=write.allocation, version="6")
    status = replace(claim.status, reserved_for=list(write.reserved_for))
    return world.tell(DevicesSeen(replace(claim, status=status)))


def test_the_group_is_written_once_for_all_its_members_and_then_they_are_bound() -> None:
    world = make_world()
    (write,) = writes(world)
    assert [(user.resource, user.name) for user in write.reserved_for] == [("podgroups", "g")]
    assert world.of(BindPod) == []
    show(world).run()
    assert world.bound == {"g-0", "g-1"}


def test_a_group_uses_its_claim_once_one_of_its_pods_is_bound() -> None:
    world = make_world()
    (group,) = writes(world)[0].reserved_for
    books = world.scheduler._books
    assert (is_bound(books, CLAIM, group), is_waiting(books, CLAIM, group)) == (False, True)
    assert not is_waiting(books, ObjectKey("default", "other"), group)
    show(world).run()
    assert (is_bound(books, CLAIM, group), is_waiting(books, CLAIM, group)) == (True, False)


def test_the_group_gives_its_claim_back_when_nobody_of_it_is_bound() -> None:
    world = make_world()
    world.tell(DevicesSeen(make_claim("d")))
    more = [*CLAIMS, PodClaim("more", resource_claim_name="d")]
    world.change("g-1", lambda pod: replace(pod, spec=replace(pod.spec, resource_claims=more)))
    show(world).forget_effects().delete_node("n1").run()
    assert [(write.clears, write.reserved_for) for write in writes(world)] == [(True, ())]


def test_a_later_member_writes_nothing_and_takes_nothing_back() -> None:
    world = make_world()
    show(world).run().forget_effects()
    world.node("n1", cpu=3).pod("g-2", group="g", resource_claims=CLAIMS).run()
    assert world.bound == {"g-0", "g-1", "g-2"}
    assert writes(world) == []
