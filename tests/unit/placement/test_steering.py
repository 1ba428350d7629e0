"""Rows scored by whom a member more would drive out, and members laid where each costs least."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.api.core import LabelSelector
from muster.cluster.budgets import Budget
from muster.cluster.snapshot import Snapshot
from muster.placement.evictable import UnitColumns
from muster.placement.reprieve import remove_unit
from muster.placement.steering import Steering
from muster.placement.victims import Unit
from muster.testing.builders import ClusterBuilder, make_cluster, make_pod

GIB = 2**31


def scene(nodes: list[int], *units: tuple[int, list[tuple[int, int]]]) -> tuple[ClusterBuilder, list[Unit]]:
    """Nodes of so much cpu; units of a priority and pods on (node, cpu), the most important first."""
    cluster = make_cluster()
    for cpu in nodes:
        cluster.node(cpu=cpu)
    made = []
    for number, (priority, pods) in enumerate(units):
        found = []
        for index, (node, cpu) in enumerate(pods):
            pod = make_pod(f"u{number}-{index}", cpu=cpu, node=f"n{node + 1}", labels={"u": str(number)})
            cluster.state.apply_pod(pod)
            found.append((pod, node))
        made.append(Unit(f"u{number}", priority, tuple(found), len(found) > 1))
    return cluster, sorted(made, key=lambda unit: unit.importance)


def ground_of(cluster: ClusterBuilder, units: list[Unit]) -> Snapshot:
    ground = cluster.snapshot().fork()
    for unit in units:
        remove_unit(ground, unit)
    return ground


def steering(cluster: ClusterBuilder, units: list[Unit], *budgets: Budget) -> Steering:
    return Steering(units, budgets, UnitColumns(units, cluster.snapshot()))


def prices(cluster: ClusterBuilder, units: list[Unit], cpu: int, *budgets: Budget) -> list[float]:
    ground = ground_of(cluster, units)
    pod = make_pod("h", cpu=cpu)
    return (-steering(cluster, units, *budgets).score(pod, ground, ground.live_rows())).tolist()


def test_a_row_costs_what_would_have_to_go_there() -> None:
    cluster, units = scene([2, 2, 2], (5, [(0, 1)]), (7, [(1, 2)]))
    assert prices(cluster, units, 1) == [0, 7 + GIB, 0]
    assert prices(cluster, units, 2) == [5 + GIB, 7 + GIB, 0]


def test_a_whole_group_costs_all_its_pods_on_each_of_its_rows() -> None:
    cluster, units = scene([1, 1], (5, [(0, 1), (1, 1)]))
    assert prices(cluster, units, 1) == [2 * (5 + GIB), 2 * (5 + GIB)]


def test_what_a_budget_protects_costs_more_than_any_priority() -> None:
    cluster, units = scene([1, 1], (9, [(0, 1)]), (1, [(1, 1)]))
    budget = Budget("default", "b", selector=LabelSelector(match_labels={"u": "1"}), allowed=0)
    first, second = prices(cluster, units, 1, budget)
    assert first < second


def test_a_member_beside_one_that_drove_somebody_out_costs_nothing_more() -> None:
    cluster, units = scene([2, 2], (5, [(0, 2)]), (5, [(1, 2)]))
    ground = ground_of(cluster, units)
    rows, pod = ground.live_rows(), make_pod("h", cpu=1)
    one = steering(cluster, units)
    fits = np.array([2, 2], dtype=np.int64)
    assert one.lay(pod, ground, rows, fits, one.score(pod, ground, rows), 3).tolist() == [0, 0, 1]


@settings(deadline=None, max_examples=100)
@given(
    nodes=st.lists(st.integers(1, 6), min_size=3, max_size=3),
    wanted=st.lists(
        st.tuples(
            st.integers(1, 3),
            st.lists(st.tuples(st.integers(0, 2), st.integers(1, 3)), min_size=1, max_size=3),
        ),
        max_size=6,
    ),
    cpu=st.integers(1, 2),
    count=st.integers(1, 8),
)
def test_laying_many_is_laying_one_after_the_other(
    nodes: list[int], wanted: list[tuple[int, list[tuple[int, int]]]], cpu: int, count: int
) -> None:
    cluster, units = scene(nodes, *wanted)
    ground, pod = ground_of(cluster, units), make_pod("h", cpu=cpu)
    rows, one = ground.live_rows(), steering(cluster, units)
    fits = np.array(nodes, dtype=np.int64) // cpu
    laid = one.lay(pod, ground, rows, fits, one.score(pod, ground, rows), count).tolist()
    slow, left = [], fits.copy()
    while len(slow) < count and left.any():
        score = np.where(left > 0, one.score(pod, ground, rows), -np.inf)
        row = int(np.argmax(score))
        ground.place(make_pod(f"h-{len(slow)}", cpu=cpu), row)
        left[row] -= 1
        slow.append(row)
    assert laid == slow


def test_a_row_far_down_a_large_cluster_is_told_from_others() -> None:
    cluster, _ = scene([1])
    pod = make_pod("u", cpu=1)
    units = [Unit(f"u{number}", 0, ((pod, 50_000),)) for number in range(43_000)]  # 50,000 × 43,000 > 2**31
    steered = steering(cluster, units)
    assert set(steered._row_of.tolist()) == {50_000}
