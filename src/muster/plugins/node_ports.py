"""NodePorts: a port of the node itself serves one pod at a time."""

from collections.abc import Iterable, Sequence
from typing import ClassVar

import numpy as np
from msgspec.structs import replace

from muster.api.core import Pod
from muster.base.arrays import Bool, Int32, Int64
from muster.cluster.requests import HostPort, host_ports
from muster.cluster.snapshot import Snapshot
from muster.framework.events import Change, ClusterEvent, Hint, HintRule, Rejected
from muster.framework.points import NodeReason, NodeVerdict
from muster.placement.capacity import UNLIMITED
from muster.placement.packing import Packing, no_rule

_ANY_ADDRESS = "0.0.0.0"


class NodePorts:
    """Refuse nodes where a wanted host port is taken: same protocol and port on an overlapping address."""

    name: ClassVar[str] = "NodePorts"
    reads_metadata: ClassVar[bool] = False
    judges_row_alone: ClassVar[bool] = True

    def is_silent(self, pod: Pod, snapshot: Snapshot) -> bool:
        return not host_ports(pod)

    def filter(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> NodeVerdict:
        rejected = _taken(host_ports(pod), snapshot, rows)
        if not rejected.any():
            return NodeVerdict(~rejected)
        text = "node(s) didn't have free ports for the requested pod ports"
        return NodeVerdict(~rejected, (NodeReason(rejected, text),))

    def example(self, pod: Pod, snapshot: Snapshot, row: int, text: str) -> str:
        for port in host_ports(pod):
            for other in snapshot.pods_on(row):
                if _collide((port,), host_ports(other)):
                    owner = f"{other.metadata.namespace}/{other.metadata.name}"
                    return f"host port {port.port}/{port.protocol} is taken by pod {owner}"
        return ""

    def rows_changed(self, placed: Pod, row: int, pod: Pod, snapshot: Snapshot) -> Int32 | None:
        return np.array([row] if _collide(host_ports(placed), host_ports(pod)) else [], dtype=np.int32)

    def capacity(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> Int64:
        wanted = host_ports(pod)
        free = ~_taken(wanted, snapshot, rows)
        return np.where(free, 1 if wanted else UNLIMITED, 0).astype(np.int64)

    def packing(self, pods: Sequence[Pod], snapshot: Snapshot, rows: Int32) -> Packing | None:
        wanted = [host_ports(pod) for pod in pods]
        conflict = np.array([[_collide(one, other) for other in wanted] for one in wanted], dtype=np.bool_)
        feasible = np.array([~_taken(ports, snapshot, rows) for ports in wanted])
        return replace(no_rule(len(pods), len(rows)), conflict=conflict, feasible=feasible)

    def hint_rules(self) -> tuple[HintRule, ...]:
        return (
            HintRule(Change.NODE_ADDED),
            HintRule(Change.POD_FREED, _frees_a_wanted_port),
            HintRule(Change.POD_UPDATED),
        )


def _taken(wanted: tuple[HostPort, ...], snapshot: Snapshot, rows: Int32) -> Bool:
    """[K] where one of the wanted ports is in use."""
    if not wanted:
        return np.zeros(len(rows), dtype=np.bool_)
    taken = [row for row in snapshot.rows_with_host_ports() if _collide(wanted, snapshot.host_ports_on(row))]
    return np.isin(rows, taken)


def _collide(some: Iterable[HostPort], others: tuple[HostPort, ...]) -> bool:
    return any(
        one.port == other.port
        and one.protocol == other.protocol
        and (one.ip == other.ip or _ANY_ADDRESS in (one.ip, other.ip))
        for one in some
        for other in others
    )


def _frees_a_wanted_port(rejected: Rejected, event: ClusterEvent) -> Hint:
    if event.pod is None:
        return Hint.QUEUE
    freed = host_ports(event.pod)
    helps = any(_collide(host_ports(pod), freed) for pod in rejected.pods)
    return Hint.QUEUE if helps else Hint.SKIP
