"""Every case of the suite, in simulation; those left for later fail, and are named in one table."""

import pytest
from tests.conformance.case import CASE_FILES, Case, load_cases
from tests.conformance.interpreter import CaseFailed
from tests.conformance.left_out import LEFT_OUT
from tests.conformance.server import Api
from tests.conformance.simulation import Pace, SimulatedCluster, run_in_simulation

from muster.sim.faults import Faults

CASES = [case for file in sorted(CASE_FILES.glob("*.yaml")) for case in load_cases(file)]
HELD = [case for case in CASES if case.id not in LEFT_OUT]

# cases that count on one kind of event being seen before another, which nobody promises: a raised minCount
# may be seen after the pod that was made after it
NEEDS_ORDER = ("G-21", "G-21b")


def _params(cases: list[Case]) -> list[object]:
    return [pytest.param(case, id=case.id) for case in cases]


@pytest.mark.parametrize("case", _params(HELD))
def test_case_holds(case: Case) -> None:
    unserved = [path for path in case.needs if not Api(SimulatedCluster()).serves(path)]
    assert not unserved, "what is not served yet belongs in the table of cases left out"
    run_in_simulation(case)


@pytest.mark.parametrize("case", _params(HELD))
def test_case_holds_when_requests_come_in_one_burst(case: Case) -> None:
    run_in_simulation(case, pace=Pace(request_s=0.0))


@pytest.mark.parametrize("case", _params(HELD))
def test_case_holds_when_requests_are_slow(case: Case) -> None:
    run_in_simulation(case, pace=Pace(request_s=0.3))


@pytest.mark.parametrize("case", _params([case for case in HELD if case.id not in NEEDS_ORDER]))
def test_case_holds_when_events_come_late_and_twice(case: Case) -> None:
    faults = Faults(event_late=0.5, event_late_s_max=0.3, event_doubled=0.3)
    run_in_simulation(case, pace=Pace(faults=faults))


@pytest.mark.parametrize("case", _params([case for case in CASES if case.id in LEFT_OUT]))
def test_case_left_out_still_fails(case: Case) -> None:
    """A case that has begun to pass must leave the table."""
    if all(Api(SimulatedCluster()).serves(path) for path in case.needs):
        with pytest.raises(CaseFailed):
            run_in_simulation(case)
