"""`muster node stop|start` and `muster explain` against a running `muster up`, as a user types them."""

from collections.abc import Iterator

import pytest
from tests.conformance.cluster_process import ClusterProcess
from tests.conformance.kubectl.manifests import group, pod, write


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterProcess]:
    with ClusterProcess(tmp_path_factory.mktemp("nodes"), "--nodes", "2") as running:
        yield running
        stopped = running.stop()
        assert (stopped.code, stopped.err) == (0, ""), "a part of it failed meanwhile"


def test_a_stopped_node_turns_unready_and_a_started_one_ready_again(cluster: ClusterProcess) -> None:
    stopped = cluster.muster("node", "stop", "n2")
    assert (stopped.code, stopped.out) == (0, "node/n2 stopped; NotReady after 50 s of silence\n")
    unready = cluster.kubectl("wait", "--for=condition=Ready=Unknown", "node/n2", "--timeout=90s")
    assert unready.code == 0, unready.err
    assert "NotReady" in cluster.kubectl("get", "node", "n2").out
    assert "node.kubernetes.io/unreachable" in cluster.kubectl("describe", "node", "n2").out
    started = cluster.muster("node", "start", "n2")
    assert (started.code, started.out) == (0, "node/n2 started\n")
    ready = cluster.kubectl("wait", "--for=condition=Ready", "node/n2", "--timeout=30s")
    assert ready.code == 0, ready.err


def test_a_node_that_does_not_exist_is_told(cluster: ClusterProcess) -> None:
    ran = cluster.muster("node", "stop", "n9")
    assert (ran.code, ran.err) == (1, 'muster: nodes "n9" not found\n')


def test_explain_tells_why_a_gang_waits(cluster: ClusterProcess) -> None:
    text = write(group("big", 3), *(pod(f"big-{index}", "big", gpus=1) for index in range(3)))
    cluster.kubectl("apply", "-f", "-", text=text)
    condition = "--for=condition=PodGroupInitiallyScheduled=False"
    waited = cluster.kubectl("wait", condition, "podgroup/big", "--timeout=30s")
    assert waited.code == 0, waited.err
    ran = cluster.muster("explain", "default/big")
    assert ran.code == 0, ran.err
    assert ran.out.startswith("default/big  (gang, minCount 3, priority 0)  cannot run yet: 0 of 3 needed")
    assert "PodGroupInitiallyScheduled=False Unschedulable: " in ran.out
    assert "2 of 2 nvidia.com/gpu free on 2 nodes" in ran.out


def test_explain_of_no_group_is_told(cluster: ClusterProcess) -> None:
    ran = cluster.muster("explain", "default/nobody")
    assert ran.code == 1
    assert ran.err.startswith("muster: no pod group default/nobody")
