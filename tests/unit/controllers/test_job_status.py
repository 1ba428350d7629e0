"""Index lists of Indexed Jobs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.controllers.job_status import format_indexes, parse_indexes


@pytest.mark.parametrize(
    ("indexes", "text"),
    [
        pytest.param(set(), "", id="none"),
        pytest.param({3}, "3", id="one"),
        pytest.param({3, 4}, "3,4", id="two-neighbours"),
        pytest.param({3, 4, 5}, "3-5", id="a-run"),
        pytest.param({0, 1, 2, 5, 7, 8}, "0-2,5,7,8", id="several"),
    ],
)
def test_indexes_are_written_as_stock_writes_them(indexes: set[int], text: str) -> None:
    assert format_indexes(indexes) == text


@given(st.sets(st.integers(0, 200)))
def test_what_is_written_can_be_read(indexes: set[int]) -> None:
    assert parse_indexes(format_indexes(indexes), below=201) == indexes


@pytest.mark.parametrize("text", [None, "", "x", "1-x", "-3", ","])
def test_what_cannot_be_read_is_left_out(text: str | None) -> None:
    assert parse_indexes(text, below=9) == set()


def test_an_absurd_range_costs_no_more_than_the_job_has_completions() -> None:
    assert parse_indexes("1-2000000000", below=4) == {1, 2, 3}
