"""Why there was no room, in words."""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from muster.api.core import Pod
from muster.assembly.profiles import BUILT_IN
from muster.base.arrays import Int32
from muster.cluster.snapshot import Snapshot
from muster.framework.groups import ObjectKey, UnsupportedField
from muster.framework.points import NodeReason, NodeVerdict
from muster.framework.runner import Filtered, NamedReason, Runner, Weighted
from muster.scheduling.members import Cast, Members, group_entity
from muster.scheduling.reasons import (
    EXAMPLE_LENGTH_MAX,
    Explanations,
    Shortfall,
    shortfall_of_fields,
    shortfall_of_filters,
)
from muster.testing.builders import make_cluster, make_group, make_pod

G = ObjectKey("default", "g")
RUNNER = Runner([Weighted(make()) for make in BUILT_IN.values()])


def mask(*rows: int) -> "np.ndarray[tuple[int, ...], np.dtype[np.bool_]]":
    return np.isin(np.arange(3), rows)


def make_cast(min_count: int, count: int) -> Cast:
    members = Members(frozenset({"muster"}))
    members.see_group(make_group("g", min_count))
    for index in range(count):
        members.see_pod(make_pod(f"g-{index}", cpu=1), G)
    return members.cast(group_entity(G))


def explain(cast: Cast, *shortfalls: Shortfall) -> str:
    snapshot = make_cluster().node(cpu=2).snapshot()
    members = Members(frozenset({"muster"}))
    return Explanations(RUNNER).explain("counts", shortfalls, cast, cast.waiting(), snapshot, members)


def shortfall(*plugins: str, text: str = "0/1 nodes", by_fields: bool = False) -> Shortfall:
    return Shortfall(make_pod(), text, frozenset(plugins), by_fields=by_fields)


def cluster_of_three() -> tuple[Snapshot, Int32]:
    snapshot = make_cluster().node("a", cpu=1).nodes(2, cpu=2).snapshot()
    return snapshot, snapshot.live_rows()


def test_a_members_summary_counts_nodes_by_reason() -> None:
    filtered = Filtered(
        mask(),
        (
            NamedReason("Taints", NodeReason(mask(0), "tainted")),
            NamedReason("Fit", NodeReason(mask(1, 2), "Insufficient cpu")),
        ),
    )
    found = shortfall_of_filters(make_pod(), filtered, *cluster_of_three())
    assert found.text == "0/3 nodes are available: 1 tainted, 2 Insufficient cpu."
    assert found.plugins == {"Taints", "Fit"}


def show(pod: Pod, snapshot: Snapshot, known: Mapping[str, str] = {}) -> str:
    rows = snapshot.live_rows()
    short = shortfall_of_filters(pod, RUNNER.filter(pod, snapshot, rows), snapshot, rows)
    return Explanations(RUNNER).show([short], known, snapshot)[short.text]


def test_the_example_of_a_reason_is_the_first_node_that_is_lost_to_it() -> None:
    cluster = make_cluster().node("a", cpu=4, unschedulable=True).node("b", cpu=1).node("c", cpu=0)
    assert show(make_pod(cpu=2), cluster.snapshot()) == (
        "0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu. "
        "For example a: spec.unschedulable is true; b: 2 cpu asked, the whole node has 1."
    )


def test_of_many_reasons_the_first_four_are_shown() -> None:
    cluster = make_cluster()
    for index in range(7):
        cluster.node(taints=[{"key": f"t{index}", "effect": "NoSchedule"}])
    text = show(make_pod(), cluster.snapshot())
    assert text.endswith("n4: taint t3:NoSchedule; 3 more.")


def test_what_was_shown_for_these_words_before_is_shown_again() -> None:
    snapshot = make_cluster().node(cpu=1).snapshot()
    known = {"0/1 nodes are available: 1 Insufficient cpu.": "as before"}
    assert show(make_pod(cpu=2), snapshot, known) == "as before"


def test_an_example_can_be_put_on_a_terminal_and_is_not_long() -> None:
    taint = {"key": "k", "value": "\x1b[2J" + "v" * 500, "effect": "NoSchedule"}
    text = show(make_pod(), make_cluster().node(taints=[taint]).snapshot())
    _, example = text.split(" For example ")
    assert example.startswith("n1: taint k=\\x1b[2Jvvv")
    assert len(example) == EXAMPLE_LENGTH_MAX + 1


class Mute:
    """A filter that raises when it is to show something."""

    name: ClassVar[str] = "Mute"

    def filter(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> NodeVerdict:
        none = np.zeros(len(rows), dtype=np.bool_)
        return NodeVerdict(none, (NodeReason(~none, "muted"),))

    def rows_changed(self, placed: Pod, row: int, pod: Pod, snapshot: Snapshot) -> Int32 | None:
        return None

    def example(self, pod: Pod, snapshot: Snapshot, row: int, text: str) -> str:
        raise KeyError(text)


def test_where_a_plugin_fails_to_show_something_the_node_alone_is_named() -> None:
    runner = Runner([Weighted(BUILT_IN["PrioritySort"]()), Weighted(Mute())])
    snapshot, rows = cluster_of_three()
    short = shortfall_of_filters(make_pod(), runner.filter(make_pod(), snapshot, rows), snapshot, rows)
    shown = Explanations(runner).show([short], {}, snapshot)
    assert shown[short.text] == "0/3 nodes are available: 3 muted. For example a."


def test_fields_that_are_not_honoured_are_all_named() -> None:
    fields = [("A", UnsupportedField("spec.x", "not yet")), ("B", UnsupportedField("spec.y", "never"))]
    found = shortfall_of_fields(make_pod(), fields)
    assert (found.text, found.plugins) == ("spec.x: not yet; spec.y: never", {"A", "B"})
    assert found.by_fields


def test_a_group_is_told_its_counts_and_the_nearest_fit() -> None:
    text = explain(make_cast(3, 3), shortfall("NodeResourcesFit"))
    assert text == "counts; needs 3 × 1 cpu, 2 free; would fit with 1 more node like n1; 0/1 nodes"


def test_a_field_that_is_not_honoured_leaves_no_nearest_fit_to_tell() -> None:
    text = explain(make_cast(3, 3), shortfall("UnsupportedRules", text="spec.x: not yet", by_fields=True))
    assert text == "counts; 0 of 3 members, for example pod p: spec.x: not yet"


def test_a_group_with_too_few_members_is_told_what_its_members_were_told() -> None:
    assert explain(make_cast(5, 3), shortfall("NodeResourcesFit")) == "counts; 0/1 nodes"
