"""Every scenario can be played by its name."""

import pytest

from muster.sim.plays import PLAYS


@pytest.mark.parametrize("name", sorted(PLAYS))
def test_a_seed_of_each_is_played(name: str) -> None:
    report = PLAYS[name].run(2, 50)
    assert (report.scenario, report.steps, report.violation) == (name, 50, "")
    assert PLAYS[name].required
