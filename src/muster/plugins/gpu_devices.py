"""GpuDevices: parts of a GPU (`muster.dev/gpu-milli`) are of one device, whole ones nobody else's."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from msgspec.structs import replace

from muster.api.core import Pod
from muster.base.arrays import Bool, Float64, Int32, Int64, pick
from muster.cluster.gpu_annotations import DEVICE_MILLI, GPU, milli_of
from muster.cluster.gpu_slots import DEVICES_MAX, copies_left
from muster.cluster.requests import DeviceAsk, device_ask, device_faults
from muster.cluster.snapshot import Snapshot
from muster.cluster.tables import allocatable_of
from muster.framework.events import Change, ClusterEvent, Hint, HintRule, Rejected
from muster.framework.groups import UnsupportedField
from muster.framework.points import NodeReason, NodeVerdict
from muster.placement.capacity import UNLIMITED
from muster.placement.packing import Packing, no_rule


class GpuDevices:
    """Counts devices in thousandths; silent, and free, while no pod says what part of a GPU it takes.

    Whole devices are counted by NodeResourcesFit, too; here they matter where others share devices.  Parts
    are steered to where they fill a device best.
    """

    name: ClassVar[str] = "GpuDevices"
    reads_metadata: ClassVar[bool] = False  # the annotation is part of every pod's shape

    def unsupported(self, pod: Pod) -> tuple[UnsupportedField, ...]:
        return tuple(UnsupportedField(path, why) for path, why in device_faults(pod))

    def is_silent(self, pod: Pod, snapshot: Snapshot) -> bool:
        return _ask(pod, snapshot) is None

    def filter(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> NodeVerdict:
        ask = _ask(pod, snapshot)
        if ask is None:
            return NodeVerdict(np.ones(len(rows), dtype=np.bool_))
        feasible = (copies_left(pick(snapshot.gpus.left, rows), ask) > 0) | _uncounted(ask, snapshot, rows)
        if feasible.all():
            return NodeVerdict(feasible)
        hopeless = ~feasible & (pick(snapshot.gpus.count, rows) < ask.devices)
        reasons = [
            NodeReason(rejected, _text(ask), resolvable=resolvable)
            for rejected, resolvable in ((~feasible & ~hopeless, True), (hopeless, False))
            if rejected.any()
        ]
        return NodeVerdict(feasible, tuple(reasons))

    def example(self, pod: Pod, snapshot: Snapshot, row: int, text: str) -> str:
        count = int(snapshot.gpus.count[row])
        left = sorted(snapshot.gpus.left[row][:count].tolist(), reverse=True)
        return (
            f"its {count} GPUs have {', '.join(map(str, left[:8]))} thousandths left"
            if left
            else "has no GPU"
        )

    def rows_changed(self, placed: Pod, row: int, pod: Pod, snapshot: Snapshot) -> Int32 | None:
        matters = _ask(pod, snapshot) is not None and device_ask(placed) is not None
        return np.array([row] if matters else [], dtype=np.int32)

    def capacity(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> Int64:
        ask = _ask(pod, snapshot)
        if ask is None:
            return np.full(len(rows), UNLIMITED, dtype=np.int64)
        copies = copies_left(pick(snapshot.gpus.left, rows), ask)
        return np.where(_uncounted(ask, snapshot, rows), UNLIMITED, copies)

    def packing(self, pods: Sequence[Pod], snapshot: Snapshot, rows: Int32) -> Packing | None:
        """Whole devices add up; parts do not: nothing can be stated where some are asked for."""
        no_limit = no_rule(len(pods), len(rows))
        if not snapshot.share_devices:  # so far: the first of them changes what the filter asks of others
            return no_limit if all(milli_of(pod) is None for pod in pods) else None
        asks = [device_ask(pod) for pod in pods]
        if any(ask is not None and ask.milli < DEVICE_MILLI for ask in asks):
            return None
        need = np.array([[ask.devices if ask else 0] for ask in asks], dtype=np.int64)
        one = DeviceAsk(1, DEVICE_MILLI)
        whole = copies_left(pick(snapshot.gpus.left, rows), one)
        room = np.where(_uncounted(one, snapshot, rows), UNLIMITED, whole)
        return replace(no_limit, need=need, room=room[:, np.newaxis])

    def score(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> Float64:
        ask = _ask(pod, snapshot)
        if ask is None or ask.milli == DEVICE_MILLI:
            return np.zeros(len(rows), dtype=np.float64)
        left = pick(snapshot.gpus.left, rows)
        fullest = np.where(left >= ask.milli, left, DEVICE_MILLI).min(axis=1, initial=DEVICE_MILLI)
        best: Float64 = 100.0 - 100.0 * np.maximum(fullest - ask.milli, 0) / DEVICE_MILLI
        return best

    def hint_rules(self) -> tuple[HintRule, ...]:
        return (
            HintRule(Change.NODE_ADDED, _node_has_devices),
            HintRule(Change.NODE_ALLOCATABLE_GREW, _node_has_devices),
            HintRule(Change.POD_FREED, _frees_a_device),
            HintRule(Change.POD_UPDATED),
            HintRule(Change.POD_ADDED),
        )


def _ask(pod: Pod, snapshot: Snapshot) -> DeviceAsk | None:
    """What the pod takes of devices; None too where nobody shares any, and counting pieces is enough."""
    if not snapshot.share_devices and milli_of(pod) is None:
        return None
    return device_ask(pod)


def _uncounted(ask: DeviceAsk, snapshot: Snapshot, rows: Int32) -> Bool:
    """[K] rows with so many devices that they have no slots: whole ones are counted in pieces alone."""
    column = snapshot.axis.find_column(GPU)
    if column is None or ask.milli < DEVICE_MILLI:
        return np.zeros(len(rows), dtype=np.bool_)
    many: Bool = pick(snapshot.allocatable[:, column], rows) > DEVICES_MAX
    return many


def _text(ask: DeviceAsk) -> str:
    if ask.milli < DEVICE_MILLI:
        return f"node(s) had no GPU with {ask.milli} thousandths left"
    return f"node(s) had fewer than {ask.devices} GPUs that nobody shares"


def _node_has_devices(rejected: Rejected, event: ClusterEvent) -> Hint:
    """A node without enough devices helps nobody."""
    if event.node is None:
        return Hint.QUEUE
    offered = allocatable_of(event.node).get(GPU, 0)
    asks = [device_ask(pod) for pod in rejected.pods]
    return Hint.QUEUE if any(ask is None or ask.devices <= offered for ask in asks) else Hint.SKIP


def _frees_a_device(rejected: Rejected, event: ClusterEvent) -> Hint:
    """Only a pod that held devices makes room on them."""
    frees = event.pod is None or device_ask(event.pod) is not None
    return Hint.QUEUE if frees else Hint.SKIP
