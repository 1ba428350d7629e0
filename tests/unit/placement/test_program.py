"""The program that is solved: its size, its trust, and what is read back."""

import numpy as np
from tests.unit.placement.packing_problems import problem_of

from muster.placement.kinds import seat_counts
from muster.placement.packing import Problem
from muster.placement.parts import Part
from muster.placement.program import Question

STEPS = 10_000


def alike(groups: int) -> Problem:
    """So many equal groups of two on four nodes."""
    everywhere = (np.arange(4),)
    parts = tuple(Part(2, everywhere, (0,), lots=(lot,)) for lot in range(groups))
    packing = problem_of([[1]], [[9]] * 4, [1]).packing
    lots = np.zeros(groups, dtype=np.int64)
    return Problem(packing, lots, lots + 2, Part(groups, everywhere, (0,), parts=parts), is_exact=True)


def test_forty_equal_groups_make_no_larger_a_program_than_two() -> None:
    two, forty = (Question(alike(count), 0, steps_max=STEPS).program for count in (2, 40))
    assert len(forty.variable_max) == len(two.variable_max)
    assert len(forty.lower) == len(two.lower)


def test_patterns_are_always_trusted_and_members_per_node_while_numbers_are_small() -> None:
    huge = problem_of([[2**40 + 1], [2**40]], [[2**42]], [1, 1])
    small = problem_of([[3], [2]], [[9]], [1, 1])
    assert Question(huge, 0, steps_max=STEPS).is_trusted
    assert Question(small, 0, steps_max=0).is_trusted
    assert not Question(huge, 0, steps_max=0).is_trusted


def test_a_solution_is_read_back_as_members_on_nodes() -> None:
    problem = problem_of([[1]], [[2]], [2], needed=2)
    question = Question(problem, 0, steps_max=STEPS)
    placed = question.read(np.array([1, 1, 2]))  # a node with the only pattern, one group, two members
    assert placed is not None
    assert seat_counts(problem, placed).tolist() == [[2]]
    assert question.read(np.array([1, 0, 2])) is None
