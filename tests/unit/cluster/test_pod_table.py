"""Placed pods as columns: whatever happens, they count as counting one by one does.

That the counts are right for every kind of selector is also held by the oracles of the plugins that ask
(`tests/unit/plugins/test_inter_pod_affinity.py`, `test_topology_spread.py`).
"""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.cluster.bound_pods import bound

from muster.api.core import LabelSelector, Pod
from muster.cluster.pod_rules import Audience
from muster.cluster.pod_table import PodColumns, PodTable
from muster.cluster.state import ClusterState
from muster.testing.builders import make_cluster, make_node, make_pod

WEB = Audience(frozenset(("default",)), LabelSelector(match_labels={"app": "web"}))
Rows = tuple[tuple[Pod, ...], ...]


def count(columns: PodColumns, rows: int) -> list[int]:
    return columns.count_by_row(columns.mask_of(WEB, {}), rows).tolist()


def slow_count(rows: Rows) -> list[int]:
    return [sum(WEB.includes(pod, {}) for pod in pods) for pods in rows]


PODS = [make_pod(f"p{i}", uid=f"u{i}", labels={"app": "web"} if i % 2 else {"app": "db"}) for i in range(8)]


@given(steps=st.lists(st.lists(st.integers(-1, 2), min_size=8, max_size=8), min_size=1, max_size=6))
def test_it_follows_pods_that_come_go_and_move(steps: list[list[int]]) -> None:
    """A step says for each of eight pods on which of three rows it is, or on none."""
    table = PodTable()
    before: Rows = ((), (), ())
    table.follow([], before, 1)
    assert count(table.columns_of(before, 1), 3) == [0, 0, 0]
    for moment, places in enumerate(steps, start=2):
        now: Rows = tuple(
            tuple(pod for pod, place in zip(PODS, places, strict=True) if place == row) for row in range(3)
        )
        frozen, expected = table.freeze(), slow_count(before)
        changed = [row for row in range(3) if before[row] != now[row]]
        table.follow(changed, now, moment)
        assert count(table.columns_of(now, moment), 3) == slow_count(now)
        assert count(table.columns_of(before, moment - 1), 3) == expected, "of an earlier moment"
        assert count(frozen, 3) == expected, "what was frozen stays"
        before = now


def test_many_pods_grow_the_table() -> None:
    pods = tuple(make_pod(f"p{i}", uid=f"u{i}", labels={"app": "web", "i": str(i)}) for i in range(1000))
    table = PodTable()
    table.load(((), pods))
    assert count(table.freeze(), 2) == [0, 1000]


def test_values_of_pods_long_gone_are_forgotten() -> None:
    table = PodTable()
    rows: Rows = ((),)
    table.follow([], rows, 1)
    _ = table.columns_of(rows, 1)
    own = Audience(frozenset(("default",)), LabelSelector(match_labels={"i": "x"}))
    for turn in range(600):
        now: Rows = ((make_pod("p", labels={"i": str(turn)}),),)
        table.follow([0], now, turn + 2)
        _ = table.freeze().mask_of(own, {})
    assert len(table.value_ids.get("i", ())) < 400


def test_pods_of_an_older_snapshot_are_told_as_they_were() -> None:
    cluster = make_cluster().nodes(1).running("a", "n1", labels={"app": "web"})
    old = cluster.snapshot()
    new = cluster.running("b", "n1", labels={"app": "web"}).snapshot()
    assert count(new.pod_columns, 1) == [2]
    assert count(old.pod_columns, 1) == [1]
    again = cluster.running("c", "n1", labels={"app": "web"}).snapshot()
    assert count(again.pod_columns, 1) == [3]


def test_rules_of_pods_are_kept_once_for_equal_pods() -> None:
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "z"}]}}
    cluster = make_cluster().nodes(2)
    for index in range(3):
        cluster.running(f"a{index}", "n1", affinity=affinity)
    columns = cluster.running("plain", "n2").snapshot().pod_columns
    assert len(columns.rules) == 1
    assert columns.sum_by_row(np.array([5]), 2).tolist() == [15, 0]


def test_columns_of_pods_follow_one_that_is_bound_as_assumed() -> None:
    state = ClusterState()
    for name in ("n1", "n2"):
        state.apply_node(make_node(name))
    pod = make_pod(cpu=1, version="1", labels={"app": "web"})
    state.assume(pod, "n1")
    assert len(state.snapshot().pod_columns.pods) == 1
    state.apply_pod(bound(pod, "n1", "2"))
    state.apply_pod(make_pod("q", node="n2"))
    assert [each and each.spec.node_name for each in state.snapshot().pod_columns.pods] == ["n1", "n2"]
    state.remove_pod(("default", "p"), "uid-p")
    state.snapshot()
