"""GpuPacking: place pods so that as little of the GPUs as possible can never be used.

Not in the default profile: it must be told which pods are usual.  In come shapes and their shares from the
configuration; out goes the score.  Next: `placement/prospects.py`, the arithmetic.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from muster.api.core import Pod
from muster.api.quantity import QuantityError, resource_amount
from muster.base.arrays import Bool, Float64, Int32
from muster.cluster.axes import CPU
from muster.cluster.gpu_annotations import DEVICE_MILLI
from muster.cluster.requests import DeviceAsk, device_ask
from muster.cluster.snapshot import Snapshot
from muster.cluster.topology import NodeLabels
from muster.placement.prospects import Typical, TypicalShape, expect_waste

_FIELDS = ("share", "cpu", "gpus", "gpuMilli", "nodeLabels")
_WASTES_MAX = 200_000
_INT32_MAX = 2**31 - 1

_Labels = Mapping[str, Sequence[str]]


class GpuPacking:
    """Score by how many thousandths of GPUs more will be wasted if the pod goes there; 50 is none.

    `shapes`: what usual pods take of GPUs, each a mapping of `share` (how common, in any unit), `cpu`, `gpus`
    or `gpuMilli`, and `nodeLabels` (key → values, of which a node must have one) if they need certain nodes.
    Raises   ValueError, naming the entry and the field.
    """

    name: ClassVar[str] = "GpuPacking"
    judges_row_alone: ClassVar[bool] = True
    reads_metadata: ClassVar[bool] = False

    def __init__(self, *, shapes: Sequence[Mapping[str, Any]]) -> None:
        if not isinstance(shapes, Sequence) or isinstance(shapes, str) or not shapes:
            raise ValueError("shapes: give at least one, such as {share: 60, cpu: 4, gpuMilli: 500}")
        read = [_read_shape(f"shapes[{index}]", shape) for index, shape in enumerate(shapes)]
        read.sort(key=lambda pair: -pair[0].share)
        self._typical = Typical([shape for shape, _ in read])
        self._labels: list[_Labels] = [labels for _, labels in read]
        self._wastes: dict[bytes, float] = {}
        self._classes: dict[bytes, int] = {}
        self._open: list[Bool] = []
        self._classes_of: tuple[NodeLabels, Int32] | None = None

    def score(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> Float64:
        cpu_milli = int(snapshot.request_of(pod)[snapshot.axis.column_of(CPU)])
        return self._rate(device_ask(pod), cpu_milli, self._states(snapshot, rows))

    def _states(self, snapshot: Snapshot, rows: Int32) -> Int32:
        """[K, 2 + D] all that a row's score follows from: CPU left, class of its labels, devices left."""
        left = snapshot.gpus.left
        now = np.empty((len(rows), 2 + left.shape[1]), dtype=np.int32)
        column = snapshot.axis.column_of(CPU)
        free = snapshot.allocatable[rows, column] - snapshot.requested[rows, column]
        now[:, 0] = free.clip(0, _INT32_MAX)
        now[:, 1] = self._class_of(snapshot)[rows]
        now[:, 2:] = left[rows]
        return now

    def _rate(self, ask: DeviceAsk | None, cpu_milli: int, states: Int32) -> Float64:
        """[K] the scores of rows in these states."""
        after = states.copy()
        after[:, 0] = np.maximum(states[:, 0].astype(np.int64) - cpu_milli, 0)
        after[:, 2:] = np.sort(states[:, 2:], axis=1)
        if ask is not None:
            first = (after[:, 2:] < ask.milli).sum(axis=1)[:, np.newaxis]
            place = np.arange(after.shape[1] - 2)
            taken = (place >= first) & (place < first + ask.devices)
            after[:, 2:] = np.sort(after[:, 2:] - np.where(taken, ask.milli, 0), axis=1)
        before = states.copy()
        before[:, 2:] = np.sort(states[:, 2:], axis=1)
        more = self._waste(after) - self._waste(before)
        score: Float64 = 100.0 / (1.0 + np.exp((more / DEVICE_MILLI).clip(-50.0, 50.0)))
        return score

    def _waste(self, states: Int32) -> Float64:
        """[K] what will be wasted of rows in these states, devices in ascending order; each state once."""
        keys = [state.tobytes() for state in states]
        missing = {key: index for index, key in enumerate(keys) if key not in self._wastes}
        if missing:
            if len(self._wastes) > _WASTES_MAX:
                self._wastes.clear()
                return self._waste(states)
            asked = states[list(missing.values())]
            is_open = np.array([self._open[index] for index in asked[:, 1].tolist()])
            wastes = expect_waste(asked[:, 0].astype(np.int64), asked[:, 2:], is_open, self._typical)
            self._wastes.update(zip(missing, wastes.tolist(), strict=True))
        return np.array([self._wastes[key] for key in keys], dtype=np.float64)

    def _class_of(self, snapshot: Snapshot) -> Int32:
        """[N] which shapes the row's labels let in, as a number; kept until labels change."""
        if self._classes_of is None or self._classes_of[0] is not snapshot.labels:
            masks = np.array([_allowed(labels, snapshot) for labels in self._labels])
            numbers = [self._class_number(row) for row in np.ascontiguousarray(masks.T)]
            self._classes_of = (snapshot.labels, np.array(numbers, dtype=np.int32))
        return self._classes_of[1]

    def _class_number(self, is_open: Bool) -> int:
        key = is_open.tobytes()
        if key not in self._classes:
            self._classes[key] = len(self._open)
            self._open.append(is_open)
        return self._classes[key]


