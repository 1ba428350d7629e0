"""Which groups of a tree are alike, and which members."""

from msgspec.structs import replace
from tests.unit.cluster import device_objects
from tests.unit.cluster.volume_objects import make_claim, make_volume, mounts
from tests.unit.scheduling.test_questions import Leaf, cast_of, tree_world
from tests.unit.scheduling.world import World

from muster.api.core import PodClaim, PodClaimStatus
from muster.api.meta import OwnerReference
from muster.framework.ports import DevicesSeen, StorageSeen
from muster.scheduling.likeness import (
    is_one_of_a_kind,
    kinds_of,
    likeness_of,
    orders_by_shape,
    shared_claims,
)
from muster.testing.builders import make_pod

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
    """For every pod of the world that is not placed the first that is like it."""
    books = world.scheduler._books
    members = [books.members.find(key) for key, pod in world.pods.items() if not pod.spec.node_name]
    shared = shared_claims([member.pod for member in members if member is not None], books.state.snapshot())
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


def test_a_member_is_like_no_other_whose_claim_somebody_uses_who_is_placed() -> None:
    world = World().node("n", cpu=1)
    for name in ("c0", "c1"):
        world.tell(StorageSeen(make_claim(name)))
        world.pod(f"p-{name}", volumes=mounts(name))
    assert shapes(world) == [0, 0]
    world.pod("p-other", node="n", volumes=mounts("c1"))
    assert shapes(world) == [0, 1]


def test_a_member_that_may_not_have_its_claim_is_like_no_other() -> None:
    """It was made for another pod of the name, and is the pod's own all the same: nobody goes with it."""
    world = World()
    volumes: list[dict[str, object]] = [{"name": "v", "ephemeral": {}}]
    for index, owner in enumerate(("uid-0", "uid-1", "before")):
        claim = make_claim(f"p-{index}-v")
        owners = [OwnerReference("v1", "Pod", f"p-{index}", owner, controller=True)]
        owned = replace(claim, metadata=replace(claim.metadata, owner_references=owners))
        world.tell(StorageSeen(owned)).pod(f"p-{index}", uid=f"uid-{index}", volumes=volumes)
    assert shapes(world) == [0, 0, 2]


def test_a_member_whose_claim_for_devices_was_made_for_another_is_like_no_other() -> None:
    world = World()
    wanted = [PodClaim("gpu", resource_claim_template_name="t")]
    for index, owner in enumerate(("uid-0", "uid-1", "before")):
        claim = device_objects.make_claim(f"k{index}")
        owners = [OwnerReference("v1", "Pod", f"p-{index}", owner, controller=True)]
        owned = replace(claim, metadata=replace(claim.metadata, owner_references=owners))
        world.tell(DevicesSeen(device_objects.make_class())).tell(DevicesSeen(owned))
        made = [PodClaimStatus("gpu", f"k{index}")]
        pod = make_pod(f"p-{index}", uid=f"uid-{index}", resource_claims=wanted)
        world.put(replace(pod, status=replace(pod.status, resource_claim_statuses=made)))
    assert shapes(world) == [0, 0, 2]


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
