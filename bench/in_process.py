"""Decisions without a server: how long the core takes, at which size, and whether it is right.

Each row builds a cluster, feeds it to `HandFed`, and gives figures.  Sizes are those of kube-scheduler's own
benchmark and of the scale curve (8-GPU nodes, 90 % full, 10 % churn between decisions).  Seeded.  Next:
`impossible_gangs.py`, `hard_groups.py` and `rows.py`.
"""

import resource
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
from msgspec.structs import replace

from bench.hand_fed import HandFed, group_seen
from bench.objects import RACK, copies, in_group, make_node, plain_node, pod_asking
from muster.api.core import Node, Pod
from muster.framework.groups import ObjectKey
from muster.framework.ports import NodeSeen

POOL, GPU = "bench.muster.dev/pool", "nvidia.com/gpu"
NODES_PER_RACK, GPUS_PER_NODE, PODS_PER_NODE = 100, 8, 10
TAINTED_EVERY, OTHER_POOL_EVERY, ROOMY_EVERY = 20, 5, 10
CHURN = 0.1
SEED = 20_26


def make_gangs(nodes: int, gangs: int, size: int, racks: int = 0) -> dict[str, Any]:
    """Place `gangs` gangs of `size` pods on nodes of 4 CPU, all known before the first decision."""
    fed = HandFed()
    fed.see(NodeSeen(plain_node(number, racks)) for number in range(nodes))
    key = RACK if racks else ""
    fed.see(group_seen(f"g-{gang}", size, topology_key=key) for gang in range(gangs))
    pods = copies(pod_asking({"cpu": "100m"}), gangs * size)
    fed.see(in_group(pod, f"g-{number // size}") for number, pod in enumerate(pods))
    fed.begin()
    before_s = fed.handled_s
    fed.run()
    faults = [] if len(fed.node_of) == gangs * size else [f"{len(fed.node_of)} of {gangs * size} pods bound"]
    loads = Counter(fed.node_of.values())
    faults += [f"node {node} has {count} pods, 40 fit" for node, count in loads.items() if count > 40][:3]
    if racks:
        faults += _split(fed, racks)
    seconds = fed.handled_s - before_s
    return figures(fed, gangs) | {"pods_per_s": gangs * size / seconds, "wrong": faults}


def scale(nodes: int, decisions: int) -> dict[str, Any]:
    """Place gangs of 8 × 8 GPUs in a cluster that is 90 % full, with 10 % of the nodes changed in between."""
    rng = np.random.default_rng(SEED)
    fed = HandFed()
    began = time.thread_time()
    fed.see(NodeSeen(_gpu_node(number)) for number in range(nodes))
    fed.see(_tenants(nodes))
    built_s = time.thread_time() - began
    fed.begin()
    events, events_s, faults = 0, 0.0, []
    for number in range(decisions + 1):
        churned_s, count = _churn(fed, nodes, number, rng)
        events, events_s = events + count, events_s + churned_s
        name = f"g-{number}"
        fed.see([group_seen(name, 8)])
        fed.see(in_group(pod, name) for pod in copies(_train_pod(), 8, prefix=name))
        fed.run()
        placed = [ObjectKey("default", f"{name}-{index}") for index in range(8)]
        rows = [fed.node_of.get(key) for key in placed]
        faults += [] if all(rows) and len(set(rows)) == 8 else [f"gang {name} is on {rows}"]
        for key in placed:
            fed.lose(key)
        if number == 0:
            fed.decisions_s.clear()  # the first one builds every column; it counts in the cold start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return figures(fed, decisions) | {
        "events_us": 1e6 * events_s / max(events, 1),
        "built_s": built_s,
        "bytes_per_node": 1024 * peak // nodes,
        "wrong": faults[:3],
    }


def figures(fed: HandFed, gangs: int) -> dict[str, Any]:
    times_ms = 1000.0 * np.array(fed.decisions_s or [float("nan")])
    return {
        "algorithm_ms": float(times_ms.mean()),
        "algorithm_p99_ms": float(np.percentile(times_ms, 99)),
        "decisions": len(fed.decisions_s),
        "decisions_void": len(fed.decisions_s) != gangs,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1.024 / 1000.0,
    }


def _churn(fed: HandFed, nodes: int, number: int, rng: np.random.Generator) -> tuple[float, int]:
    """On a tenth of the nodes one pod goes and another comes."""
    rows = [int(row) for row in rng.permutation(nodes)[: int(nodes * CHURN)] if not _is_roomy(int(row))]
    before_s = fed.handled_s
    for row in rows:
        old = ObjectKey("default", f"t-{row}-{number % PODS_PER_NODE}")
        pod = fed.pods[old]
        fed.lose(old)
        uid = f"{pod.metadata.uid}'"
        fed.see([replace(pod, metadata=replace(pod.metadata, uid=uid))])
    return fed.handled_s - before_s, 2 * len(rows)


def _tenants(nodes: int) -> Iterator[Pod]:
    """Ten running pods on each node that is not kept free: eight with a GPU each, two without."""
    with_gpu = pod_asking({"cpu": "8", GPU: "1"}, tolerant=True)
    without = pod_asking({"cpu": "2"}, tolerant=True)
    for row in range(nodes):
        if _is_roomy(row):
            continue
        for index in range(PODS_PER_NODE):
            model = with_gpu if index < GPUS_PER_NODE else without
            name = f"t-{row}-{index}"
            yield replace(
                model,
                metadata=replace(model.metadata, name=name, uid=name),
                spec=replace(model.spec, node_name=f"node-{row:05d}"),
            )


def _is_roomy(row: int) -> bool:
    return row % ROOMY_EVERY == 3


def _gpu_node(number: int) -> Node:
    labels = {
        RACK: f"r-{number // NODES_PER_RACK}",
        POOL: "serve" if number % OTHER_POOL_EVERY == 0 else "train",
    }
    taints = [{"key": "dedicated", "value": "infer", "effect": "NoSchedule"}]
    offered = {"cpu": "96", "memory": "768Gi", "pods": "110", GPU: str(GPUS_PER_NODE)}
    return make_node(number, labels, offered, taints if number % TAINTED_EVERY == 1 else [], "1")


def _train_pod() -> Pod:
    return pod_asking({"cpu": "64", GPU: str(GPUS_PER_NODE)}, selector={POOL: "train"})


def _split(fed: HandFed, racks: int) -> list[str]:
    found: dict[str, set[int]] = {}
    for key, node in fed.node_of.items():
        group = fed.pods[key].spec.scheduling_group
        if group is not None:
            found.setdefault(group.pod_group_name or "", set()).add(int(node.split("-")[1]) % racks)
    return [f"gang {group} is in racks {sorted(rows)}" for group, rows in found.items() if len(rows) > 1][:3]
