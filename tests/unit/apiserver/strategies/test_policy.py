"""Disruption budgets."""

from typing import Any

import pytest
from tests.unit.apiserver.strategies.full_server import BUDGETS, FullServer


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        pytest.param(
            {"minAvailable": -1},
            "spec.minAvailable: Invalid value: -1: must be greater than or equal to 0",
            id="negative",
        ),
        pytest.param(
            {"maxUnavailable": "101%"},
            'spec.maxUnavailable: Invalid value: "101%": must not be greater than 100%',
            id="more than all",
        ),
        pytest.param(
            {"minAvailable": "x"},
            'spec.minAvailable: Invalid value: "x": a valid percent string must be a numeric string '
            "followed by "
            "an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')",
            id="no percentage",
        ),
        pytest.param(
            {"unhealthyPodEvictionPolicy": "X"},
            'spec.unhealthyPodEvictionPolicy: Unsupported value: "X": supported values: "AlwaysAllow", '
            '"IfHealthyBudget"',
            id="policy",
        ),
    ],
)
def test_a_bad_budget_is_refused(spec: dict[str, Any], fault: str) -> None:
    assert FullServer().create_faults(BUDGETS, spec=spec) == [fault]


def test_a_budget_has_one_bound() -> None:
    found = FullServer().create_faults(BUDGETS, spec={"minAvailable": 1, "maxUnavailable": 1})
    assert found[0].startswith("spec: Invalid value: {")
    assert found[0].endswith("minAvailable and maxUnavailable cannot be both set")


def test_a_budget_begins_with_nothing_allowed_and_counts_its_changes() -> None:
    server = FullServer()
    made = server.create(BUDGETS, "d", spec={"minAvailable": "50%"}, status={"disruptionsAllowed": 9})
    assert made["status"]["disruptionsAllowed"] == 0
    assert server.change(BUDGETS, "d", spec={"minAvailable": 1})["metadata"]["generation"] == 2


def test_counters_are_not_negative() -> None:
    server = FullServer()
    server.create(BUDGETS, "d", spec={})
    assert server.change_faults(BUDGETS, "d/status", status={"currentHealthy": -1}) == [
        "status.currentHealthy: Invalid value: -1: must be greater than or equal to 0"
    ]


def test_the_table_shows_both_bounds() -> None:
    server = FullServer()
    server.create(BUDGETS, "d", spec={"maxUnavailable": "10%"})
    assert server.table(BUDGETS) == [["d", "N/A", "10%", 0, "0s"]]
