"""Gangs with claims for volumes and devices, against every way there is to place them."""

from collections import Counter
from collections.abc import Iterator
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import replace
from tests.unit.cluster.volume_objects import make_claim, make_class, make_volume, mounts
from tests.unit.scheduling.world import World, key_of

from muster.api.core import LabelSelector, LabelSelectorRequirement
from muster.api.meta import ObjectMeta
from muster.api.storage import (
    ONE_POD,
    CSIDriver,
    CSIDriverSpec,
    CSINode,
    CSINodeSpec,
    CSIStorageCapacity,
    NodeDriver,
    NodeResources,
)
from muster.framework.ports import CompositeSeen, StorageSeen
from muster.scheduling import backtracking
from muster.testing.builders import make_group

MAKER = "disk.example.com"


class Disk(Struct, frozen=True):
    """A volume that exists: which zone reaches it ("" for all), its size."""

    zone: str
    size: int


class Claim(Struct, frozen=True):
    """What is claimed; `made`: of the class that makes volumes; `alone`: for one pod of the cluster.

    `is_there`: its volume was made before, and every node reaches it.
    """

    size: int
    made: bool = False
    alone: bool = False
    is_there: bool = False


class Story(Struct, frozen=True):
    """Nodes by cpu, zone and how many made volumes they attach (-1: any number); members by their claims.

    `groups`: of a tree that needs `needed` of them, each in one zone: how many of the members, the next in
    turn, are its own, and how many it needs.  Without any the members are one gang.
    """

    nodes: list[tuple[int, str, int]]
    disks: list[Disk]
    claims: list[Claim]
    members: list[tuple[int, ...]]
    needed: int
    room: dict[str, int]
    groups: list[tuple[int, int]] = []


def tell(story: Story) -> World:
    """A world in which the members come as one gang, or as several of a tree."""
    world = World()
    for index, (cpu, zone, limit) in enumerate(story.nodes):
        world.node(f"n{index}", cpu=cpu, labels={"zone": zone})
        if limit >= 0:
            drivers = [NodeDriver(MAKER, allocatable=NodeResources(limit))]
            world.tell(StorageSeen(CSINode(ObjectMeta(name=f"n{index}"), CSINodeSpec(drivers))))
    world.tell(StorageSeen(make_class())).tell(StorageSeen(make_class("made", provisioner=MAKER)))
    world.tell(StorageSeen(CSIDriver(ObjectMeta(name=MAKER), CSIDriverSpec(storage_capacity=True))))
    for zone, room in story.room.items():
        topology = LabelSelector(match_expressions=[LabelSelectorRequirement("zone", "In", [zone])])
        meta = ObjectMeta(name=f"room-{zone}", namespace="default")
        said = CSIStorageCapacity(meta, "made", f"{room}Gi", None, topology)
        world.tell(StorageSeen(said))
    for index, disk in enumerate(story.disks):
        world.tell(
            StorageSeen(
                make_volume(
                    f"d{index}",
                    zone=disk.zone,
                    size=f"{disk.size}Gi",
                    access_modes=["ReadWriteOnce", ONE_POD],
                )
            )
        )
    for index, claim in enumerate(story.claims):
        fields = {"access_modes": [ONE_POD if claim.alone else "ReadWriteOnce"]}
        fields |= {"storage_class_name": "made"} if claim.made else {}
        world.tell(StorageSeen(make_claim(f"c{index}", size=f"{claim.size}Gi", **fields)))
    if story.groups:
        world.tell(CompositeSeen(make_group("t", story.needed, is_composite=True, uid="uid-t")))
        for index, (_, needed) in enumerate(story.groups):
            world.group(f"g{index}", needed, parent=key_of("t"), topology_keys=("zone",))
    else:
        world.group("g", story.needed)
    for index, (claims, group) in enumerate(zip(story.members, groups_of(story), strict=True)):
        world.pod(f"p-{index}", group=group, cpu=1, volumes=mounts(*(f"c{claim}" for claim in claims)))
    return world.run(5)


