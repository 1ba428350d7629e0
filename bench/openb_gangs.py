"""Openb inflation with synthetic gangs: a whole gang is placed, or nothing of it.

A whole-GPU pod that arrives becomes a gang of like pods: of one with 91.6 %, of 2 to 8 with 6.8 %, of 9 to 32
with 1.6 %; pods with a part of a GPU or none stay alone.  Arrivals end, as without gangs, at 130 % of the
cluster's GPUs.  Measured beside what is left unused: how many gangs of each size were placed.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from bench.openb_muster import MusterPolicy
from bench.openb_policies import Choice, FgdPolicy, Room
from bench.openb_trace import DEMAND, DEVICE_MILLI, PodShape

SIZES = ((1, 1, 0.916), (2, 8, 0.068), (9, 32, 0.016))


class Gang(NamedTuple):
    """So many pods of one shape."""

    shape: PodShape
    members: int

    @property
    def size_class(self) -> str:
        """Its size as the table has it."""
        return next(f"{least}_{most}" for least, most, _ in SIZES if least <= self.members <= most)


class GangPolicy(Protocol):
    """Finds a place for every pod of a gang; None where there is none for all."""

    def place(self, gang: Gang, room: Room) -> list[Choice] | None: ...


class GangInflation(NamedTuple):
    """One run's outcome: percent of GPUs unallocated, percent of gangs accepted by size, what was wrong."""

    unallocated: float
    accepted: dict[str, float]
    wrong: tuple[str, ...]


class FgdGangs:
    """FGD pod by pod.  Of like pods each takes some place, so that counting tells whether all find one."""

    def __init__(self, policy: FgdPolicy) -> None:
        self._policy = policy

    def place(self, gang: Gang, room: Room) -> list[Choice] | None:
        if room.count_copies(gang.shape) < gang.members:
            return None
        choices = []
        for _ in range(gang.members):
            choice = self._policy.choose(gang.shape, room)
            assert choice is not None
            room.take(gang.shape, *choice)
            choices.append(choice)
        return choices


class MusterGangs:
    """The product's way: all members on a fork, and the fork thrown away if one finds no place."""

    def __init__(self, policy: MusterPolicy) -> None:
        self._policy = policy

    def place(self, gang: Gang, room: Room) -> list[Choice] | None:
        if gang.members == 1:
            choice = self._policy.choose(gang.shape, room)
            choices = None if choice is None else [choice]
        else:
            choices = self._policy.choose_all(gang.shape, gang.members)
        for each in choices or ():
            room.take(gang.shape, *each)
        return choices


def make_gangs(arrivals: Sequence[PodShape], capacity_milli: int, rng: np.random.Generator) -> list[Gang]:
    """Gangs in order of arrival, until the next would exceed 130 % of the GPUs."""
    chances = np.array([chance for _, _, chance in SIZES])
    gangs: list[Gang] = []
    asked, wanted = 0, DEMAND * capacity_milli
    while True:
        for shape in arrivals:
            count = 1
            if shape.gpus and shape.gpu_milli == DEVICE_MILLI:
                least, most, _ = SIZES[int(rng.choice(len(SIZES), p=chances / chances.sum()))]
                count = int(rng.integers(least, most + 1))
            if asked + count * shape.total_gpu_milli > wanted:
                return gangs
            asked += count * shape.total_gpu_milli
            gangs.append(Gang(shape, count))


def inflate_gangs(gangs: Sequence[Gang], room: Room, policy: GangPolicy) -> GangInflation:
    """Let the gangs arrive; one that fits and is turned away, or is placed in part, is wrong."""
    arrived: Counter[str] = Counter()
    placed: Counter[str] = Counter()
    allocated = 0
    wrong: list[str] = []
    for number, gang in enumerate(gangs):
        fits = room.count_copies(gang.shape) >= gang.members
        arrived[gang.size_class] += 1
        try:
            choices = policy.place(gang, room)
        except ValueError as error:
            wrong.append(f"gang {number}: {error}")
            continue
        if choices is None:
            if fits:
                wrong.append(f"gang {number} was turned away though it fits: {gang}")
            continue
        if len(choices) != gang.members:
            wrong.append(f"gang {number}: {len(choices)} of {gang.members} placed")
        placed[gang.size_class] += 1
        allocated += gang.members * gang.shape.total_gpu_milli
    capacity = room.nodes.gpu_milli
    return GangInflation(
        unallocated=100.0 * (capacity - allocated) / capacity,
        accepted={name: 100.0 * placed[name] / count for name, count in sorted(arrived.items())},
        wrong=tuple(wrong),
    )
