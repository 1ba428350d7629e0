"""How much of a node's GPUs nobody can use in the end: the node played forward with pods as they usually are.

A node in some state is offered a fixed set of sequences of typical pods, takes of each what fits, the fullest
device first, and what is left then is its waste; expected is the mean over the sequences.  They are the same
for every state, so that differences are due to the states.  FGD (USENIX ATC 2023) looks one pod ahead;
looking twenty-four ahead leaves a sixth less unused (`docs/performance.md`).
Axes: B states, D devices, T typical shapes, K sequences, L pods of a sequence.
"""

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from muster.base.arrays import Bool, Float64, Int32, Int64

SEQUENCES = 32
LENGTH = 24
_GOLDEN = 0.6180339887498949  # steps through the shares so that any few neighbours are a fair sample


class TypicalShape(Struct, frozen=True):
    """A kind of pod that takes GPUs, and how common it is; `milli` thousandths of each of its devices."""

    cpu_milli: int
    devices: int
    milli: int
    share: float


class Typical:
    """The shapes as columns, and the sequences drawn from them.

    Shapes   cpu_milli, devices, milli [T]; sequences [K, L] of shapes.
    """

    def __init__(self, shapes: Sequence[TypicalShape]) -> None:
        self.cpu_milli: Int64 = np.array([shape.cpu_milli for shape in shapes], dtype=np.int64)
        self.devices: Int32 = np.array([shape.devices for shape in shapes], dtype=np.int32)
        self.milli: Int32 = np.array([shape.milli for shape in shapes], dtype=np.int32)
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
    states, devices = left.shape
    slots = np.sort(np.maximum(left, 0).astype(np.int16), axis=1)
    slots = np.repeat(slots[:, np.newaxis, :], SEQUENCES, axis=1)
    cpu = np.repeat(cpu_left[:, np.newaxis], SEQUENCES, axis=1)
    place = np.arange(devices)
    for shapes in typical.sequences.T:
        milli = typical.milli[shapes].astype(np.int16)
        # ascending: the first device with room is the fullest, and whole ones stand at the end
        first = (slots < milli[:, np.newaxis]).sum(axis=2)
        last = first + typical.devices[shapes]
        fits = (last <= devices) & (cpu >= typical.cpu_milli[shapes]) & is_open[:, shapes]
        if not fits.any():
            continue
        taken = (place >= first[:, :, np.newaxis]) & (place < last[:, :, np.newaxis])
        slots -= np.where(taken & fits[:, :, np.newaxis], milli[:, np.newaxis], 0).astype(np.int16)
        cpu -= np.where(fits, typical.cpu_milli[shapes], 0)
        slots.sort(axis=2)
    waste: Float64 = slots.sum(axis=2, dtype=np.int64).mean(axis=1)
    return waste.reshape(states)
