"""The resource axis and saturating sums."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.api.quantity import INT64_MAX
from muster.cluster.axes import BASE_RESOURCES, ResourceAxis, add_saturating, multiply_saturating

amounts = st.one_of(st.integers(0, 100), st.integers(0, INT64_MAX))


def test_new_resources_come_after_the_old_in_order_of_name() -> None:
    axis = ResourceAxis().with_names(["z/z", "cpu", "a/a"])
    assert axis.names == (*BASE_RESOURCES, "a/a", "z/z")
    assert axis.with_names(["a/a"]) is axis


def test_a_row_holds_amounts_within_int64_and_leaves_out_what_has_no_column() -> None:
    row = ResourceAxis().row({"cpu": -5, "memory": 2**70, "pods": 3, "none": 1})
    assert row.tolist() == [0, INT64_MAX, 0, 3]


def test_an_axis_that_does_not_start_with_the_base_resources_is_refused() -> None:
    with pytest.raises(ValueError, match="starts with"):
        ResourceAxis(["memory", "cpu"])


def test_columns_are_found_by_name() -> None:
    axis = ResourceAxis()
    assert (axis.column_of("pods"), axis.find_column("none"), "cpu" in axis, len(axis)) == (3, None, True, 4)


@given(left=amounts, right=amounts)
def test_sums_stop_at_int64_and_never_wrap(left: int, right: int) -> None:
    assert add_saturating(np.array([left]), np.array([right])).tolist() == [min(left + right, INT64_MAX)]


@given(amount=amounts, count=st.integers(0, 10**6))
def test_products_stop_at_int64_and_never_wrap(amount: int, count: int) -> None:
    assert multiply_saturating(np.array([amount]), count).tolist() == [min(amount * count, INT64_MAX)]
