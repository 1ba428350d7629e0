"""When the greedy try fails: what is searched for, what becomes of the answer, and what the group is told."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.placement.packing_problems import exists, problem_of
from tests.unit.scheduling.world import World, key_of

from muster.framework.ports import Search
from muster.placement.packing import Answer, Verdict
from muster.scheduling.members import group_entity
from muster.scheduling.questions import find_question
from muster.scheduling.search import TIME_MS_FIRST, TIME_MS_MAX, TRIES_MAX
from muster.scheduling.searches import WAIT_S_MAX


def two_and_three() -> World:
    """Small members come first and are packed together, so that the large ones find no node."""
    world = World().node("n1", cpu=5).node("n2", cpu=5).group("g", 4)
    return world.members("g", 0, 1, cpu=2).members("g", 2, 3, cpu=3)


def never_fits() -> World:
    """What is free would be enough for all members, were it not on two nodes."""
    world = World().node("n1", cpu=4).node("n2", cpu=4).node("n3", cpu=1).group("g", 4)
    return world.members("g", 0, 1, cpu=2, memory="1Gi").members("g", 2, cpu=2).members("g", 3, cpu=3)


def message(world: World) -> str:
    condition = world.condition("g")
    assert condition is not None
    return condition.message or ""


def test_a_placement_that_the_greedy_try_misses_is_found() -> None:
    world = two_and_three().run()
    assert len(world.of(Search)) == 1
    assert world.bound == {"g-0", "g-1", "g-2", "g-3"}
    assert world.node_of("g-0") != world.node_of("g-1")


def test_members_of_one_shape_are_not_searched_for() -> None:
    world = World().node("n1", cpu=3).group("g", 4).members("g", 0, 1, 2, 3).run()
    assert world.of(Search) == []
    assert "proved" not in message(world)


def test_while_a_search_is_out_the_group_waits_in_a_place_of_its_own_and_is_told_nothing() -> None:
    world = two_and_three()
    world.answers_searches = False
    world.run(30)
    assert world.place("g") == "searching"
    assert world.condition("g") is None
    assert len(world.searches) == 1
    world.answer().run()
    assert len(world.bound) == 4


def test_others_are_placed_while_a_search_is_out() -> None:
    world = two_and_three()
    world.answers_searches = False
    world.run().pod("lone").run()
    assert world.bound == {"lone"}


def test_what_is_proved_impossible_is_said_and_not_searched_for_again() -> None:
    world = never_fits().run(60)
    assert world.bound == set()
    assert "proved impossible on the 3 nodes as they are" in message(world)
    assert len(world.of(Search)) == 1


def test_less_room_needs_no_new_proof_and_more_room_is_searched() -> None:
    world = never_fits().run(60)
    world.pod("lone", cpu=1, node="n3").run(400)
    assert len(world.of(Search)) == 1
    world.delete("lone").run(400)
    assert len(world.of(Search)) == 1
    world.node("n3", cpu=3, version="2").run(1)
    assert world.bound == {"g-0", "g-1", "g-2", "g-3"}


def test_too_little_room_whatever_the_order_is_said_without_a_search() -> None:
    world = World().node("n1", cpu=4).pod("lone", cpu=2, node="n1").group("g", 2)
    world.members("g", 0, cpu=3).members("g", 1).run()
    assert world.of(Search) == []
    assert "proved impossible" in message(world)


def test_an_answer_about_other_nodes_is_searched_anew() -> None:
    world = two_and_three()
    world.answers_searches = False
    world.run().node("n3", cpu=1)  # too small to help anybody
    world.answers_searches = True
    world.answer().run()
    assert len(world.of(Search)) == 2
    assert world.bound == {"g-0", "g-1", "g-2", "g-3"}


def test_an_answer_for_room_that_others_have_taken_binds_nobody() -> None:
    world = two_and_three()
    world.answers_searches = False
    world.run().pod("lone", cpu=1, node="n1")
    world.answers_searches = True
    world.answer().run()
    assert world.bound == {"lone"}
    assert "proved impossible" in message(world)


def test_an_event_that_helps_ends_the_wait_and_the_late_answer_is_ignored() -> None:
    world = two_and_three()
    world.answers_searches = False
    world.run().node("n3", cpu=5).run()
    assert world.bound == {"g-0", "g-1", "g-2", "g-3"}
    world.forget_effects().answer().run(1)
    assert world.effects == []


def test_a_search_given_up_is_repeated_with_more_time_and_then_said() -> None:
    world = never_fits()
    world.answers_searches = False
    world.run()
    times = []
    while world.searches:
        times.append(world.searches[0].time_ms)
        world.answer(Answer(Verdict.GAVE_UP, effort=f"{times[-1]} ms")).run(30)
    assert times[0] == TIME_MS_FIRST
    assert times == sorted(times)
    assert times[-1] == TIME_MS_MAX
    assert f"gave up the search for a placement after {TIME_MS_MAX} ms" in message(world)
    assert "tried again when nodes or members change" in message(world)


def test_a_performer_that_never_answers_does_not_hold_the_group_for_ever() -> None:
    world = never_fits()
    world.answers_searches = False
    world.run(WAIT_S_MAX + 1)
    assert len(world.of(Search)) == 2
    assert world.of(Search)[1].time_ms == 4 * TIME_MS_FIRST


def test_answers_that_always_come_too_late_are_not_waited_for_without_end() -> None:
    world = World().node("n1", cpu=5).node("n2", cpu=5).node("n3", cpu=5).group("g", 4)
    world.members("g", 0, 1, cpu=2).members("g", 2, 3, cpu=3)
    world.answers_searches = False
    world.pod("first", cpu=5, node="n3").run()
    for turn in range(TRIES_MAX + 2):
        if world.searches:
            node = f"m{turn}"
            world.node(node, cpu=1)
            world.answer(Answer(Verdict.FOUND)).run()
    assert "gave up the search for a placement" in message(world)


def test_a_member_more_ends_the_wait() -> None:
    world = never_fits().run(60)
    world.members("g", 4, cpu=1).run(1)
    assert world.bound == {"g-0", "g-1", "g-2", "g-4"}


def test_a_group_that_is_gone_is_forgotten_with_its_search() -> None:
    world = two_and_three()
    world.answers_searches = False
    world.run().delete("g-0", "g-1", "g-2", "g-3").delete_group("g").run()
    world.answer().run(1)
    assert world.place("g") == ""


def test_members_left_over_by_the_found_placement_are_told_why() -> None:
    world = World().node("n1", cpu=5).node("n2", cpu=5).node("n3", cpu=5).group("g", 6)
    world.members("g", 0, 1, 2, cpu=2).members("g", 3, 4, 5, 6, cpu=3).run(3)
    assert world.bound == {"g-0", "g-1", "g-2", "g-3", "g-4", "g-5"}
    condition = world.pod_condition("g-6")
    assert condition is not None
    assert (condition.message or "").startswith("0/3 nodes are available: 3 Insufficient cpu.")


def test_members_with_one_host_port_are_searched_for_as_what_they_are() -> None:
    world = World().node("n1", cpu=3).node("n2", cpu=3).group("g", 4)
    world.members("g", 0, 1, cpu=1).members("g", 2, 3, cpu=2, host_ports=(80,)).run()
    assert len(world.bound) == 4
    assert {world.node_of("g-2"), world.node_of("g-3")} == {"n1", "n2"}


@settings(max_examples=60, deadline=None)
@given(
    nodes=st.lists(st.integers(1, 6), min_size=1, max_size=3),
    small=st.integers(1, 3),
    large=st.integers(1, 3),
    sizes=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    port=st.booleans(),
    short_by=st.integers(0, 2),
)
def test_a_gang_is_bound_if_and_only_if_it_can_be(
    nodes: list[int], small: int, large: int, sizes: tuple[int, int], port: bool, short_by: int
) -> None:
    world = World()
    for index, cpu in enumerate(nodes):
        world.node(f"n{index}", cpu=cpu)
    needed = max(1, small + large - short_by)
    world.group("g", needed).members("g", *range(small), cpu=sizes[0], host_ports=(80,) if port else ())
    world.members("g", *range(small, small + large), cpu=sizes[1]).run(1)
    problem = problem_of(
        [[sizes[0]], [sizes[1]]],
        [[cpu] for cpu in nodes],
        [small, large],
        needed=needed,
        exclude=((0, 0),) if port else (),
    )
    assert (len(world.bound) >= needed) is exists(problem)


@pytest.mark.parametrize("needed", [0, 1])
def test_a_group_that_needs_one_member_or_none_is_not_searched_for(needed: int) -> None:
    world = World().node("n1", cpu=1).group("g", needed or None).members("g", 0, cpu=2).members("g", 1, cpu=3)
    books = world.run().scheduler._books
    cast = books.members.cast(group_entity(key_of("g")))
    assert find_question(cast, books.state.snapshot(), books.runner) is None
