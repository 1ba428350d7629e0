"""Conditions of a group's status."""

from typing import Any

import pytest

from muster.apiserver.strategies.conditions import validate_conditions

GOOD = {
    "type": "X",
    "status": "True",
    "reason": "R",
    "message": "",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}


def faults(*conditions: dict[str, Any]) -> list[str]:
    return [f"{c.field}: {c.message}" for c in validate_conditions("status.conditions", list(conditions))]


def test_a_good_condition_may_have_an_empty_message_and_a_qualified_type() -> None:
    assert faults(GOOD, {**GOOD, "type": "muster.dev/Waiting"}) == []


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        pytest.param({"lastTransitionTime": None}, "lastTransitionTime: Required value", id="no time"),
        pytest.param({"reason": ""}, "reason: Required value", id="no reason"),
        pytest.param({"type": ""}, "type: Required value: is required", id="no type"),
        pytest.param(
            {"status": "Maybe"},
            'status: Unsupported value: "Maybe": supported values: "False", "True", "Unknown"',
            id="no status that there is",
        ),
        pytest.param(
            {"observedGeneration": -1},
            "observedGeneration: Invalid value: -1: must be greater than or equal to zero",
            id="generation",
        ),
        pytest.param(
            {"reason": "R" * 1025}, "reason: Too long: may not be more than 1024 bytes", id="reason"
        ),
        pytest.param(
            {"message": "m" * 32769}, "message: Too long: may not be more than 32768 bytes", id="message"
        ),
    ],
)
def test_a_bad_condition_is_refused(change: dict[str, Any], fault: str) -> None:
    assert faults({**GOOD, **change}) == [f"status.conditions[0].{fault}"]


def test_a_reason_is_a_word_for_programs() -> None:
    assert "a condition reason must start with alphabetic character" in faults({**GOOD, "reason": "a b"})[0]


def test_a_type_is_there_once() -> None:
    assert faults(GOOD, {**GOOD, "status": "False"}) == ['status.conditions[1]: Duplicate value: "X"']
