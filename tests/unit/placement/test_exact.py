"""The exact search against trying everything."""

import numpy as np
import pytest
from hypothesis import given, settings
from tests.unit.placement.packing_problems import (
    exists,
    exists_in_tree,
    problem_of,
    problems,
    tree_problems,
)

from muster.placement import exact
from muster.placement.exact import Limits, solve
from muster.placement.packing import Problem, Verdict, is_placement

BRANCHES = Limits(branches=10_000)


@settings(max_examples=200)
@given(problem=problems())
def test_a_placement_is_found_if_and_only_if_there_is_one(problem: Problem) -> None:
    answer = solve(problem, BRANCHES)
    assert answer.verdict is (Verdict.FOUND if exists(problem) else Verdict.IMPOSSIBLE)
    if answer.counts is not None:
        assert is_placement(problem, answer.counts)


@settings(max_examples=200)
@given(problem=problems())
def test_members_per_node_find_the_same_where_patterns_are_too_many(problem: Problem) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact, "PATTERN_STEPS_MAX", 0)
        answer = solve(problem, BRANCHES)
    assert answer.verdict is (Verdict.FOUND if exists(problem) else Verdict.IMPOSSIBLE)
    if answer.counts is not None:
        assert is_placement(problem, answer.counts)


@settings(max_examples=300)
@given(problem=tree_problems())
def test_a_tree_is_placed_if_and_only_if_that_is_possible(problem: Problem) -> None:
    answer = solve(problem, BRANCHES)
    assert answer.verdict is (Verdict.FOUND if exists_in_tree(problem) else Verdict.IMPOSSIBLE)
    if answer.counts is not None:
        assert is_placement(problem, answer.counts)


@settings(max_examples=100)
@given(problem=tree_problems())
def test_members_per_node_place_a_tree_just_as_well(problem: Problem) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact, "PATTERN_STEPS_MAX", 0)
        answer = solve(problem, BRANCHES)
    assert answer.verdict is (Verdict.FOUND if exists_in_tree(problem) else Verdict.IMPOSSIBLE)


def test_the_first_domain_that_holds_all_is_taken() -> None:
    problem = problem_of([[3], [1]], [[3], [9], [9]], [1, 2], domains=((0,), (2,), (1,)))
    counts = solve(problem, BRANCHES).counts
    assert counts is not None
    assert counts.tolist() == [[0, 0, 1], [0, 0, 2]]


def test_equal_problems_have_equal_answers() -> None:
    problem = problem_of([[3, 1], [1, 2]], [[7, 4]] * 6, [6, 5])
    first, second = solve(problem, BRANCHES), solve(problem, BRANCHES)
    assert first.counts is not None
    assert second.counts is not None
    assert (first.counts == second.counts).all()


def hard_problem() -> Problem:
    """No relaxation sees that this is impossible, so the solver has to branch."""
    generator = np.random.default_rng(7)
    room = generator.integers(40, 90, size=(24, 3)).tolist()
    need = generator.integers(11, 29, size=(7, 3)).tolist()
    return problem_of(need, room, [9] * 7)


def test_a_search_out_of_time_is_given_up_and_not_called_impossible() -> None:
    answer = solve(hard_problem(), Limits(time_ms=0))
    assert answer.verdict is Verdict.GAVE_UP
    assert answer.effort == "0 ms"


def test_infeasible_is_not_believed_where_numbers_are_too_large_for_the_solver(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(exact, "PATTERN_STEPS_MAX", 0)
    huge = 2**40 + 1
    problem = problem_of([[huge, 1], [huge + 1, 1]], [[2 * huge, 9], [huge + 1, 9]], [1, 2])
    assert solve(problem, BRANCHES).verdict is Verdict.GAVE_UP


def test_bytes_do_not_hide_a_unit_from_the_patterns() -> None:
    huge = 2**40
    tight = problem_of([[huge], [huge + 1]], [[2 * huge + 1], [huge]], [2, 1])
    short = problem_of([[huge], [huge + 1]], [[2 * huge], [huge]], [2, 1])
    assert solve(tight, BRANCHES).verdict is Verdict.FOUND
    assert solve(short, BRANCHES).verdict is Verdict.IMPOSSIBLE
