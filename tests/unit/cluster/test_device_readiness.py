"""Whether the devices of a claim have become ready."""

from msgspec.structs import replace
from tests.unit.cluster.device_objects import DRIVER, make_claim

from muster.api.devices import AllocatedDevice, Allocation, DeviceAllocation, DeviceStatus, ResourceClaim
from muster.api.meta import Condition
from muster.cluster.device_readiness import find_unready

SLOW = AllocatedDevice(
    "r", DRIVER, "n1", "a", binding_conditions=["ready", "linked"], binding_failure_conditions=["broken"]
)


def claim_with(
    *conditions: Condition, result: AllocatedDevice = SLOW, share: str | None = None
) -> ResourceClaim:
    claim = make_claim("c", allocation=Allocation(DeviceAllocation([result])))
    status = DeviceStatus(DRIVER, "n1", "a", share, list(conditions))
    return replace(claim, status=replace(claim.status, devices=[status]))


def test_devices_without_conditions_are_ready_at_once() -> None:
    assert find_unready(make_claim("c")) is None
    assert find_unready(claim_with(result=AllocatedDevice("r", DRIVER, "n1", "a"))) is None


def test_every_condition_must_become_true() -> None:
    unready = find_unready(claim_with(Condition("ready", "True"), Condition("linked", "False")))
    assert unready == (False, f"device {DRIVER}/n1/a to have linked")
    assert find_unready(claim_with(Condition("ready", "True"), Condition("linked", "True"))) is None


def test_a_failure_counts_more_than_readiness() -> None:
    conditions = (Condition("ready", "True"), Condition("linked", "True"))
    unready = find_unready(claim_with(*conditions, Condition("broken", "True", message="no link")))
    assert unready == (True, f"device {DRIVER}/n1/a has broken, no link")
    assert find_unready(claim_with(*conditions, Condition("broken", "False"))) is None


def test_what_is_said_of_another_share_says_nothing() -> None:
    mine = replace(SLOW, share_id="mine")
    ready = (Condition("ready", "True"), Condition("linked", "True"))
    assert find_unready(claim_with(*ready, result=mine, share="other")) is not None
    assert find_unready(claim_with(*ready, result=mine, share="mine")) is None
