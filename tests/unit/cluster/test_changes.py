"""What changes say where nothing more is known."""

from muster.cluster.changes import NodeChange, PodChange
from muster.testing.builders import make_node, make_pod


def test_a_change_claims_nothing_unless_told() -> None:
    node, pod = NodeChange(None, make_node()), PodChange(None, make_pod())
    of_node = (node.allocatable_grew, node.labels_changed, node.taints_changed, node.stale)
    of_pod = (pod.freed, pod.assigned, pod.relabeled, pod.node_name, pod.stale)
    assert not any((*of_node, *of_pod))
