"""How much of a device's capacities one request takes, by the device's own rules (consumable capacity).

In come a device and what a request says; out come amounts, or None where the rules forbid it.
Source: KEP-5075; k8s.io/dynamic-resource-allocation.  Next: `device_ledger.py`, which adds them up.
"""

from typing import NamedTuple

from muster.api.devices import (
    CapacityPolicy,
    CapacityRequirements,
    Device,
    DeviceCapacity,
    Quantity,
)
from muster.cluster.device_pools import amount_of

_MILLI = 1000
_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


class Amount(NamedTuple):
    """Of one capacity: thousandths, and the same as a quantity's text."""

    name: str
    milli: int
    text: str


def consumption(device: Device, wanted: CapacityRequirements | None) -> tuple[Amount, ...] | None:
    """What a request takes of every capacity; None if it asks for one that is not there, or breaks the rules.

    Whether so much is left is not looked at, only whether there is so much at all.
    Raises   QuantityError if the request says something else than quantities.
    """
    asked = (wanted.requests if wanted is not None else None) or {}
    capacities = device.capacity or {}
    if any(name not in capacities for name in asked):
        return None
    found = []
    for name, capacity in sorted(capacities.items()):
        taken = _consumed(asked.get(name), capacity)
        amount = amount_of(taken)
        if amount < 0 or amount > amount_of(capacity.value) or _is_forbidden(amount, capacity.request_policy):
            return None
        found.append(Amount(name, amount, str(taken)))
    return tuple(found)


def _consumed(asked: Quantity | None, capacity: DeviceCapacity) -> Quantity:
    """What is taken: the default where nothing is said, else the next amount up that the rules know."""
    policy = capacity.request_policy
    if asked is None:
        has_default = policy is not None and policy.default is not None
        return policy.default if has_default else capacity.value  # type: ignore[union-attr,return-value]
    if policy is None:
        return asked
    amount, allowed = amount_of(asked), policy.valid_range
    if allowed is not None and allowed.min is not None:
        least = amount_of(allowed.min)
        if amount < least:
            return allowed.min
        step = amount_of(allowed.step) if allowed.step is not None else 0
        if step <= 0:
            return asked
        return _text(least + -(-(amount - least) // step) * step, str(allowed.step))
    for valid in policy.valid_values or ():
        if amount <= amount_of(valid):
            return valid
    return asked


def _is_forbidden(amount: int, policy: CapacityPolicy | None) -> bool:
    if policy is None or (policy.default is not None and amount == amount_of(policy.default)):
        return False
    allowed = policy.valid_range
    if allowed is not None:
        if allowed.max is not None and amount > amount_of(allowed.max):
            return True
        step = amount_of(allowed.step) if allowed.step is not None else 0
        return bool(step > 0 and allowed.min is not None and (amount - amount_of(allowed.min)) % step)
    return bool(policy.valid_values) and amount not in map(amount_of, policy.valid_values or ())


def _text(milli: int, like: str) -> str:
    """An amount as a quantity, in powers of 1024 if `like` is."""
    whole, rest = divmod(milli, _MILLI)
    if rest:
        return f"{milli}m"
    power = 0
    while like.endswith("i") and whole and whole % 1024 == 0 and power < len(_BINARY) - 1:
        whole, power = whole // 1024, power + 1
    return f"{whole}{_BINARY[power]}"
