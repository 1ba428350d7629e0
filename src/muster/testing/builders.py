"""Builders that say only what matters: a pod, a node, a group, a cluster, boring and valid by default.

    cluster = make_cluster().node("n1", cpu=4).nodes(3, gpu=8, labels={"rack": "r1"})
    pod = make_pod("p", cpu=1, gpu=1)
    snapshot = cluster.snapshot()

Every builder also takes the typed objects of `muster.api.core` for what it has no word for.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from muster.api.codec import decode_object
from muster.api.core import (
    Affinity,
    Container,
    ContainerPort,
    Node,
    Pod,
    ResourceRequirements,
    Taint,
    Toleration,
)
from muster.cluster.snapshot import Snapshot
from muster.cluster.state import ClusterState
from muster.framework.groups import Group, ObjectKey

Amount = int | str

GPU = "nvidia.com/gpu"


def make_pod(
    name: str = "p",
    *,
    namespace: str = "default",
    uid: str | None = None,
    version: str = "",
    cpu: Amount | None = None,
    memory: Amount | None = None,
    gpu: Amount | None = None,
    requests: Mapping[str, Amount] | None = None,
    group: str | None = None,
    node: str = "",
    phase: str | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    node_selector: Mapping[str, str] | None = None,
    affinity: Affinity | Mapping[str, Any] | None = None,
    tolerations: Sequence[Toleration | Mapping[str, Any]] = (),
    host_ports: Sequence[int] = (),
    priority: int | None = None,
    scheduler: str = "muster",
    gates: Sequence[str] = (),
    **spec: Any,
) -> Pod:
    """A pod with one container; `node` makes it bound (and Running), further keywords are fields of its spec.

    Mappings are read like a manifest, so `affinity={"nodeAffinity": …}` and the typed object both do.
    A pod that comes back under the name of one that is gone needs a `uid` of its own.
    """
    container = Container(
        name="main",
        image="registry.example/app:1",
        resources=_resources({"cpu": cpu, "memory": memory, GPU: gpu, **(requests or {})}),
        ports=[ContainerPort(container_port=port, host_port=port) for port in host_ports] or None,
    )
    fields: dict[str, Any] = {
        "nodeName": node,
        "schedulerName": scheduler,
        "priority": priority,
        "schedulingGroup": {"podGroupName": group} if group else None,
        "schedulingGates": [{"name": gate} for gate in gates] or None,
        "nodeSelector": dict(node_selector) if node_selector else None,
        "affinity": affinity,
        "tolerations": list(tolerations) or None,
        "containers": [container],
    }
    manifest = {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{name}" if uid is None else uid,
            "resourceVersion": version,
            "labels": dict(labels) if labels else None,
            "annotations": dict(annotations) if annotations else None,
        },
        "spec": {**fields, **{_camel(key): value for key, value in spec.items()}},
        "status": {"phase": phase or ("Running" if node else "Pending")},
    }
    return decode_object(msgspec.to_builtins(manifest), Pod)


def make_node(
    name: str = "n1",
    *,
    uid: str | None = None,
    version: str = "",
    cpu: Amount = 8,
    memory: Amount = "64Gi",
    pods: Amount = 110,
    gpu: Amount | None = None,
    allocatable: Mapping[str, Amount] | None = None,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Taint | Mapping[str, Any]] = (),
    unschedulable: bool = False,
) -> Node:
    """A ready node; `allocatable` adds or replaces resources, None there takes one away."""
    amounts = {"cpu": cpu, "memory": memory, "pods": pods, GPU: gpu, **(allocatable or {})}
    offered = {resource: amount for resource, amount in amounts.items() if amount is not None}
    manifest = {
        "metadata": {
            "name": name,
            "uid": f"uid-{name}" if uid is None else uid,
            "resourceVersion": version,
            "labels": {"kubernetes.io/hostname": name, **(labels or {})},
        },
        "spec": {"unschedulable": unschedulable, "taints": list(taints) or None},
        "status": {
            "capacity": offered,
            "allocatable": offered,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
    return decode_object(msgspec.to_builtins(manifest), Node)


def make_group(
    name: str = "g", min_count: int | None = None, *, namespace: str = "default", **fields: Any
) -> Group:
    """A group: a gang of `min_count`, or basic without; further keywords are fields of `Group`."""
    fields.setdefault("uid", f"uid-{name}")
    return Group(key=ObjectKey(namespace, name), min_count=min_count, **fields)


def make_gang(name: str, count: int, **pod: Any) -> tuple[Pod, ...]:
    """Like pods name-0, name-1, … of the group `name`."""
    return tuple(make_pod(f"{name}-{i}", group=name, **pod) for i in range(count))


class ClusterBuilder:
    """Nodes and the pods on them; each word gives the builder back."""

    def __init__(self) -> None:
        self.state = ClusterState()
        self._node_count = 0

    def node(self, name: str | None = None, **words: Any) -> "ClusterBuilder":
        """Add a node; without a name it is n1, n2, … in order.  Keywords are those of `make_node`."""
        self._node_count += 1
        self.state.apply_node(make_node(name or f"n{self._node_count}", **words))
        return self

    def nodes(self, count: int, **words: Any) -> "ClusterBuilder":
        """Add like nodes."""
        for _ in range(count):
            self.node(**words)
        return self

    def rack(self, *gpus: int, key: str = "rack") -> "ClusterBuilder":
        """Add one node per number, with so many GPUs, all in the next rack (r1, r2, …)."""
        racks = {(node.metadata.labels or {}).get(key) for node in self.state.table.nodes if node is not None}
        name = f"r{len(racks - {None}) + 1}"
        for count in gpus:
            self.node(gpu=count, labels={key: name})
        return self

    def running(self, name: str, node: str, **words: Any) -> "ClusterBuilder":
        """Add a pod that runs on this node.  Keywords are those of `make_pod`."""
        self.state.apply_pod(make_pod(name, node=node, **words))
        return self

    def snapshot(self) -> Snapshot:
        """The cluster frozen as it is now."""
        return self.state.snapshot()


def make_cluster() -> ClusterBuilder:
    """An empty cluster to add to."""
    return ClusterBuilder()


def _resources(amounts: Mapping[str, Amount | None]) -> ResourceRequirements | None:
    requests = {resource: amount for resource, amount in amounts.items() if amount is not None}
    return ResourceRequirements(requests=dict(requests)) if requests else None


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)
