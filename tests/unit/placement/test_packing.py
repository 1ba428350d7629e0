"""Counting and checking in integers."""

import numpy as np
import pytest
from hypothesis import given
from tests.unit.placement.packing_problems import exists, problem_of, problems

from muster.placement.packing import (
    Problem,
    combine,
    copies_alone,
    is_no_easier,
    is_placement,
    may_hold,
    no_rule,
)

TWO_SHAPES = problem_of([[3], [1]], [[4], [2]], [1, 3])


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        pytest.param([[1, 0], [1, 2]], True, id="all-fit"),
        pytest.param([[0, 1], [3, 0]], False, id="too-big-for-the-node"),
        pytest.param([[1, 0], [0, 2]], False, id="one-too-few"),
        pytest.param([[1, 0], [1, 3]], False, id="more-than-there-are"),
        pytest.param([[2, -1], [1, 2]], False, id="below-zero"),
    ],
)
def test_an_answer_is_checked_in_integers(counts: list[list[int]], expected: bool) -> None:
    assert is_placement(TWO_SHAPES, np.array(counts)) is expected


def test_shapes_that_exclude_each_other_may_not_share_a_node() -> None:
    problem = problem_of([[1], [1]], [[9], [9]], [1, 1], exclude=((0, 1),))
    assert not is_placement(problem, np.array([[1, 0], [1, 0]]))
    assert is_placement(problem, np.array([[1, 0], [0, 1]]))


def test_a_shape_that_excludes_itself_is_once_on_a_node() -> None:
    problem = problem_of([[1]], [[9], [9]], [2], exclude=((0, 0),))
    assert not is_placement(problem, np.array([[2, 0]]))
    assert is_placement(problem, np.array([[1, 1]]))


def test_members_must_be_where_they_are_feasible_and_in_one_domain() -> None:
    problem = problem_of([[1]], [[9], [9], [9]], [2], infeasible=((0, 0),), domains=((0, 1), (2,)))
    assert not is_placement(problem, np.array([[2, 0, 0]]))
    assert not is_placement(problem, np.array([[0, 1, 1]]))
    assert is_placement(problem, np.array([[0, 0, 2]]))


def test_an_overcommitted_node_still_takes_who_needs_nothing_of_what_it_lacks() -> None:
    problem = problem_of([[0, 1]], [[-2, 1]], [1])
    assert is_placement(problem, np.array([[1]]))
    assert copies_alone(problem.packing, problem.available_of_shape).tolist() == [[1]]


@given(problem=problems())
def test_the_bound_is_never_below_what_a_placement_holds(problem: Problem) -> None:
    may_be = any(may_hold(problem, domain) for domain in range(len(problem.root.domains)))
    assert may_be or not exists(problem)


@given(problem=problems(), other=problems())
def test_what_is_no_easier_than_the_impossible_is_impossible(problem: Problem, other: Problem) -> None:
    if is_no_easier(problem, other) and exists(problem):
        assert exists(other)
    assert is_no_easier(problem, problem)


def test_less_room_is_no_easier_and_more_room_is() -> None:
    less = problem_of([[3], [1]], [[4], [1]], [1, 3])
    assert is_no_easier(less, TWO_SHAPES)
    assert not is_no_easier(TWO_SHAPES, less)


def test_fewer_needed_members_are_easier() -> None:
    fewer = problem_of([[3], [1]], [[4], [2]], [1, 3], needed=3)
    assert not is_no_easier(fewer, TWO_SHAPES)


def test_rules_are_combined() -> None:
    one, other = TWO_SHAPES.packing, problem_of([[1], [0]], [[0], [1]], [1, 3], exclude=((0, 1),)).packing
    both = combine((no_rule(2, 2), one, other))
    assert both.room.tolist() == [[4, 0], [2, 1]]
    assert both.need.tolist() == [[3, 1], [1, 0]]
    assert both.conflict.tolist() == [[False, True], [True, False]]
    assert both.feasible.all()
