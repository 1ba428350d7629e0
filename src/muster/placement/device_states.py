"""What is left of a node's devices once a pod has taken its share, remembered state by state.

A state is what is left of each device of a node, whichever device that is; which pods come and in what order
hardly matters, so the same few thousand states come up again and again.  Each has a number, and a table says
which number comes of it when so much is taken: playing a node forward is then looking up, not sorting
(`placement/prospects.py`).
Axes: B states asked about, D devices, S states known, U ways to take from devices.
"""

import numpy as np

from muster.base.arrays import Int16, Int32, Int64

STATES_MAX = 50_000  # some 300 bytes each
UNKNOWN, NO_ROOM = -2, -1
_ROWS_FIRST = 1024


class DeviceStates:
    """The states met so far.  `devices`, `milli` [U]: so many devices are taken, so much of each.

    `after` [S, U]: the state that comes of it, `NO_ROOM` where it does not fit, `UNKNOWN` until `learn` was
    told to find out.  `left` [S]: thousandths left in all.  Rows beyond the states known mean nothing.
    """

    def __init__(self, devices: Int32, milli: Int32) -> None:
        self._devices = devices
        self._milli = milli
        self._number_of: dict[bytes, int] = {}
        self._levels: Int16 = np.zeros((0, 0), dtype=np.int16)  # [S, D], ascending
        self.after: Int32 = np.zeros((0, len(milli)), dtype=np.int32)
        self.left: Int64 = np.zeros(0, dtype=np.int64)

    def numbers(self, left: Int32) -> Int64:
        """[B] the numbers of these states: `left` [B, D], thousandths of each device in any order.

        Good until the next call of it: where too many have been met, all are forgotten.
        """
        if left.shape[1] != self._levels.shape[1] or len(self._number_of) > STATES_MAX:
            self._forget(left.shape[1])
        return self._number(np.sort(np.maximum(left, 0).astype(np.int16), axis=1))

    def learn(self, states: Int64, ways: Int64) -> None:
        """Find out what comes of these states when it is taken from them in these ways.  Shapes: [B]."""
        pairs = np.unique(states * len(self._milli) + ways)
        states, ways = pairs // len(self._milli), pairs % len(self._milli)
        levels = self._levels[states]
        milli = self._milli[ways].astype(np.int16)[:, np.newaxis]
        # ascending: the first device with room is the fullest, and whole ones stand at the end
        first = (levels < milli).sum(axis=1)
        last = first + self._devices[ways]
        fits = last <= levels.shape[1]
        place = np.arange(levels.shape[1])
        taken = (place >= first[:, np.newaxis]) & (place < last[:, np.newaxis]) & fits[:, np.newaxis]
        levels -= np.where(taken, milli, np.int16(0))
        numbers = self._number(np.sort(levels, axis=1))
        self.after[states, ways] = np.where(fits, numbers, NO_ROOM)

    def _number(self, levels: Int16) -> Int64:
        """[B] the numbers of states [B, D] in ascending order; those not met before get one."""
        known = self._number_of
        raw, size = levels.tobytes(), levels.itemsize * levels.shape[1]
        keys = [raw[at : at + size] for at in range(0, len(raw), size)]
        numbers = [known.setdefault(key, len(known)) for key in keys]
        found = np.array(numbers, dtype=np.int64)
        self._grow()
        self._levels[found] = levels
        self.left[found] = levels.sum(axis=1, dtype=np.int64)
        return found

    def _grow(self) -> None:
        """Make the table long enough for all states known."""
        rows, length = len(self.left), len(self._number_of)
        if length <= rows:
            return
        more = max(length, 2 * rows) - rows
        self._levels = np.concatenate([self._levels, np.zeros((more, self._levels.shape[1]), dtype=np.int16)])
        self.after = np.concatenate([self.after, np.full((more, len(self._milli)), UNKNOWN, dtype=np.int32)])
        self.left = np.concatenate([self.left, np.zeros(more, dtype=np.int64)])

    def _forget(self, devices: int) -> None:
        self._number_of.clear()
        self._levels = np.zeros((_ROWS_FIRST, devices), dtype=np.int16)
        self.after = np.full((_ROWS_FIRST, len(self._milli)), UNKNOWN, dtype=np.int32)
        self.left = np.zeros(_ROWS_FIRST, dtype=np.int64)
