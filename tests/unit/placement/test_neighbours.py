"""Rules over whole domains, checked in integers and stated to the solver."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.unit.placement.packing_problems import exists, problem_of

from muster.placement.exact import Limits, solve
from muster.placement.neighbours import Apart, Even, Near, Rule, allows, at, is_equal
from muster.placement.packing import Verdict

ZONES = np.array([0, 0, 1, -1])
APART = Apart(ZONES, np.array([[False, True], [True, True]]))


def near(
    *, needs: tuple[int, int], helps: tuple[int, int], helped: int = -1, may_begin: bool = False
) -> Near:
    """Over the zones above, of which one may have somebody already."""
    is_helped = (helped == ZONES) & (helped >= 0)
    return Near(ZONES, np.array(needs) > 0, np.array(helps) > 0, is_helped, may_begin)


def even(
    *,
    carries: tuple[int, int],
    counts: tuple[int, int],
    before: tuple[int, int],
    skew: int = 1,
    short: bool = False,
) -> Even:
    """Over the two zones above; whoever keeps the rule counts for it."""
    keeps = np.array(carries) > 0
    return Even(ZONES, keeps, keeps | (np.array(counts) > 0), np.array(before), skew, short)


FIRST_IS_EVEN = even(carries=(1, 0), counts=(0, 0), before=(0, 0))
BOTH_COUNT = even(carries=(1, 0), counts=(0, 1), before=(0, 0))
SECOND_NEEDS_FIRST = near(needs=(0, 1), helps=(1, 0))
SECOND_NEEDS_ITS_LIKE = near(needs=(0, 1), helps=(0, 1), may_begin=True)


@dataclass
class Row:
    """A rule, members of two shapes on four nodes, and whether that is allowed."""

    rule: Rule
    counts: list[list[int]]
    expected: bool


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(Row(APART, [[1, 0, 0, 0], [0, 0, 1, 0]], True), id="apart-in-two-zones"),
        pytest.param(Row(APART, [[1, 0, 0, 0], [0, 1, 0, 0]], False), id="apart-in-one"),
        pytest.param(Row(APART, [[0, 0, 0, 0], [1, 1, 0, 0]], False), id="two-of-one-that-is-alone"),
        pytest.param(Row(APART, [[0, 0, 0, 1], [0, 0, 0, 2]], True), id="without-the-label-no-rule"),
        pytest.param(Row(SECOND_NEEDS_FIRST, [[1, 0, 0, 0], [0, 1, 0, 0]], True), id="helped-by-a-member"),
        pytest.param(Row(SECOND_NEEDS_FIRST, [[1, 0, 0, 0], [0, 0, 1, 0]], False), id="not-helped"),
        pytest.param(
            Row(near(needs=(0, 1), helps=(1, 0), helped=1), [[0] * 4, [0, 0, 1, 0]], True), id="helped-before"
        ),
        pytest.param(Row(SECOND_NEEDS_ITS_LIKE, [[0] * 4, [1, 2, 0, 0]], True), id="begun-in-one-zone"),
        pytest.param(Row(SECOND_NEEDS_ITS_LIKE, [[0] * 4, [1, 0, 1, 0]], False), id="not-in-two"),
        pytest.param(Row(FIRST_IS_EVEN, [[1, 1, 1, 0], [0] * 4], True), id="one-more-in-one-zone"),
        pytest.param(Row(FIRST_IS_EVEN, [[1, 1, 0, 0], [0] * 4], False), id="two-more-in-one-zone"),
        pytest.param(Row(FIRST_IS_EVEN, [[0] * 4, [2, 0, 0, 0]], True), id="who-keeps-no-rule-may-be-uneven"),
        pytest.param(Row(BOTH_COUNT, [[2, 0, 0, 0], [0, 0, 1, 0]], True), id="raised-by-one-that-counts"),
        pytest.param(
            Row(even(carries=(1, 0), counts=(0, 0), before=(3, 0)), [[0, 0, 2, 0], [0] * 4], True),
            id="uneven-before-and-better-now",
        ),
        pytest.param(
            Row(
                even(carries=(1, 0), counts=(0, 0), before=(1, 1), short=True), [[1, 0, 0, 0], [0] * 4], False
            ),
            id="too-few-zones",
        ),
    ],
)
def test_what_a_rule_allows(row: Row) -> None:
    assert allows(row.rule, np.array(row.counts)) is row.expected


def test_a_rule_for_fewer_nodes_says_the_same_of_those() -> None:
    assert at(APART, np.array([1, 2])).domain.tolist() == [0, 1]
    assert is_equal(at(SECOND_NEEDS_FIRST, np.arange(4)), SECOND_NEEDS_FIRST)
    assert at(FIRST_IS_EVEN, np.array([1, 2])).domain.tolist() == [0, 1]
    assert not is_equal(APART, SECOND_NEEDS_FIRST)
    assert not is_equal(FIRST_IS_EVEN, BOTH_COUNT)
    assert not is_equal(SECOND_NEEDS_ITS_LIKE, replace(SECOND_NEEDS_ITS_LIKE, may_begin=False))


bits = st.tuples(st.integers(0, 1), st.integers(0, 1))
some_rule = st.one_of(
    st.builds(near, needs=bits, helps=bits, helped=st.integers(-1, 1), may_begin=st.booleans()),
    st.builds(
        even,
        carries=bits,
        counts=bits,
        before=st.tuples(st.integers(0, 2), st.integers(0, 2)),
        skew=st.integers(1, 2),
        short=st.booleans(),
    ),
    st.tuples(*[st.booleans()] * 3).map(lambda b: Apart(ZONES, np.array([[b[0], b[1]], [b[1], b[2]]]))),
)


@settings(max_examples=60)
@given(
    rules=st.lists(some_rule, min_size=1, max_size=2),
    room=st.lists(st.integers(0, 3), min_size=4, max_size=4),
    available=st.tuples(st.integers(1, 2), st.integers(1, 2)),
)
def test_the_solver_finds_what_the_rules_allow_and_nothing_else(
    rules: list[Rule], room: list[int], available: tuple[int, int]
) -> None:
    problem = problem_of([[1], [2]], [[amount] for amount in room], list(available))
    problem = replace(problem, packing=replace(problem.packing, rules=tuple(rules)))
    answer = solve(problem, Limits(branches=10_000))
    assert answer.verdict is (Verdict.FOUND if exists(problem) else Verdict.IMPOSSIBLE)
