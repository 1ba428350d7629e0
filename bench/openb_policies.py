"""Random, BestFit and FGD as published, on nodes with devices that can be shared.

All three see the same room (CPU, memory, each device's free thousandths) and differ in the score alone; of
equal scores the node that comes first wins.  Scores are whole numbers from 0 to 100, as in the published
scheduler: ties are many, and how they fall is worth points.  Next: `openb_inflation.py`.
Axes: N nodes (K of them), 8 devices, T typical shapes.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from bench.openb_trace import DEVICE_MILLI, DEVICES_MAX, Nodes, PodShape

SPEC_CPU_MILLI, SPEC_GPU_MILLI = 128_000, 8_000  # the largest node, by which BestFit weighs
POPULAR_SHARE = 0.95
SCORE_MAX = 100


class Room:
    """What is free, by node.  Shapes: cpu_left, memory_left [N]; gpu_left [N, 8], 0 without a device."""

    def __init__(self, nodes: Nodes) -> None:
        self.nodes = nodes
        self.cpu_left = nodes.cpu_milli.copy()
        self.memory_left = nodes.memory_mib.copy()
        self.gpu_left = np.where(np.arange(DEVICES_MAX) < nodes.gpus[:, None], DEVICE_MILLI, 0)
        self._models = np.array(nodes.models)

    def allows(self, shape: PodShape, rows: np.ndarray) -> np.ndarray:
        """[K] whether a pod of this shape fits on these rows."""
        fits: np.ndarray = self.cpu_left[rows] >= shape.cpu_milli
        fits = fits & (self.memory_left[rows] >= shape.memory_mib)
        if shape.gpus:
            fits = fits & ((self.gpu_left[rows] >= shape.gpu_milli).sum(axis=1) >= shape.gpus)
        if shape.models:
            fits = fits & np.isin(self._models[rows], shape.models)
        return fits

    def count_copies(self, shape: PodShape) -> int:
        """How many pods of this shape fit in all."""
        rows = np.flatnonzero(self.allows(shape, np.arange(len(self.cpu_left))))
        copies = np.full(len(rows), np.iinfo(np.int32).max, dtype=np.int64)
        for left, asked in ((self.cpu_left, shape.cpu_milli), (self.memory_left, shape.memory_mib)):
            if asked:
                copies = np.minimum(copies, left[rows] // asked)
        if shape.gpus:
            devices = (self.gpu_left[rows] // shape.gpu_milli).sum(axis=1)
            copies = np.minimum(copies, devices // shape.gpus)
        return int(copies.sum())

    def take(self, shape: PodShape, row: int, devices: Sequence[int]) -> None:
        """Place a pod.  Raises ValueError if it does not fit there."""
        if len(devices) != shape.gpus or not self.allows(shape, np.array([row]))[0]:
            raise ValueError(f"{shape} does not fit on {self.nodes.names[row]}")
        self.cpu_left[row] -= shape.cpu_milli
        self.memory_left[row] -= shape.memory_mib
        for device in devices:
            self.gpu_left[row, device] -= shape.gpu_milli
        if (self.gpu_left[row] < 0).any():
            raise ValueError(f"{shape} overcommits devices {devices} of {self.nodes.names[row]}")


class Choice(NamedTuple):
    """Where a pod goes: the row and the devices of that node."""

    row: int
    devices: tuple[int, ...]


class Policy(Protocol):
    """Chooses a place for one pod after another; None where it finds none."""

    def choose(self, shape: PodShape, room: Room) -> Choice | None: ...


def first_devices(shape: PodShape, left: np.ndarray) -> tuple[int, ...]:
    """The fullest devices that still take the pod, the lower number first."""
    order = np.argsort(left, kind="stable")
    return tuple(order[left[order] >= shape.gpu_milli][: shape.gpus].tolist())


class RandomPolicy:
    """Any node that fits, with equal chance."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def choose(self, shape: PodShape, room: Room) -> Choice | None:
        rows = np.flatnonzero(room.allows(shape, np.arange(len(room.cpu_left))))
        if not rows.size:
            return None
        row = int(rows[self._rng.integers(rows.size)])
        fitting = np.flatnonzero(room.gpu_left[row] >= shape.gpu_milli)
        chosen = self._rng.permutation(fitting)[: shape.gpus]
        return Choice(row, tuple(chosen.tolist()))


class BestFitPolicy:
    """The node on which least is left, CPU and GPU weighed alike."""

    def choose(self, shape: PodShape, room: Room) -> Choice | None:
        rows = np.flatnonzero(room.allows(shape, np.arange(len(room.cpu_left))))
        if not rows.size:
            return None
        cpu = (room.cpu_left[rows] - shape.cpu_milli) / SPEC_CPU_MILLI
        gpu = (room.gpu_left[rows].sum(axis=1) - shape.total_gpu_milli) / SPEC_GPU_MILLI
        score = ((1.0 - 0.5 * cpu - 0.5 * gpu) * SCORE_MAX).astype(np.int64)
        row = int(rows[np.argmax(score)])
        return Choice(row, first_devices(shape, room.gpu_left[row]))


