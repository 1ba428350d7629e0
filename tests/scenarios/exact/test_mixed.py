"""Gangs of unlike members in the whole product, in the notation of the conformance suite, in simulation."""

from pathlib import Path

import pytest
from tests.conformance.case import Case, load_cases
from tests.conformance.interpreter import Options
from tests.conformance.simulation import Pace, run_in_simulation

from muster.sim.faults import Faults

CASES = [case for file in sorted(Path(__file__).parent.glob("*.yaml")) for case in load_cases(file)]
LATE = Pace(faults=Faults(event_late=0.5, event_late_s_max=0.3, event_doubled=0.3))


@pytest.mark.parametrize("pace", [Pace(), Pace(request_s=0.0), LATE], ids=["plain", "burst", "late"])
@pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in CASES])
def test_unlike_members_are_placed_where_that_is_possible(case: Case, pace: Pace) -> None:
    run_in_simulation(case, Options(compare_texts=True), pace=pace)
