"""The same with faults between scheduler and API: refused, unanswered, late and doubled (odd seeds)."""

from collections import Counter

import pytest
from tests.sim.seeds import report_of

from muster.sim.coverage import REQUIRED, missing

SEEDS = range(1, 51, 2)
FAILED_ONCE: tuple[int, ...] = ()


@pytest.mark.parametrize("seed", [*SEEDS, *FAILED_ONCE])
def test_every_promise_holds(seed: int) -> None:
    report = report_of(seed)
    assert not report.violation, report.replay


def test_every_kind_of_transition_and_of_fault_happens_over_these_seeds() -> None:
    counts: Counter[str] = Counter()
    for seed in SEEDS:
        counts.update(report_of(seed).counts)
    assert missing(counts, REQUIRED) == []
