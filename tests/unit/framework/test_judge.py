"""The judge of a profile: what it remembers is what it would say if asked."""

from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.api.core import Pod
from muster.assembly.profiles import BUILT_IN, DEFAULT_PLUGINS
from muster.base.arrays import Float64, Int32
from muster.cluster.snapshot import Snapshot
from muster.cluster.state import ClusterState
from muster.framework.judge import NodeJudge
from muster.framework.points import Capacity, Filter, NodeVerdict, Score
from muster.placement.capacity import UNLIMITED
from muster.placement.memory import Judgment
from muster.placement.shapes import shape_key
from muster.plugins.node_resources import NodeResourcesFit
from muster.testing.builders import make_cluster, make_node, make_pod
from muster.testing.strategies import nodes, pods

NAMES = ("n1", "n2", "n3", "n4")
APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "rack", "labelSelector": {"matchLabels": {"app": "lone"}}}
        ]
    }
}
EVENLY = [
    {
        "maxSkew": 1,
        "topologyKey": "rack",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": "even"}},
    }
]
SPECIAL = (
    make_pod("lone", cpu=1, labels={"app": "lone"}, affinity=APART),
    make_pod("even", cpu=1, labels={"app": "even"}, topology_spread_constraints=EVENLY),
)


def talkative(plugin: Any) -> Any:
    """The plugin as one that is asked although it has nothing to say: all of it but `is_silent`."""
    return type(f"Talkative{type(plugin).__name__}", (type(plugin),), {"is_silent": None})()


def default_judge(*, asks_all: bool = False) -> NodeJudge:
    plugins = [(BUILT_IN[choice.name](), choice.weight) for choice in DEFAULT_PLUGINS]
    if asks_all:
        plugins = [(talkative(plugin), weight) for plugin, weight in plugins]
    return NodeJudge(
        [plugin for plugin, _ in plugins if isinstance(plugin, Filter)],
        [plugin for plugin, _ in plugins if isinstance(plugin, Capacity)],
        [(plugin, weight) for plugin, weight in plugins if isinstance(plugin, Score)],
    )


def said(judgment: Judgment) -> list[list[object]]:
    return [array.tolist() for array in judgment]


def change(state: ClusterState, data: st.DataObject, step: int) -> None:
    """One thing that may happen to a cluster."""
    name = data.draw(st.sampled_from(NAMES))
    match data.draw(st.sampled_from(["node", "node", "no node", "pod", "pod", "pod", "no pod", "assume"])):
        case "node":
            state.apply_node(data.draw(nodes(name)))
        case "no node":
            state.remove_node(name)
        case "pod":
            state.apply_pod(data.draw(pods(f"p{step}", node=name)))
        case "no pod":
            state.remove_pod(("default", f"p{data.draw(st.integers(0, step))}"), "")
        case "assume":
            state.assume(make_pod(f"a{step}", cpu=1, labels={"app": "even"}), name)


@settings(max_examples=60)
@given(data=st.data())
def test_after_any_changes_what_is_remembered_is_what_a_new_judge_says(data: st.DataObject) -> None:
    """The slow twin is a judge that has never been asked before."""
    state, judge = ClusterState(), default_judge()
    asked = [*(data.draw(pods(f"asked{i}")) for i in range(2)), *SPECIAL]
    for step in range(data.draw(st.integers(1, 6))):
        for _ in range(data.draw(st.integers(0, 3))):
            change(state, data, step)
        snapshot = state.snapshot()
        fork = snapshot.fork()
        for row in data.draw(st.lists(st.sampled_from(NAMES), max_size=2)):
            if row in snapshot.row_of_node:
                fork.place(data.draw(st.sampled_from(asked)), snapshot.row_of_node[row])
        for pod in asked:
            for view in (snapshot, fork):
                rows = view.live_rows()[data.draw(st.integers(0, 1)) :]
                recalled = judge.recall(pod, shape_key(pod), view, rows)
                assert said(recalled) == said(default_judge().judge(pod, view, rows))


