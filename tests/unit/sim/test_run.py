"""A run measures, stops where it is told, and says how to replay what went wrong."""

import pytest

from muster.framework.status import Status
from muster.plugins.gang_scheduling import GangScheduling
from muster.sim.run import replay_line, run_seed


def test_a_run_reports_what_it_measured() -> None:
    report = run_seed(16)
    assert report.violation == ""
    assert report.pods_bound > 0
    assert 0 < report.utilisation < 2
    assert report.virtual_s > 400


def test_a_violation_can_be_replayed_up_to_its_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GangScheduling, "placement_feasible", lambda *_, **__: Status.success())
    broken = next(report for seed in range(2, 20) if (report := run_seed(seed)).violation)
    assert broken.replay == replay_line(broken.seed, "churn", broken.steps)
    again = run_seed(broken.seed, until_event=broken.steps)
    assert again.violation == broken.violation
    before = run_seed(broken.seed, until_event=broken.steps - 1)
    assert before.violation == ""
