"""Whether the devices of a claim have become ready, as their driver says it (binding conditions).

In comes a claim as seen; out comes what it waits for, or why it waits in vain.
Source: KEP-5007.  Next: `plugins/dynamic_resources.py`, which keeps pods from being bound before.
"""

from collections.abc import Iterator
from typing import NamedTuple

from muster.api.devices import AllocatedDevice, DeviceStatus, ResourceClaim
from muster.api.meta import Condition


class Unready(NamedTuple):
    """`is_lost`: the driver says that it will never be; `text` says which device, and what of it."""

    is_lost: bool
    text: str


def find_unready(claim: ResourceClaim) -> Unready | None:
    """The first device that has failed, else the first that is not ready; None where all are."""
    pending: Unready | None = None
    for result in _that_must_be_ready(claim):
        conditions = {
            each.type: each for each in (_status_of(claim, result) or DeviceStatus()).conditions or ()
        }
        device = f"device {result.driver}/{result.pool}/{result.device}"
        for name in result.binding_failure_conditions or ():
            condition = conditions.get(name)
            if condition is not None and condition.status == "True":
                why = f", {condition.message}" if condition.message else ""
                return Unready(True, f"{device} has {name}{why}")
        missing = [name for name in result.binding_conditions or () if not _is_true(conditions.get(name))]
        if missing and pending is None:
            pending = Unready(False, f"{device} to have {', '.join(missing)}")
    return pending


def _is_true(condition: Condition | None) -> bool:
    return condition is not None and condition.status == "True"


def _that_must_be_ready(claim: ResourceClaim) -> Iterator[AllocatedDevice]:
    allocation = claim.status.allocation
    for result in (allocation.devices.results if allocation is not None else None) or ():
        if result.binding_conditions:
            yield result


def _status_of(claim: ResourceClaim, result: AllocatedDevice) -> DeviceStatus | None:
    wanted = (result.driver, result.pool, result.device, result.share_id)
    for status in claim.status.devices or ():
        if (status.driver, status.pool, status.device, status.share_id) == wanted:
            return status
    return None
