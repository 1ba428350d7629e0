"""Incidents are drawn from the seed, at least ten of them, and calm ends what still goes on."""

import pytest
from tests.unit.sim.storm.stage import Stage, generator

from muster.controllers.kubelet import is_stopped
from muster.sim.storm.outages import INCIDENTS, Outages


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
        ("_leader_is_killed", "leader killed"),
        ("_leader_is_stopped", "process stopped"),
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


def test_calm_ends_quotas_policies_lags_and_silence() -> None:
    stage = Stage()
    stage.run(10.0)
    outages = Outages(stage.world, generator(), storm_s=1200.0)
    stage.world.door.quota = 1
    stage.world.door.denied.add("g")
    stage.world.door.stop_kubelet("n0", stage.world.now_s())
    stage.post(outages.calm, 1.0)
    stage.run(2.0)
    assert (stage.world.door.quota, stage.world.door.denied) == (None, set())
    assert not is_stopped(stage.world.ledger.nodes["n0"])
