"""Muster's own choice of a node, through the plugins and the assigner of the product.

The trace's nodes and pods become Kubernetes objects: GPUs are `nvidia.com/gpu`, the model a label, a part of
a device the annotation `muster.dev/gpu-milli`.  As long as the product does not share devices
(`shares_devices` asks it) such a pod takes a whole one: then this is what the product does today, not what
a policy with sharing would do, and the figure is no match for FGD's.
"""

from functools import cache

import numpy as np

from bench.openb_policies import Choice, Room, first_devices
from bench.openb_trace import DEVICE_MILLI, Nodes, PodShape
from muster.api.core import Node, Pod
from muster.assembly.profiles import BUILT_IN, DEFAULT_PLUGINS
from muster.cluster.state import ClusterState
from muster.dialects.native import decode_node, decode_pod
from muster.framework.runner import Runner, Weighted
from muster.placement.assignment import Assigner
from muster.placement.shapes import ShapeKey, shape_key

GPU = "nvidia.com/gpu"
GPU_MILLI = "muster.dev/gpu-milli"
MODEL = "bench.muster.dev/gpu-model"


class MusterPolicy:
    """Places one lone pod after another on one fork, as one attempt after another would."""

    def __init__(self, nodes: Nodes) -> None:
        state = ClusterState()
        for row in range(len(nodes.names)):
            state.apply_node(_node(nodes, row))
        self._runner = _default_runner()
        fork = state.snapshot().fork()
        self._assigner = Assigner(fork, self._runner, fork.live_rows())
        self._pods: dict[PodShape, tuple[Pod, ShapeKey]] = {}
        self._shares = shares_devices()

    def choose(self, shape: PodShape, room: Room) -> Choice | None:
        """The assigner's row; devices are the fullest that fit, until the product names them."""
        if shape not in self._pods:
            pod = _pod(shape)
            self._pods[shape] = (pod, shape_key(pod, metadata=self._runner.reads_metadata))
        pod, key = self._pods[shape]
        row = self._assigner.assign_one(pod, key)
        if row is None:
            return None
        left = room.gpu_left[row]
        if not self._shares:
            left = np.where(left == DEVICE_MILLI, left, 0)
        return Choice(row, first_devices(shape, left))


class WholeDeviceRoom(Room):
    """Room in which a shared device is as good as full: the measure of a product that does not share."""

    def allows(self, shape: PodShape, rows: np.ndarray) -> np.ndarray:
        fits = super().allows(shape, rows)
        if shape.gpus:
            fits &= (self.gpu_left[rows] == DEVICE_MILLI).sum(axis=1) >= shape.gpus
        return fits


@cache
def shares_devices() -> bool:
    """Whether the product puts two pods of half a device each on a node with one."""
    state = ClusterState()
    nodes = Nodes(("n",), np.array([64_000]), np.array([262_144]), np.array([1]), ("T4",))
    state.apply_node(_node(nodes, 0))
    fork, runner = state.snapshot().fork(), _default_runner()
    assigner = Assigner(fork, runner, fork.live_rows())
    pod = _pod(PodShape(1000, 0, 1, 500, ()))
    key = shape_key(pod, metadata=runner.reads_metadata)
    return all(assigner.assign_one(pod, key) is not None for _ in range(2))


def _default_runner() -> Runner:
    """The plugins of the default profile, with their weights."""
    return Runner([Weighted(BUILT_IN[choice.name](), choice.weight) for choice in DEFAULT_PLUGINS])


def _node(nodes: Nodes, row: int) -> Node:
    offered = {"cpu": f"{nodes.cpu_milli[row]}m", "memory": f"{nodes.memory_mib[row]}Mi", "pods": "1000"}
    offered[GPU] = str(nodes.gpus[row])
    return decode_node(
        {
            "metadata": {
                "name": nodes.names[row],
                "uid": nodes.names[row],
                "labels": {MODEL: nodes.models[row]},
            },
            "status": {"capacity": offered, "allocatable": offered},
        }
    )


def _pod(shape: PodShape) -> Pod:
    """Memory is left out: in the published runs, too, nobody is short of it."""
    requests = {"cpu": f"{shape.cpu_milli}m"}
    metadata: dict[str, object] = {"name": "pod", "namespace": "default", "uid": "pod"}
    if shape.gpus:
        requests[GPU] = str(shape.gpus)
    if shape.is_shared:
        metadata["annotations"] = {GPU_MILLI: str(shape.gpu_milli)}
    spec: dict[str, object] = {
        "schedulerName": "muster",
        "containers": [{"name": "main", "resources": {"requests": requests}}],
    }
    if shape.models:
        term = {"matchExpressions": [{"key": MODEL, "operator": "In", "values": list(shape.models)}]}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
        spec["affinity"] = {"nodeAffinity": required}
    return decode_pod({"metadata": metadata, "spec": spec, "status": {}})
