"""Label selectors inside objects."""

from typing import Any

import pytest

from muster.apiserver.strategies.selectors import selector_text, selects, validate_selector


def faults(selector: dict[str, Any]) -> list[str]:
    return [f"{c.field}: {c.message}" for c in validate_selector("s", selector)]


@pytest.mark.parametrize(
    ("term", "fault"),
    [
        pytest.param(
            {"key": "a", "operator": "X"},
            's.matchExpressions[0].operator: Invalid value: "X": not a valid selector operator',
            id="operator",
        ),
        pytest.param(
            {"key": "a", "operator": "In"},
            "s.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or "
            "'NotIn'",
            id="no values",
        ),
        pytest.param(
            {"key": "a", "operator": "Exists", "values": ["x"]},
            "s.matchExpressions[0].values: Forbidden: may not be specified when `operator` is 'Exists' or "
            "'DoesNotExist'",
            id="values too many",
        ),
    ],
)
def test_a_bad_term_is_refused(term: dict[str, Any], fault: str) -> None:
    assert faults({"matchExpressions": [term]}) == [fault]


def test_no_selector_picks_nothing_and_an_empty_one_everything() -> None:
    assert not selects(None, {"a": "b"})
    assert selects({}, {})


def test_all_terms_must_hold() -> None:
    selector = {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "c", "operator": "DoesNotExist"}]}
    assert selects(selector, {"a": "b"})
    assert not selects(selector, {"a": "b", "c": ""})


def test_a_selector_fits_in_one_line() -> None:
    expressions = [
        {"key": "z", "operator": "In", "values": ["2", "1"]},
        {"key": "c", "operator": "Exists"},
        {"key": "d", "operator": "DoesNotExist"},
    ]
    assert (
        selector_text({"matchLabels": {"a": "b"}, "matchExpressions": expressions}) == "a=b,c,!d,z in (1,2)"
    )
