"""Gangs whose members need each other, keep apart or spread, in the whole scheduler, against brute force."""

from typing import Any, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.scheduling.world import World

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


class Kind(NamedTuple):
    """Members of one label, cpu and rules; each rule is a key and the labels it is about."""

    label: str
    cpu: int
    count: int
    near: tuple[str, str] | None = None
    apart: tuple[str, str] | None = None
    even: tuple[str, str] | None = None


class Node(NamedTuple):
    """A node in a zone, or in none."""

    cpu: int
    zone: str


Placed = tuple[tuple[int, int], ...]  # (kind, node), sorted


def affinity_of(kind: Kind) -> dict[str, Any]:
    found = {}
    for name, rule in (("podAffinity", kind.near), ("podAntiAffinity", kind.apart)):
        if rule is not None:
            selector = {"matchExpressions": [{"key": "app", "operator": "In", "values": list(rule[1])}]}
            found[name] = {REQUIRED: [{"topologyKey": rule[0], "labelSelector": selector}]}
    return found


def spread_of(kind: Kind) -> list[dict[str, Any]]:
    if kind.even is None:
        return []
    selector = {"matchExpressions": [{"key": "app", "operator": "In", "values": list(kind.even[1])}]}
    rule = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    return [{**rule, "topologyKey": kind.even[0], "labelSelector": selector}]


def world_of(nodes: list[Node], kinds: list[Kind], running: list[str]) -> World:
    """The nodes, pods with these labels running on the first of them, and the gang of all members."""
    world = World()
    for index, node in enumerate(nodes):
        labels = {"zone": node.zone} if node.zone else {}
        world.node(f"n{index}", cpu=node.cpu, labels={**labels, "host": f"n{index}"})
    for index, label in enumerate(running):
        world.pod(f"old-{index}", cpu=0, labels={"app": label}, node="n0")
    world.group("g", sum(kind.count for kind in kinds))
    for number, kind in enumerate(kinds):
        for index in range(kind.count):
            words: dict[str, Any] = {"affinity": affinity_of(kind)} if kind.near or kind.apart else {}
            if kind.even:
                words["topology_spread_constraints"] = spread_of(kind)
            world.pod(f"g-{number}-{index}", group="g", cpu=kind.cpu, labels={"app": kind.label}, **words)
    return world


def domain(nodes: list[Node], index: int, key: str) -> str:
    return f"n{index}" if key == "host" else nodes[index].zone


def may_be(nodes: list[Node], there: list[tuple[Kind, int]], kind: Kind, node: int) -> bool:
    """The rules of Kubernetes for one member more, read one by one."""
    if sum(other.cpu for other, index in there if index == node) + kind.cpu > nodes[node].cpu:
        return False
    for one, its_node, other, other_node in [
        *((kind, node, other, index) for other, index in there),
        *((other, index, kind, node) for other, index in there),
    ]:
        if one.apart is not None and other.label in one.apart[1]:
            here = domain(nodes, its_node, one.apart[0])
            if here and here == domain(nodes, other_node, one.apart[0]):
                return False
    if kind.even is not None and not is_even(nodes, there, kind, node):
        return False
    if kind.near is None:
        return True
    key, labels = kind.near
    here = domain(nodes, node, key)
    wanted = {domain(nodes, index, key) for other, index in there if other.label in labels} - {""}
    return bool(here) and (here in wanted or (not wanted and kind.label in labels))


def is_even(nodes: list[Node], there: list[tuple[Kind, int]], kind: Kind, node: int) -> bool:
    assert kind.even is not None
    key, labels = kind.even
    counts = dict.fromkeys((domain(nodes, index, key) for index in range(len(nodes))), 0)
    counts.pop("", None)
    for other, index in there:
        if other.label in labels and domain(nodes, index, key):
            counts[domain(nodes, index, key)] += 1
    here = domain(nodes, node, key)
    return bool(here) and counts[here] + (kind.label in labels) - min(counts.values()) <= 1


