"""The runner asks every plugin of a point, in order, and names who said no or raised."""

from typing import Any, ClassVar

import numpy as np
import pytest

from muster.api.core import Pod
from muster.base.arrays import Float64, Int32, Int64
from muster.base.errors import ConfigError, PluginError
from muster.cluster.snapshot import Snapshot
from muster.framework.events import Change, ClusterEvent, Hint, HintRule, Rejected
from muster.framework.groups import Group, Subgroup, UnsupportedField
from muster.framework.points import Entity, NodeReason, NodeVerdict
from muster.framework.runner import Runner, Weighted, zero_stopwatch
from muster.framework.status import Status, Verdict
from muster.plugins.node_name import NodeName
from muster.plugins.node_resources import NodeResourcesFit
from muster.plugins.priority_sort import PrioritySort
from muster.testing.builders import make_cluster, make_group, make_pod


class Gate:
    """Serves PreEnqueue and PlacementFeasible with what it is given."""

    def __init__(self, name: str, status: Status) -> None:
        self.name = name  # type: ignore[misc]
        self.status = status

    name: ClassVar[str] = ""

    def pre_enqueue(
        self,
        group: Group | None,
        *,
        waiting: tuple[Pod, ...],
        placed: int,
        children: tuple[Subgroup, ...] = (),
    ) -> Status:
        return self.status

    def placement_feasible(self, group: Group, *, assigned: int, remaining: int) -> Status:
        return self.status


