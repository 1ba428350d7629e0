"""Classes of nodes and their maximal patterns."""

import itertools

import numpy as np
from hypothesis import given
from tests.unit.placement.packing_problems import problem_of, problems

from muster.placement.packing import Problem
from muster.placement.patterns import NodeClass, find_classes

STEPS = 100_000


def classes_of(problem: Problem) -> tuple[NodeClass, ...]:
    nodes = np.arange(problem.packing.feasible.shape[1])
    found = find_classes(problem.packing, problem.available, [nodes], steps_max=STEPS)
    assert found is not None
    return found


def test_only_maximal_patterns_are_kept() -> None:
    (only,) = classes_of(problem_of([[2], [1]], [[4]], [2, 4]))
    assert sorted(only.patterns) == [(0, 4), (1, 2), (2, 0)]


def test_nodes_that_differ_by_less_than_anybody_needs_are_one_class() -> None:
    found = classes_of(problem_of([[4], [2]], [[5], [4], [6]], [9, 9]))
    assert [node_class.nodes for node_class in found] == [(0, 1), (2,)]


def test_a_node_that_takes_nobody_is_in_no_class() -> None:
    found = classes_of(problem_of([[4], [2]], [[1], [4]], [9, 9]))
    assert [node_class.nodes for node_class in found] == [(1,)]


def test_shapes_that_exclude_each_other_are_in_no_pattern_together() -> None:
    (only,) = classes_of(problem_of([[1], [1]], [[5]], [2, 2], exclude=((0, 1), (1, 1))))
    assert sorted(only.patterns) == [(0, 1), (2, 0)]


def test_too_many_patterns_are_not_listed() -> None:
    problem = problem_of([[1], [1], [1]], [[300]], [300, 300, 300])
    assert find_classes(problem.packing, problem.available, [np.arange(1)], steps_max=1000) is None


@given(problem=problems())
def test_what_fits_a_node_is_below_one_of_its_patterns(problem: Problem) -> None:
    packing, available = problem.packing, problem.available.tolist()
    patterns_of = {node: found.patterns for found in classes_of(problem) for node in found.nodes}
    for node in range(packing.feasible.shape[1]):
        for counts in itertools.product(*(range(count + 1) for count in available)):
            if any(counts) and _fits(problem, node, counts):
                below = [
                    all(c <= p for c, p in zip(counts, pattern, strict=True)) for pattern in patterns_of[node]
                ]
                assert any(below)
        for pattern in patterns_of.get(node, ()):
            assert _fits(problem, node, pattern)


def _fits(problem: Problem, node: int, counts: tuple[int, ...]) -> bool:
    packing = problem.packing
    there = [shape for shape, count in enumerate(counts) for _ in range(count)]
    if any(not packing.feasible[shape, node] for shape in there):
        return False
    if any(packing.conflict[one, other] for one, other in itertools.combinations(there, 2)):
        return False
    used = sum((packing.need[shape] for shape in there), start=np.zeros(2, dtype=np.int64))
    return bool(((used <= packing.room[node]) | (used == 0)).all())
