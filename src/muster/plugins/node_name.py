"""NodeName: a pod that names its node goes there or nowhere."""

from typing import ClassVar

import numpy as np

from muster.api.core import Pod
from muster.base.arrays import Int32
from muster.cluster.snapshot import Snapshot
from muster.framework.events import Change, ClusterEvent, Hint, HintRule, Rejected
from muster.framework.points import NodeReason, NodeVerdict


class NodeName:
    """Keep only the node that `spec.nodeName` names, if it names one."""

    name: ClassVar[str] = "NodeName"
    reads_metadata: ClassVar[bool] = False
    judges_row_alone: ClassVar[bool] = True
    reads_pods: ClassVar[bool] = False

    def filter(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> NodeVerdict:
        wanted = pod.spec.node_name
        if not wanted:
            return NodeVerdict(np.ones(len(rows), dtype=np.bool_))
        feasible = rows == snapshot.row_of_node.get(wanted, -1)
        if feasible.all():
            return NodeVerdict(feasible)
        reason = NodeReason(~feasible, "node(s) didn't match the requested node name", resolvable=False)
        return NodeVerdict(feasible, (reason,))

    def example(self, pod: Pod, snapshot: Snapshot, row: int, text: str) -> str:
        wanted = pod.spec.node_name
        exists = "" if wanted in snapshot.row_of_node else ", which does not exist"
        return f"the pod names node {wanted}{exists}"

    def rows_changed(self, placed: Pod, row: int, pod: Pod, snapshot: Snapshot) -> Int32 | None:
        return np.empty(0, dtype=np.int32)

    def hint_rules(self) -> tuple[HintRule, ...]:
        return (HintRule(Change.NODE_ADDED, _is_the_named),)


def _is_the_named(rejected: Rejected, event: ClusterEvent) -> Hint:
    if event.node is None:
        return Hint.QUEUE
    name = event.node.metadata.name
    return Hint.QUEUE if any(pod.spec.node_name == name for pod in rejected.pods) else Hint.SKIP
