"""Bugs are planted where they are said to be, and found; `scripts/sim --mutants` hunts them all."""

import pytest
from tests.sim.mutants import hunt
from tests.sim.planted import MUTANTS

from muster.plugins.gang_scheduling import GangScheduling


def test_there_are_at_least_fifteen() -> None:
    assert len(MUTANTS) >= 15


@pytest.mark.parametrize("name", sorted(MUTANTS))
def test_a_bug_is_planted_and_taken_out_again(name: str) -> None:
    before = vars(GangScheduling).copy()
    with MUTANTS[name].planted():
        pass
    assert vars(GangScheduling).copy() == before
    assert MUTANTS[name].patches.__doc__


def test_a_bug_is_found() -> None:
    found = hunt("gang-in-part", 1, 5)
    assert found.seed is not None
    assert "gang whole" in found.violation
