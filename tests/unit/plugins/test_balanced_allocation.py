"""NodeResourcesBalancedAllocation."""

import numpy as np

from muster.plugins.balanced_allocation import NodeResourcesBalancedAllocation
from muster.testing.builders import make_cluster, make_pod
from muster.testing.conformance import check_plugin


def test_it_keeps_the_contract() -> None:
    check_plugin(NodeResourcesBalancedAllocation())


def test_the_node_that_would_be_used_evenly_is_preferred() -> None:
    cluster = make_cluster().nodes(2, cpu=4, memory="8Gi")
    cluster.running("cpu", "n1", cpu=2).running("memory", "n2", memory="4Gi")
    snapshot = cluster.snapshot()
    pod = make_pod(cpu=1, memory="6Gi")
    score = NodeResourcesBalancedAllocation().score(pod, snapshot, snapshot.live_rows())
    np.testing.assert_allclose(score, [100, 100 * (1 - 0.375)])


def test_a_pod_of_one_resource_cannot_unbalance() -> None:
    snapshot = make_cluster().nodes(2).running("old", "n1", cpu=2).snapshot()
    score = NodeResourcesBalancedAllocation().score(make_pod(cpu=1), snapshot, snapshot.live_rows())
    assert score.tolist() == [100, 100]
