"""Pods by row, changed one by one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.cluster.requests import HostPort
from muster.cluster.row_pods import PodsByRow
from muster.testing.builders import make_pod

PORT = HostPort("TCP", "0.0.0.0", 80)


@given(st.lists(st.tuples(st.integers(0, 2), st.booleans(), st.booleans()), max_size=20))
def test_lists_are_what_came_less_what_went_whenever_they_are_frozen(
    steps: list[tuple[int, bool, bool]],
) -> None:
    by_row, model, frozen = PodsByRow(), {row: [] for row in range(3)}, []
    for row, comes, freezes in steps:
        if comes:
            pod = make_pod()
            by_row.add(row, pod, ())
            model[row].append(pod)
        elif model[row]:
            by_row.remove(row, model[row].pop(0))
        if freezes:
            frozen.append((by_row.freeze(3)[0], [tuple(pods) for pods in model.values()]))
    frozen.append((by_row.freeze(3)[0], [tuple(pods) for pods in model.values()]))
    assert [[was[row] for row in range(3)] for was, _ in frozen[::2]] == [told for _, told in frozen[::2]]
    assert [list(was) for was, _ in frozen] == [expected for _, expected in frozen]


def test_ports_that_a_snapshot_holds_do_not_change() -> None:
    by_row = PodsByRow()
    by_row.add(0, make_pod(), (PORT,))
    before = by_row.freeze(1)[1]
    by_row.take_ports(0, ())
    assert (dict(before), dict(by_row.freeze(1)[1])) == ({0: (PORT,)}, {})


def test_a_reset_row_has_what_it_is_given() -> None:
    by_row, pod = PodsByRow(), make_pod()
    by_row.add(0, make_pod("old"), (PORT,))
    by_row.reset(0, (pod,), ())
    lists, ports = by_row.freeze(1)
    assert (tuple(lists), ports) == (((pod,),), {})


def test_what_is_frozen_has_the_rows_there_were() -> None:
    by_row = PodsByRow()
    by_row.add(0, make_pod("a"), ())
    lists = by_row.freeze(2)[0]
    by_row.add(3, make_pod("b"), ())
    assert (len(lists), lists[-2][0].metadata.name, lists[1:]) == (2, "a", ((),))
    with pytest.raises(IndexError):
        lists[2]
