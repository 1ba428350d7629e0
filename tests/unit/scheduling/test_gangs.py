"""What is remembered of gangs, and when each is looked at."""

import pytest
from msgspec.structs import replace
from tests.unit.scheduling.gang_world import REFUSED, half_bound, refill, released, whole, words
from tests.unit.scheduling.world import World, key_of

from muster.framework.groups import ObjectKey
from muster.scheduling.gangs import Gang, Gangs
from muster.scheduling.members import group_entity

A, B = group_entity(ObjectKey("d", "a")), group_entity(ObjectKey("d", "b"))


def test_the_backoff_after_a_release_doubles_up_to_ten_minutes() -> None:
    gang, waits = Gang(), []
    for now_s in range(8):
        gang.release(now_s)
        waits.append(gang.backoff_s)
    assert waits == [10, 20, 40, 80, 160, 320, 600, 600]
    gang.releases = 5000
    assert gang.backoff_s == 600


def test_releases_are_written_so_that_they_can_be_read() -> None:
    gang, next_one = Gang(), Gang()
    assert gang.write_releases(with_time=True) == ""
    gang.releases, gang.not_before_s = 7, 1_800_000_060.0
    text = f"3 created; {gang.write_releases(with_time=True)}; the last because of that"
    assert (next_one.read_releases(text), next_one.releases) == (1_800_000_060.0, 7)
    assert (next_one.read_releases(gang.write_releases(with_time=False)), next_one.releases) == (0.0, 7)
    assert (Gang().read_releases("3 created"), Gang().read_releases("releases in a row: x")) == (0.0, 0.0)


def test_ten_minutes_of_running_make_up_for_earlier_releases() -> None:
    gang = Gang()
    gang.release(0.0)
    gang.started_s = 100.0
    gang.release(600.0)
    assert gang.backoff_s == 20
    gang.started_s = 1000.0
    gang.release(1601.0)
    assert gang.backoff_s == 10


def test_what_is_under_way_stays_so_since_its_first_decision() -> None:
    gangs = Gangs()
    gangs.begin(A, 300.0, 10.0)
    gangs.begin(A, 300.0, 50.0)
    assert gangs.next_due_s() == 310.0
    assert (gangs.tick(309.0), gangs.tick(310.0), gangs.tick(311.0)) == ([], [A], [])


def test_a_count_that_is_due_is_not_put_off() -> None:
    gangs = Gangs()
    gangs.count_at(A, 5.0)
    gangs.count_at(A, 30.0)
    gangs.count_at(B, 7.0)
    assert gangs.tick_counts(7.0) == [A, B]


def test_a_gang_that_is_gone_is_looked_at_no_more() -> None:
    gangs = Gangs()
    gangs.begin(A, 300.0, 0.0)
    gangs.count_at(A, 5.0)
    gangs.note_counted(A, 1.0)
    gangs.lose(A)
    assert (gangs.find(A), gangs.next_due_s(), gangs.counted_s(A)) == (None, None, 0.0)


# ── what the next scheduler knows ────────────────────────────────────────────────────────────────


def released_again_and_again(count: int) -> World:
    """A gang that was released so often in a row, and whose pods are made anew at once."""
    world = half_bound(bind_timeout_s=10.0)
    for _ in range(count):
        while released(world) == []:
            world.run(1)
        refill(world.forget_effects(), "g", 3)
    return world


def test_a_new_scheduler_waits_as_long_as_the_old_one_would_have() -> None:
    world = released_again_and_again(4).run(20)
    world.refused = {}
    world.restart().run(58)
    assert world.bound == set()
    assert world.run(3).bound == {"g-0", "g-1", "g-2"}


def test_a_new_scheduler_doubles_on_where_the_old_one_stopped() -> None:
    world = released_again_and_again(2)
    while "g-0" not in world.bound:
        world.run(1)
    world.restart()
    while released(world) == []:
        world.run(1)
    assert "releases in a row: 3" in words(refill(world, "g", 3).run(5))


def test_a_gang_whose_members_go_while_nobody_leads_waits_like_any_released_one() -> None:
    world = half_bound()
    world.grace_s = 1000.0
    world.run(300)
    world.scheduler.handle = lambda event, now_s: []  # type: ignore[method-assign]
    world.delete("g-0", "g-1")
    world.refused = {}
    refill(world, "g", 3).restart().run(9)
    assert (world.bound, whole(world)) == (set(), ("False", "Released"))
    assert world.run(2).bound == {"g-0", "g-1", "g-2"}


def test_what_a_gang_may_be_held_for_is_bounded_whatever_its_condition_says() -> None:
    world = refill(half_bound(bind_timeout_s=10.0).run(10), "g", 3).run(1)
    world.refused = {}
    (condition,) = (c for c in world.groups[key_of("g")].conditions if c.type == "muster.dev/Whole")
    text = "releases in a row: 999999999, not tried again before 9999-01-01T00:00:00Z"
    kept = [c for c in world.groups[key_of("g")].conditions if c is not condition]
    world.scheduler.handle = lambda event, now_s: []  # type: ignore[method-assign]
    world.change_group("g", conditions=(*kept, replace(condition, message=text))).restart().run(599)
    assert world.bound == set()
    assert world.run(2).bound == {"g-0", "g-1", "g-2"}


@pytest.mark.parametrize("restarts", [False, True], ids=["same-scheduler", "new-scheduler"])
def test_ten_minutes_of_running_forgive_earlier_releases_of_a_gang_that_dies_at_once(
    *, restarts: bool
) -> None:
    world = released_again_and_again(3)
    world.refused = {}
    world.run(1000)
    if restarts:
        world.restart().run(1)
    world.refused = {"g-2": REFUSED}
    world.delete("g-0", "g-1", "g-2")
    refill(world, "g", 3).run(60)
    assert "releases in a row: 1," in words(world)