class Fragmentation:
    """How many free thousandths of a node's devices the typical shapes cannot use, on average."""

    def __init__(self, pods: Sequence[PodShape], nodes: Nodes) -> None:
        popular = popular_shapes(pods)
        self._weight = np.array([share for _, share in popular])
        self._cpu = np.array([shape.cpu_milli for shape, _ in popular])
        self._gpus = np.array([shape.gpus for shape, _ in popular])
        millis = sorted({shape.gpu_milli for shape, _ in popular})
        self._millis = np.array(millis)
        self._milli_of = np.array([millis.index(shape.gpu_milli) for shape, _ in popular])
        self._open = np.array(
            [[not s.models or model in s.models for s, _ in popular] for model in nodes.models],
            dtype=np.bool_,
        )

    def of(self, rows: np.ndarray, cpu_left: np.ndarray, gpu_left: np.ndarray) -> np.ndarray:
        """[K] expected fragment of nodes in these states.  Shapes: rows, cpu_left [K]; gpu_left [K, 8]."""
        reaches = gpu_left[:, :, None] >= self._millis
        devices = reaches.sum(axis=1)
        total = gpu_left.sum(axis=1)
        too_small = total[:, None] - (gpu_left[:, :, None] * reaches).sum(axis=1)
        hosts = (self._gpus > 0) & (devices[:, self._milli_of] >= self._gpus)
        hosts &= (cpu_left[:, None] >= self._cpu) & self._open[rows]
        lost = np.where(hosts, too_small[:, self._milli_of], total[:, None])
        expected: np.ndarray = lost @ self._weight
        return expected


def popular_shapes(pods: Sequence[PodShape]) -> list[tuple[PodShape, float]]:
    """The most popular shapes that make up 95 % of the pods, with their shares of these.

    Memory is left out, as published: two pods that differ in memory alone are one shape.  Of equally popular
    ones the larger go first.
    """
    counts = Counter(pod._replace(memory_mib=0) for pod in pods)
    popular: list[tuple[PodShape, int]] = []
    covered = 0
    for shape, count in sorted(counts.items(), key=_popularity, reverse=True):
        if covered >= POPULAR_SHARE * len(pods):
            break
        popular.append((shape, count))
        covered += count
    return [(shape, count / covered) for shape, count in popular]


def _popularity(item: tuple[PodShape, int]) -> tuple[int, int, int, int, str]:
    shape, count = item
    return count, shape.cpu_milli, shape.gpu_milli, shape.gpus, "|".join(shape.models)


class FgdPolicy:
    """Fragmentation gradient descent (ATC 2023): the place where the fragment grows least.

    The score of a shape on a node is kept until something is placed on that node.
    """

    def __init__(self, fragmentation: Fragmentation, node_count: int) -> None:
        self._fragmentation = fragmentation
        self._score: dict[PodShape, np.ndarray] = {}
        self._device: dict[PodShape, np.ndarray] = {}
        self._seen: dict[PodShape, int] = {}
        self._touched: list[int] = []
        self._rows = np.arange(node_count)

    def choose(self, shape: PodShape, room: Room) -> Choice | None:
        if shape not in self._score:
            self._score[shape] = np.full(len(self._rows), -1, dtype=np.int64)
            self._device[shape] = np.zeros(len(self._rows), dtype=np.int64)
            self._rate(shape, room, self._rows)
        else:
            since = self._touched[self._seen[shape] :]
            if since:
                self._rate(shape, room, np.unique(since))
        self._seen[shape] = len(self._touched)
        score = self._score[shape]
        row = int(np.argmax(score))
        if score[row] < 0:
            return None
        self._touched.append(row)
        if shape.is_shared:
            return Choice(row, (int(self._device[shape][row]),))
        return Choice(row, first_devices(shape, room.gpu_left[row]))

    def _rate(self, shape: PodShape, room: Room, rows: np.ndarray) -> None:
        self._score[shape][rows] = -1
        rows = rows[room.allows(shape, rows)]
        if not rows.size:
            return
        cpu, gpu = room.cpu_left[rows], room.gpu_left[rows]
        before = self._fragmentation.of(rows, cpu, gpu)
        if not shape.is_shared:
            after = self._fragmentation.of(rows, cpu - shape.cpu_milli, _without(shape, gpu))
            self._score[shape][rows] = _whole_score(before - after)
            return
        tried = np.repeat(rows, DEVICES_MAX)
        device = np.tile(np.arange(DEVICES_MAX), len(rows))
        states = np.repeat(gpu, DEVICES_MAX, axis=0)
        states[np.arange(len(tried)), device] -= shape.gpu_milli
        fits = states[np.arange(len(tried)), device] >= 0
        after = self._fragmentation.of(
            tried, np.repeat(cpu, DEVICES_MAX) - shape.cpu_milli, np.maximum(states, 0)
        )
        score = np.where(fits, _whole_score(np.repeat(before, DEVICES_MAX) - after), -1)
        by_device = score.reshape(len(rows), DEVICES_MAX)
        self._device[shape][rows] = by_device.argmax(axis=1)
        self._score[shape][rows] = by_device.max(axis=1)


def _without(shape: PodShape, gpu_left: np.ndarray) -> np.ndarray:
    """[K, 8] what is left once the fullest devices that fit have taken the pod."""
    left = gpu_left.copy()
    if shape.gpus:
        for index, devices in enumerate(left):
            devices[list(first_devices(shape, gpu_left[index]))] -= shape.gpu_milli
    return left


def _whole_score(gain: np.ndarray) -> np.ndarray:
    return (SCORE_MAX / (1.0 + np.exp(-gain / DEVICE_MILLI))).astype(np.int64)
