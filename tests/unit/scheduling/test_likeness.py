"""Which groups of a tree are alike, and which members."""

from tests.unit.cluster import device_objects
from tests.unit.cluster.volume_objects import make_claim, make_volume, mounts
from tests.unit.scheduling.test_questions import Leaf, cast_of, tree_world
from tests.unit.scheduling.world import World

from muster.api.core import PodClaim
from muster.framework.ports import DevicesSeen, StorageSeen
from muster.scheduling.likeness import (
    is_one_of_a_kind,
    kinds_of,
    likeness_of,
    orders_by_shape,
    shared_claims,
)

NODES = [(9, "z", "r")]


def kinds(*leaves: Leaf) -> list[list[str]]:
    world = tree_world(NODES, 2, list(leaves))
    books = world.scheduler._books
    found = kinds_of(cast_of(world).sorted_children(), books.state.snapshot(), books.runner)
    return [[cast.group.key.name for cast in kind if cast.group is not None] for kind in found]


def test_members_are_put_in_every_order_of_their_shapes_but_the_one_given() -> None:
    world = tree_world(NODES, 1, [Leaf(3, (1, 2, 1))])
    books = world.scheduler._books
    (leaf,) = cast_of(world).sorted_children()
    names = {member.key: str(index) for index, member in enumerate(leaf.waiting())}
    orders = orders_by_shape(leaf.waiting(), books.state.snapshot(), books.runner)
    assert ["".join(names[member.key] for member in order) for order in orders] == ["102", "021"]
    like = [member for index, member in enumerate(leaf.waiting()) if index != 1]
    assert list(orders_by_shape(like, books.state.snapshot(), books.runner)) == []


def test_groups_of_equal_members_and_needs_are_alike() -> None:
    assert kinds(Leaf(2, (1, 1)), Leaf(2, (1, 2)), Leaf(2, (1, 1))) == [["a", "c"], ["b"]]


def test_a_need_a_surplus_and_a_domain_each_make_a_difference() -> None:
    assert len(kinds(Leaf(2, (1, 1)), Leaf(1, (1, 1)), Leaf(2, (1, 1, 1)), Leaf(2, (1, 1), "rack"))) == 4


def test_a_member_that_runs_makes_a_difference() -> None:
    world = tree_world(NODES, 2, [Leaf(2, (1, 1)), Leaf(2, (1, 1))])
    books = world.scheduler._books
    assert is_one_of_a_kind(cast_of(world), books.state.snapshot(), books.runner)
    world.pod("a-9", group="a", cpu=1, node="n0")
    assert not is_one_of_a_kind(cast_of(world), books.state.snapshot(), books.runner)


def shapes(world: World) -> list[int]:
    """For every pod of the world the first that is like it."""
    books = world.scheduler._books
    members = [books.members.find(key) for key in world.pods]
    shared = shared_claims([member.pod for member in members if member is not None])
    snapshot = books.state.snapshot()
    found = [likeness_of(member, snapshot, books.runner, shared) for member in members if member is not None]
    return [found.index(shape) for shape in found]


def test_members_whose_claims_for_volumes_differ_in_their_names_are_alike() -> None:
    world = World()
    for name, size in (("c0", "1Gi"), ("c1", "1Gi"), ("c2", "2Gi"), ("c3", "1Gi")):
        world.tell(StorageSeen(make_claim(name, size=size)))
    world.tell(StorageSeen(make_claim("c4", volume="v"))).tell(StorageSeen(make_volume("v", claim="c4")))
    for name in ("c0", "c1", "c2", "c3", "c3", "c4", "missing"):
        world.pod(f"p-{len(world.pods)}", volumes=mounts(name))
    assert shapes(world) == [0, 0, 2, 3, 3, 5, 6]  # c3 is shared: its users are like each other alone


def test_members_whose_claims_for_devices_differ_in_their_names_are_alike() -> None:
    world = World()
    two = device_objects.make_request("r", 2)
    taken = device_objects.given("d0")
    claims = [
        device_objects.make_claim("k0"),
        device_objects.make_claim("k1"),
        device_objects.make_claim("k2", two),
        device_objects.make_claim("k3", allocation=taken),
    ]
    for claim in claims:
        world.tell(DevicesSeen(claim))
        world.pod(f"p-{claim.metadata.name}", resource_claims=[PodClaim("gpu", claim.metadata.name)])
    assert shapes(world) == [0, 0, 2, 3]
