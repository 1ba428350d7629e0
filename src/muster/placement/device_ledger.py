"""Who has what of the devices while a search tries: whole devices, shares of them, counters they come from.

Begins with what claims have by the API and by choice; every entry is taken back by whoever made it.
In come offers and amounts; out comes whether one more fits.  Next: `device_allocation.py`, which searches.
"""

from collections.abc import Mapping

from muster.cluster.device_pools import CounterId, CounterSetId, DeviceId, Offer, amount_of
from muster.cluster.devices import NO_DEVICES, Devices
from muster.placement.device_capacity import Amount

_NOTHING: Mapping[str, int] = {}


class Ledger:
    """What is left of each device beside `devices` and what has been given since."""

    def __init__(self, devices: Devices = NO_DEVICES) -> None:
        self._devices = devices
        self._users: dict[DeviceId, int] = {}
        self._shares: dict[DeviceId, dict[str, int]] = {}
        self._spent: dict[CounterId, int] = {}

    def is_free(self, offer: Offer, amounts: tuple[Amount, ...]) -> bool:
        """Whether a claim could have this device as well, or so much of it."""
        device = offer.id
        is_first = not self.is_used(device)
        if offer.is_shared:
            if device in self._devices.taken and device not in self._devices.shares:
                return False
            if not all(self._has_left(offer, amount) for amount in amounts):
                return False
        elif not is_first:
            return False
        return not is_first or all(self.left_of(counter) >= amount for counter, amount in offer.consumes)

    def give(self, offer: Offer, amounts: tuple[Amount, ...]) -> None:
        """A claim has it now."""
        self._charge(offer, amounts, 1)

    def take_back(self, offer: Offer, amounts: tuple[Amount, ...]) -> None:
        """That claim does not have it any more."""
        self._charge(offer, amounts, -1)

    def is_used(self, device: DeviceId) -> bool:
        """Whether any claim has it or a share of it."""
        return device in self._devices.taken or bool(self._users.get(device))

    def share_of(self, device: DeviceId) -> tuple[tuple[str, int], ...]:
        """What is taken of each capacity of a device that is given in shares."""
        before, since = self._devices.shares.get(device, _NOTHING), self._shares.get(device, _NOTHING)
        return tuple((name, before.get(name, 0) + since.get(name, 0)) for name in sorted({*before, *since}))

    def left_of(self, counter: CounterId) -> int:
        """What nobody has taken of a counter, in thousandths."""
        total = self._devices.pools.counters.get(counter, 0)
        return total - self._devices.spent.get(counter, 0) - self._spent.get(counter, 0)

    def left_in(self, counter_set: CounterSetId) -> tuple[tuple[str, int], ...]:
        """What nobody has taken of each counter of a set, by name, in thousandths."""
        counters = self._devices.pools.sets.get(counter_set, ())
        return tuple((counter[3], self.left_of(counter)) for counter in counters)

    def _has_left(self, offer: Offer, amount: Amount) -> bool:
        before = self._devices.shares.get(offer.id, _NOTHING).get(amount.name, 0)
        since = self._shares.get(offer.id, _NOTHING).get(amount.name, 0)
        capacity = (offer.device.capacity or {})[amount.name]
        return before + since + amount.milli <= amount_of(capacity.value)

    def _charge(self, offer: Offer, amounts: tuple[Amount, ...], sign: int) -> None:
        was_used = self.is_used(offer.id)
        self._users[offer.id] = self._users.get(offer.id, 0) + sign
        if offer.is_shared:
            shares = self._shares.setdefault(offer.id, {})
            for amount in amounts:
                shares[amount.name] = shares.get(amount.name, 0) + sign * amount.milli
        if was_used != self.is_used(offer.id):
            for counter, amount_of_it in offer.consumes:
                self._spent[counter] = self._spent.get(counter, 0) + sign * amount_of_it
