"""A composite group as a gang of gangs: placed in part, whole, torn, and what becomes of it afterwards."""

import pytest
from tests.unit.cluster.volume_objects import mounts
from tests.unit.scheduling.gang_world import REFUSED, owned, refill, released, start, whole, words
from tests.unit.scheduling.volume_world import provision, with_claim
from tests.unit.scheduling.world import World, key_of

from muster.framework.groups import Terms
from muster.framework.ports import EvictPod


def tree(least: int | None = 2, *, cpu: int = 8, **terms: Terms) -> World:
    """A composite of two groups, `a` and `b`: gangs of two, or `b` basic (None)."""
    world = World().node("n1", cpu=cpu)
    world.group("tree", 2, is_composite=True, terms=terms.get("tree", Terms()))
    world.group("a", 2, parent=key_of("tree"), terms=terms.get("a", Terms()))
    return world.group("b", least, parent=key_of("tree"), terms=terms.get("b", Terms()))


def in_part(*, cpu: int = 8, **terms: Terms) -> World:
    """`a` has its minimum, one member of `b` is refused for ever."""
    world = tree(cpu=cpu, **terms)
    world.refused = {"b-1": REFUSED}
    return owned(owned(world, "a", 0, 1), "b", 0, 1).run(1)


def running_for_an_hour(least: int | None = 2, **terms: Terms) -> World:
    world = owned(owned(tree(least, **terms), "a", 0, 1), "b", 0, 1).run(1)
    return start(world, "a-0", "a-1", "b-0", "b-1").run(3600)


# ── in part ──────────────────────────────────────────────────────────────────────────────────────


def test_a_tree_that_is_placed_in_part_is_released_with_all_its_groups() -> None:
    world = in_part().run(298)
    assert released(world) == []
    assert released(world.run(2)) == ["a-0", "a-1", "b-0"]


def test_a_basic_group_is_released_with_its_tree_and_placed_with_it_again() -> None:
    world = tree(None)
    world.refused = {"a-1": REFUSED}
    owned(owned(world, "a", 0, 1), "b", 0, 1).run(301)
    assert released(world) == ["a-0", "b-0", "b-1"]
    world.refused = {}
    refill(refill(world, "a", 2), "b", 2).run(11)
    assert world.bound == {"a-0", "a-1", "b-0", "b-1"}


def test_the_time_of_a_tree_is_its_composites_for_all_its_groups() -> None:
    world = in_part(tree=Terms(bind_timeout_s=3600.0)).run(3500)
    assert released(world) == []
    assert released(world.run(101)) == ["a-0", "a-1", "b-0"]


def test_the_time_of_a_tree_counts_by_the_clock_of_whoever_decides_not_by_the_servers() -> None:
    world = tree()
    world.behind_s = 3600.0
    world.refused = {"b-1": REFUSED}
    owned(owned(world, "a", 0, 1), "b", 0, 1).run(298)
    assert released(world) == []
    assert released(world.run(2)) == ["a-0", "a-1", "b-0"]


def test_the_time_of_a_tree_does_not_run_while_its_members_wait_for_volumes() -> None:
    world = tree(tree=Terms(bind_timeout_s=30.0))
    with_claim(world)
    world.pod("b-0", group="b", volumes=mounts("c"))
    world.refused = {"b-1": REFUSED}
    owned(owned(world, "a", 0, 1), "b", 1).run(10).pod("a-9", group="a", gates=("wait",)).run(290)
    provision(world, "n1")
    assert released(world.run(29)) == []
    assert released(world.run(1)) == ["a-0", "a-1"]


def test_a_group_of_a_tree_may_have_a_shorter_time_of_its_own() -> None:
    assert released(in_part(b=Terms(bind_timeout_s=30.0)).run(40)) == ["b-0"]


def test_a_group_that_has_succeeded_in_a_tree_in_part_is_under_way_and_no_new_leader_believes_otherwise() -> (
    None
):
    """As seed 32 of the storm: it said that it was whole, and the others were never released."""
    world = in_part().run(60)
    world.end("a-0", "a-1").run(60)
    assert "2 succeeded" in words(world, "a")
    assert whole(world, "a") == ("False", "UnderWay")
    assert released(world.restart().run(300)) == ["b-0"]


