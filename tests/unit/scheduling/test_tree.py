"""Groups in placements: which is chosen, and what is said when none will do."""

from collections import Counter
from itertools import groupby, permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.scheduling.test_attempt import make_cast, make_runner, nodes_of
from tests.unit.scheduling.test_room import cluster_of, racks_of
from tests.unit.scheduling.world import World

from muster.framework.groups import ObjectKey
from muster.framework.ports import CompositeGone, CompositeSeen
from muster.scheduling.attempt import Attempt, attempt
from muster.scheduling.board import Board
from muster.scheduling.leaf import LeafTrial
from muster.scheduling.members import Cast, Members, composite_entity
from muster.scheduling.tree import LEAF_WORK_MIN, Aim, TreeTrial
from muster.testing.builders import ClusterBuilder, make_cluster, make_group, make_pod


def in_racks(cluster: ClusterBuilder, min_count: int | None, cpus: list[int]) -> Attempt:
    cast = make_cast(min_count, *({"cpu": cpu} for cpu in cpus), topology_keys=("rack",))
    return attempt(cast, cluster.snapshot(), make_runner())


def rack_of(cluster: ClusterBuilder, decision: Attempt) -> str:
    nodes = {
        node.metadata.name: (node.metadata.labels or {})["rack"] for node in cluster.state.table.nodes if node
    }
    found = {nodes[name] for name in nodes_of(decision).values()}
    assert len(found) == 1
    return found.pop()


@pytest.mark.parametrize(
    ("racks", "min_count", "cpus", "rack"),
    [
        pytest.param([[2], [2, 2]], 4, [1] * 4, "r1", id="the-only-one-large-enough"),
        pytest.param([[2, 2, 2], [2, 2]], 3, [1] * 3, "r1", id="the-fuller"),
        pytest.param([[3], [2, 2]], 3, [1] * 4, "r1", id="the-one-that-takes-more"),
        pytest.param([[2, 2], [2, 2]], 2, [1] * 2, "r0", id="of-equals-the-first-by-name"),
        pytest.param([[2, 2], [3, 1]], 2, [3, 1], "r1", id="of-two-sizes"),
    ],
)
def test_the_rack_is_chosen_by_use_and_members(
    racks: list[list[int]], min_count: int, cpus: list[int], rack: str
) -> None:
    cluster = cluster_of(racks)
    assert rack_of(cluster, in_racks(cluster, min_count, cpus)) == rack


def test_where_no_rack_is_large_enough_the_nearest_is_spoken_of() -> None:
    decision = in_racks(cluster_of([[1], [2], [1]]), 3, [1] * 3)
    assert decision.placements == ()
    assert decision.message.startswith(
        "0/3 placements are available, first placement status (r1, 1 of 3 nodes): minCount (3)"
    )


def test_a_key_that_no_node_has_is_a_reason() -> None:
    cast = make_cast(1, {"cpu": 1}, topology_keys=("row",))
    decision = attempt(cast, cluster_of([[2]]).snapshot(), make_runner())
    assert (
        decision.message == "no feasible placements found: none of 1 node has the label row, n1 for example"
    )
    assert decision.rejectors == {"TopologyPlacement"}


racks = st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=3), min_size=1, max_size=4)


@given(
    sizes=racks,
    cpus=st.lists(st.integers(1, 2), min_size=1, max_size=6)
    | st.integers(1, 6).map(lambda count: [1] * count),
    min_count=st.integers(1, 6),
)
def test_counting_chooses_what_trying_every_rack_would(
    sizes: list[list[int]], cpus: list[int], min_count: int
) -> None:
    cluster = cluster_of(sizes)
    cast = make_cast(min_count, *({"cpu": cpu} for cpu in cpus), topology_keys=("rack",))
    fast = attempt(cast, cluster.snapshot(), make_runner())
    group: Any = cast.group
    placements = racks_of(cluster)
    slow = TreeTrial(make_runner())._try_each(
        cast, group, Board(cluster.snapshot().fork()), placements, placements, Aim.EVERYTHING
    )
    chosen = {member.key.name: cluster.snapshot().node_names[row] for member, row in slow.board.all_placed()}
    assert nodes_of(fast) == (chosen if slow.ok else {})


def test_a_change_in_a_domain_that_was_not_tried_wakes_the_group() -> None:
    world = World().node("a1", cpu=1, labels={"rack": "a"})
    for name in ("b1", "b2"):
        world.node(name, cpu=1, labels={"rack": "b"}, unschedulable=True, version="1")
    world.group("g", 2, topology_keys=("rack",)).members("g", 0, 1).run(100)
    assert world.bound == set()
    for name in ("b1", "b2"):
        world.node(name, cpu=1, labels={"rack": "b"}, version="2").run(5)
    assert world.bound == {"g-0", "g-1"}


