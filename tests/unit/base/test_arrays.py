"""Picking rows: the same values whether they come as a view or one by one."""

import numpy as np
import pytest

from muster.base.arrays import pick

VALUES = np.array([5, 3, 9])


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param([0, 1, 2], id="all"),
        pytest.param([0, 2], id="some"),
        pytest.param([], id="none"),
    ],
)
def test_picked_values_are_those_of_the_rows(rows: list[int]) -> None:
    assert pick(VALUES, np.array(rows, dtype=np.int32)).tolist() == VALUES[rows].tolist()


def test_all_rows_are_picked_without_a_copy() -> None:
    assert np.shares_memory(pick(VALUES, np.arange(3, dtype=np.int32)), VALUES)