def groups_of(story: Story) -> list[str]:
    """The group of each member."""
    found = [f"g{index}" for index, (count, _) in enumerate(story.groups) for _ in range(count)]
    return found or ["g"] * len(story.members)


def placed(world: World) -> int:
    """Members that have a node, bound or in preparation."""
    return len(world.bound) + sum(
        each.uid not in {world.pods[key].metadata.uid for key in world.pods if key.name in world.bound}
        for each in world.scheduler._books.preparations._by_uid.values()
    )


def every_way(nodes: int, members: int, needed: int) -> Iterator[dict[int, int]]:
    """Every way to give so many members or more a node: member → node."""
    for where in product(range(nodes + 1), repeat=members):
        homes = {member: node for member, node in enumerate(where) if node != nodes}
        if len(homes) >= needed:
            yield homes


def has_a_way(story: Story) -> bool:
    """Try every node, or none, for every member and every volume for every claim in use."""
    least = 1 if story.groups else story.needed
    ways = every_way(len(story.nodes), len(story.members), least)
    return any(_is_tree(story, homes) and _is_allowed(story, homes) for homes in ways)


def may_have_a_way(story: Story) -> bool:
    """Whether there is a way if volumes that several members share and that can be made are there before.

    At best every node reaches them.
    """
    counts = Counter(claim for claims in story.members for claim in claims)
    rooms = [story.room.get(zone, 0) for _, zone, _ in story.nodes]
    shared = {
        index
        for index, claim in enumerate(story.claims)
        if claim.made and counts[index] > 1 and max(rooms) >= claim.size
    }
    claims = [replace(claim, is_there=index in shared) for index, claim in enumerate(story.claims)]
    return has_a_way(replace(story, claims=claims))


def _is_tree(story: Story, homes: dict[int, int]) -> bool:
    """Whether so many groups as are needed have what they need, each in one zone, and no others do."""
    whole, groups = 0, groups_of(story)
    for index, (_, needed) in enumerate(story.groups):
        there = [node for member, node in homes.items() if groups[member] == f"g{index}"]
        if there and (len(there) < needed or len({story.nodes[node][1] for node in there}) > 1):
            return False
        whole += bool(there)
    return not story.groups or whole >= story.needed


def _is_allowed(story: Story, homes: dict[int, int]) -> bool:
    used: dict[int, list[int]] = {}
    for member, node in homes.items():
        for claim in story.members[member]:
            used.setdefault(claim, []).append(node)
    for index, (cpu, _, limit) in enumerate(story.nodes):
        made = {claim for claim, nodes in used.items() if index in nodes and story.claims[claim].made}
        if list(homes.values()).count(index) > cpu or len(made) > limit >= 0:
            return False
    if any(story.claims[claim].alone and len(nodes) > 1 for claim, nodes in used.items()):
        return False
    return any(_is_matched(story, used, chosen) for chosen in _choices(story, used))


def _choices(story: Story, used: dict[int, list[int]]) -> Iterator[dict[int, int]]:
    """A disk for every claim in use that is not to be made."""
    static = [claim for claim in used if not story.claims[claim].made]
    for chosen in product(range(len(story.disks)), repeat=len(static)):
        if len(set(chosen)) == len(chosen):
            yield dict(zip(static, chosen, strict=True))


def _is_matched(story: Story, used: dict[int, list[int]], chosen: dict[int, int]) -> bool:
    for claim, nodes in used.items():
        zones = {story.nodes[node][1] for node in nodes}
        if story.claims[claim].is_there:
            continue
        if story.claims[claim].made:
            (zone, *others) = zones
            if others or len(set(nodes)) > 1 or story.room.get(zone, 0) < story.claims[claim].size:
                return False
        else:
            disk = story.disks[chosen[claim]]
            if disk.size < story.claims[claim].size or not zones <= {disk.zone or zone for zone in zones}:
                return False
    return True


