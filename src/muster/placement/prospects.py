"""How much of a node's GPUs nobody can use in the end: the node played forward with pods as they usually are.

A node in some state is offered a fixed set of sequences of typical pods, takes of each what fits, the fullest
device first, and what is left then is its waste; expected is the mean over the sequences.  They are the same
for every state, so that differences are due to the states.  FGD (USENIX ATC 2023) looks one pod ahead;
looking twenty-four ahead leaves a sixth less unused (`docs/performance.md`).  Next: `device_states.py`, which
remembers what comes of what.
Axes: B states, D devices, T typical shapes, U ways to take from devices, K sequences, L pods of a sequence.
"""

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from muster.base.arrays import Bool, Float64, Int32, Int64
from muster.placement.device_states import UNKNOWN, DeviceStates

SEQUENCES = 32
LENGTH = 24
STATES_AT_ONCE = 128  # bounds what is remembered of them, and keeps the arrays in the processor's cache
_GOLDEN = 0.6180339887498949  # steps through the shares so that any few neighbours are a fair sample


class TypicalShape(Struct, frozen=True):
    """A kind of pod that takes GPUs, and how common it is; `milli` thousandths of each of its devices."""

    cpu_milli: int
    devices: int
    milli: int
    share: float


class Typical:
    """The shapes as columns, and the sequences drawn from them.

    Shapes   cpu_milli [T]; way [T], which of the ways to take from devices it is; sequences [K, L] of shapes.
    """

    def __init__(self, shapes: Sequence[TypicalShape]) -> None:
        ways = sorted({(shape.devices, shape.milli) for shape in shapes})
        self.cpu_milli: Int64 = np.array([shape.cpu_milli for shape in shapes], dtype=np.int64)
        self.way: Int64 = np.array([ways.index((shape.devices, shape.milli)) for shape in shapes])
        self.states = DeviceStates(
            np.array([devices for devices, _ in ways], dtype=np.int32),
            np.array([milli for _, milli in ways], dtype=np.int32),
        )
        self.sequences = draw_sequences(np.array([shape.share for shape in shapes], dtype=np.float64))


def draw_sequences(share: Float64) -> Int64:
    """[K, L] shapes in proportion to their shares [T]: at each place they cover all shares evenly."""
    up_to = np.cumsum(share) / share.sum()
    start = (np.arange(SEQUENCES)[:, np.newaxis] + 0.5) / SEQUENCES
    where = (start + _GOLDEN * np.arange(LENGTH)) % 1.0
    drawn: Int64 = np.searchsorted(up_to, where, side="right").clip(max=len(share) - 1)
    return drawn


def expect_waste(cpu_left: Int64, left: Int32, is_open: Bool, typical: Typical) -> Float64:
    """Thousandths of GPUs that will stay unused, on average.

    Shapes   cpu_left [B]; left [B, D] thousandths of each device, in any order; is_open [B, T] which shapes
             the node's labels let in; returns [B].
    """
    if not left.size:
        return np.zeros(len(left), dtype=np.float64)
    parts = [slice(at, at + STATES_AT_ONCE) for at in range(0, len(left), STATES_AT_ONCE)]
    wastes = [_play(cpu_left[part], left[part], is_open[part], typical) for part in parts]
    return np.concatenate(wastes)


def _play(cpu_left: Int64, left: Int32, is_open: Bool, typical: Typical) -> Float64:
    states = typical.states
    now = np.repeat(states.numbers(left)[:, np.newaxis], SEQUENCES, axis=1)
    cpu = np.repeat(cpu_left[:, np.newaxis], SEQUENCES, axis=1)
    for shapes in typical.sequences.T:
        needed, ways = typical.cpu_milli[shapes], typical.way[shapes]
        fits = (cpu >= needed) & is_open[:, shapes]
        after = states.after[now, ways]
        unknown = fits & (after == UNKNOWN)
        if unknown.any():
            states.learn(now[unknown], np.broadcast_to(ways, now.shape)[unknown])
            after = states.after[now, ways]
        fits &= after >= 0
        now = np.where(fits, after, now)
        cpu -= np.where(fits, needed, 0)
    waste: Float64 = states.left[now].mean(axis=1)
    return waste
