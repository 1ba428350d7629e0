"""Incidents are drawn from the seed, at least ten of them, and calm ends what still goes on."""

import pytest
from tests.unit.sim.storm.stage import Stage, generator

from muster.controllers.kubelet import is_stopped
from muster.sim.storm.outages import INCIDENTS, Outages
from muster.sim.storm.promises import says_scheduled


def test_a_run_has_at_least_ten_incidents() -> None:
    stage = Stage()
    outages = Outages(stage.world, generator(), storm_s=1200.0)
    outages.start()
    assert outages.count >= INCIDENTS[0] >= 10


@pytest.mark.parametrize(
    ("act", "counted"),
    [
        ("_api_goes_away", "API server away"),
        ("_backup_is_restored", "restored from a backup"),
        ("_replica_lags", "API server lags"),
        ("_leader_stands_still", "leader stood still"),
        ("_standby_stands_still", "standby stood still"),
        ("_leader_sleeps", "machine of the leader slept"),
        ("_leader_is_killed", "leader killed"),
        ("_leader_is_stopped", "process stopped"),
        ("_leader_goes_while_the_standby_lags", "leader went while the standby lagged"),
        ("_node_is_lost", "node came back"),
        ("_node_falls_silent", "node fell silent"),
        ("_pods_are_forced_off", "pod forced off its node"),
    ],
)
def test_an_incident_happens_and_is_counted(act: str, counted: str) -> None:
    stage = Stage(nodes=1)
    stage.run(10.0)
    stage.gang("g", 2)
    stage.run(5.0)
    stage.post(getattr(Outages(stage.world, generator(), storm_s=1200.0), act), 0.0)
    stage.run(200.0)
    assert stage.counts[counted] >= 1


@pytest.mark.parametrize("act", ["_leader_stands_still", "_leader_sleeps", "_standby_stands_still"])
def test_nobody_stands_still_who_has_a_restored_backup_to_notice(
    act: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(nodes=1)
    stage.run(10.0)
    outages = Outages(stage.world, generator(), storm_s=1200.0)
    monkeypatch.setattr(stage.world, "is_outdated", lambda process: True)
    getattr(outages, act)()
    assert not any(replica.is_paused for replica in stage.world.replicas.values())
    monkeypatch.undo()
    getattr(outages, act)()
    assert any(replica.is_paused for replica in stage.world.replicas.values())


def test_calm_ends_quotas_policies_lags_and_silence() -> None:
    stage = Stage()
    stage.run(10.0)
    outages = Outages(stage.world, generator(), storm_s=1200.0)
    stage.world.door.quota = 1
    stage.world.door.bound_max["g"] = 0
    stage.world.door.refuses_status = True
    stage.world.door.stop_kubelet("n0", stage.world.now_s())
    stage.post(outages.calm, 1.0)
    stage.run(2.0)
    assert (stage.world.door.quota, stage.world.door.bound_max) == (None, {})
    assert not stage.world.door.refuses_status
    assert not is_stopped(stage.world.ledger.nodes["n0"])


def test_the_status_of_groups_cannot_be_written_for_a_while_and_is_said_later() -> None:
    stage = Stage(nodes=1)
    stage.run(10.0)
    stage.post(Outages(stage.world, generator(), storm_s=1200.0)._status_is_refused, 0.0)
    stage.run(1.0)
    stage.gang("g", 2)
    stage.run(10.0)
    assert stage.bound() == ["g-0", "g-1"]
    assert not (stage.world.ledger.groups["g"].get("status") or {}).get("conditions")
    assert stage.counts["status write refused by a webhook"] > 0
    stage.run(150.0)
    assert says_scheduled(stage.world.ledger.groups["g"])
