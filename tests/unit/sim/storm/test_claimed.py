"""Devices given twice, and claims kept in vain, are found by what the API shows."""

from typing import Any

import pytest
from tests.unit.sim.storm.stage import Stage
from tests.unit.sim.storm.supplied import DEVICE, supplied

from muster.sim.storm.bounds import GRACE_S
from muster.sim.storm.claimed import DevicesOnce, GivenBack, NotClaimedIdle
from muster.sim.storm.door import Landed
from muster.sim.storm.promises import Starts
from muster.sim.view import Object, claims_of, uid_of


def with_gang() -> Stage:
    stage, _ = supplied()
    stage.gang("g", 2, more=DEVICE)
    stage.run(10.0)
    assert stage.bound() == ["g-0", "g-1"]
    return stage


def claim_of(stage: Stage, pod: str) -> Object:
    (name,) = set(claims_of(stage.object(pod)))
    return stage.world.ledger.claims[name]


def write(stage: Stage, pod: str, **status: Any) -> None:
    """Somebody says otherwise on the claim of a pod."""
    name = claim_of(stage, pod)["metadata"]["name"]
    stage.world.client.patch("claim", name, {"status": status}, subresource="status")
    stage.run(0.1)


def land_again(stage: Stage, pod: str) -> list[str]:
    """What is said if the pod's binding landed now."""
    checker = DevicesOnce(stage.world)
    user = stage.landings[-1].user
    checker.landed(Landed(stage.object(pod), "s0", user))
    return list(checker.check(0.0))


def test_each_with_a_device_of_its_own_is_in_order() -> None:
    assert land_again(with_gang(), "g-0") == []


def test_a_device_of_another_bound_pod_is_given_twice() -> None:
    stage = with_gang()
    theirs = claim_of(stage, "g-1")["status"]
    write(stage, "g-0", allocation=None, reservedFor=None)
    users = [{"resource": "pods", "name": "g-0", "uid": uid_of(stage.object("g-0"))}]
    write(stage, "g-0", allocation=theirs["allocation"], reservedFor=users)
    (complaint,) = land_again(stage, "g-0")
    assert complaint.startswith("pods g-0 and g-1 have")


def test_a_claim_that_is_not_reserved_for_the_pod_is_not_its_own() -> None:
    stage = with_gang()
    write(stage, "g-0", allocation=None, reservedFor=None)
    (complaint,) = land_again(stage, "g-0")
    assert "is not its own" in complaint


def test_what_nobody_uses_at_the_end_is_found() -> None:
    stage = with_gang()
    checker = GivenBack(stage.world)
    assert list(checker.check(0.0)) == []
    write(stage, "g-0", reservedFor=None)
    (complaint,) = checker.check(0.0)
    assert "is used by none of []" in complaint


def with_idle_claim() -> tuple[Stage, NotClaimedIdle]:
    """A gang of which one member is missing, and nobody bound; the other has a device all the same."""
    stage, _ = supplied()
    starts = Starts(stage.world.ledger)
    checker = NotClaimedIdle(stage.world, starts)
    stage.world.ledger.readers += [starts, checker]
    stage.gang("g", 1, min_count=2, more=DEVICE)
    stage.run(5.0)
    for replica in stage.world.replicas.values():
        replica.scheduler.handle = lambda event, now_s: []  # type: ignore[method-assign]
    result = {"request": "gpu", "driver": "gpu.example.com", "pool": "s0", "device": "device-0"}
    users = [{"resource": "pods", "name": "g-0", "uid": uid_of(stage.object("g-0"))}]
    write(stage, "g-0", allocation={"devices": {"results": [result]}}, reservedFor=users)
    return stage, checker


@pytest.mark.parametrize(("seconds", "found"), [(GRACE_S - 5, 0), (GRACE_S + 5, 1)])
def test_claims_kept_for_nobody_are_found_when_it_lasts(seconds: float, found: int) -> None:
    stage, checker = with_idle_claim()
    assert list(checker.check(stage.world.now_s())) == []
    stage.run(seconds)
    complaints = list(checker.check(stage.world.now_s()))
    assert len(complaints) == found
    assert all("keeps g-0-gpu-" in complaint for complaint in complaints)
