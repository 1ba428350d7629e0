"""check_plugin: every promise, broken on purpose once."""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import pytest
from msgspec.structs import replace

from muster.api.core import Pod
from muster.base.arrays import Bool, Float64, Int32, Int64
from muster.cluster.snapshot import Snapshot
from muster.framework.events import Change, HintRule
from muster.framework.groups import Group, Subgroup, UnsupportedField
from muster.framework.points import Entity, NodeReason, NodeVerdict
from muster.framework.status import Status
from muster.placement.packing import Packing, no_rule
from muster.testing.builders import make_cluster, make_pod
from muster.testing.conformance import check_plugin

CROWDED = make_cluster().nodes(3).running("a", "n1").running("b", "n1").snapshot()


class Sound:
    """A filter that counts, scores and keeps every promise: two pods of its kind at most on a node."""

    name: ClassVar[str] = "Sound"
    reads_metadata: ClassVar[bool] = False

    def few(self, snapshot: Snapshot, rows: Int32) -> Int64:
        return np.array([2 - len(snapshot.pods_on(row)) for row in rows.tolist()], dtype=np.int64).clip(0)

    def filter(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> NodeVerdict:
        feasible = self.few(snapshot, rows) > 0
        return NodeVerdict(feasible, () if feasible.all() else (NodeReason(~feasible, "two already"),))

    def rows_changed(self, placed: Pod, row: int, pod: Pod, snapshot: Snapshot) -> Int32 | None:
        return np.array([row], dtype=np.int32)

    def capacity(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> Int64:
        return self.few(snapshot, rows)

    def packing(self, pods: Sequence[Pod], snapshot: Snapshot, rows: Int32) -> Packing | None:
        room = self.few(snapshot, rows)[:, np.newaxis]
        need = np.ones((len(pods), 1), dtype=np.int64)
        return replace(no_rule(len(pods), len(rows)), room=room, need=need)

    def score(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> Float64:
        return 50.0 * self.few(snapshot, rows)

    def hint_rules(self) -> tuple[HintRule, ...]:
        return (HintRule(Change.POD_FREED),)


def test_a_sound_plugin_passes() -> None:
    check_plugin(Sound(), pods=[make_pod("mine", labels={"a": "b"})], snapshots=[CROWDED])


class Nameless(Sound):
    name: ClassVar[str] = "two words"


class Hintless(Sound):
    def hint_rules(self) -> tuple[HintRule, ...]:
        return ()


class TwiceHinted(Sound):
    def hint_rules(self) -> tuple[HintRule, ...]:
        return (HintRule(Change.POD_FREED), HintRule(Change.POD_FREED))


class Unexplained(Sound):
    def filter(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> NodeVerdict:
        return NodeVerdict(super().filter(pod, snapshot, rows).feasible)


class Contradicting(Sound):
    def filter(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> NodeVerdict:
        everywhere: Bool = np.ones(len(rows), dtype=np.bool_)
        return NodeVerdict(everywhere, (NodeReason(everywhere, "no"),))


class Textless(Sound):
    def filter(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> NodeVerdict:
        verdict = super().filter(pod, snapshot, rows)
        return NodeVerdict(verdict.feasible, tuple(NodeReason(r.rejected, "") for r in verdict.reasons))


class WrongShape(Sound):
    def filter(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> NodeVerdict:
        return NodeVerdict(np.ones(len(snapshot.node_names) + 1, dtype=np.bool_))


class Relative(Sound):
    """Judges a row by which others are asked about."""

    def filter(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> NodeVerdict:
        feasible = np.arange(len(rows)) < 2
        return NodeVerdict(feasible, (NodeReason(~feasible, "only the first two"),))


class NameReader(Sound):
    def filter(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> NodeVerdict:
        feasible = np.full(len(rows), pod.metadata.name != "twin")
        return NodeVerdict(feasible, (NodeReason(~feasible, "a twin"),))


class LabelReader(Sound):
    def filter(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> NodeVerdict:
        feasible = np.full(len(rows), not pod.metadata.labels)
        return NodeVerdict(feasible, (NodeReason(~feasible, "has labels"),))


class Forgetful(Sound):
    def rows_changed(self, placed: Pod, row: int, pod: Pod, snapshot: Snapshot) -> Int32 | None:
        return np.array([], dtype=np.int32)


class Overcounting(Sound):
    def capacity(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> Int64:
        return super().capacity(pod, snapshot, rows) + 1


class Undercounting(Sound):
    def capacity(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> Int64:
        return np.zeros(len(rows), dtype=np.int64)


class Overpacking(Sound):
    def packing(self, pods: Sequence[Pod], snapshot: Snapshot, rows: Int32) -> Packing | None:
        return no_rule(len(pods), len(rows))


class Underpacking(Sound):
    def packing(self, pods: Sequence[Pod], snapshot: Snapshot, rows: Int32) -> Packing | None:
        alone = ~np.eye(len(pods), dtype=np.bool_)
        return replace(no_rule(len(pods), len(rows)), conflict=alone)


class OneSided(Sound):
    def packing(self, pods: Sequence[Pod], snapshot: Snapshot, rows: Int32) -> Packing | None:
        return replace(no_rule(len(pods), len(rows)), conflict=np.array([[False, True], [False, False]]))


class Modest(Sound):
    def packing(self, pods: Sequence[Pod], snapshot: Snapshot, rows: Int32) -> Packing | None:
        return None


def test_a_rule_that_cannot_be_stated_is_no_broken_promise() -> None:
    check_plugin(Modest(), snapshots=[CROWDED])


class TooProud(Sound):
    def score(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> Float64:
        return np.full(len(rows), 101.0)


class NotANumber(Sound):
    def score(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> Float64:
        return np.full(len(rows), np.nan)


class Comparing(Sound):
    """Scores a row by which others are asked about."""

    def score(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> Float64:
        return np.arange(len(rows), dtype=np.float64)


class Changeable(Sound):
    calls: ClassVar[int] = 0

    def score(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> Float64:
        type(self).calls += 1
        return np.full(len(rows), float(type(self).calls % 3 == 0))


class Showing(Sound):
    def example(self, pod: Pod, snapshot: Snapshot, row: int, text: str) -> str:
        return f"{len(snapshot.pods_on(row))} are there"


def test_a_plugin_that_shows_examples_passes() -> None:
    check_plugin(Showing(), snapshots=[CROWDED])


class Speechless(Sound):
    def example(self, pod: Pod, snapshot: Snapshot, row: int, text: str) -> str:
        return ""


class Garbled(Sound):
    def example(self, pod: Pod, snapshot: Snapshot, row: int, text: str) -> str:
        return "one\ntwo"


class Meddling(Sound):
    def score(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> Float64:
        snapshot._requested = snapshot.requested + 1
        return super().score(pod, snapshot, rows)


@pytest.mark.parametrize(
    ("plugin", "promise"),
    [
        (Nameless, "is a class attribute, one word"),
        (Hintless, "names at least one event"),
        (TwiceHinted, "has one rule for a change"),
        (Unexplained, "every infeasible row has a reason"),
        (Contradicting, "no reason against a feasible row"),
        (Textless, "a reason has a text"),
        (WrongShape, r"feasible is \[K\] of booleans"),
        (Relative, "a row's answer is its own"),
        (NameReader, "pods of one shape get one answer"),
        (LabelReader, "reads no labels or annotations"),
        (Forgetful, "names every row whose answer changes"),
        (Overcounting, "agrees with filter, copy by copy"),
        (Undercounting, "agrees with filter, copy by copy"),
        (Overpacking, "packing: agrees with filter, member by member"),
        (Underpacking, "packing: agrees with filter, member by member"),
        (OneSided, "excludes both ways"),
        (TooProud, "is between 0 and 100"),
        (NotANumber, "is between 0 and 100"),
        (Comparing, "a row's score is its own"),
        (Changeable, "is the same again"),
        (Meddling, "writes nothing"),
        (Speechless, "shows every reason it gives"),
        (Garbled, "is one line"),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_a_broken_promise_is_named(plugin: type[Any], promise: str) -> None:
    with pytest.raises(AssertionError, match=promise):
        check_plugin(plugin(), snapshots=[CROWDED])


class Useless:
    name: ClassVar[str] = "Useless"


class Silent:
    """Rejects without saying which event would help."""

    name: ClassVar[str] = "Silent"

    def unsupported(self, pod: Pod) -> tuple[UnsupportedField, ...]:
        return ()


class Vague:
    name: ClassVar[str] = "Vague"

    def unsupported(self, pod: Pod) -> tuple[UnsupportedField, ...]:
        return (UnsupportedField("", "no"),)

    def hint_rules(self) -> tuple[HintRule, ...]:
        return (HintRule(Change.POD_UPDATED),)


class Curt:
    name: ClassVar[str] = "Curt"

    def pre_enqueue(
        self,
        group: Group | None,
        *,
        waiting: tuple[Pod, ...],
        placed: int,
        children: tuple[Subgroup, ...] = (),
    ) -> Status:
        return Status.unschedulable("")

    def hint_rules(self) -> tuple[HintRule, ...]:
        return (HintRule(Change.POD_ADDED),)


class CurtLater:
    name: ClassVar[str] = "CurtLater"

    def placement_feasible(self, group: Group, *, assigned: int, remaining: int) -> Status:
        return Status.wait("")

    def hint_rules(self) -> tuple[HintRule, ...]:
        return (HintRule(Change.POD_ADDED),)


class Careless:
    name: ClassVar[str] = "Careless"

    def sort_key(self, entity: Entity) -> tuple[float, ...]:
        return (-entity.priority,)


@pytest.mark.parametrize(
    ("plugin", "promise"),
    [
        (Useless, "serves at least one extension point"),
        (Silent, "who rejects says which events can help"),
        (Vague, "names the field as the user wrote it"),
        (Curt, "a no has a message"),
        (CurtLater, "a no has a message"),
        (Careless, "is total"),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_a_broken_promise_of_the_other_points_is_named(plugin: type[Any], promise: str) -> None:
    with pytest.raises(AssertionError, match=promise):
        check_plugin(plugin())


class Neighbourly(Sound):
    """Says that it judges a row alone, and looks at who is on the others."""

    judges_row_alone: ClassVar[bool] = True

    def score(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> Float64:
        taken = sum(len(snapshot.pods_on(row)) for row in snapshot.live_rows().tolist())
        return np.full(len(rows), min(100.0, float(taken)))


class Comparing(Sound):
    """Says that it judges a row alone, and looks at what the other nodes are like."""

    judges_row_alone: ClassVar[bool] = True

    def score(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> Float64:
        return np.full(len(rows), float(snapshot.unschedulable.sum()))


@pytest.mark.parametrize(
    ("plugin", "promise"),
    [(Neighbourly(), "pods on other nodes"), (Comparing(), "what other nodes are like")],
)
def test_who_says_that_it_judges_a_row_alone_must(plugin: Sound, promise: str) -> None:
    with pytest.raises(AssertionError, match=promise):
        check_plugin(plugin, snapshots=[CROWDED])


class Mumbling:
    """Says that it has nothing to say, and prefers one node all the same."""

    name: ClassVar[str] = "Mumbling"
    reads_metadata: ClassVar[bool] = False

    def is_silent(self, pod: Pod, snapshot: Snapshot) -> bool:
        return True

    def filter(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> NodeVerdict:
        return NodeVerdict(np.ones(len(rows), dtype=np.bool_))

    def rows_changed(self, placed: Pod, row: int, pod: Pod, snapshot: Snapshot) -> Int32 | None:
        return np.empty(0, dtype=np.int32)

    def score(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> Float64:
        return np.where(rows == 0, 100.0, 0.0)

    def hint_rules(self) -> tuple[HintRule, ...]:
        return (HintRule(Change.NODE_ADDED),)


class Refusing(Mumbling):
    """Says that it has nothing to say, and refuses a node."""

    def filter(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> NodeVerdict:
        refused = rows == 0
        return NodeVerdict(~refused, (NodeReason(refused, "the first"),) if refused.any() else ())


class Fickle(Mumbling):
    """Has nothing to say until a pod is placed."""

    def is_silent(self, pod: Pod, snapshot: Snapshot) -> bool:
        return not snapshot.moves

    def score(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> Float64:
        return np.zeros(len(rows))


@pytest.mark.parametrize(
    ("plugin", "promise"),
    [
        (Mumbling(), "scores all rows alike"),
        (Refusing(), "refuses no row"),
        (Fickle(), "holds when copies are placed"),
    ],
)
def test_who_says_that_it_has_nothing_to_say_must_not(plugin: Mumbling, promise: str) -> None:
    with pytest.raises(AssertionError, match=promise):
        check_plugin(plugin, snapshots=[CROWDED])


def test_who_judges_a_row_alone_may_say_so() -> None:
    class Alone(Sound):
        judges_row_alone: ClassVar[bool] = True

    check_plugin(Alone(), snapshots=[CROWDED])


def test_who_says_that_it_reads_no_pods_may_not_score_by_them() -> None:
    class Sociable:
        name: ClassVar[str] = "Sociable"
        reads_metadata: ClassVar[bool] = False
        judges_row_alone: ClassVar[bool] = True
        reads_pods: ClassVar[bool] = False

        def filter(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> NodeVerdict:
            return NodeVerdict(np.ones(len(rows), dtype=np.bool_))

        def rows_changed(self, placed: Pod, row: int, pod: Pod, snapshot: Snapshot) -> Int32 | None:
            return np.empty(0, dtype=np.int32)

        def score(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> Float64:
            return np.array([10.0 * len(snapshot.pods_on(row)) for row in rows.tolist()])

        def hint_rules(self) -> tuple[HintRule, ...]:
            return (HintRule(Change.NODE_ADDED),)

    with pytest.raises(AssertionError, match="False is true of filter and score"):
        check_plugin(Sociable(), snapshots=[CROWDED])


def test_who_is_silent_may_not_have_its_rows_changed_by_pods() -> None:
    class Deaf(Sound):
        def is_silent(self, pod: Pod, snapshot: Snapshot) -> bool:
            return True

    with pytest.raises(AssertionError, match="is False where a pod changes some row"):
        check_plugin(Deaf(), snapshots=[CROWDED])