def is_truly_told(story: Story, said: str) -> bool:
    """Whether what has no way is called impossible if it is, and only then."""
    is_proof = "proved impossible" in said or "even if it were empty" in said
    is_open = "no placement has all who share" in said
    return (is_proof, is_open) == ((False, True) if may_have_a_way(story) else (True, False))


ZONES = ("a", "b")
nodes = st.lists(
    st.tuples(st.integers(1, 2), st.sampled_from(ZONES), st.integers(-1, 1)), min_size=1, max_size=3
)
disks = st.lists(st.builds(Disk, st.sampled_from(("", *ZONES)), st.integers(1, 3)), max_size=4)
claims = st.lists(
    st.builds(Claim, st.integers(1, 3), st.booleans(), st.sampled_from((False, False, True))),
    min_size=4,
    max_size=5,
)
members = st.lists(st.lists(st.integers(0, 3), max_size=2, unique=True).map(tuple), min_size=2, max_size=4)
rooms = st.dictionaries(st.sampled_from(ZONES), st.integers(1, 3))
stories = st.builds(Story, nodes, disks, claims, members, st.integers(2, 4), rooms).filter(
    lambda story: story.needed <= len(story.members)
)


@settings(max_examples=150, deadline=None)
@given(stories)
def test_a_gang_with_volumes_is_placed_if_and_only_if_there_is_a_way(story: Story) -> None:
    world = tell(story)
    assert (placed(world) >= story.needed) == has_a_way(story)
    assert placed(world) or is_truly_told(story, message(world))


@st.composite
def trees(draw: st.DrawFn) -> Story:
    """A tree of two or three gangs of one to three members."""
    sizes = draw(st.lists(st.integers(1, 2), min_size=2, max_size=3))
    groups = [(size, draw(st.integers(1, size))) for size in sizes]
    claimed = st.lists(st.integers(0, 3), max_size=2, unique=True).map(tuple)
    of_members = [draw(claimed) for _ in range(sum(sizes))][:4]
    while sum(size for size, _ in groups) > len(of_members):
        groups.pop()
    of_members = of_members[: sum(size for size, _ in groups)]
    needed = draw(st.integers(1, len(groups)))
    return Story(draw(nodes), draw(disks), draw(claims), of_members, needed, draw(rooms), groups)


@settings(max_examples=150, deadline=None)
@given(trees())
def test_a_tree_with_volumes_is_placed_if_and_only_if_there_is_a_way(story: Story) -> None:
    world = tell(story)
    assert (placed(world) > 0) == has_a_way(story)
    for index in range(0 if placed(world) else len(story.groups)):
        assert is_truly_told(story, message(world, f"g{index}"))


NODES = [(1, "a", -1), (1, "b", -1)]


def message(world: World, group: str = "g") -> str:
    condition = world.condition(group)
    return "" if condition is None else condition.message or ""


def test_who_could_be_anywhere_leaves_its_place_to_one_that_cannot() -> None:
    disks = [Disk("a", 3), Disk("b", 1)]
    for claims in ([Claim(1), Claim(3)], [Claim(3), Claim(1)]):
        assert placed(tell(Story(NODES, disks, claims, [(0,), (1,)], 2, {}))) == 2


def test_members_of_a_tree_leave_their_place_to_each_other() -> None:
    """The first could be on either node of zone a, the second only on the first; the third is the other's."""
    nodes = [(1, "a", 1), (1, "a", 0), (1, "b", -1)]
    claims = [Claim(1), Claim(1, made=True), Claim(1)]
    story = Story(nodes, [Disk("", 1)] * 2, claims, [(0,), (1,), (2,)], 2, {"a": 3}, [(2, 2), (1, 1)])
    assert placed(tell(story)) == 3


def test_a_tree_without_a_way_is_told_that_it_is_impossible() -> None:
    story = Story(NODES, [Disk("a", 1)] * 2, [Claim(1)] * 2, [(0,), (1,)], 2, {}, [(1, 1), (1, 1)])
    assert "proved impossible on the 2 nodes as they are" in message(tell(story), "g1")


