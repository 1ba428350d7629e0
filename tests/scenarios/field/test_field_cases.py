"""Faults reported from real clusters, as cases in the notation of the conformance suite, in simulation.

Here the scheduler's words count: they are ours, and must say what the case wants said.
"""

from pathlib import Path

import pytest
from tests.conformance.case import Case, load_cases
from tests.conformance.interpreter import Options
from tests.conformance.simulation import run_in_simulation

CASES = [case for file in sorted(Path(__file__).parent.glob("*.yaml")) for case in load_cases(file)]


@pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in CASES])
def test_reported_fault_does_not_happen(case: Case) -> None:
    run_in_simulation(case, Options(compare_texts=True))
