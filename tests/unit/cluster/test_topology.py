"""Labels and taints as columns."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from muster.cluster.topology import NO_VALUE, NodeLabels, NodeTaints
from muster.testing.builders import make_cluster, make_node
from muster.testing.strategies import nodes


def test_values_are_numbered_in_order_of_their_text() -> None:
    column = NodeLabels((make_node("a", labels={"r": "y"}), None, make_node("b", labels={"r": "x"}))).column(
        "r"
    )
    assert (column.ids.tolist(), column.values) == ([1, NO_VALUE, 0], ("x", "y"))


def test_an_answer_per_value_is_spread_to_the_rows() -> None:
    column = NodeLabels((make_node("a", labels={"r": "x"}), make_node("b"))).column("r")
    rows = np.array([0, 1], dtype=np.int32)
    assert column.mask(np.array([True]), rows, missing=False).tolist() == [True, False]
    assert column.mask(np.array([False]), rows, missing=True).tolist() == [False, True]
    assert column.mask(np.array([True]), rows[1:], missing=False).tolist() == [False]


def test_a_label_nobody_has_is_missing_everywhere() -> None:
    column = NodeLabels((make_node("a"),)).column("none")
    rows = np.array([0], dtype=np.int32)
    assert column.mask(np.array([], dtype=np.bool_), rows, missing=True).tolist() == [True]


@given(st.lists(st.one_of(st.none(), nodes()), max_size=8))
def test_every_row_has_its_own_taints(found: list) -> None:  # type: ignore[type-arg]
    taints = NodeTaints(tuple(found))
    for node, index in zip(found, taints.set_of.tolist(), strict=True):
        assert list(taints.sets[index]) == list((node.spec.taints or []) if node else [])


def test_equal_lists_of_taints_are_one_set() -> None:
    spot = [{"key": "spot", "effect": "NoSchedule"}]
    taints = NodeTaints((make_node("a", taints=spot), make_node("b"), make_node("c", taints=spot)))
    assert taints.set_of.tolist() == [0, 1, 0]


def test_totals_are_sums_over_the_rows_of_a_value_and_no_label_has_none() -> None:
    column = make_cluster().rack(1, 1).node().rack(1).snapshot().labels.column("rack")
    totals = column.totals(np.array([1, 2, 4, 8]))
    assert totals[column.ids].tolist() == [3, 3, 0, 8]
    assert column.rows_like(0).tolist() == [0, 1]
    assert column.rows_like(2).tolist() == []
