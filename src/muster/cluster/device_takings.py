"""Who has which devices, kept claim by claim: a picture of it costs no more than a copy of a dict.

In come what each claim keeps from others, whenever that changes; out come pictures.  Next: `devices.py`,
which tells what claims have.
"""

from bisect import insort
from collections.abc import Mapping, Sequence

from muster.cluster.device_pools import DeviceId

Share = Mapping[str, int]  # of each capacity, in thousandths
_Key = tuple[str, str]  # of a claim


class Takings:
    """What claims have of devices, by claim and by device."""

    def __init__(self) -> None:
        self._given: dict[_Key, tuple[tuple[DeviceId, Share | None], ...]] = {}
        self._sharing: dict[_Key, None] = {}  # claims that have a share of anything
        self._takers: dict[DeviceId, tuple[_Key, ...]] = {}  # in order, as often as a claim has it

    def put(self, key: _Key, given: Sequence[tuple[DeviceId, Share | None]]) -> None:
        """The claim has these devices, all of each (None) or a share, and no others."""
        before, after = self._given.pop(key, ()), tuple(given)
        self._sharing.pop(key, None)
        if after:
            self._given[key] = after
            if any(share is not None for _, share in after):
                self._sharing[key] = None
        if [device for device, _ in before] == [device for device, _ in after]:
            return
        for device, _ in before:
            left = list(self._takers.pop(device))
            left.remove(key)
            if left:
                self._takers[device] = tuple(left)
        for device, _ in after:
            takers = list(self._takers.get(device, ()))
            insort(takers, key)
            self._takers[device] = tuple(takers)

    def picture(self) -> tuple[dict[DeviceId, tuple[_Key, ...]], dict[DeviceId, dict[str, int]]]:
        """Device → claims that have it; and, where nobody has all of it, what is taken of each capacity."""
        shares: dict[DeviceId, dict[str, int]] = {}
        for key in self._sharing:
            for device, share in self._given[key]:
                known = shares.setdefault(device, {}) if share is not None else {}
                for name, amount in (share or {}).items():
                    known[name] = known.get(name, 0) + amount
        whole = {device for device in shares if self._is_had_whole(device)}
        return dict(self._takers), {each: found for each, found in shares.items() if each not in whole}

    def _is_had_whole(self, device: DeviceId) -> bool:
        return any(
            each == device and share is None
            for key in self._takers[device]
            for each, share in self._given[key]
        )
