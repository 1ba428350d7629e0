"""Trials without the weaker: what neither the order of creation nor any order of shapes places."""

from tests.unit.scheduling.world import World, key_of

from muster.framework.ports import CompositeSeen
from muster.testing.builders import make_group

WEAK = ["weak-n0", "weak-n1", "weak-n2"]


def full_world() -> World:
    """Room for two of 1 cpu, three of 4 and two of 3, if they are divided as 3 + 3, 4 + 4 + 1 and 4 + 1."""
    world = World()
    for name, cpu in (("n0", 6), ("n1", 9), ("n2", 5)):
        world.node(name, cpu=cpu).pod(f"weak-{name}", node=name, cpu=cpu, priority=10)
    return world


def gang(world: World, *cpus: int) -> World:
    world.group("g", len(cpus), priority=100)
    for index, cpu in enumerate(cpus):
        world.members("g", index, cpu=cpu, priority=100)
    return world.run(30)


def test_unlike_members_that_no_order_places_are_searched_for_exactly_before_anybody_goes() -> None:
    world = gang(full_world(), 1, 1, 4, 4, 4, 3, 3)
    assert sorted(world.evicted) == WEAK
    assert len(world.bound) == 7


def test_groups_of_a_tree_that_no_order_places_are_searched_for_exactly_before_anybody_goes() -> None:
    world = full_world()
    world.tell(CompositeSeen(make_group("t", 3, is_composite=True, uid="uid-t", priority=100)))
    for name, count, cpu in (("a", 2, 1), ("b", 3, 4), ("c", 2, 3)):
        world.group(name, count, parent=key_of("t"), priority=100)
        world.members(name, *range(count), cpu=cpu, priority=100)
    world.run(30)
    assert sorted(world.evicted) == WEAK
    assert len(world.bound) == 7


def test_nodes_that_none_of_them_may_use_do_not_make_the_search_too_large() -> None:
    world = World()
    for index in range(70):
        world.node(f"other-{index}", cpu=1)
    for name, cpu in (("n0", 6), ("n1", 9), ("n2", 5)):
        world.node(name, cpu=cpu, labels={"pool": "own"})
        world.pod(f"weak-{name}", node=name, cpu=cpu, priority=10)
    world.group("g", 7, priority=100)
    for index, cpu in enumerate((1, 1, 4, 4, 4, 3, 3)):
        world.members("g", index, cpu=cpu, priority=100, node_selector={"pool": "own"})
    assert sorted(world.run(30).evicted) == WEAK
    assert len(world.bound) == 7


def test_nobody_goes_for_unlike_members_that_have_no_placement_at_all() -> None:
    assert gang(full_world(), 3, 3, 3, 3, 4, 4).evicted == []