def make_tree(min_groups: int | None, **leaves: tuple[int | None, int]) -> Cast:
    """A composite c with a group per word: its minimum, and how many members of one cpu it has."""
    members = Members(frozenset({"muster"}))
    c = ObjectKey("default", "c")
    members.see_group(make_group("c", min_groups, is_composite=True))
    for name, (min_count, count) in leaves.items():
        members.see_group(make_group(name, min_count, parent=c))
        for index in range(count):
            members.see_pod(make_pod(f"{name}-{index}", cpu=1, group=name), ObjectKey("default", name))
    return members.cast(composite_entity(c))


def placed_of(cast: Cast, cpu: int) -> dict[str, int]:
    decision = attempt(cast, make_cluster().node(cpu=cpu).snapshot(), make_runner())
    return dict(Counter(name.split("-")[0] for name in nodes_of(decision)))


@pytest.mark.parametrize(
    ("min_groups", "cpu", "placed"),
    [
        pytest.param(2, 5, {"a": 3, "b": 2}, id="room-for-all"),
        pytest.param(2, 4, {"a": 2, "b": 2}, id="minima-before-surplus"),
        pytest.param(2, 3, {}, id="one-group-too-few"),
        pytest.param(1, 3, {"a": 3}, id="one-group-is-enough"),
        pytest.param(None, 4, {"a": 2, "b": 2}, id="basic-every-minimum-before-surplus"),
    ],
)
def test_minima_come_before_surplus(min_groups: int | None, cpu: int, placed: dict[str, int]) -> None:
    assert placed_of(make_tree(min_groups, a=(2, 3), b=(2, 2)), cpu) == placed


def test_a_tree_that_fails_says_which_group_was_the_first() -> None:
    tree = make_tree(2, a=(2, 2), b=(2, 2))
    decision = attempt(tree, make_cluster().node(cpu=3).snapshot(), make_runner())
    assert decision.message == (
        "minGroupCount (2) cannot be satisfied: 1 scheduled, 0 remaining; "
        "pod group default/b: minCount (2) cannot be satisfied: 1 scheduled, 0 remaining"
    )
    assert list(decision.group_texts) == [ObjectKey("default", "b")]


def test_siblings_in_each_others_way_are_tried_in_another_order() -> None:
    """The older group would take the only node that the younger may use."""
    members, key = Members(frozenset({"muster"})), ObjectKey("default", "tree")
    members.see_group(make_group("tree", 2, is_composite=True))
    for turn, (name, words) in enumerate({"a": {}, "b": {"node_selector": {"disk": "ssd"}}}.items()):
        members.see_group(make_group(name, 1, parent=key, created_s=float(turn)))
        members.see_pod(make_pod(f"{name}-0", group=name, cpu=1, **words), ObjectKey("default", name))
    cluster = make_cluster().node(cpu=1, labels={"disk": "ssd"}).node(cpu=1)
    decision = attempt(members.cast(composite_entity(key)), cluster.snapshot(), make_runner())
    assert len(decision.placements) == 2, decision.message


COMPANY = {"labelSelector": {"matchLabels": {"app": "c"}}, "topologyKey": "kubernetes.io/hostname"}
NEAR_COMPANY = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [COMPANY]}}


def tree_with_unlike_members(min_groups: int, *members_of_b: dict[str, Any]) -> Cast:
    """A composite of a, which has one member of one cpu, and b, which needs all of these."""
    members, key = Members(frozenset({"muster"})), ObjectKey("default", "tree")
    members.see_group(make_group("tree", min_groups, is_composite=True))
    for name, shapes in {"a": ({"cpu": 1},), "b": members_of_b}.items():
        members.see_group(make_group(name, len(shapes), parent=key, created_s=float(name == "b")))
        for index, words in enumerate(shapes):
            members.see_pod(make_pod(f"{name}-{index}", group=name, **words), ObjectKey("default", name))
    return members.cast(composite_entity(key))


@pytest.mark.parametrize("min_groups", [1, 2])
def test_a_group_beyond_the_minimum_is_tried_in_other_orders_of_its_members(min_groups: int) -> None:
    """As seed 5757 of the differential scenarios: one member needs the company of a later one."""
    tree = tree_with_unlike_members(
        min_groups, {"affinity": NEAR_COMPANY}, {"labels": {"app": "c"}}, {"affinity": NEAR_COMPANY}
    )
    decision = attempt(tree, make_cluster().node(cpu=1).node(cpu=1).snapshot(), make_runner())
    assert len(decision.placements) == 4, decision.message


def test_orders_of_members_come_to_an_end() -> None:
    tree = tree_with_unlike_members(2, *({"cpu": 2 + size} for size in range(5)))
    snapshot = make_cluster().node(cpu=6).snapshot()
    trial = TreeTrial(make_runner())
    assert not trial.place_root(tree, Board(snapshot.fork()), snapshot.live_rows()).ok
    assert -LEAF_WORK_MIN - 5 <= trial._leaf_work_left <= 0


