"""Objects of the in-process rows: nodes, pods, and cheap copies of pods.

Pods are copied from one decoded model, for a row may need half a million.  Next: `in_process.py`.
"""

from collections.abc import Iterator

from msgspec.structs import replace

from muster.api.core import Node, Pod, SchedulingGroup
from muster.dialects.native import decode_node, decode_pod

RACK = "bench.muster.dev/rack"


def plain_node(number: int, racks: int, version: str = "1") -> Node:
    """A node of 4 CPU, in one of so many racks."""
    labels = {RACK: f"r-{number % racks}"} if racks else {}
    offered = {"cpu": "4", "memory": "32Gi", "pods": "110"}
    return make_node(number, labels, offered, [], version)


def make_node(
    number: int, labels: dict[str, str], offered: dict[str, str], taints: list[dict[str, str]], version: str
) -> Node:
    """A node with these labels, resources and taints."""
    name = f"node-{number:05d}"
    labels = {"kubernetes.io/hostname": name, **labels}
    metadata = {"name": name, "uid": name, "resourceVersion": version, "labels": labels}
    status = {"capacity": offered, "allocatable": offered}
    return decode_node({"metadata": metadata, "spec": {"taints": taints}, "status": status})


def pod_asking(
    requests: dict[str, str], *, selector: dict[str, str] | None = None, tolerant: bool = False
) -> Pod:
    """A pod of Muster with these requests; `tolerant`: of every taint."""
    spec: dict[str, object] = {
        "schedulerName": "muster",
        "containers": [{"name": "main", "resources": {"requests": requests}}],
        "nodeSelector": selector or {},
        "tolerations": [{"operator": "Exists"}] if tolerant else [],
    }
    return decode_pod(
        {"metadata": {"name": "p", "namespace": "default", "uid": "p"}, "spec": spec, "status": {}}
    )


def copies(model: Pod, count: int, *, prefix: str = "p") -> Iterator[Pod]:
    """The pod under so many names."""
    for index in range(count):
        name = f"{prefix}-{index}"
        yield replace(model, metadata=replace(model.metadata, name=name, uid=name))


def in_group(pod: Pod, group: str) -> Pod:
    """The pod as a member of a group."""
    return replace(pod, spec=replace(pod.spec, scheduling_group=SchedulingGroup(pod_group_name=group)))
