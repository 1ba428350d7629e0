"""Answers of a search, put on a board."""

from typing import ClassVar

import numpy as np
from tests.unit.scheduling.world import World, key_of

from muster.api.core import Pod
from muster.assembly.profiles import BUILT_IN
from muster.base.arrays import Int32
from muster.cluster.snapshot import Snapshot
from muster.framework.points import NodeReason, NodeVerdict
from muster.framework.runner import Runner, Weighted
from muster.scheduling.board import Outcome
from muster.scheduling.members import Cast, group_entity
from muster.scheduling.questions import find_question
from muster.scheduling.searches import Question
from muster.scheduling.seating import seat, try_other_orders


class Neighbours:
    """A rule that looks beyond numbers: who is labelled `after` goes only where `before` is already."""

    name: ClassVar[str] = "Neighbours"
    reads_metadata: ClassVar[bool] = True

    def filter(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> NodeVerdict:
        wanted = (pod.metadata.labels or {}).get("after")
        there = [
            {(other.metadata.labels or {}).get("is") for other in snapshot.pods_on(row)}
            for row in rows.tolist()
        ]
        feasible = np.array([wanted is None or wanted in names for names in there], dtype=np.bool_)
        return NodeVerdict(feasible, (NodeReason(~feasible, f"no {wanted} here"),))

    def rows_changed(self, placed: Pod, row: int, pod: Pod, snapshot: Snapshot) -> Int32 | None:
        return np.array([row], dtype=np.int32)


def runner_with_rule() -> Runner:
    return Runner([*(Weighted(plugin()) for plugin in BUILT_IN.values()), Weighted(Neighbours())])


PLAIN = Runner([Weighted(plugin()) for plugin in BUILT_IN.values()])


def asked(world: World, runner: Runner = PLAIN) -> tuple[Question, Cast, Snapshot]:
    books = world.scheduler._books
    cast, snapshot = books.members.cast(group_entity(key_of("g"))), books.state.snapshot()
    question = find_question(cast, snapshot, runner)
    assert isinstance(question, Question)
    return question, cast, snapshot


def seats(outcome: Outcome | None) -> dict[str, int]:
    assert outcome is not None
    return {member.key.name: row for member, row in outcome.board.all_placed()}


def two_shapes() -> World:
    world = World().node("n1", cpu=5).node("n2", cpu=6).group("g", 4)
    return world.members("g", 0, 1, cpu=2).members("g", 2, 3, cpu=3)


def test_members_go_where_the_counts_say() -> None:
    question, cast, snapshot = asked(two_shapes())
    outcome = seat(question, np.array([[1, 1], [1, 1]]), cast, snapshot, PLAIN)
    assert seats(outcome) == {"g-0": 0, "g-1": 1, "g-2": 0, "g-3": 1}


def test_counts_that_do_not_fit_any_more_seat_nobody() -> None:
    question, cast, snapshot = asked(two_shapes().pod("lone", cpu=2, node="n2"))
    assert seat(question, np.array([[1, 1], [1, 1]]), cast, snapshot, PLAIN) is None


def test_members_beyond_the_minimum_take_what_room_is_left() -> None:
    question, cast, snapshot = asked(two_shapes().members("g", 4, cpu=1))
    outcome = seat(question, np.array([[1, 1], [1, 1], [0, 0]]), cast, snapshot, PLAIN)
    assert seats(outcome)["g-4"] == 1


def test_a_rule_that_was_not_searched_is_asked_until_everybody_is_there() -> None:
    world = World().node("n1", cpu=5).group("g", 2)
    world.members("g", 0, cpu=1, labels={"after": "first"}).members("g", 1, cpu=2, labels={"is": "first"})
    runner = runner_with_rule()
    question, cast, snapshot = asked(world, runner)
    assert not question.problem.is_exact
    assert seats(seat(question, np.array([[1], [1]]), cast, snapshot, runner)) == {"g-0": 0, "g-1": 0}


def test_a_rule_that_was_not_searched_can_refuse_the_answer() -> None:
    world = World().node("n1", cpu=5).node("n2", cpu=5).group("g", 2)
    world.members("g", 0, cpu=1, labels={"after": "first"}).members("g", 1, cpu=2, labels={"is": "first"})
    runner = runner_with_rule()
    question, cast, snapshot = asked(world, runner)
    assert seat(question, np.array([[1, 0], [0, 1]]), cast, snapshot, runner) is None


def test_members_that_need_each_other_are_tried_in_another_order() -> None:
    world = World().node("n1", cpu=5).node("n2", cpu=5).group("g", 2)
    world.members("g", 0, cpu=1, labels={"after": "first"}).members("g", 1, cpu=2, labels={"is": "first"})
    runner = runner_with_rule()
    question, cast, snapshot = asked(world, runner)
    found = seats(try_other_orders(question, cast, snapshot, runner))
    assert found["g-0"] == found["g-1"]


def test_shapes_that_came_in_turn_are_tried_one_after_the_other_in_their_first_order_too() -> None:
    bound = {"cpu": 2, "node_selector": {"disk": "ssd"}}
    world = World().node("n1", cpu=4, labels={"disk": "ssd"}).node("n2", cpu=8).group("g", 3)
    world = world.members("g", 0, **bound).members("g", 1, cpu=1).members("g", 2, **bound)
    question, cast, snapshot = asked(world)
    assert seats(try_other_orders(question, cast, snapshot, PLAIN)) == {"g-0": 0, "g-2": 0, "g-1": 1}


def test_no_order_helps_a_ring_of_needs() -> None:
    world = World().node("n1", cpu=5).group("g", 2)
    world.members("g", 0, cpu=1, labels={"after": "b", "is": "a"})
    world.members("g", 1, cpu=2, labels={"after": "a", "is": "b"})
    runner = runner_with_rule()
    question, cast, snapshot = asked(world, runner)
    assert try_other_orders(question, cast, snapshot, runner) is None
    assert seat(question, np.array([[1], [1]]), cast, snapshot, runner) is None