def test_a_group_that_is_whole_is_under_way_until_its_tree_is() -> None:
    world = in_part().run(40)
    assert whole(world, "a") == ("False", "UnderWay")
    assert "released if composite group default/tree is not whole by 2027-01-15T08:05:00Z" in words(
        world, "a"
    )
    world.refused = {}
    world.run(60)
    assert (whole(world, "a"), whole(world, "b")) == (("True", "Bound"), ("True", "Bound"))


def test_pods_without_a_controller_stay_and_each_group_of_the_tree_says_so_once() -> None:
    world = tree()
    world.refused = {"b-1": REFUSED}
    world.members("a", 0, 1).members("b", 0, 1).run(301)
    for _ in range(5):
        world.pod("a-2", group="a", gates=("wait",)).run(10).delete("a-2").run(10)
    assert world.of(EvictPod) == []
    assert (whole(world, "a"), whole(world, "b")) == (("False", "HalfHeld"), ("False", "HalfHeld"))
    assert sorted(name for name, _ in world.notes("GangHalfHeld")) == ["a", "b"]


def test_bare_pods_of_a_basic_group_are_told_of_with_the_cure() -> None:
    world = tree(None)
    world.refused = {"a-1": REFUSED}
    owned(world, "a", 0, 1).members("b", 0).run(301)
    ((name, note),) = world.notes("GangHalfHeld")
    assert (name, "release-bare-pods" in note) == ("b", True)


def test_who_is_more_important_drives_a_tree_under_way_out_whole() -> None:
    world = in_part(cpu=4)
    world.pod("more", priority=100).run(1)
    assert sorted(world.evicted) == ["a-0", "a-1", "b-0"]


# ── once it was whole ────────────────────────────────────────────────────────────────────────────


def test_a_group_that_is_restarted_leaves_the_other_groups_of_its_tree_alone() -> None:
    world = running_for_an_hour(a=Terms(on_member_loss="restart"))
    assert released(world.delete("a-0").run(1)) == ["a-1"]
    assert released(refill(world, "a", 2).run(400)) == ["a-1"]
    assert world.bound == {"a-0", "a-1", "b-0", "b-1"}


@pytest.mark.parametrize("what", ["pods", "group"])
@pytest.mark.parametrize("leader", ["same", "new"])
@pytest.mark.parametrize("least", [2, None], ids=["gang", "basic"])
def test_a_group_that_is_done_and_cleared_away_takes_no_other_with_it(
    what: str, leader: str, least: int | None
) -> None:
    world = running_for_an_hour(least)
    world.end("a-0", "a-1").run(60).delete("a-0", "a-1").run(60)
    if what == "group":
        world.delete_group("a")
    if leader == "new":
        world.restart()
    assert released(world.run(1000)) == []


def test_a_new_leader_does_not_take_a_tree_for_started_of_which_one_group_is() -> None:
    world = in_part().run(100).restart().run(301)
    assert released(world) == ["a-0", "a-1", "b-0"]


@pytest.mark.parametrize("seconds", [1, 60])
def test_a_group_deleted_while_its_tree_is_under_way_makes_no_new_leader_believe_that_it_had_started(
    seconds: int,
) -> None:
    """As seeds 136 and 284 of the storm: the others were never released."""
    world = in_part().run(seconds)
    assert whole(world, "a") == ("False", "UnderWay")
    world.delete("b-0", "b-1").delete_group("b").restart().run(305)
    assert released(world) == ["a-0", "a-1"]


def test_a_deleted_group_counts_as_done_only_where_the_others_have_had_their_minimum() -> None:
    """Another scheduler may have said of `a` that it is scheduled, and nothing else of anybody."""
    world = tree().change_group("tree", min_count=3).group("c", 1, parent=key_of("tree"))
    world.refused = {"b-1": REFUSED}
    owned(owned(owned(world, "a", 0, 1), "b", 0, 1), "c", 0).run(1)
    scheduled = world.condition("a")
    assert scheduled is not None
    world.change_group("a", conditions=(scheduled,)).change_group("b", conditions=())
    world.delete("c-0").delete_group("c").restart().run(305)
    assert released(world) == ["a-0", "a-1", "b-0"]


def test_a_tree_of_which_nothing_is_left_is_under_way_again() -> None:
    world = running_for_an_hour().delete("a-0", "a-1", "b-0", "b-1").run(1)
    world.refused = {"b-1": REFUSED}
    refill(refill(world, "a", 2), "b", 2).run(1)
    assert world.bound == {"a-0", "a-1", "b-0"}
    assert released(world.run(301)) == ["a-0", "a-1", "b-0"]
