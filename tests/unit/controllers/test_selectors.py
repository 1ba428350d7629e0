"""Label selectors."""

from typing import Any

import pytest

from muster.controllers.selectors import matches


def requirement(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("selector", "matching"),
    [
        pytest.param(None, False, id="none-selects-nothing"),
        pytest.param({}, True, id="empty-selects-all"),
        pytest.param({"matchLabels": {"app": "a"}}, True, id="label"),
        pytest.param({"matchLabels": {"app": "b"}}, False, id="another-value"),
        pytest.param({"matchLabels": {"app": "a", "x": "y"}}, False, id="all-labels-must-be-there"),
        pytest.param(requirement("app", "In", "a", "b"), True, id="in"),
        pytest.param(requirement("app", "In", "b"), False, id="not-in-these"),
        pytest.param(requirement("zone", "In", "b"), False, id="in-without-the-key"),
        pytest.param(requirement("app", "NotIn", "b"), True, id="not-in"),
        pytest.param(requirement("app", "NotIn", "a"), False, id="not-in-but-is"),
        pytest.param(requirement("zone", "NotIn", "b"), True, id="not-in-without-the-key"),
        pytest.param(requirement("app", "Exists"), True, id="exists"),
    ],
)
def test_selectors(selector: dict[str, Any] | None, matching: bool) -> None:
    assert matches(selector, {"app": "a"}) is matching


def test_absence_is_asked_for_by_does_not_exist() -> None:
    assert matches(requirement("zone", "DoesNotExist"), {"app": "a"})
    assert not matches(requirement("app", "DoesNotExist"), {"app": "a"})


def test_no_labels_at_all_meet_only_what_asks_for_none() -> None:
    assert matches({}, None)
    assert not matches({"matchLabels": {"app": "a"}}, None)


def test_an_operator_nobody_knows_matches_nothing() -> None:
    assert not matches(requirement("app", "Like", "a"), {"app": "a"})
