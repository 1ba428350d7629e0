"""The best row, ties by the lowest."""

import numpy as np

from muster.placement.scoring import best_first, find_best


def test_the_highest_score_among_feasible_rows_wins() -> None:
    assert find_best(np.array([True, False, True]), np.array([1.0, 9.0, 2.0])) == 2


def test_a_tie_goes_to_the_lowest_row() -> None:
    assert find_best(np.array([False, True, True]), np.array([5.0, 5.0, 5.0])) == 1
    assert best_first(np.array([1.0, 2.0, 2.0, 0.0])).tolist() == [1, 2, 0, 3]


def test_no_feasible_row_is_no_row() -> None:
    assert find_best(np.array([False]), np.array([1.0])) is None
    assert find_best(np.array([], dtype=np.bool_), np.array([])) is None
