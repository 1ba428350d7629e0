"""Every promise holds at every step of these seeds of the storm: two replicas, a rival, every fault."""

import pytest
from tests.sim.seeds import STORM_FAILED_ONCE, storm_of

SEEDS = (1, 2)


@pytest.mark.parametrize("seed", [*SEEDS, *STORM_FAILED_ONCE])
def test_every_promise_holds(seed: int) -> None:
    report = storm_of(seed)
    assert not report.violation, report.replay


def test_a_seed_is_half_an_hour_of_twenty_gangs_and_many_faults() -> None:
    report = storm_of(SEEDS[0])
    assert report.virtual_s >= 30 * 60
    assert report.gangs_placed >= 15
    faults = sum(report.counts.get(name, 0) for name in ("process crashed", "API server away", "node lost"))
    assert faults + report.counts["leader began"] > 2
