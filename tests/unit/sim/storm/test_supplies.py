"""Gangs ask for devices and volumes, and others meddle with them."""

import pytest
from tests.unit.sim.storm.stage import Stage, generator
from tests.unit.sim.storm.supplied import DEVICE, supplied

from muster.sim.storm.supplies import Supplies
from muster.sim.view import claims_of, devices_in, users_of


def test_members_get_a_device_each() -> None:
    stage, _ = supplied()
    stage.gang("g", 2, more=DEVICE)
    stage.run(10.0)
    assert stage.bound() == ["g-0", "g-1"]
    devices = [devices_in(claim) for claim in stage.world.ledger.claims.values()]
    assert sorted(device[1] for (device,) in devices) == ["s0", "s1"]


def test_members_get_volumes_and_are_bound_then() -> None:
    stage, supplies = supplied()
    asks = [supplies.draw() for _ in range(60)]
    volumes = next(ask for ask in asks if "volumes" in ask and "resourceClaims" not in ask)
    stage.gang("g", 2, more=volumes)
    stage.run(100.0)
    assert stage.bound() == ["g-0", "g-1"]
    assert all(claim["spec"]["volumeName"] for claim in stage.world.ledger.volume_claims.values())


def test_some_gangs_ask_for_nothing_some_for_one_and_some_for_both() -> None:
    supplies = Supplies(Stage(nodes=0).world, generator(), storm_s=60.0)
    assert {tuple(sorted(supplies.draw())) for _ in range(100)} == {
        (),
        ("resourceClaims",),
        ("volumes",),
        ("resourceClaims", "volumes"),
    }


def test_a_claim_that_a_user_deletes_is_made_again_and_its_pod_bound() -> None:
    stage, supplies = supplied()
    stage.gang("g", 2, more=DEVICE)
    stage.post(supplies._delete_claim, 0.05)
    stage.run(60.0)
    assert stage.counts["user deleted a claim for a device"] == 1
    assert stage.bound() == ["g-0", "g-1"]


@pytest.mark.parametrize("count", [1, 4])
def test_a_rival_takes_devices_and_its_pods_run(count: int) -> None:
    stage, supplies = supplied()
    for _ in range(count):
        stage.post(supplies._rival_takes_device, 0.0)
    stage.run(5.0)
    assert stage.counts["rival took a device"] == count
    assert bool(stage.counts["rival took a device of another claim"]) == (count > 2)
    for name in stage.bound():
        (claim,) = {
            stage.world.ledger.claims[each]["metadata"]["name"] for each in claims_of(stage.object(name))
        }
        assert list(users_of(stage.world.ledger.claims[claim]).values()) == [name]
