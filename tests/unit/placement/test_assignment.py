"""Members to rows: counting, one by one, and the slow twins of both."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.api.core import Pod
from muster.base.arrays import Bool, Float64, Int32, Int64
from muster.cluster.snapshot import Snapshot
from muster.framework.points import Capacity, Filter, NodeVerdict, Score
from muster.placement.assignment import UNPLACED, Assigner, assign_members, fill
from muster.placement.capacity import UNLIMITED
from muster.placement.memory import Judgment
from muster.placement.shapes import ShapeKey, shape_key
from muster.plugins.node_affinity import NodeAffinity
from muster.plugins.node_ports import NodePorts
from muster.plugins.node_resources import NodeResourcesFit
from muster.plugins.node_unschedulable import NodeUnschedulable
from muster.plugins.taints import TaintToleration
from muster.testing.builders import ClusterBuilder, make_cluster, make_gang, make_pod
from muster.testing.strategies import clusters, gangs


class Answer:
    def __init__(self, feasible: Bool) -> None:
        self.feasible = feasible


class Rules:
    """A judge made of real plugins; `forgetful` names all rows as changed, always."""

    def __init__(self, *plugins: object, forgetful: bool = False) -> None:
        self.plugins = plugins or (
            NodeUnschedulable(),
            TaintToleration(),
            NodeAffinity(),
            NodePorts(),
            NodeResourcesFit(),
        )
        self.forgetful = forgetful
        self.rows_asked = 0

    def filter(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> Answer:
        self.rows_asked += len(rows)
        masks = [p.filter(pod, snapshot, rows).feasible for p in self.plugins if isinstance(p, Filter)]
        return Answer(np.logical_and.reduce(masks))

    def score(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> Float64:
        total = np.zeros(len(rows))
        for plugin in self.plugins:
            if isinstance(plugin, Score):
                total += plugin.score(pod, snapshot, rows)
        return total

    def judge(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> Judgment:
        feasible = self.filter(pod, snapshot, rows).feasible
        score, fits = self.score(pod, snapshot, rows), self.capacity(pod, snapshot, rows)
        return Judgment(feasible, np.where(feasible, score, 0.0), np.where(feasible, fits, 0))

    def recall(self, pod: Pod, shape: ShapeKey, snapshot: Snapshot, rows: Int32) -> Judgment:
        return self.judge(pod, snapshot, rows)

    def rows_changed(self, placed: Pod, row: int, pod: Pod, snapshot: Snapshot) -> Int32 | None:
        if self.forgetful:
            return None
        rows = [p.rows_changed(placed, row, pod, snapshot) for p in self.plugins if isinstance(p, Filter)]
        return np.unique(np.concatenate([r for r in rows if r is not None])).astype(np.int32)

    def lay(
        self, pod: Pod, snapshot: Snapshot, rows: Int32, fits: Int64, score: Float64, count: int
    ) -> Int64:
        return fill(fits, score, count)

    def capacity(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> Int64:
        counts = [p.capacity(pod, snapshot, rows) for p in self.plugins if isinstance(p, Capacity)]
        counts = counts or [np.full(len(rows), UNLIMITED, dtype=np.int64)]
        return np.minimum.reduce(counts)


def run(snapshot: Snapshot, pods: Sequence[Pod], rules: Rules, *, count_alike: bool) -> list[int]:
    assigner = Assigner(snapshot.fork(), rules, snapshot.live_rows())
    shapes = [shape_key(pod) for pod in pods]
    return assign_members(pods, shapes, assigner, count_alike=count_alike).tolist()


def obvious(snapshot: Snapshot, pods: Sequence[Pod], rules: Rules) -> list[int]:
    """The slow twin: ask about every row for every member."""
    fork, found = snapshot.fork(), []
    for pod in pods:
        best, best_score = UNPLACED, -1.0
        for row in fork.live_rows().tolist():
            one = np.array([row], dtype=np.int32)
            if rules.filter(pod, fork, one).feasible[0]:
                score = float(rules.score(pod, fork, one)[0])
                if score > best_score:
                    best, best_score = row, score
        if best != UNPLACED:
            fork.place(pod, best)
        found.append(best)
    return found


class OnePerRack:
    """A rule whose answer changes on rows other than the one a member went to."""

    name = "OnePerRack"

    def filter(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> NodeVerdict:
        racks = snapshot.labels.column("rack").ids
        taken = {int(racks[row]) for row in snapshot.live_rows() if snapshot.pods_on(int(row))}
        return NodeVerdict(~np.isin(racks[rows], sorted(taken)))

    def rows_changed(self, placed: Pod, row: int, pod: Pod, snapshot: Snapshot) -> Int32 | None:
        racks = snapshot.labels.column("rack").ids
        return np.flatnonzero(racks == racks[row]).astype(np.int32)


PROFILES = {
    "packing": Rules,
    "spreading": lambda: Rules(NodeAffinity(), NodePorts(), NodeResourcesFit(strategy="least-allocated")),
    "one-per-rack": lambda: Rules(NodeResourcesFit(), OnePerRack()),
}


@pytest.mark.parametrize("profile", PROFILES)
@given(cluster=clusters(), pods=gangs())
def test_one_by_one_equals_asking_about_every_row_every_time(
    profile: str, cluster: ClusterBuilder, pods: tuple[Pod, ...]
) -> None:
    snapshot, rules = cluster.snapshot(), PROFILES[profile]()
    assert run(snapshot, pods, rules, count_alike=False) == obvious(snapshot, pods, rules)


rows_with_scores = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from([-1.0, 0.0, 1.0, 2.0])), min_size=0, max_size=8
)


@given(rows=rows_with_scores, count=st.integers(1, 9))
def test_like_members_fill_the_best_row_before_the_next_is_begun(
    rows: list[tuple[int, float]], count: int
) -> None:
    """The slow twin places one after the other."""
    fits = np.array([copies for copies, _ in rows], dtype=np.int64)
    score = np.array([score if copies else 0.0 for copies, score in rows], dtype=np.float64)
    best_first = sorted(range(len(rows)), key=lambda row: (-score[row], row))
    slow = [row for row in best_first for _ in range(int(fits[row]))][:count]
    assert fill(fits, score, count).tolist() == slow


def test_rows_that_a_plugin_names_are_asked_about_again() -> None:
    snapshot = make_cluster().rack(8, 8).rack(8).snapshot()
    rules = PROFILES["one-per-rack"]()
    assert run(snapshot, make_gang("g", 3, gpu=1), rules, count_alike=False) == [0, 2, UNPLACED]


def test_spreading_looks_at_each_score_again() -> None:
    snapshot = make_cluster().nodes(3, cpu=4).snapshot()
    rules = PROFILES["spreading"]()
    assert run(snapshot, make_gang("g", 5, cpu=1), rules, count_alike=False) == [0, 1, 2, 0, 1]


@given(cluster=clusters(), pods=gangs())
def test_a_judge_that_names_no_rows_gets_the_same_answer(
    cluster: ClusterBuilder, pods: tuple[Pod, ...]
) -> None:
    snapshot = cluster.snapshot()
    expected = run(snapshot, pods, Rules(), count_alike=False)
    assert run(snapshot, pods, Rules(forgetful=True), count_alike=False) == expected


@given(cluster=clusters(), pods=gangs(shapes_max=1))
def test_counting_places_as_many_as_one_by_one(cluster: ClusterBuilder, pods: tuple[Pod, ...]) -> None:
    snapshot = cluster.snapshot()
    counted = run(snapshot, pods, Rules(), count_alike=True)
    in_turn = run(snapshot, pods, Rules(), count_alike=False)
    assert counted.count(UNPLACED) == in_turn.count(UNPLACED)


@given(cluster=clusters(), pods=gangs())
def test_nobody_is_placed_where_it_does_not_fit(cluster: ClusterBuilder, pods: tuple[Pod, ...]) -> None:
    """Counting and single steps mixed: every prefix of the answer is feasible."""
    snapshot, rules = cluster.snapshot(), Rules()
    fork = snapshot.fork()
    for pod, row in zip(pods, run(snapshot, pods, rules, count_alike=True), strict=True):
        if row != UNPLACED:
            assert rules.filter(pod, fork, np.array([row], dtype=np.int32)).feasible[0]
            fork.place(pod, row)


def test_the_same_question_has_the_same_answer() -> None:
    snapshot = make_cluster().nodes(20, gpu=8).snapshot()
    pods = make_gang("g", 30, gpu=3)
    answers = {tuple(run(snapshot, pods, Rules(), count_alike=alike)) for alike in (True, False)}
    assert len(answers) == 1


def test_a_member_that_does_not_fit_does_not_stop_the_others() -> None:
    snapshot = make_cluster().node(cpu=2).snapshot()
    pods = (make_pod("a", cpu=1), make_pod("b", cpu=5), make_pod("c", cpu=1))
    assert run(snapshot, pods, Rules(), count_alike=True) == [0, UNPLACED, 0]


def test_a_preferred_row_is_taken_if_it_fits() -> None:
    snapshot = make_cluster().nodes(3, cpu=2).node(cpu=1).snapshot()
    assigner = Assigner(snapshot.fork(), Rules(), snapshot.live_rows())
    pod = make_pod(cpu=2)
    assert assigner.assign_one(pod, shape_key(pod), prefer=2) == 2
    assert assigner.assign_one(pod, shape_key(pod), prefer=3) == 0
    assert assigner.assign_one(pod, shape_key(pod), prefer=99) == 1
    assert assigner.assign_one(pod, shape_key(pod)) is None


def test_only_rows_of_the_placement_are_used() -> None:
    snapshot = make_cluster().nodes(4, cpu=1).snapshot()
    assigner = Assigner(snapshot.fork(), Rules(), np.array([1, 3], dtype=np.int32))
    pods = make_gang("g", 3, cpu=1)
    rows = assign_members(pods, [shape_key(pod) for pod in pods], assigner, count_alike=True)
    assert rows.tolist() == [1, 3, UNPLACED]


def test_an_assignment_asks_again_about_its_row_alone() -> None:
    snapshot = make_cluster().nodes(100, cpu=1).snapshot()
    rules = Rules()
    run(snapshot, make_gang("g", 10, cpu=1), rules, count_alike=False)
    assert rules.rows_asked == 100 + 9


def test_nobody_to_place_is_no_rows() -> None:
    snapshot = make_cluster().node().snapshot()
    assert run(snapshot, (), Rules(), count_alike=True) == []


@given(
    fits=st.lists(st.integers(0, 4), min_size=1, max_size=6),
    count=st.integers(0, 20),
    data=st.data(),
)
def test_filling_takes_the_best_rows_first_and_never_more_than_fit(
    fits: list[int], count: int, data: st.DataObject
) -> None:
    score = data.draw(st.lists(st.integers(0, 3), min_size=len(fits), max_size=len(fits)))
    order = sorted(range(len(fits)), key=lambda i: (-score[i], i))
    expected = [row for row in order for _ in range(fits[row])][:count]
    assert fill(np.array(fits), np.array(score, dtype=np.float64), count).tolist() == expected


@pytest.mark.parametrize("members", [1, 8])
def test_renaming_nodes_renames_the_answer(members: int) -> None:
    first = make_cluster().node("a", gpu=4).node("b", gpu=8).snapshot()
    second = make_cluster().node("z", gpu=4).node("y", gpu=8).snapshot()
    pods = make_gang("g", members, gpu=1)
    rows = [run(snapshot, pods, Rules(), count_alike=True) for snapshot in (first, second)]
    assert rows[0] == rows[1]


@given(cluster=clusters(), pods=gangs(shapes_max=1))
def test_one_more_node_never_costs_a_place(cluster: ClusterBuilder, pods: tuple[Pod, ...]) -> None:
    before = run(cluster.snapshot(), pods, Rules(), count_alike=True).count(UNPLACED)
    more = run(cluster.node("further", gpu=2).snapshot(), pods, Rules(), count_alike=True)
    assert more.count(UNPLACED) <= before
