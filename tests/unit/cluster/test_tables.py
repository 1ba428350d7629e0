"""Node rows: growth, reuse, widening."""

import numpy as np
import pytest

from muster.cluster.axes import ResourceAxis
from muster.cluster.extended_resources import PLENTY
from muster.cluster.tables import NodeTable, allocatable_of
from muster.testing.builders import GPU, make_node


def test_a_node_keeps_its_row_and_its_columns_follow_it() -> None:
    table = NodeTable()
    rows = [
        table.put(make_node("a")),
        table.put(make_node("b", unschedulable=True)),
        table.put(make_node("a", cpu=3)),
    ]
    assert rows == [0, 1, 0]
    assert table.allocatable[0, 0] == 3000
    assert table.unschedulable[:2].tolist() == [False, True]


def test_more_nodes_than_the_first_arrays_hold() -> None:
    table = NodeTable()
    for index in range(200):
        assert table.put(make_node(f"n{index}", cpu=index)) == index
    assert table.allocatable[:200, 0].tolist() == [1000 * index for index in range(200)]


def test_a_dropped_row_is_empty_and_the_lowest_is_taken_again() -> None:
    table = NodeTable()
    for name in "abc":
        table.put(make_node(name))
    table.drop("b")
    table.drop("a")
    assert not table.live[:2].any()
    assert not table.allocatable[:2].any()
    assert (table.put(make_node("d")), table.names[0]) == (0, "d")
    assert len(table) == 3


def test_what_is_frozen_stays_as_long_as_somebody_looks_at_it() -> None:
    table = NodeTable()
    for name in "abc":
        table.put(make_node(name))
    held = table.freeze_requested(np.arange(3))
    view = held[:, 0]
    del held
    table.requested[1] += 5
    now = table.freeze_requested(np.array([1]))
    assert view.tolist() == [0, 0, 0]
    assert now.tolist() == table.requested[:3].tolist()


def test_what_nobody_looks_at_is_frozen_anew_in_place_and_the_same_comes_of_it() -> None:
    table, rng = NodeTable(), np.random.default_rng(5)
    for name in "abcdef":
        table.put(make_node(name))
    where = table.freeze_requested(np.arange(6)).ctypes.data
    for _ in range(20):
        changed = np.flatnonzero(rng.integers(0, 2, 6))
        table.requested[changed] += rng.integers(1, 9, (len(changed), len(table.axis)))
        frozen = table.freeze_requested(changed)
        assert frozen.tolist() == table.requested[:6].tolist()
        assert not frozen.flags.writeable
        assert frozen.ctypes.data == where
        del frozen


def test_dropping_an_unknown_node_is_an_error() -> None:
    with pytest.raises(KeyError):
        NodeTable().drop("none")


def test_a_longer_axis_fills_its_new_columns() -> None:
    table = NodeTable()
    table.put(make_node("a", gpu=8))
    table.widen(ResourceAxis().with_names([GPU]))
    assert table.allocatable[0].tolist()[-1] == 8
    assert table.requested.shape == table.allocatable.shape


def test_devices_given_in_place_of_a_resource_are_not_the_nodes_own() -> None:
    table = NodeTable()
    table.put(make_node("has", gpu=8))
    table.put(make_node("lacks"))
    table.widen(ResourceAxis().with_names([GPU]))
    table.back(frozenset({GPU}))
    assert table.allocatable[:2].T.tolist()[-1] == [8, PLENTY]
    assert [table.own_count(row, GPU) for row in (0, 1)] == [8, 0]


def test_an_amount_that_cannot_be_read_is_no_room() -> None:
    node = make_node(allocatable={"cpu": "lots", "memory": "-1"})
    assert (allocatable_of(node)["cpu"], allocatable_of(node)["memory"]) == (0, 0)