def test_a_minimum_is_placed_without_those_who_have_no_volume() -> None:
    disks = [Disk("a", 1), Disk("b", 3)]
    story = Story(NODES, disks, [Claim(4), Claim(3), Claim(1)], [(0,), (1,), (2,)], 2, {})
    assert placed(tell(story)) == 2


def test_a_gang_without_a_way_is_told_that_it_is_impossible() -> None:
    story = Story(NODES, [Disk("a", 1), Disk("a", 3)], [Claim(1), Claim(3)], [(0,), (1,)], 2, {})
    assert "proved impossible on the 2 nodes as they are" in message(tell(story))


MADE = Claim(1, made=True)


@pytest.mark.parametrize("room", [{"a": 1, "b": 1}, {"a": 1}], ids=["both zones", "one zone"])
def test_members_that_share_a_claim_and_need_two_nodes_are_told_what_helps(room: dict[str, int]) -> None:
    said = message(tell(Story(NODES, [], [MADE], [(0,), (0,)], 2, room)))
    assert "impossible" not in said
    assert "all who share claim default/c0 on one node" in said
    assert "volumeBindingMode Immediate" in said


def test_each_group_of_a_tree_is_told_so() -> None:
    story = Story(NODES, [], [MADE], [(0,), (0,)], 2, {"a": 1, "b": 1}, [(1, 1), (1, 1)])
    for group in ("g0", "g1"):
        assert "all who share claim default/c0 on one node" in message(tell(story), group)


@pytest.mark.parametrize(
    "story",
    [
        Story(NODES, [], [MADE], [(0,), (0,)], 2, {}),
        Story(NODES, [Disk("a", 1)] * 2, [MADE, Claim(1), Claim(1)], [(0, 1), (0, 2)], 2, {"a": 1, "b": 1}),
        Story([(2, "a", 0), (1, "a", -1)], [], [MADE], [(0,), (0,)], 2, {"a": 1}),
        Story(NODES, [], [Claim(1, made=True, alone=True)], [(0,), (0,)], 2, {"a": 1, "b": 1}),
        Story(NODES, [Disk("a", 1)], [Claim(1)], [(0,), (0,)], 2, {}),
    ],
    ids=["no room", "other claims", "attach limit", "for one pod", "nobody makes it"],
)
def test_a_shared_claim_does_not_hide_what_is_impossible_with_its_volume(story: Story) -> None:
    assert "proved impossible" in message(tell(story))


def test_a_volume_that_is_being_made_elsewhere_is_awaited() -> None:
    """It is made on n0, where somebody else is; the claim is for one member only."""
    world = tell(Story([(2, "a", -1), (2, "b", -1)], [], [MADE, MADE], [], 2, {"a": 1, "b": 1}))
    world.tell(StorageSeen(make_claim("c0", storage_class_name="made", node="n0")))
    world.pod("other", cpu=2, node="n0").pod("p-0", group="g", volumes=mounts("c0"))
    world.pod("p-1", group="g", volumes=mounts("c1")).run(5)
    assert "impossible" not in message(world)
    assert "no placement until there is a volume for claim default/c0" in message(world)


def test_what_cannot_be_searched_to_the_end_at_best_is_no_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the claim on one node it is soon out; with a volume that all reach there is much to try."""
    monkeypatch.setattr(backtracking, "WORK_MAX", 1100)
    nodes = [(1, "a", -1)] * 3
    claims = [MADE, *[Claim(1)] * 3]
    story = Story(nodes, [Disk("a", 1)] * 2, claims, [(0, 1), (0, 2), (0, 3)], 3, {"a": 1})
    said = message(tell(story))
    assert "gave up the search" in said
    assert "impossible" not in said


def test_a_search_that_would_take_too_long_says_that_it_was_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backtracking, "WORK_MAX", 600)
    nodes = [(1, "a", -1)] * 3
    story = Story(nodes, [Disk("a", 1)] * 2, [Claim(1)] * 3, [(0,), (1,), (2,)], 3, {})
    said = message(tell(story))
    assert "gave up the search" in said
    assert "impossible" not in said