@given(data=st.data())
def test_who_is_not_asked_would_have_made_no_difference(data: st.DataObject) -> None:
    """The slow twin asks everybody: what is said is the same, but for one number more on every score."""
    state = ClusterState()
    for name, rack in zip(NAMES, ("r1", "r1", "r2", "r3"), strict=True):
        state.apply_node(make_node(name, labels={"rack": rack}))
        for like in data.draw(st.lists(st.sampled_from(SPECIAL), max_size=2)):
            state.assume(make_pod(f"{name}-like", labels=like.metadata.labels), name)
    for step in range(data.draw(st.integers(0, 2))):
        change(state, data, step)
    snapshot, pod = state.snapshot(), data.draw(st.one_of(pods(), st.sampled_from(SPECIAL)))
    rows = snapshot.live_rows()
    quiet = default_judge().judge(pod, snapshot, rows)
    asked = default_judge(asks_all=True).judge(pod, snapshot, rows)
    assert said(quiet)[::2] == said(asked)[::2]
    more = (asked.score - quiet.score)[asked.feasible]
    assert more == pytest.approx(more[:1].repeat(len(more)))


@given(data=st.data())
def test_a_judgment_is_what_the_plugins_say_one_by_one(data: st.DataObject) -> None:
    state = ClusterState()
    for step in range(data.draw(st.integers(1, 5))):
        change(state, data, step)
    snapshot, pod, judge = state.snapshot(), data.draw(pods()), default_judge()
    rows = snapshot.live_rows()
    plugins = [(BUILT_IN[choice.name](), choice.weight) for choice in DEFAULT_PLUGINS]
    silent = judge.silent(pod, snapshot)
    judgment = judge.judge(pod, snapshot, rows)
    for index in range(len(rows)):
        one = rows[index : index + 1]
        may = all(p.filter(pod, snapshot, one).feasible[0] for p, _ in plugins if isinstance(p, Filter))
        fits = min(int(p.capacity(pod, snapshot, one)[0]) for p, _ in plugins if isinstance(p, Capacity))
        score = sum(
            weight * float(plugin.score(pod, snapshot, one)[0])
            for plugin, weight in plugins
            if isinstance(plugin, Score) and plugin.name not in silent
        )
        assert judgment.feasible[index] == may
        assert judgment.fits[index] == (fits if may else 0)
        assert judgment.score[index] == pytest.approx(score if may else 0.0)


class Counted:
    """A filter that counts how many rows it has been asked about."""

    name: ClassVar[str] = "Counted"
    judges_row_alone = True

    def __init__(self) -> None:
        self.rows_asked = 0

    def filter(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> NodeVerdict:
        self.rows_asked += len(rows)
        return NodeVerdict(np.ones(len(rows), dtype=np.bool_))

    def rows_changed(self, placed: Pod, row: int, pod: Pod, snapshot: Snapshot) -> Int32 | None:
        return np.array([row], dtype=np.int32)

    def score(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> Float64:
        return np.zeros(len(rows))


def test_only_rows_that_changed_are_asked_about_again() -> None:
    cluster, plugin, pod = make_cluster().nodes(10), Counted(), make_pod()
    judge = NodeJudge([plugin], [], [])
    for _ in range(3):
        snapshot = cluster.snapshot()
        judge.recall(pod, shape_key(pod), snapshot, snapshot.live_rows())
    cluster.running("p", "n4")
    snapshot = cluster.snapshot()
    judge.recall(pod, shape_key(pod), snapshot, snapshot.live_rows())
    assert plugin.rows_asked == 10 + 1


class Wide(Counted):
    judges_row_alone = False


def test_who_looks_beyond_a_row_is_asked_every_time() -> None:
    snapshot, plugin, pod = make_cluster().nodes(10).snapshot(), Wide(), make_pod()
    judge = NodeJudge([plugin], [], [])
    for _ in range(3):
        judge.recall(pod, shape_key(pod), snapshot, snapshot.live_rows())
    assert plugin.rows_asked == 30


def test_without_counting_plugins_a_row_takes_any_number() -> None:
    snapshot = make_cluster().nodes(2).snapshot()
    judgment = NodeJudge([Counted()], [], []).judge(make_pod(), snapshot, snapshot.live_rows())
    assert judgment.fits.tolist() == [UNLIMITED, UNLIMITED]


def test_what_was_handed_out_cannot_be_written() -> None:
    snapshot, pod = make_cluster().nodes(3).snapshot(), make_pod()
    judge = NodeJudge([Counted()], [], [])
    for array in judge.recall(pod, shape_key(pod), snapshot, snapshot.live_rows()):
        with pytest.raises(ValueError, match="read-only"):
            array[:] = 0


def test_a_filter_that_could_count_is_asked_where_nobody_is_to_count() -> None:
    """As in a search for victims, where members are placed one by one."""
    snapshot = make_cluster().node(cpu=1).node(cpu=8).snapshot()
    judge = NodeJudge([NodeResourcesFit()], (), [])
    assert judge.judge(make_pod(cpu=4), snapshot, snapshot.live_rows()).feasible.tolist() == [False, True]
