"""Muster's own choice of a node, through the plugins and the assigner of the product.

The trace's nodes and pods become Kubernetes objects: GPUs are `nvidia.com/gpu`, the model a label, a part of
a device the annotation `muster.dev/gpu-milli`.  The profile is the default one with GpuPacking added, told
the typical shapes that FGD knows, and nothing else.
"""

from typing import Any

from msgspec.structs import replace

from bench.openb_policies import Choice, Room, popular_shapes
from bench.openb_trace import Nodes, PodShape
from muster.api.core import Node, Pod
from muster.assembly.config import Config, PluginChoice
from muster.assembly.profiles import BUILT_IN, ON_REQUEST, choose_plugins
from muster.cluster.state import ClusterState
from muster.dialects.native import decode_node, decode_pod
from muster.framework.runner import Runner, Weighted
from muster.placement.assignment import UNPLACED, Assigner, assign_members
from muster.placement.shapes import ShapeKey, shape_key

GPU = "nvidia.com/gpu"
GPU_MILLI = "muster.dev/gpu-milli"
MODEL = "bench.muster.dev/gpu-model"
WEIGHT = 1000.0  # of GpuPacking: more than all other scores together


class MusterPolicy:
    """Places one lone pod, or one gang, after another, as one attempt after another would."""

    def __init__(self, nodes: Nodes, pods: tuple[PodShape, ...]) -> None:
        self._names = nodes.names
        self._state = ClusterState()
        for row in range(len(nodes.names)):
            self._state.apply_node(_node(nodes, row))
        self._runner = _runner(pods)
        self._pods: dict[PodShape, tuple[Pod, ShapeKey]] = {}
        self._made = 0

    def choose(self, shape: PodShape, room: Room) -> Choice | None:
        """The assigner's row, and the devices that the product's books say the pod holds there."""
        choices = self.choose_all(shape, 1)
        return None if choices is None else choices[0]

    def choose_all(self, shape: PodShape, count: int) -> list[Choice] | None:
        """A place for every member of a gang of like pods, or none at all: tried on a fork, then assumed."""
        pods, key = self._make(shape, count)
        fork = self._state.snapshot().fork()
        rows = fork.live_rows()
        counted = count > 1 and self._runner.can_count(pods[0], fork, rows)
        found = assign_members(pods, [key] * count, Assigner(fork, self._runner, rows), count_alike=counted)
        if (found == UNPLACED).any():
            return None
        choices = []
        for pod, row in zip(pods, found.tolist(), strict=True):
            hold = fork.gpus.holds_on(row).get((pod.metadata.namespace, pod.metadata.name))
            devices = () if hold is None else hold.devices
            self._state.assume(pod, self._names[row], devices)
            choices.append(Choice(row, devices))
        return choices

    def _make(self, shape: PodShape, count: int) -> tuple[list[Pod], ShapeKey]:
        """Pods of a shape with names of their own."""
        if shape not in self._pods:
            pod = _pod(shape)
            self._pods[shape] = (pod, shape_key(pod, metadata=self._runner.reads_metadata))
        pod, key = self._pods[shape]
        names = [f"pod-{self._made + index}" for index in range(count)]
        self._made += count
        return [replace(pod, metadata=replace(pod.metadata, name=name, uid=name)) for name in names], key


def packing_shapes(pods: tuple[PodShape, ...]) -> list[dict[str, Any]]:
    """The arguments of GpuPacking: FGD's typical shapes, those that take no GPU left out."""
    shapes: list[dict[str, Any]] = []
    for shape, share in popular_shapes(pods):
        if shape.gpus:
            entry: dict[str, Any] = {"share": share, "cpu": f"{shape.cpu_milli}m", "gpus": shape.gpus}
            if shape.is_shared:
                entry["gpuMilli"] = shape.gpu_milli
            if shape.models:
                entry["nodeLabels"] = {MODEL: list(shape.models)}
            shapes.append(entry)
    return shapes


def _runner(pods: tuple[PodShape, ...]) -> Runner:
    """The default profile and GpuPacking, as a user's configuration would have it."""
    packing = PluginChoice("GpuPacking", {"shapes": packing_shapes(pods)}, WEIGHT)
    chosen = choose_plugins(Config(add_plugins=(packing,)))
    made = {**BUILT_IN, **ON_REQUEST}
    return Runner([Weighted(made[choice.name](**choice.args), choice.weight) for _, choice in chosen])


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
    requests = {"cpu": f"{shape.cpu_milli}m", "memory": f"{shape.memory_mib}Mi"}
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
