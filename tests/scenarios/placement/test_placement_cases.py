"""Placement cases from public bug reports, in simulation; what they only prefer, Muster reaches, too.

`python -m tests.conformance KUBECONFIG tests/scenarios/placement/cases.yaml` plays them on a live server.
"""

from pathlib import Path

import pytest
from tests.conformance.case import Case, load_cases
from tests.conformance.interpreter import Interpreter, Options
from tests.conformance.server import Api
from tests.conformance.simulation import SimulatedCluster

CASES = load_cases(Path(__file__).parent / "cases.yaml")


@pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in CASES])
def test_placement_is_right_and_no_better_one_is_known(case: Case) -> None:
    cluster = SimulatedCluster()
    interpreter = Interpreter(Api(cluster), cluster, Options(), cluster.control)
    interpreter.run(case)
    assert interpreter.unmet == []
