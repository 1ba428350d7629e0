"""The condition that counts members, and how seldom it is written."""

from tests.unit.scheduling.gang_world import owned, start, whole, words
from tests.unit.scheduling.world import World, key_of

from muster.api.meta import Condition
from muster.framework.ports import PatchGroupStatus
from muster.scheduling.conditions import UNSEEN_S_MAX


def gang(count: int = 3, nodes_cpu: int = 8) -> World:
    world = World().node("n1", cpu=nodes_cpu).group("g", count)
    return owned(world, "g", *range(count))


def writes(world: World) -> int:
    return len(world.of(PatchGroupStatus))


def test_a_gang_that_starts_is_counted_ten_seconds_later_and_then_left_alone() -> None:
    world = gang().run(9)
    assert (writes(world), whole(world)) == (1, ("", ""))
    world.run(600)
    assert writes(world) == 2
    assert whole(world) == ("True", "Bound")
    assert words(world) == "3 created, 3 bound, 0 running of 3 needed"


def test_nothing_stands_on_a_gang_of_which_nothing_was_ever_bound() -> None:
    assert whole(gang(nodes_cpu=2).run(600)) == ("", "")


def test_pods_that_begin_to_run_one_after_the_other_cost_one_write() -> None:
    world = gang().run(1).forget_effects()
    for name in ("g-0", "g-1", "g-2"):
        start(world, name).run(1)
    world.run(60)
    assert writes(world) == 1
    assert whole(world) == ("True", "Running")
    assert words(world) == "3 created, 3 bound, 3 running of 3 needed"


def test_mere_numbers_are_written_twice_a_minute_at_most() -> None:
    world = gang(20, nodes_cpu=30).run(1)
    start(world, *(f"g-{index}" for index in range(20))).run(60).forget_effects()
    for index in range(12):
        world.end(f"g-{index}").run(5)
    assert 1 <= writes(world) <= 3
    world.run(60)
    assert words(world) == "20 created, 20 bound, 8 running, 12 succeeded of 20 needed"


def test_a_loss_is_said_at_once() -> None:
    world = gang().run(60).delete("g-1").run()
    assert whole(world) == ("False", "MembersLost")
    assert words(world).startswith("2 created, 2 bound, 0 running of 3 needed")


def test_a_gang_that_is_whole_again_says_so_five_seconds_later() -> None:
    world = owned(gang().run(60).delete("g-1"), "g", 1).run(4)
    assert whole(world) == ("False", "MembersLost")
    world.run(1)
    assert whole(world) == ("True", "Bound")


def test_what_an_older_write_that_lands_late_says_is_corrected_within_five_seconds() -> None:
    world = gang().run(60).delete("g-1").run()
    older = world.groups[key_of("g")].conditions
    owned(world, "g", 1).run(5)
    assert whole(world) == ("True", "Bound")
    world.change_group("g", conditions=older)
    assert whole(world) == ("False", "MembersLost")
    world.run(5)
    assert whole(world) == ("True", "Bound")


def test_a_word_that_an_older_write_replaced_before_it_was_ever_shown_is_said_again_a_minute_later() -> None:
    world = gang().run(60).delete("g-1").run()
    older = world.groups[key_of("g")].conditions
    world.hides_status = True
    owned(world, "g", 1).run(5)
    assert whole(world) == ("True", "Bound")
    world.hides_status = False
    world.change_group("g", conditions=older).run(UNSEEN_S_MAX - 1)
    assert whole(world) == ("False", "MembersLost")
    world.run(6)
    assert whole(world) == ("True", "Bound")


def test_leaders_that_do_not_last_for_half_a_minute_say_what_is_all_the_same() -> None:
    world = owned(gang().run(60).delete("g-1"), "g", 1).run(1)
    for _ in range(3):
        world.restart().run(20)
    assert whole(world) == ("True", "Bound")


def test_a_gang_that_has_finished_is_in_no_hurry_to_say_so() -> None:
    world = gang().run(60).end("g-0", "g-1", "g-2").run(60).forget_effects()
    world.delete("g-0", "g-1").run(20)
    assert writes(world) == 0


def test_a_lost_member_that_is_not_made_again_is_to_be_asked_of_who_makes_it() -> None:
    world = gang().run(60).delete("g-1").run()
    assert words(world).endswith(
        "if the other one is refused, by a quota or a webhook, the events of Job j say so"
    )
    owned(world, "g", 1).run(60)
    assert words(world) == "3 created, 3 bound, 0 running of 3 needed"


def test_a_gang_under_way_says_by_when_it_must_be_whole() -> None:
    world = gang()
    world.refused = {"g-0": (403, "no")}
    world.run(29)
    assert whole(world) == ("", "")
    world.run(2)
    assert whole(world) == ("False", "UnderWay")
    assert words(world) == (
        "3 created, 2 bound, 0 running of 3 needed; released if not whole by 2027-01-15T08:05:00Z"
    )


def test_a_finished_gang_whose_pods_are_cleared_away_is_no_loss() -> None:
    world = gang().run(1).end("g-0", "g-1", "g-2").run(60)
    assert whole(world) == ("True", "Running")
    world.delete("g-0").run(60)
    assert whole(world) == ("False", "Finished")
    world.delete("g-1", "g-2").run(60)
    assert whole(world) == ("False", "NothingBound")
    assert world.notes("GangMembersLost") == []


def test_whoever_erases_it_has_it_written_again() -> None:
    world = gang().run(60)
    world.change_group("g", conditions=()).run(30)
    assert whole(world) == ("True", "Bound")


def test_basic_groups_are_not_counted() -> None:
    world = owned(World().node("n1", cpu=8).group("g"), "g", 0).run(60)
    assert whole(world) == ("", "")


def test_what_was_cleared_away_while_nobody_looked_is_said_by_the_next_scheduler() -> None:
    world = gang().run(60)
    world.scheduler.handle = lambda event, now_s: []  # type: ignore[method-assign]
    world.delete("g-0", "g-1", "g-2").restart().run(60)
    assert whole(world) == ("False", "NothingBound")


def test_a_gang_of_another_muster_is_not_counted_by_this_one() -> None:
    world = World().node("n1", cpu=8).group("g", 2, conditions=(Condition(type="muster.dev/Whole"),))
    world.members("g", 0, 1, scheduler="other", node="n1").run(600)
    assert writes(world) == 0


def test_members_of_a_node_that_is_gone_are_not_counted_as_bound_until_it_is_back() -> None:
    world = gang().run(60).delete_node("n1").run(60)
    assert whole(world)[0] == "False"
    assert "0 bound" in words(world)
    world.node("n1", cpu=8).run(60)
    assert whole(world) == ("True", "Bound")
    assert words(world) == "3 created, 3 bound, 0 running of 3 needed"
