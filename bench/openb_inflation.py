"""Openb inflation: pods arrive one by one, are placed or lost, and never leave; how many GPUs stay unused?

In come a variant, a seed and a policy; out comes an `Inflation`.  A pod that fits somewhere and is turned
away, or is put where it does not fit, fails the run.  Next: `quality.py`, which makes rows of them.
"""

import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bench.openb_policies import Fragmentation, Policy, Room
from bench.openb_trace import PodShape

FULL_DEMAND = 1.0


class Inflation(NamedTuple):
    """One run's outcome, in percent of the cluster's GPUs; `wrong` lists what must not happen."""

    unallocated: float
    unallocated_at_full_demand: float
    fragment: float
    lost: int
    arrived: int
    seconds: float
    wrong: tuple[str, ...]


def inflate(
    arrivals: Sequence[PodShape], room: Room, policy: Policy, fragmentation: Fragmentation
) -> Inflation:
    """Let the pods arrive."""
    capacity = room.nodes.gpu_milli
    every_row = np.arange(len(room.cpu_left))
    arrived_milli, allocated, at_full, lost = 0, 0, None, 0
    wrong: list[str] = []
    began = time.process_time()
    for number, shape in enumerate(arrivals):
        choice = policy.choose(shape, room)
        if choice is None:
            lost += 1
            if room.allows(shape, every_row).any():
                wrong.append(f"arrival {number} was turned away though it fits: {shape}")
        else:
            try:
                room.take(shape, choice.row, choice.devices)
                allocated += shape.total_gpu_milli
            except ValueError as error:
                wrong.append(f"arrival {number}: {error}")
        arrived_milli += shape.total_gpu_milli
        if at_full is None and arrived_milli >= FULL_DEMAND * capacity:
            at_full = allocated
    seconds = time.process_time() - began
    fragment = fragmentation.of(every_row, room.cpu_left, room.gpu_left).sum()
    return Inflation(
        unallocated=_percent(capacity - allocated, capacity),
        unallocated_at_full_demand=_percent(capacity - (at_full or allocated), capacity),
        fragment=_percent(float(fragment), capacity),
        lost=lost,
        arrived=len(arrivals),
        seconds=seconds,
        wrong=tuple(wrong),
    )


def _percent(part: float, whole: float) -> float:
    return 100.0 * part / whole
