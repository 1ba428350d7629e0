"""Masks to counts."""

import numpy as np

from muster.placement.feasibility import Lost, Rejection, all_feasible, count_reasons


def mask(*cells: int) -> np.ndarray:  # type: ignore[type-arg]
    return np.array(cells, dtype=np.bool_)


def test_a_row_is_feasible_if_every_mask_allows_it() -> None:
    assert all_feasible([mask(1, 1, 0), mask(1, 0, 1)], 3).tolist() == [True, False, False]
    assert all_feasible([], 2).tolist() == [True, True]


def test_a_row_counts_under_the_first_plugin_that_refused_it() -> None:
    rejections = [
        Rejection("Taints", "tainted", mask(1, 1, 0, 0)),
        Rejection("Fit", "Insufficient cpu", mask(0, 1, 1, 1)),
    ]
    assert count_reasons(rejections, 4) == {
        "tainted": Lost(2, 0, "Taints"),
        "Insufficient cpu": Lost(2, 2, "Fit"),
    }


def test_all_reasons_of_one_plugin_count_for_a_row() -> None:
    rejections = [
        Rejection("Fit", "Insufficient cpu", mask(1, 1)),
        Rejection("Fit", "Insufficient memory", mask(1, 0)),
    ]
    counts = {text: lost.rows for text, lost in count_reasons(rejections, 2).items()}
    assert counts == {"Insufficient cpu": 2, "Insufficient memory": 1}


def test_one_text_given_twice_is_one_reason() -> None:
    rejections = [Rejection("Fit", "short", mask(0, 1)), Rejection("Fit", "short", mask(1, 0))]
    assert count_reasons(rejections, 2) == {"short": Lost(2, 0, "Fit")}


def test_a_reason_that_holds_for_no_row_is_not_told() -> None:
    assert count_reasons([Rejection("Fit", "short", mask(0, 0))], 2) == {}
