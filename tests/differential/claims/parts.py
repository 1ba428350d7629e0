"""Devices in parts: counters that several are cut out of, and shares that several claims have of one.

The slow checker's arithmetic, in whole amounts (Gi of memory, plain numbers of the rest).  It shares nothing
with Muster.  Comes from `rules.py`; `draw_parts.py` draws such devices.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from msgspec import Struct
from tests.differential.claims.scenario import CAPACITIES, ClaimScenario, Short

Device = tuple[str, str, str]  # driver, pool, device
CounterOf = tuple[str, str, str, str]  # driver, pool, counter set, counter
Share = tuple[tuple[str, int], ...]  # of capacities by name


class Given(Struct, frozen=True):
    """One device for one request; `request` is "name", or "name/alternative".

    `share`: what was taken of a device that several claims may have, None of one that is had whole.
    """

    request: str
    device: Device
    admin: bool = False
    share: Share | None = None


def share_of(device: Short, needs: Mapping[str, int]) -> Share | None:
    """What a request takes of each capacity, or None where the device has no such capacity or forbids it."""
    capacities = {name: device[name] for name in CAPACITIES if name in device}
    if not needs.keys() <= capacities.keys():
        return None
    taken = {
        name: _taken(device.get("policy", {}).get(name), needs.get(name), value)
        for name, value in capacities.items()
    }
    found = {name: amount for name, amount in taken.items() if amount is not None}
    if len(found) < len(taken) or any(amount > capacities[name] for name, amount in found.items()):
        return None
    return tuple(sorted(found.items()))


def _taken(policy: Short | None, asked: int | None, value: int) -> int | None:
    if policy is None:
        return value if asked is None else asked
    if asked is None:
        asked = policy["default"]
    allowed = policy.get("values") or range(
        policy["min"], policy.get("max", value) + 1, policy.get("step", 1)
    )
    return next((amount for amount in allowed if amount >= asked), None)


class Parts:
    """What there is to be had in parts, of pools as they are now."""

    def __init__(self, scenario: ClaimScenario) -> None:
        newest = Counter[tuple[str, str]]()
        for short in scenario.slices:
            pool = (short["driver"], short["pool"])
            newest[pool] = max(newest[pool], short["generation"])
        self._devices: dict[Device, Short] = {}
        self._totals: dict[CounterOf, int] = {}
        for short in scenario.slices:
            pool = (short["driver"], short["pool"])
            if short["generation"] == newest[pool]:
                self._devices |= {(*pool, device["device"]): device for device in short["devices"]}
                self._totals |= {
                    (*pool, name, counter): value
                    for name, counters in short.get("counters", {}).items()
                    for counter, value in counters.items()
                }

    def is_sound(self, driver: str, pool: str) -> bool:
        """Whether every counter that a device of the pool is cut from is there."""
        return all(
            counter in self._totals
            for key in self._devices
            if key[:2] == (driver, pool)
            for counter, _ in self._cut(key)
        )

    def are_enough(self, given: Iterable[Given]) -> bool:
        """Whether there is so much of every device and of every counter."""
        plain = [each for each in given if not each.admin]
        shares, counters = Counter[tuple[Device, str]](), Counter[CounterOf]()
        for each in plain:
            shares.update({(each.device, name): amount for name, amount in each.share or ()})
        for device in {each.device for each in plain}:
            counters.update(dict(self._cut(device)))
        return all(amount <= self._devices[key][name] for (key, name), amount in shares.items()) and all(
            amount <= self._totals.get(counter, 0) for counter, amount in counters.items()
        )

    def _cut(self, key: Device) -> Iterable[tuple[CounterOf, int]]:
        for name, counters in self._devices.get(key, {}).get("cut", {}).items():
            for counter, amount in counters.items():
                yield (key[0], key[1], name, counter), amount
