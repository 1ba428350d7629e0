"""What wakes a group whose members are unlike."""

from typing import Any

from tests.unit.scheduling.world import World


def small_and_large(**node: Any) -> World:
    """The small member takes the only free node, and the large one finds none."""
    world = World().node("large", cpu=4).node("small", cpu=2, **node)
    return world.group("g", 2).members("g", 0, cpu=2).members("g", 1, cpu=4)


def test_room_for_one_member_wakes_a_group_in_which_another_was_refused() -> None:
    world = small_and_large().pod("q", cpu=2, node="small").run(100)
    assert world.bound == {"q"}
    assert world.delete("q").run(3).bound == {"g-0", "g-1"}


def test_a_rule_that_keeps_another_member_from_a_node_is_waited_for() -> None:
    taint = {"key": "maintenance", "value": "", "effect": "NoSchedule"}
    world = small_and_large(taints=[taint]).run(100)
    assert world.bound == set()
    assert world.node("small", cpu=2).run(3).bound == {"g-0", "g-1"}
