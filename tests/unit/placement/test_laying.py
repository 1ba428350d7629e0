"""Members along the topology."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from muster.placement.laying import lay_in_order, packing_ranks


def ids(*found: int) -> np.ndarray:
    return np.array(found, dtype=np.int32)


def test_the_tightest_domain_that_holds_all_is_filled_first() -> None:
    ranks = packing_ranks(np.array([4, 2, 1, 3]), [ids(0, 1, 1, 2)], 3)
    assert ranks.tolist() == [1, 0, 0, 2]


def test_where_none_holds_all_the_largest_is_and_then_the_tightest_for_the_rest() -> None:
    ranks = packing_ranks(np.array([4, 3, 2]), [ids(0, 1, 2)], 6)
    assert ranks.tolist() == [0, 2, 1]


def test_inside_a_domain_the_next_level_counts() -> None:
    ranks = packing_ranks(np.array([1, 2, 2]), [ids(0, 0, 1), ids(0, 1, 2)], 2)
    assert ranks.tolist() == [2, 1, 0]


def test_rows_without_the_label_come_last() -> None:
    assert packing_ranks(np.array([9, 1]), [ids(-1, 0)], 5).tolist() == [1, 0]


def test_rows_are_laid_along_the_levels() -> None:
    assert lay_in_order(ids(0, 1, 2, 3), [ids(1, 0, 1, 0), ids(0, 3, 0, 2)]).tolist() == [3, 1, 0, 2]


@given(fits=st.lists(st.integers(0, 4), min_size=1, max_size=8), data=st.data(), count=st.integers(1, 12))
def test_filling_in_that_order_never_takes_more_domains_than_needed(
    fits: list[int], data: st.DataObject, count: int
) -> None:
    domain = data.draw(st.lists(st.integers(0, 3), min_size=len(fits), max_size=len(fits)))
    ranks = packing_ranks(np.array(fits), [ids(*domain)], count)
    left, used = min(count, sum(fits)), set()
    for row in sorted(range(len(fits)), key=lambda row: ranks[row]):
        if left > 0 and fits[row]:
            used.add(domain[row])
            left -= fits[row]
    holds = sorted(
        (sum(f for f, d in zip(fits, domain, strict=True) if d == each) for each in set(domain)), reverse=True
    )
    needed, left = 0, min(count, sum(fits))
    while left > 0:
        left -= holds[needed]
        needed += 1
    assert len(used) == needed
