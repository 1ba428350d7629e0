"""What random scenarios found (`tests/differential`), each cut down to a case, in simulation."""

from pathlib import Path

import pytest
from tests.conformance.case import Case, load_cases
from tests.conformance.simulation import run_in_simulation

CASES = [case for file in sorted(Path(__file__).parent.glob("*.yaml")) for case in load_cases(file)]


@pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in CASES])
def test_fault_that_a_random_scenario_found_does_not_happen(case: Case) -> None:
    run_in_simulation(case)