def can_be_placed(nodes: list[Node], kinds: list[Kind], running: list[str]) -> bool:
    """Every order and every place."""
    old = [(Kind(label, 0, 1), 0) for label in running]
    seen: set[Placed] = set()

    def goes_on(placed: Placed) -> bool:
        there = old + [(kinds[number], node) for number, node in placed]
        missing = [n for n, kind in enumerate(kinds) if sum(m == n for m, _ in placed) < kind.count]
        if not missing:
            return True
        if placed in seen:
            return False
        seen.add(placed)
        return any(
            may_be(nodes, there, kinds[number], node) and goes_on(tuple(sorted((*placed, (number, node)))))
            for number in missing
            for node in range(len(nodes))
        )

    return goes_on(())


def message(world: World) -> str:
    condition = world.condition("g")
    return (condition.message or "") if condition is not None else ""


rules = st.none() | st.tuples(st.sampled_from(["zone", "host"]), st.sampled_from(["a", "b", "ab"]))
some_node = st.builds(Node, st.integers(1, 4), st.sampled_from(["", "y", "z"]))
some_kind = st.builds(
    Kind,
    st.sampled_from(["a", "b"]),
    st.integers(1, 2),
    st.integers(1, 2),
    near=rules,
    apart=rules,
    even=rules,
)


@settings(max_examples=80, deadline=None)
@given(
    nodes=st.lists(
        st.builds(Node, st.integers(1, 4), st.sampled_from(["", "y", "z"])), min_size=2, max_size=4
    ),
    kinds=st.lists(some_kind, min_size=1, max_size=3),
    running=st.lists(st.sampled_from(["a", "b"]), max_size=1),
)
def test_what_is_bound_can_be_and_what_is_proved_impossible_cannot(
    nodes: list[Node], kinds: list[Kind], running: list[str]
) -> None:
    world = world_of(nodes, kinds, running).run(3)
    is_bound = sum(name.startswith("g-") for name in world.bound) == sum(kind.count for kind in kinds)
    possible = can_be_placed(nodes, kinds, running)
    assert possible or not is_bound
    if possible and not is_bound:
        assert "gave up the search" in message(world)
        assert "proved impossible" not in message(world)


def test_like_members_that_must_be_in_one_zone_find_the_one_that_holds_them_all() -> None:
    nodes = [Node(2, "y"), Node(4, "z"), Node(1, "z")]
    world = world_of(nodes, [Kind("a", 1, 5, near=("zone", "a"))], []).run(3)
    assert len(world.bound) == 5


def test_members_that_keep_apart_by_zone_are_proved_impossible_where_zones_are_too_few() -> None:
    nodes = [Node(4, "y"), Node(4, "y"), Node(4, "z")]
    kinds = [Kind("a", 1, 2, apart=("zone", "ab")), Kind("b", 2, 1, apart=("zone", "ab"))]
    world = world_of(nodes, kinds, []).run(3)
    assert world.bound == set()
    assert "proved impossible" in message(world)


def test_who_needs_a_member_that_has_room_in_one_zone_only_is_taken_there() -> None:
    nodes = [Node(4, "y"), Node(3, "z"), Node(2, "z")]
    kinds = [Kind("b", 1, 1, near=("zone", "a")), Kind("a", 4, 1)]
    world = world_of(nodes, kinds, []).run(3)
    assert world.bound == set()
    assert "proved impossible" in message(world)


def test_members_that_spread_by_zone_go_where_all_of_them_find_room() -> None:
    nodes = [Node(4, "y"), Node(1, "z"), Node(2, "z")]
    kinds = [Kind("b", 1, 1), Kind("b", 2, 1, even=("zone", "ab")), Kind("a", 2, 2, even=("zone", "ab"))]
    world = world_of(nodes, kinds, []).run(3)
    assert len(world.bound) == 4


def test_members_that_spread_over_zones_of_which_one_is_full_are_proved_impossible() -> None:
    nodes = [Node(6, "y"), Node(1, "z")]
    kinds = [Kind("a", 1, 3, even=("zone", "ab")), Kind("b", 2, 1, even=("zone", "ab"))]
    world = world_of(nodes, kinds, []).run(3)
    assert world.bound == set()
    assert "proved impossible" in message(world)
