"""Selectors, node terms, tolerations."""

import pytest

from muster.api.core import (
    LabelSelector,
    LabelSelectorRequirement,
    NodeSelectorTerm,
    Taint,
    Toleration,
)
from muster.api.selectors import (
    find_untolerated,
    matches_name_field,
    matches_node_term,
    matches_requirement,
    matches_selector,
    tolerates,
    write_selector,
)
from muster.testing.builders import make_node


def requirement(operator: str, *values: str, key: str = "k") -> LabelSelectorRequirement:
    return LabelSelectorRequirement(key=key, operator=operator, values=list(values))


@pytest.mark.parametrize(
    ("operator", "values", "value", "met"),
    [
        pytest.param("In", ["a", "b"], "b", True, id="in"),
        pytest.param("In", ["a"], None, False, id="in-needs-the-label"),
        pytest.param("NotIn", ["a"], "a", False, id="not-in"),
        pytest.param("NotIn", ["a"], None, True, id="not-in-without-label"),
        pytest.param("Exists", [], "", True, id="exists-even-if-empty"),
        pytest.param("DoesNotExist", [], "a", False, id="does-not-exist"),
        pytest.param("DoesNotExist", [], None, True, id="does-not-exist-without-label"),
        pytest.param("Gt", ["9"], "10", True, id="gt-is-numeric"),
        pytest.param("Lt", ["9"], "10", False, id="lt-is-numeric"),
        pytest.param("Gt", ["9"], "ten", False, id="no-number-is-never-greater"),
        pytest.param("Gt", ["9"], "9999999999999999999", False, id="beyond-int64-is-no-number"),
        pytest.param("Like", ["a"], "a", False, id="unknown-operator"),
    ],
)
def test_requirement(operator: str, values: list[str], value: str | None, met: bool) -> None:
    assert matches_requirement(requirement(operator, *values), value) is met


def test_no_selector_selects_nothing_and_an_empty_one_everything() -> None:
    assert not matches_selector(None, {"a": "b"})
    assert matches_selector(LabelSelector(), None)


def test_a_selector_needs_all_its_parts() -> None:
    selector = LabelSelector(match_labels={"a": "1"}, match_expressions=[requirement("Exists")])
    assert matches_selector(selector, {"a": "1", "k": ""})
    assert not matches_selector(selector, {"a": "1"})
    assert not matches_selector(selector, {"a": "2", "k": ""})


def test_an_empty_node_term_is_met_by_no_node() -> None:
    assert not matches_node_term(NodeSelectorTerm(), make_node())


def test_a_node_term_needs_expressions_and_fields() -> None:
    term = NodeSelectorTerm(
        match_expressions=[requirement("Exists")],
        match_fields=[requirement("In", "n1", key="metadata.name")],
    )
    assert matches_node_term(term, make_node("n1", labels={"k": ""}))
    assert not matches_node_term(term, make_node("n2", labels={"k": ""}))
    assert not matches_node_term(term, make_node("n1"))


@pytest.mark.parametrize(
    ("field", "met"),
    [
        (requirement("In", "n1", key="metadata.name"), True),
        (requirement("NotIn", "n1", key="metadata.name"), False),
        (requirement("NotIn", "n2", key="metadata.name"), True),
        (requirement("In", "n1", "n2", key="metadata.name"), False),
        (requirement("In", "n1", key="metadata.uid"), False),
        (requirement("Exists", key="metadata.name"), False),
    ],
)
def test_match_fields_know_the_name_and_one_value(field: LabelSelectorRequirement, met: bool) -> None:
    assert matches_name_field(field, "n1") is met


@pytest.mark.parametrize(
    ("toleration", "covers"),
    [
        pytest.param(Toleration(key="k", value="5", effect="NoSchedule"), True, id="equal-by-default"),
        pytest.param(Toleration(key="k", value="6"), False, id="another-value"),
        pytest.param(Toleration(key="k", operator="Exists"), True, id="exists-ignores-value"),
        pytest.param(Toleration(operator="Exists"), True, id="no-key-covers-all"),
        pytest.param(Toleration(operator="Exists", effect="NoExecute"), False, id="another-effect"),
        pytest.param(Toleration(key="k", operator="Gt", value="4"), True, id="taint-is-greater"),
        pytest.param(Toleration(key="k", operator="Lt", value="5"), False, id="taint-is-not-less"),
        pytest.param(Toleration(key="k", operator="Gt", value="04"), False, id="no-leading-zeros"),
        pytest.param(Toleration(key="k", operator="Never"), False, id="unknown-operator"),
    ],
)
def test_toleration(toleration: Toleration, covers: bool) -> None:
    assert tolerates([toleration], Taint(key="k", value="5", effect="NoSchedule")) is covers


def test_the_first_untolerated_taint_of_the_effects_is_found() -> None:
    taints = [
        Taint(key="soft", effect="PreferNoSchedule"),
        Taint(key="known", effect="NoSchedule"),
        Taint(key="bad", effect="NoExecute"),
    ]
    tolerations = [Toleration(key="known", operator="Exists")]
    found = find_untolerated(taints, tolerations, ("NoSchedule", "NoExecute"))
    assert found is taints[2]
    assert find_untolerated(taints, tolerations, ("NoSchedule",)) is None


@pytest.mark.parametrize(
    ("selector", "text"),
    [
        pytest.param(None, "a selector that takes nothing", id="none"),
        pytest.param(LabelSelector(), "any labels", id="empty"),
        pytest.param(
            LabelSelector(
                match_labels={"app": "web"},
                match_expressions=[
                    LabelSelectorRequirement(key="tier", operator="In", values=["a", "b"]),
                    LabelSelectorRequirement(key="old", operator="DoesNotExist"),
                ],
            ),
            "app=web, tier In (a, b), old DoesNotExist",
            id="labels-and-expressions",
        ),
    ],
)
def test_a_selector_is_written_in_one_line(selector: LabelSelector | None, text: str) -> None:
    assert write_selector(selector) == text