@given(st.permutations([("c", 1), ("c", 1), ("near", 1), ("near", 2), ("plain", 2)]), st.integers(2, 4))
def test_a_group_of_a_tree_is_placed_if_any_order_of_its_shapes_places_it(
    kinds: list[tuple[str, int]], cpu: int
) -> None:
    words: dict[str, dict[str, Any]] = {
        "c": {"labels": {"app": "c"}},
        "near": {"affinity": NEAR_COMPANY},
        "plain": {},
    }
    tree = tree_with_unlike_members(1, *(words[kind] | {"cpu": size} for kind, size in kinds))
    runner, snapshot = make_runner(), make_cluster().node(cpu=cpu).node(cpu=cpu + 1).snapshot()
    a, b = tree.sorted_children()
    first = TreeTrial(runner).place_root(a, Board(snapshot.fork()), snapshot.live_rows()).board
    slow = [
        LeafTrial(b, order, first.branch(), runner, snapshot.live_rows()).run().ok
        for order in permutations(b.waiting())
        if len(list(groupby(order, key=lambda member: kinds[int(member.key.name[2:])]))) == 4
    ]
    decision = attempt(tree, snapshot, runner)
    assert (len(decision.placements) == 6) >= any(slow)


def test_a_ring_and_a_tree_too_deep_are_told_so_and_not_tried() -> None:
    world = World().node("n1", cpu=9)
    for name, parent in (("x", "y"), ("y", "x"), ("p", ""), ("q", "p"), ("r", "q"), ("s", "r")):
        above = ObjectKey("default", parent) if parent else None
        world.tell(CompositeSeen(make_group(name, is_composite=True, parent=above, uid=f"uid-{name}")))
    for name, parent in (("g", "x"), ("h", "s")):
        world.group(name, 1, parent=ObjectKey("default", parent)).members(name, 0)
    world.run(20)
    assert world.bound == set()
    ring, deep = world.condition("g", "muster.dev/Waiting"), world.condition("h", "muster.dev/Waiting")
    assert ring is not None
    assert (ring.reason, ring.message) == (
        "InvalidTree",
        "composite pod group default/x is an ancestor of itself",
    )
    assert deep is not None
    assert (deep.message or "").startswith("composite pod group default/s is on level 4 of its tree")


def test_a_tree_is_whole_when_its_composite_comes_and_falls_apart_when_it_goes() -> None:
    world = World().node("n1", cpu=1)
    world.group("g", 1, parent=ObjectKey("default", "c")).members("g", 0).run(20)
    assert world.place("g") == "incomplete"
    composite = make_group("c", 1, is_composite=True)
    world.pod("x", node="n1").tell(CompositeSeen(composite)).run(5)
    assert world.place("g") in ("backoff", "unschedulable")
    world.tell(CompositeGone(composite.key, composite.uid)).run(5)
    assert world.place("g") == "incomplete"
    world.tell(CompositeSeen(composite)).delete("x").run(5)
    assert world.bound == {"g-0"}


def test_the_facts_told_are_those_of_the_nearest_domain() -> None:
    world = World()
    for rack, cpu in (("r1", 4), ("r2", 2), ("r3", 1)):
        world.node(f"n-{rack}", cpu=cpu, labels={"rack": rack})
    world.pod("x", node="n-r1", cpu=1)
    world.group("g", 4, topology_keys=("rack",)).members("g", 0, 1, 2, 3).run(6)
    told = world.condition("g")
    assert told is not None
    assert (told.message or "").startswith(
        "0/3 placements are available, first placement status (r1, 1 of 3 nodes): minCount (4)"
    )
    assert "in r1: needs 4 × 1 cpu, 3 free on the 1 of 3 nodes that pass its rules" in (told.message or "")
    assert "would fit when pod default/x ends" in (told.message or "")


def test_siblings_that_are_alike_are_tried_in_one_order_and_others_in_each_order_of_their_kinds() -> None:
    board = Board(make_cluster().node(cpu=1).snapshot().fork())
    trial = TreeTrial(make_runner())
    assert len(trial._sibling_orders(make_tree(3, a=(2, 2), b=(2, 2), d=(2, 2)), board)) == 1
    assert len(trial._sibling_orders(make_tree(3, a=(2, 2), b=(2, 3), d=(2, 2)), board)) == 3


def test_groups_of_a_composite_that_lacks_groups_are_told_so_though_the_tree_runs() -> None:
    world = World().node("n1", cpu=8)
    world.group("top", None, is_composite=True)
    world.group("below", 2, is_composite=True, parent=ObjectKey("default", "top"))
    world.group("a", 1, parent=ObjectKey("default", "top")).group(
        "b", 1, parent=ObjectKey("default", "below")
    )
    world.members("a", 0).members("b", 0).run(10)
    assert world.bound == {"a-0"}
    said = world.pod_condition("b-0")
    assert said is not None
    assert said.message == (
        "pod group default/b: composite pod group default/below: "
        "minGroupCount (2) cannot be satisfied: 0 scheduled, 1 remaining"
    )
