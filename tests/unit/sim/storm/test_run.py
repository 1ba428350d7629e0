"""One seed of the storm: what it is at the least, and that it repeats exactly."""

import pytest

from muster.framework.status import Status
from muster.plugins.gang_scheduling import GangScheduling
from muster.sim.storm.outages import INCIDENTS
from muster.sim.storm.run import CALM_S, STORM_S, Sampled, Storm, run_storm
from muster.sim.storm.users import GANGS


def test_a_seed_is_at_least_as_much_as_is_promised() -> None:
    assert STORM_S + CALM_S >= 30 * 60
    assert GANGS[0] >= 20
    assert INCIDENTS[0] >= 10


def test_equal_seeds_give_equal_runs() -> None:
    first, second = Storm(3), Storm(3)
    assert first.play(2500) == second.play(2500)
    assert first.world.ledger.objects == second.world.ledger.objects


def test_a_run_can_be_stopped_at_a_step() -> None:
    assert run_storm(3, until_event=100).steps == 100


def test_a_broken_promise_is_told_with_its_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GangScheduling, "placement_feasible", lambda *_, **__: Status.success())
    reports = (run_storm(seed) for seed in range(1, 6))
    report = next(report for report in reports if report.violation)
    assert "gang whole" in report.violation
    assert report.replay.startswith(f"muster simulate --seed {report.seed} --scenario storm --until-event ")


def test_a_sampled_checker_is_asked_now_and_then() -> None:
    class Asked:
        name = "asked"
        times = 0

        def check(self, now_s: float) -> tuple[str, ...]:
            self.times += 1
            return ()

    asked = Asked()
    sampled = Sampled(asked, every_s=10.0)
    for now_s in (0.0, 5.0, 10.0, 12.0):
        sampled.check(now_s)
    assert asked.times == 2
