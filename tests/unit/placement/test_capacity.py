"""How many fit: what is counted fits, and one more does not."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.api.quantity import INT64_MAX
from muster.placement.capacity import UNLIMITED, members_per_node


def obvious(free: list[int], request: list[int]) -> int:
    """The slow twin: put copies in until one does not fit."""
    left, count = list(free), 0
    while all(have >= ask for have, ask in zip(left, request, strict=True) if ask > 0) and count < 100:
        left = [have - ask for have, ask in zip(left, request, strict=True)]
        count += 1
    return count


@given(
    free=st.lists(st.lists(st.integers(-4, 20), min_size=3, max_size=3), min_size=1, max_size=5),
    request=st.lists(st.integers(0, 5), min_size=3, max_size=3).filter(any),
)
def test_the_count_equals_putting_copies_in_one_by_one(free: list[list[int]], request: list[int]) -> None:
    fits = members_per_node(np.array(free), np.array(request), np.ones(len(free), dtype=np.bool_))
    assert fits.tolist() == [obvious(row, request) for row in free]


def test_an_infeasible_node_takes_none() -> None:
    fits = members_per_node(np.array([[8], [8]]), np.array([2]), np.array([True, False]))
    assert fits.tolist() == [4, 0]


def test_absurd_room_is_held_to_the_limit() -> None:
    assert members_per_node(np.array([[INT64_MAX]]), np.array([1]), np.array([True])).tolist() == [UNLIMITED]


def test_asking_for_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="asks for no resource"):
        members_per_node(np.array([[8]]), np.array([0]), np.array([True]))
