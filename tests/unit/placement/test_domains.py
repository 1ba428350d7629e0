"""Named sets of rows and sums over them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.placement.domains import Placements, intersect, one_placement, partition

NAMES = tuple("abcdef")


def rows(*found: int) -> np.ndarray:
    return np.array(found, dtype=np.int32)


def as_sets(placements: Placements) -> dict[str, list[int]]:
    return {name: placements.rows_of(index).tolist() for index, name in enumerate(placements.names)}


def test_rows_are_parted_by_their_domain_and_those_without_one_are_left_out() -> None:
    found = partition(rows(1, 3, 5, 7), rows(1, -1, 0, 1), ("r1", "r2", "r3"))
    assert as_sets(found) == {"r1": [5], "r2": [1, 7]}


def test_no_rows_are_no_placement() -> None:
    assert one_placement(rows()).count == 0
    assert partition(rows(), rows(), ()).count == 0


def test_values_are_added_up_over_each_placement() -> None:
    found = partition(rows(0, 1, 2), rows(1, 0, 1), ("r1", "r2"))
    assert found.totals(np.array([1, 10, 100])).tolist() == [10, 101]
    assert found.float_totals(np.array([[1, 2], [10, 20], [100, 200]])).tolist() == [[10, 20], [101, 202]]


def test_only_some_placements_can_be_kept() -> None:
    found = partition(rows(0, 1, 2, 3), rows(0, 1, 2, 1), ("a", "b", "c"))
    kept = found.keep(np.array([True, False, True]))
    assert as_sets(kept) == {"a": [0], "c": [2]}
    assert found.keep(np.zeros(3, dtype=np.bool_)).count == 0


def test_the_rows_of_all_placements_are_each_there_once_and_refuse_writes() -> None:
    found = Placements(("a", "b"), rows(3, 5, 1, 3), np.array([0, 2, 4]))
    assert found.all_rows().tolist() == [1, 3, 5]
    with pytest.raises(ValueError, match="read-only"):
        found.all_rows()[0] = 7


sets = st.dictionaries(st.sampled_from(NAMES), st.sets(st.integers(0, 9), min_size=1), max_size=4)


def from_sets(found: dict[str, set[int]]) -> Placements:
    names = tuple(sorted(found))
    members = [sorted(found[name]) for name in names]
    bounds = np.cumsum([0, *(len(each) for each in members)])
    return Placements(names, rows(*(row for each in members for row in each)), bounds)


@given(left=sets, right=sets)
def test_every_placement_is_cut_with_every_other_even_where_they_overlap(
    left: dict[str, set[int]], right: dict[str, set[int]]
) -> None:
    slow = {
        f"{a}/{b}": sorted(left[a] & right[b])
        for a in sorted(left)
        for b in sorted(right)
        if left[a] & right[b]
    }
    assert as_sets(intersect(from_sets(left), from_sets(right))) == slow


@given(found=sets, values=st.lists(st.integers(-5, 5), min_size=10, max_size=10))
def test_totals_are_the_sums_one_would_write_by_hand(found: dict[str, set[int]], values: list[int]) -> None:
    totals = from_sets(found).totals(np.array(values))
    assert totals.tolist() == [sum(values[row] for row in found[name]) for name in sorted(found)]
