"""One process: it leads, stands still, crashes, is stopped, and its clock is its own."""

import pytest
from tests.unit.sim.storm.stage import Stage

from muster.assembly.leadership import LEASE_S, REQUEST_TIMEOUT_S, RETRY_S
from muster.sim.storm.replica import ProcessClock
from muster.sim.storm.weather import Weather


def test_one_of_two_leads_and_binds() -> None:
    stage = Stage()
    stage.run(10.0)
    stage.gang("g", 3)
    stage.run(5.0)
    assert [replica.is_deciding for replica in stage.world.replicas.values()].count(True) == 1
    assert stage.bound() == ["g-0", "g-1", "g-2"]


def test_after_a_crash_the_other_begins_once_nothing_can_be_on_the_wire() -> None:
    stage = Stage()
    stage.run(10.0)
    first = stage.world.deciding
    assert first is not None
    first.end("crashed")
    stage.run(LEASE_S + REQUEST_TIMEOUT_S - 3.0)
    assert stage.world.deciding is None
    stage.run(12.0)
    second = stage.world.deciding
    assert second is not None
    assert second.term == first.term + 1


def test_after_a_stop_the_other_begins_within_seconds() -> None:
    stage = Stage()
    stage.run(10.0)
    leader = stage.world.deciding
    assert leader is not None
    leader.stop()
    stage.run(6.0)
    assert stage.world.deciding not in (None, leader)


@pytest.mark.parametrize(
    ("stopped_after_s", "begins_within_s"),
    [
        pytest.param(0.0, LEASE_S + REQUEST_TIMEOUT_S + RETRY_S, id="on-the-wire"),
        pytest.param(REQUEST_TIMEOUT_S + 0.1, REQUEST_TIMEOUT_S + 2 * RETRY_S, id="given-up"),
    ],
)
def test_nobody_else_begins_while_a_binding_of_one_that_was_stopped_may_land(
    stopped_after_s: float, begins_within_s: float
) -> None:
    stage = Stage()
    stage.run(10.0)
    leader = stage.world.deciding
    assert leader is not None
    stage.sky.weather = Weather(request_late=1.0)
    stage.gang("g", 1)
    while not leader.decided:
        stage.run(0.001)
    stage.sky.clear()
    stage.run(stopped_after_s)
    leader.stop()
    stopped_s = stage.world.now_s()
    while not stage.landings:
        assert stage.world.deciding is None
        stage.run(0.1)
    assert [landed.user for landed in stage.landings] == [leader.identity]
    stage.run(stopped_s + begins_within_s - stage.world.now_s())
    assert stage.world.deciding not in (None, leader)


def test_a_leader_that_stood_still_for_too_long_writes_nothing_more() -> None:
    stage = Stage()
    stage.run(10.0)
    leader = stage.world.deciding
    assert leader is not None
    leader.pause(40.0)
    stage.gang("g", 2)
    stage.run(39.0)
    assert {landed.user for landed in stage.landings} == {stage.world.deciding.identity}  # type: ignore[union-attr]
    stage.run(10.0)
    assert leader.is_dead
    assert stage.counts["process lost"] == 1


def test_a_crash_strikes_at_an_effect() -> None:
    stage = Stage(weather=Weather(crash_before=1.0))
    stage.run(10.0)
    stage.gang("g", 1)
    stage.run(3.0)
    assert stage.counts["crash before BindPod"] == 1
    assert stage.bound() == []


def test_a_process_that_sees_a_restored_store_begins_anew() -> None:
    stage = Stage()
    stage.run(10.0)
    backup = stage.world.store.backup()
    stage.gang("g", 2)
    stage.run(5.0)
    stage.world.restore(backup)
    stage.run(10.0)
    assert stage.counts["process restored"] == 2


def test_a_clock_is_off_and_drifts() -> None:
    true_s = [1000.0]
    clock = ProcessClock(lambda: true_s[0], offset_s=30.0, drift=0.01)
    true_s[0] += 100.0
    assert clock.now_s() == 1000.0 + 100.0 + 30.0 + 1.0
    assert abs(clock.true_delay_s(clock.now_s() + 101.0) - 100.0) < 1e-9


def test_a_leader_whose_machine_slept_for_too_long_writes_nothing_more() -> None:
    stage = Stage()
    stage.run(10.0)
    leader = stage.world.deciding
    assert leader is not None
    before_s = leader.clock.now_s()
    leader.sleep(40.0)
    stage.run(39.9)
    assert not leader.may_write
    left_s = leader.candidacy.left_s(leader.clock.now_s())
    assert left_s > 0.0  # by its own clock hardly any time has passed
    stage.gang("g", 2)
    stage.run(0.2)
    assert leader.clock.now_s() - before_s < 1.0
    stage.run(10.0)
    assert leader.is_dead
    assert stage.counts["process lost"] == 1
