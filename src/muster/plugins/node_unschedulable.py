"""NodeUnschedulable: a cordoned node takes only pods that tolerate that."""

from typing import ClassVar

import numpy as np

from muster.api.core import Pod, Taint
from muster.api.selectors import tolerates
from muster.base.arrays import Int32, pick
from muster.cluster.snapshot import Snapshot
from muster.framework.events import Change, ClusterEvent, Hint, HintRule, Rejected
from muster.framework.points import NodeReason, NodeVerdict

_CORDONED = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


class NodeUnschedulable:
    """Refuse nodes with `spec.unschedulable`, as if they had the taint of that name."""

    name: ClassVar[str] = "NodeUnschedulable"
    reads_metadata: ClassVar[bool] = False
    judges_row_alone: ClassVar[bool] = True
    reads_pods: ClassVar[bool] = False

    def filter(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> NodeVerdict:
        rejected = pick(snapshot.unschedulable, rows)
        if not rejected.any() or _tolerates_cordon(pod):
            return NodeVerdict(np.ones(len(rows), dtype=np.bool_))
        return NodeVerdict(~rejected, (NodeReason(rejected, "node(s) were unschedulable", resolvable=False),))

    def example(self, pod: Pod, snapshot: Snapshot, row: int, text: str) -> str:
        return "spec.unschedulable is true"

    def rows_changed(self, placed: Pod, row: int, pod: Pod, snapshot: Snapshot) -> Int32 | None:
        return np.empty(0, dtype=np.int32)

    def hint_rules(self) -> tuple[HintRule, ...]:
        return (
            HintRule(Change.NODE_ADDED, _is_open),
            HintRule(Change.NODE_TAINTS_CHANGED, _is_open),
            HintRule(Change.POD_UPDATED),
        )


def _tolerates_cordon(pod: Pod) -> bool:
    return tolerates(pod.spec.tolerations or (), _CORDONED)


def _is_open(rejected: Rejected, event: ClusterEvent) -> Hint:
    """A node that is not cordoned (any more)."""
    if event.node is None:
        return Hint.QUEUE
    was_open = event.old_node is not None and not event.old_node.spec.unschedulable
    return Hint.SKIP if event.node.spec.unschedulable or was_open else Hint.QUEUE
