"""The order of the active queue."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from muster.framework.points import Entity
from muster.plugins.priority_sort import PrioritySort
from muster.testing.conformance import check_plugin


def test_it_keeps_the_contract() -> None:
    check_plugin(PrioritySort())


@given(st.lists(st.tuples(st.integers(-9, 9), st.floats(0, 9)), min_size=1, max_size=8))
def test_priority_first_then_time_then_sequence(found: list[tuple[int, float]]) -> None:
    entities = [Entity(str(i), priority, queued_s, i) for i, (priority, queued_s) in enumerate(found)]
    ordered = sorted(entities, key=PrioritySort().sort_key)
    for first, second in pairwise(ordered):
        assert first.priority >= second.priority
        if first.priority == second.priority:
            assert (first.queued_s, first.sequence) < (second.queued_s, second.sequence)
