"""Device slots: how many thousandths of each GPU of each node are left, and who holds which device.

Kept only once some pod asks for a part of a device (`muster.dev/gpu-milli`); a cluster without such pods has
no slots and pays nothing.  Who holds what follows from the pods alone, so that a scheduler that starts anew
comes to the same books: a pod whose binding says `muster.dev/gpu-index` holds those devices; the others are
laid after them, oldest first, by the rule of `choose_devices`.  `state.py` keeps the table, `snapshot.py`
hands out views.  Axes: N node rows, D devices of the node with most.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from muster.api.core import Pod
from muster.base.arrays import Int32, Int64
from muster.cluster.gpu_annotations import DEVICE_MILLI, indices_of
from muster.cluster.requests import DeviceAsk, device_ask

DEVICES_MAX = 64  # a node that offers more is taken for one whose devices are already divided: no slots

PodKey = tuple[str, str]


class Hold(NamedTuple):
    """GpuSlots a pod holds, and how many thousandths of each."""

    devices: tuple[int, ...]
    milli: int


Holds = Mapping[PodKey, Hold]
_NOBODY: Holds = {}


class GpuSlots:
    """The slots of one snapshot; a fork's are its own from the first pod placed on it.

    Shapes   left [N, D] thousandths left, 0 past the last device, less where a node is overcommitted;
             count [N] devices.
    """

    __slots__ = ("_holds", "_holds_here", "_is_ours", "count", "left")

    def __init__(self, left: Int32, count: Int32, holds: Mapping[int, Holds]) -> None:
        self.left = left
        self.count = count
        self._holds = holds  # by row
        self._holds_here: dict[int, Holds] = {}
        self._is_ours = False

    def fork(self) -> "GpuSlots":
        """A copy to place on; this one must not be written any more while both are in use."""
        copy = GpuSlots(self.left.copy() if self._is_ours else self.left, self.count, self._holds)
        copy._holds_here = dict(self._holds_here)
        copy._is_ours = self._is_ours
        return copy

    def holds_on(self, row: int) -> Holds:
        """Who holds devices of this row."""
        return self._holds_here.get(row, self._holds.get(row, _NOBODY))

    def place(self, pod: Pod, row: int) -> None:
        """Give the pod devices of this row by the rule."""
        ask = device_ask(pod)
        if ask is None:
            return
        self._own()
        hold = Hold(choose_devices(self.left[row, : self.count[row]], ask), ask.milli)
        self.left[row, list(hold.devices)] -= hold.milli
        self._holds_here[row] = {**self.holds_on(row), _key_of(pod): hold}

    def remove(self, pod: Pod, row: int) -> None:
        """Take its devices from the pod; nothing happens if it holds none there."""
        holds = self.holds_on(row)
        hold = holds.get(_key_of(pod))
        if hold is None:
            return
        self._own()
        self.left[row, list(hold.devices)] += hold.milli
        self._holds_here[row] = {key: kept for key, kept in holds.items() if kept is not hold}

    def _own(self) -> None:
        if not self._is_ours:
            self.left, self._is_ours = self.left.copy(), True


class GpuTable:
    """The slots of all rows, brought up to date row by row; `state.py` is its only writer."""

    def __init__(self) -> None:
        self.active = False
        self.wanted = False  # somebody asked for the slots of a snapshot that had none
        self._left: Int32 = np.zeros((0, 0), dtype=np.int32)
        self._count: Int32 = np.zeros(0, dtype=np.int32)
        self._holds: dict[int, Holds] = {}
        self._frozen: GpuSlots | None = None

    def put(self, row: int, count: int, pods: Iterable[tuple[Pod, tuple[int, ...]]]) -> None:
        """Write one row anew: its number of devices, and its pods with the devices given to them so far."""
        self._frozen = None
        count = count if count <= DEVICES_MAX else 0
        self._widen(row + 1, count)
        left, holds = lay_out(count, pods)
        self._left[row] = 0
        self._left[row, :count] = left
        self._count[row] = count
        self._holds.pop(row, None)
        if holds:
            self._holds[row] = holds

    def freeze(self, row_count: int) -> GpuSlots:
        """The slots of the first rows as they are."""
        if self._frozen is None or len(self._frozen.count) != row_count:
            self._widen(row_count, 0)
            left, count = self._left[:row_count].copy(), self._count[:row_count].copy()
            left.flags.writeable = count.flags.writeable = False
            self._frozen = GpuSlots(left, count, dict(self._holds))
        return self._frozen

    def _widen(self, rows: int, devices: int) -> None:
        more_rows = max(0, rows - len(self._count))
        more_devices = max(0, devices - self._left.shape[1])
        if more_rows or more_devices:
            more_rows = more_rows and max(more_rows, len(self._count))
            self._left = np.pad(self._left, ((0, more_rows), (0, more_devices)))
            self._count = np.pad(self._count, (0, more_rows))


def slots_of(counts: Sequence[int], pods_by_row: Sequence[Sequence[Pod]]) -> GpuSlots:
    """Slots reckoned from nothing but the pods; `counts` are devices by row."""
    table = GpuTable()
    for row, (count, pods) in enumerate(zip(counts, pods_by_row, strict=True)):
        table.put(row, count, ((pod, ()) for pod in pods))
    return table.freeze(len(counts))


def lay_out(count: int, pods: Iterable[tuple[Pod, tuple[int, ...]]]) -> tuple[Int32, Holds]:
    """What is left of `count` devices, and who holds them.

    First those whose devices are known, by annotation or by the assumption given with them; then the others,
    oldest first (creation, namespace, name).
    """
    left = np.full(count, DEVICE_MILLI, dtype=np.int32)
    holds: dict[PodKey, Hold] = {}
    unknown: list[tuple[Pod, DeviceAsk]] = []
    for pod, assumed in pods:
        ask = device_ask(pod)
        if ask is None:
            continue
        devices = tuple(device for device in indices_of(pod) or assumed if device < count)
        if len(devices) == ask.devices:
            left[list(devices)] -= ask.milli
            holds[_key_of(pod)] = Hold(devices, ask.milli)
        else:
            unknown.append((pod, ask))
    for pod, ask in sorted(
        unknown, key=lambda pair: (pair[0].metadata.creation_timestamp or "", _key_of(pair[0]))
    ):
        devices = choose_devices(left, ask)
        left[list(devices)] -= ask.milli
        holds[_key_of(pod)] = Hold(devices, ask.milli)
    return left, holds


def choose_devices(left: Int32, ask: DeviceAsk) -> tuple[int, ...]:
    """Which of these devices: the fullest that have room, the lower number first.

    A whole device has room where nobody is.  Where room is short the emptiest are taken besides: the pod is
    there, whatever the books say.  Shapes: left [D]; returns at most `ask.devices` numbers, ascending.
    """
    has_room = left >= ask.milli
    order = np.lexsort((np.where(has_room, left, -left), ~has_room))
    return tuple(sorted(order[: ask.devices].tolist()))


def copies_left(left: Int32, ask: DeviceAsk) -> Int64:
    """[K] how many pods that ask for this fit.  Shapes: left [K, D]."""
    if ask.milli == DEVICE_MILLI:
        whole: Int64 = (left >= DEVICE_MILLI).sum(axis=1) // ask.devices
        return whole
    parts: Int64 = (np.maximum(left, 0) // ask.milli).sum(axis=1, dtype=np.int64)
    return parts


def _key_of(pod: Pod) -> PodKey:
    return (pod.metadata.namespace, pod.metadata.name)
