"""The tree alone: what is placed, what may be, what is no easier, and which nodes it tells apart."""

import numpy as np
import pytest
from hypothesis import given
from tests.unit.placement.packing_problems import exists_in_tree, tree_problems

from muster.placement.packing import Problem
from muster.placement.packing import is_no_easier as is_problem_no_easier
from muster.placement.packing import may_hold as may_problem_hold
from muster.placement.parts import Part, is_no_easier, is_placed, may_hold, regions


def nodes(*indices: int) -> np.ndarray:
    return np.array(indices, dtype=np.int64)


ZONES = (nodes(0, 1), nodes(2, 3))
RACKS = (nodes(0), nodes(1), nodes(2), nodes(3))
IN_A_RACK = Part(2, RACKS, (0, 0, 1, 1), lots=(0,))
IN_THE_ZONE = Part(1, ZONES, (0, 1), lots=(1,))
TREE = Part(2, ZONES, (0, 0), parts=(IN_A_RACK, IN_THE_ZONE))


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        pytest.param([[2, 0, 0, 0], [0, 1, 0, 0]], True, id="in-one-zone"),
        pytest.param([[1, 1, 0, 0], [0, 1, 0, 0]], False, id="in-two-racks"),
        pytest.param([[2, 0, 0, 0], [0, 0, 1, 0]], False, id="in-two-zones"),
        pytest.param([[1, 0, 0, 0], [0, 1, 0, 0]], False, id="a-member-too-few"),
        pytest.param([[2, 0, 0, 0], [0, 0, 0, 0]], False, id="a-group-too-few"),
    ],
)
def test_a_tree_is_placed_when_every_group_is_in_a_domain_of_its_own(
    counts: list[list[int]], expected: bool
) -> None:
    assert is_placed(TREE, np.array(counts)) is expected


def test_members_of_a_group_that_has_too_few_are_astray() -> None:
    one_is_enough = Part(1, ZONES, (0, 0), parts=(IN_A_RACK, IN_THE_ZONE))
    assert is_placed(one_is_enough, np.array([[0, 0, 0, 0], [0, 1, 0, 0]]))
    assert not is_placed(one_is_enough, np.array([[1, 0, 0, 0], [0, 1, 0, 0]]))


def test_a_group_that_needs_nothing_more_counts_where_it_has_a_domain() -> None:
    done = Part(0, (nodes(0),), (0,), lots=(0,))
    tree = Part(2, ZONES, (0, 0), parts=(done, IN_THE_ZONE))
    assert is_placed(tree, np.array([[0, 0, 0, 0], [1, 0, 0, 0]]))
    assert not is_placed(tree, np.array([[0, 0, 0, 0], [0, 0, 1, 0]]))


def test_counting_rules_out_a_domain_without_a_rack_large_enough() -> None:
    copies = np.array([[1, 1, 2, 0], [1, 1, 1, 1]])
    assert not may_hold(TREE, 0, copies, np.array([2, 1]))
    assert may_hold(TREE, 1, copies, np.array([2, 1]))


def test_nodes_that_no_inner_domain_tells_apart_are_one_region() -> None:
    flat = Part(1, ZONES, (0, 0), parts=(IN_THE_ZONE,))
    assert [region.tolist() for region in regions(flat, 1)] == [[2, 3]]
    assert sorted(region.tolist() for region in regions(TREE, 1)) == [[2], [3]]


def test_fewer_domains_are_no_easier_and_more_are() -> None:
    groups = (Part(2, RACKS[:1], (0,), lots=(0,)), Part(1, ZONES[:1], (0,), lots=(1,)))
    fewer = Part(2, ZONES[:1], (0,), parts=groups)
    assert is_no_easier(fewer, TREE)
    assert not is_no_easier(TREE, fewer)


@given(problem=tree_problems(), other=tree_problems())
def test_what_is_no_easier_than_the_impossible_is_impossible(problem: Problem, other: Problem) -> None:
    if is_problem_no_easier(problem, other) and exists_in_tree(problem):
        assert exists_in_tree(other)
    assert is_problem_no_easier(problem, problem)


@given(problem=tree_problems())
def test_no_domain_that_holds_the_tree_is_ruled_out_by_counting(problem: Problem) -> None:
    may_be = any(may_problem_hold(problem, domain) for domain in range(len(problem.root.domains)))
    assert may_be or not exists_in_tree(problem)
