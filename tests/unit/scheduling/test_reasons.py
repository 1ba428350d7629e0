"""Why there was no room, in words."""

import numpy as np

from muster.assembly.profiles import BUILT_IN
from muster.framework.groups import ObjectKey, UnsupportedField
from muster.framework.points import NodeReason
from muster.framework.runner import Filtered, NamedReason, Runner, Weighted
from muster.scheduling.members import Cast, Members, group_entity
from muster.scheduling.reasons import (
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


def test_a_members_summary_counts_nodes_by_reason() -> None:
    filtered = Filtered(
        mask(),
        (
            NamedReason("Taints", NodeReason(mask(0), "tainted")),
            NamedReason("Fit", NodeReason(mask(1, 2), "Insufficient cpu")),
        ),
    )
    found = shortfall_of_filters(make_pod(), filtered, row_count=3)
    assert found.text == "0/3 nodes are available: 1 tainted, 2 Insufficient cpu."
    assert found.plugins == {"Taints", "Fit"}


def test_fields_that_are_not_honoured_are_all_named() -> None:
    fields = [("A", UnsupportedField("spec.x", "not yet")), ("B", UnsupportedField("spec.y", "never"))]
    found = shortfall_of_fields(make_pod(), fields)
    assert (found.text, found.plugins) == ("spec.x: not yet; spec.y: never", {"A", "B"})
    assert found.by_fields


def test_a_group_is_told_its_counts_and_the_nearest_fit() -> None:
    text = explain(make_cast(3, 3), shortfall("NodeResourcesFit"))
    assert text == "counts; needs 3 × 1 cpu, 2 free; would fit with 1 more node like n1"


def test_several_rules_are_told_with_the_nodes_they_cost() -> None:
    text = explain(make_cast(3, 3), shortfall("NodeResourcesFit", "TaintToleration"))
    assert text.endswith("; 0/1 nodes")


def test_a_field_that_is_not_honoured_leaves_no_nearest_fit_to_tell() -> None:
    text = explain(make_cast(3, 3), shortfall("UnsupportedRules", text="spec.x: not yet", by_fields=True))
    assert text == "counts; spec.x: not yet"


def test_a_group_with_too_few_members_is_told_what_its_members_were_told() -> None:
    assert explain(make_cast(5, 3), shortfall("NodeResourcesFit")) == "counts; 0/1 nodes"