def _allowed(labels: _Labels, snapshot: Snapshot) -> Bool:
    """[N] rows whose labels have one of the values of every key."""
    allowed = np.ones(len(snapshot.live), dtype=np.bool_)
    rows = np.arange(len(allowed), dtype=np.int32)
    for key, values in labels.items():
        column = snapshot.labels.column(key)
        matching = np.array([value in values for value in column.values], dtype=np.bool_)
        allowed &= column.mask(matching, rows, missing=False)
    return allowed


def _read_shape(path: str, entry: Mapping[str, Any]) -> tuple[TypicalShape, _Labels]:
    if not isinstance(entry, Mapping):
        raise ValueError(f"{path}: give a mapping of {', '.join(_FIELDS)}")
    unknown = sorted(set(entry) - set(_FIELDS))
    if unknown:
        raise ValueError(f"{path}.{unknown[0]}: there is no such field; fields are {', '.join(_FIELDS)}")
    share = entry.get("share")
    if not isinstance(share, int | float) or isinstance(share, bool) or not 0 < share < 1e12:
        raise ValueError(
            f"{path}.share: give a number above 0, such as the count of such pods, not {share!r}"
        )
    try:
        cpu_milli = resource_amount(CPU, entry.get("cpu", 0))
    except QuantityError as error:
        raise ValueError(f"{path}.cpu: {error}") from error
    gpus = _read_count(path, "gpus", entry.get("gpus", 1), 64)
    milli = _read_count(path, "gpuMilli", entry.get("gpuMilli", DEVICE_MILLI), DEVICE_MILLI)
    if gpus > 1 and milli < DEVICE_MILLI:
        raise ValueError(f"{path}.gpuMilli: a part can be had of one device only; leave out gpus or gpuMilli")
    labels = entry.get("nodeLabels", {})
    if not isinstance(labels, Mapping) or not all(
        isinstance(values, list | tuple) for values in labels.values()
    ):
        raise ValueError(f"{path}.nodeLabels: give lists of values by label key")
    return TypicalShape(min(max(cpu_milli, 0), _INT32_MAX), gpus, milli, float(share)), labels


def _read_count(path: str, field: str, value: object, most: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        raise ValueError(f"{path}.{field}: give a whole number from 1 to {most}, not {value!r}")
    return value
