"""NodeResourcesFit: a node must have room for all that a member asks for; how full it gets is the score."""

from collections.abc import Sequence
from typing import ClassVar, Literal

import numpy as np
from msgspec.structs import replace

from muster.api.core import Pod
from muster.api.devices import DeviceClass
from muster.api.quantity import format_amount
from muster.base.arrays import Bool, Float64, Int32, Int64, pick
from muster.cluster.axes import PODS
from muster.cluster.extended_resources import backed_asks, backed_by
from muster.cluster.requests import pod_requests
from muster.cluster.snapshot import Snapshot
from muster.cluster.tables import offered_by
from muster.framework.events import Change, ClusterEvent, Hint, HintRule, Rejected
from muster.framework.groups import Group
from muster.framework.points import NodeReason, NodeVerdict, PlacementTotals
from muster.placement.capacity import copies_by_column
from muster.placement.packing import Packing, no_rule

Strategy = Literal["most-allocated", "least-allocated"]
_SCORED = ("cpu", "memory")


class NodeResourcesFit:
    """Room is allocatable minus what the pods there ask for, by resource, the count of pods included.

    `strategy` most-allocated packs (the default: it keeps whole nodes free for the next gang),
    least-allocated spreads.
    """

    name: ClassVar[str] = "NodeResourcesFit"
    reads_metadata: ClassVar[bool] = False
    judges_row_alone: ClassVar[bool] = True

    def __init__(self, *, strategy: Strategy = "most-allocated") -> None:
        if strategy not in ("most-allocated", "least-allocated"):
            raise ValueError(f"strategy must be most-allocated or least-allocated, got {strategy!r}")
        self.strategy = strategy

    def filter(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> NodeVerdict:
        feasible = np.ones(len(rows), dtype=np.bool_)
        reasons: list[NodeReason] = []
        request = snapshot.request_of(pod)
        for column in _columns_asked(snapshot, request):
            allocatable = pick(snapshot.allocatable[:, column], rows)
            short: Bool = allocatable - pick(snapshot.requested[:, column], rows) < request[column]
            if short.any():
                feasible &= ~short
                hopeless = short & (allocatable < request[column])
                text = _text(snapshot.axis.names[column])
                reasons += [
                    NodeReason(rejected, text, resolvable=resolvable)
                    for rejected, resolvable in ((short & ~hopeless, True), (hopeless, False))
                    if rejected.any()
                ]
        for resource in snapshot.unknown_resources(pod):
            feasible[:] = False
            reasons.append(NodeReason(np.ones(len(rows), dtype=np.bool_), _text(resource), resolvable=False))
        return NodeVerdict(feasible, tuple(reasons))

    def example(self, pod: Pod, snapshot: Snapshot, row: int, text: str) -> str:
        for resource in snapshot.unknown_resources(pod):
            if text == _text(resource):
                return f"offers no {resource}"
        request = snapshot.request_of(pod)
        for column in _columns_asked(snapshot, request):
            name = snapshot.axis.names[column]
            if text != _text(name):
                continue
            offered = int(snapshot.allocatable[row, column])
            free = max(0, offered - int(snapshot.requested[row, column]))
            asked, has = format_amount(name, int(request[column])), format_amount(name, offered)
            if name == PODS:
                return "takes 1 pod and has it" if offered == 1 else f"takes {has} pods and has them"
            if offered < request[column]:
                return f"{asked} {name} asked, the whole node has {has}"
            return f"{asked} {name} asked, {format_amount(name, free)} of {has} free"
        return ""

    def rows_changed(self, placed: Pod, row: int, pod: Pod, snapshot: Snapshot) -> Int32 | None:
        return np.array([row], dtype=np.int32)

    def capacity(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> Int64:
        if snapshot.unknown_resources(pod):
            return np.zeros(len(rows), dtype=np.int64)
        asked = snapshot.request_of(pod).tolist()
        columns = [column for column, amount in enumerate(asked) if amount]
        free = [
            pick(snapshot.allocatable[:, column], rows) - pick(snapshot.requested[:, column], rows)
            for column in columns
        ]
        return copies_by_column(free, [asked[column] for column in columns])

    def packing(self, pods: Sequence[Pod], snapshot: Snapshot, rows: Int32) -> Packing | None:
        feasible = np.ones((len(pods), len(rows)), dtype=np.bool_)
        feasible[[bool(snapshot.unknown_resources(pod)) for pod in pods]] = False
        need = np.array([snapshot.request_of(pod) for pod in pods])
        return replace(
            no_rule(len(pods), len(rows)), room=snapshot.free_at(rows), need=need, feasible=feasible
        )

    def score(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> Float64:
        request = snapshot.request_of(pod)
        asked = _columns_asked(snapshot, request)
        columns = asked[1:] or asked
        share = np.zeros(len(rows), dtype=np.float64)
        for column in columns:
            allocatable = pick(snapshot.allocatable[:, column], rows).astype(np.float64)
            taken = pick(snapshot.requested[:, column], rows) + float(request[column])
            share += np.minimum(taken / np.maximum(allocatable, 1.0), 1.0)  # nothing offered is full
        share /= len(columns)
        return 100.0 * (share if self.strategy == "most-allocated" else 1.0 - share)

    def score_placements(self, group: Group, totals: PlacementTotals) -> Float64:
        """The fuller the better, whatever the strategy for nodes: the mean of cpu and memory (KEP-5732)."""
        axis = totals.snapshot.axis
        columns = [axis.column_of(name) for name in _SCORED if name in axis]
        if not columns:
            return np.zeros(totals.member_count.shape, dtype=np.float64)
        offered = totals.allocatable[:, columns]
        share = np.minimum(totals.requested[:, columns] / np.maximum(offered, 1.0), 1.0)
        mean: Float64 = 100.0 * share.mean(axis=1)
        return mean

    def hint_rules(self) -> tuple[HintRule, ...]:
        return (
            HintRule(Change.NODE_ADDED, _node_has_enough),
            HintRule(Change.NODE_ALLOCATABLE_GREW, _node_has_enough),
            HintRule(Change.POD_FREED, _node_has_enough),
            HintRule(Change.RESOURCE_BACKED, _class_backs),
            HintRule(Change.POD_UPDATED),
        )


def _columns_asked(snapshot: Snapshot, request: Int64) -> list[int]:
    """Columns asked for, "pods" first, as stock names its reasons."""
    pods = snapshot.axis.column_of(PODS)
    return [pods, *(column for column, amount in enumerate(request.tolist()) if amount and column != pods)]


def _text(resource: str) -> str:
    return "Too many pods" if resource == PODS else f"Insufficient {resource}"


def _node_has_enough(rejected: Rejected, event: ClusterEvent) -> Hint:
    """A node on which no waiting pod would fit even if it were empty helps nobody."""
    if event.node is None:
        return Hint.QUEUE
    offered = offered_by(event.node, event.backed)
    for pod in rejected.pods:
        if all(amount <= offered.get(name, 0) for name, amount in pod_requests(pod).items()):
            return Hint.QUEUE
    return Hint.SKIP


def _class_backs(rejected: Rejected, event: ClusterEvent) -> Hint:
    """A class that backs a resource makes nodes of those that do not offer it."""
    if not isinstance(event.devices, DeviceClass):
        return Hint.SKIP
    backed = backed_by([event.devices])
    return Hint.QUEUE if any(backed_asks(pod, backed) for pod in rejected.pods) else Hint.SKIP
