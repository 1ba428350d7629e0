"""One embedded cluster for all kubectl tests; each test uses names of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conformance.cluster_process import ClusterProcess

NODES = """\
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {rack: r1, node-role.kubernetes.io/worker: ""}}
status: {capacity: {cpu: 8, memory: 32Gi, nvidia.com/gpu: 4}}
---
apiVersion: v1
kind: Node
metadata: {name: n2, labels: {rack: r2}}
status: {capacity: {cpu: 8, memory: 32Gi}}
"""


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterProcess]:
    """An embedded cluster of two nodes, n1 with four GPUs."""
    folder: Path = tmp_path_factory.mktemp("kubectl")
    (folder / "nodes.yaml").write_text(NODES)
    with ClusterProcess(folder, "--nodes", str(folder / "nodes.yaml")) as running:
        yield running
        stopped = running.stop()
        assert (stopped.code, stopped.err) == (0, ""), "a part of it failed meanwhile"
