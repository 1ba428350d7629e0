"""What is created: nodes, groups and pods of one row, as JSON; and the generator that creates them.

A load is gangs of one size (size 0: lone pods) on nodes of 4 CPU and 110 pods, pods of 100m.  With racks
every node carries a rack label and every gang must stay in one rack.  Next: `observer.py`, which watches.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from bench.wire import Api

NAMESPACE = "default"
RACK = "bench.muster.dev/rack"
NODE_CPU_MILLI, NODE_PODS, POD_CPU_MILLI = 4000, 110, 100
CONNECTIONS = 64

Call = tuple[str, bytes]


class Load(NamedTuple):
    """`gangs` groups of `size` pods each, or `gangs` lone pods where size is 0."""

    nodes: int
    gangs: int
    size: int
    racks: int = 0

    @property
    def pods(self) -> int:
        return self.gangs * max(self.size, 1)

    def group_of(self, number: int) -> str:
        """The group of the n-th pod; empty for a lone one."""
        return f"gang-{number // self.size:05d}" if self.size else ""

    def rack_of(self, node: int) -> str:
        return f"rack-{node % self.racks:03d}" if self.racks else ""


def node_calls(load: Load) -> Iterator[Call]:
    """Requests that make the nodes, ready and without taints."""
    offered = {"cpu": f"{NODE_CPU_MILLI}m", "memory": "32Gi", "pods": str(NODE_PODS)}
    for number in range(load.nodes):
        name = f"node-{number:05d}"
        labels = {"kubernetes.io/hostname": name}
        if load.racks:
            labels[RACK] = load.rack_of(number)
        yield node_call(name, labels, offered)


def node_call(name: str, labels: Mapping[str, str] | None, offered: Mapping[str, object] | None) -> Call:
    """The request that makes a node, ready and without taints."""
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": ""}
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"capacity": offered, "allocatable": offered, "conditions": [ready]},
    }
    return "/api/v1/nodes", msgspec.json.encode(node)


def group_calls(load: Load) -> Iterator[Call]:
    """Requests that make the groups."""
    path = f"/apis/scheduling.k8s.io/v1beta1/namespaces/{NAMESPACE}/podgroups"
    for number in range(load.gangs if load.size else 0):
        spec: dict[str, object] = {"schedulingPolicy": {"gang": {"minCount": load.size}}}
        if load.racks:
            spec["schedulingConstraints"] = {"topology": [{"key": RACK}]}
        yield (
            path,
            msgspec.json.encode(
                {
                    "apiVersion": "scheduling.k8s.io/v1beta1",
                    "kind": "PodGroup",
                    "metadata": {"name": f"gang-{number:05d}"},
                    "spec": spec,
                }
            ),
        )


def pod_calls(load: Load, scheduler_name: str) -> Iterator[Call]:
    """Requests that make the pods, gang after gang."""
    for number in range(load.pods):
        spec: dict[str, object] = {"schedulerName": scheduler_name, "terminationGracePeriodSeconds": 0}
        if load.size:
            spec["schedulingGroup"] = {"podGroupName": load.group_of(number)}
        yield pod_call(f"pod-{number:05d}", f"{POD_CPU_MILLI}m", spec)


def pod_call(name: str, cpu: str, spec: dict[str, object]) -> Call:
    """The request that makes a pod of one container that asks for so much, with this besides."""
    container = {
        "name": "main",
        "image": "registry.example/app:1",
        "resources": {"requests": {"cpu": cpu}},
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {**spec, "containers": [container]},
    }
    return f"/api/v1/namespaces/{NAMESPACE}/pods", msgspec.json.encode(pod)


async def create(api: Api, calls: Iterable[Call]) -> None:
    """Create everything as fast as 64 connections do, in about this order.  Raises Refused."""
    left = iter(calls)

    async def work() -> None:
        for path, body in left:
            await api.call("POST", path, body)

    async with asyncio.TaskGroup() as workers:
        for _ in range(CONNECTIONS):
            workers.create_task(work())