class OnlyRow:
    """A filter that lets one row pass, and the score of that many points."""

    reads_metadata: ClassVar[bool] = False
    name: ClassVar[str] = ""

    def __init__(self, name: str, row: int, changed: tuple[int, ...] | None = ()) -> None:
        self.name = name  # type: ignore[misc]
        self.row = row
        self.changed = changed

    def filter(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> NodeVerdict:
        feasible = rows == self.row
        return NodeVerdict(feasible, (NodeReason(~feasible, f"not row {self.row}"),))

    def rows_changed(self, placed: Pod, row: int, pod: Pod, snapshot: Snapshot) -> Int32 | None:
        return None if self.changed is None else np.array(self.changed, dtype=np.int32)

    def score(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> Float64:
        return np.full(len(rows), float(self.row))

    def capacity(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> Int64:
        return np.where(rows == self.row, self.row, 0).astype(np.int64)


class Roomy(OnlyRow):
    """Takes so many copies everywhere."""

    def capacity(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> Int64:
        return np.full(len(rows), self.row, dtype=np.int64)


class Broken:
    name: ClassVar[str] = "Broken"

    def unsupported(self, pod: Pod) -> tuple[UnsupportedField, ...]:
        raise KeyError("zone")


def make_runner(*plugins: Any) -> Runner:
    return Runner([Weighted(plugin) for plugin in (PrioritySort(), *plugins)])


SNAPSHOT = make_cluster().nodes(3).snapshot()
ROWS = SNAPSHOT.live_rows()
POD = make_pod("p")


def test_exactly_one_plugin_sorts_the_queue() -> None:
    with pytest.raises(ConfigError, match="got none"):
        Runner([])
    with pytest.raises(ConfigError, match="given twice"):
        make_runner(PrioritySort())


def test_the_first_no_of_pre_enqueue_is_told_with_its_plugin() -> None:
    runner = make_runner(
        Gate("A", Status.success()), Gate("B", Status.unresolvable("b")), Gate("C", Status.unresolvable("c"))
    )
    status = runner.pre_enqueue("g", make_group("g"), waiting=(), placed=0)
    assert (status.plugin, status.message) == ("B", "b")


def test_the_most_severe_verdict_on_a_placement_counts() -> None:
    runner = make_runner(
        Gate("A", Status.wait("a")), Gate("B", Status.unschedulable("b")), Gate("C", Status.wait("c"))
    )
    status = runner.placement_feasible(make_group("g", 2), assigned=0, remaining=1)
    assert (status.verdict, status.plugin) == (Verdict.UNSCHEDULABLE, "B")


def test_a_row_is_feasible_when_all_filters_say_so_and_every_reason_is_kept() -> None:
    filtered = make_runner(OnlyRow("A", 1), OnlyRow("B", 2)).filter(POD, SNAPSHOT, ROWS)
    assert filtered.feasible.tolist() == [False, False, False]
    assert [(named.plugin, named.reason.text) for named in filtered.reasons] == [
        ("A", "not row 1"),
        ("B", "not row 2"),
    ]


def test_scores_are_added_by_weight_on_feasible_rows() -> None:
    plugins = [Weighted(PrioritySort()), Weighted(OnlyRow("A", 1), 2.0), Weighted(OnlyRow("B", 1), 0.5)]
    judgment = Runner(plugins).judge(POD, SNAPSHOT, ROWS)
    assert judgment.feasible.tolist() == [False, True, False]
    assert judgment.score.tolist() == [0.0, 2.5, 0.0]
    assert judgment.fits.tolist() == [0, 1, 0]


def test_changed_rows_of_all_filters_are_joined() -> None:
    runner = make_runner(OnlyRow("A", 1, (2,)), OnlyRow("B", 1, (0, 2)))
    changed = runner.rows_changed(POD, 0, POD, SNAPSHOT)
    assert changed is not None
    assert changed.tolist() == [0, 2]
    assert make_runner(OnlyRow("A", 1, None)).rows_changed(POD, 0, POD, SNAPSHOT) is None


def test_the_smallest_capacity_counts() -> None:
    counts = make_runner(Roomy("A", 5), Roomy("B", 3)).capacity(POD, SNAPSHOT, ROWS)
    assert counts is not None
    assert counts.tolist() == [3, 3, 3]
    assert make_runner().capacity(POD, SNAPSHOT, ROWS) is None


class Moody(OnlyRow):
    """Changes its mind with what is placed, and cannot count."""

    capacity = None  # type: ignore[assignment]


def test_copies_are_counted_only_if_nobody_else_changes_his_mind() -> None:
    assert make_runner(NodeResourcesFit(), NodeName()).can_count(POD, SNAPSHOT, ROWS)
    assert not make_runner(NodeName()).can_count(POD, SNAPSHOT, ROWS)
    assert not make_runner(NodeResourcesFit(), Moody("M", 1, (0,))).can_count(POD, SNAPSHOT, ROWS)


def test_usable_rows_are_those_that_no_placing_opens() -> None:
    usable = make_runner(NodeResourcesFit(), OnlyRow("A", 1)).usable(make_pod("big", cpu=99), SNAPSHOT)
    assert usable.tolist() == [False, True, False]


def test_labels_are_part_of_a_shape_when_some_plugin_reads_them() -> None:
    assert not make_runner(NodeResourcesFit()).reads_metadata

    class Reader(OnlyRow):
        reads_metadata = True

    assert make_runner(Reader("R", 1)).reads_metadata


def test_a_plugin_that_raises_is_named_with_point_and_entity() -> None:
    with pytest.raises(PluginError, match="'Broken' raised at unsupported for p: KeyError: 'zone'"):
        make_runner(Broken()).unsupported(POD)


def test_a_name_that_is_no_plugin_has_no_hint_rules() -> None:
    runner = make_runner(NodeResourcesFit())
    assert runner.rules_of("NodeResourcesFit")
    assert runner.rules_of("Nobody") == ()


def test_the_simulators_stopwatch_stands_still() -> None:
    assert zero_stopwatch() == 0.0


class Confused:
    """Raises wherever nobody would expect it."""

    name: ClassVar[str] = "Confused"

    def sort_key(self, entity: Entity) -> tuple[float, ...]:
        raise ValueError("which way is up?")

    def hint_rules(self) -> tuple[HintRule, ...]:
        def helps(rejected: Rejected, event: ClusterEvent) -> Hint:
            raise ValueError("no idea")

        return (HintRule(Change.POD_FREED, helps),)

    def filter(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> NodeVerdict:
        return NodeVerdict(np.ones(len(rows) + 1, dtype=np.bool_))

    def rows_changed(self, placed: Pod, row: int, pod: Pod, snapshot: Snapshot) -> Int32 | None:
        return None


class Odd:
    """A filter that changes its mind with assignments and cannot state how."""

    name: ClassVar[str] = "Odd"
    changes = True

    def filter(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> NodeVerdict:
        even = rows % 2 == 0
        return NodeVerdict(even, (NodeReason(~even, "odd"),))

    def rows_changed(self, placed: Pod, row: int, pod: Pod, snapshot: Snapshot) -> Int32 | None:
        return np.array([row] if self.changes else [], dtype=np.int32)


def test_a_filter_that_changes_and_cannot_state_itself_is_left_out_of_the_packing() -> None:
    runner = Runner([Weighted(PrioritySort()), Weighted(NodeResourcesFit()), Weighted(Odd())])
    packing, is_exact, _ = runner.packing([POD], SNAPSHOT, ROWS)
    assert not is_exact
    assert packing.feasible.all()


def test_a_filter_that_never_changes_is_stated_by_its_mask() -> None:
    odd = Odd()
    odd.changes = False
    runner = Runner([Weighted(PrioritySort()), Weighted(NodeResourcesFit()), Weighted(odd)])
    packing, is_exact, _ = runner.packing([POD], SNAPSHOT, ROWS)
    assert is_exact
    assert packing.feasible.tolist() == [(ROWS % 2 == 0).tolist()]
    assert packing.room.shape[0] == len(ROWS)


def test_a_filter_that_cannot_state_itself_narrows_only_if_it_says_so() -> None:
    class Narrow(Odd):
        only_narrows = True

    for odd, narrows in ((Odd(), False), (Narrow(), True)):
        runner = Runner([Weighted(PrioritySort()), Weighted(NodeResourcesFit()), Weighted(odd)])
        assert runner.packing([POD], SNAPSHOT, ROWS).narrows == narrows


def test_a_hint_that_raises_counts_as_one_that_helps() -> None:
    (rule,) = Runner([Weighted(Confused())]).rules_of("Confused")
    assert rule.helps is not None
    assert rule.helps(Rejected(None, None, ()), ClusterEvent(Change.POD_FREED)) is Hint.QUEUE


def test_an_order_that_raises_falls_back_to_priority_and_turn() -> None:
    entity = Entity("default/g", priority=5, queued_s=2.0, sequence=3)
    assert Runner([Weighted(Confused())]).sort_key(entity) == (-5, 2.0, 3)


def test_an_answer_of_the_wrong_shape_is_the_plugins_fault() -> None:
    with pytest.raises(PluginError, match="'Confused' raised at filter"):
        Runner([Weighted(Confused())]).filter(POD, SNAPSHOT, ROWS)


class Hears(OnlyRow):
    """Minds the pods of one name alone, and is asked about others only if it says so."""

    def __init__(self, minds: bool) -> None:
        super().__init__("Hears", 0)
        self.minds = minds
        self.asked: list[str] = []

    capacity = None  # type: ignore[assignment]

    def is_silent(self, pod: Pod, snapshot: Snapshot) -> bool:
        return not self.minds

    def rows_changed(self, placed: Pod, row: int, pod: Pod, snapshot: Snapshot) -> Int32 | None:
        self.asked.append(placed.metadata.name)
        return None if placed.metadata.name == "loud" else np.empty(0, dtype=np.int32)


@pytest.mark.parametrize(
    ("minds", "others", "expected", "asked"),
    [
        (True, ["a", "loud", "b"], False, ["a", "loud"]),
        (True, ["a", "b"], True, ["a", "b"]),
        (False, ["a", "loud"], True, []),
    ],
)
def test_pods_are_asked_about_one_by_one_only_where_some_may_matter(
    minds: bool, others: list[str], expected: bool, asked: list[str]
) -> None:
    plugin = Hears(minds)
    runner = make_runner(plugin)
    assert runner.counts_only([make_pod(name) for name in others], POD, SNAPSHOT) is expected
    assert plugin.asked == asked
