"""A storm of gangs that cannot fit, among some that can: what a refusal costs, and who waits for it.

Twenty shapes: ten ask for more processors than any node has; ten for 1 to 10 GPUs a member, on nodes of
which all 8 are taken, so that for some of them one freed node would do.  Streaming: one gang after the other,
each decided on before the next comes, a thousand objects a (virtual) second.  Backlog: all are there at the
start.  What is measured are processor seconds of this thread.  Next: `rows.py`.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from msgspec.structs import replace

from bench.hand_fed import HandFed, group_seen
from bench.objects import copies, in_group, make_node, plain_node, pod_asking
from muster.api.core import Pod
from muster.framework.groups import ObjectKey
from muster.framework.ports import NodeSeen

SHAPES, SIZE = 20, 2
GPU, GPU_NODES, GPUS_PER_NODE = "nvidia.com/gpu", 20, 8
HELPED_SHAPES = 4  # a freed node of 8 GPUs holds both members of those that ask for 1 to 4
GANG_EVERY_S = 0.003


def storm(nodes: int, impossible: int, possible: int) -> dict[str, Any]:
    """First a stream, then a change that helps nobody and one that helps some; then a backlog."""
    alone, alone_s = _stream(nodes, 0, possible)
    fed, waits_s = _stream(nodes, impossible, possible)
    patches = [count for key, count in fed.group_patches.items() if _member(key.name, 0) not in fed.node_of]
    pod_patches = fed.effects["PatchPodStatus"]
    rejected, handled_s = list(fed.rejections_s), fed.handled_s
    placed = [len(each.node_of) for each in (alone, fed)]
    useless, _ = _count_attempts(fed, lambda: fed.see([NodeSeen(plain_node(0, 0, version="2"))]))
    freed, event_s = _count_attempts(fed, lambda: fed.lose(ObjectKey("default", "tenant-0")))
    helped = (len(fed.node_of) - placed[1]) // SIZE
    faults = [] if placed == 2 * [SIZE * possible] else [f"{placed} pods bound, alone and in the storm"]
    faults += [f"{useless} attempts for a change that helps nobody"] if useless else []
    if helped == 0 or freed - helped > HELPED_SHAPES:
        faults.append(f"{freed} attempts for one freed node, {helped} gangs found room on it")
    if len(patches) != impossible or max(patches) > 1:
        faults.append(f"{sum(patches)} patches of {len(patches)} groups for {impossible} impossible gangs")
    backlog_s, backlog_alone_s = _backlog(nodes, impossible, possible), _backlog(nodes, 0, possible)
    return {
        "rejection_us": 1e6 * float(np.mean(rejected)),
        "handled_us_per_gang": 1e6 * handled_s / (impossible + possible),
        "group_patches_per_gang": sum(patches) / max(impossible, 1),
        "pod_patches_per_gang": pod_patches / max(impossible, 1),
        "needless_attempts": useless,
        "vain_attempts": freed - helped,
        "freed_node_us": 1e6 * event_s,
        "possible_wait_ms": 1e3 * float(np.mean(waits_s)),
        "possible_wait_alone_ms": 1e3 * float(np.mean(alone_s)),
        "backlog_wait_ms": 1e3 * backlog_s,
        "backlog_wait_alone_ms": 1e3 * backlog_alone_s,
        "wrong": faults,
    }


def _count_attempts(fed: HandFed, happen: Callable[[], None]) -> tuple[int, float]:
    """How many decisions follow an event, and what the event itself costs, in seconds."""
    before, before_s = len(fed.decisions_s), fed.handled_s
    happen()
    event_s = fed.handled_s - before_s
    fed.run()
    return len(fed.decisions_s) - before, event_s


def _stream(nodes: int, impossible: int, possible: int) -> tuple[HandFed, list[float]]:
    """The gangs one after the other; how long each possible one waited, from last pod to last binding."""
    fed = _cluster(nodes)
    fed.begin()
    fed.run()
    fed.rejections_s.clear()
    fed.handled_s = 0.0
    waits_s = []
    for name, model in _gangs(impossible, possible):
        fed.see([group_seen(name, SIZE)])
        first, *others = [in_group(pod, name) for pod in copies(model, SIZE, prefix=name)]
        fed.see([first])
        before_s = fed.handled_s
        fed.see(others)
        fed.run(until_s=GANG_EVERY_S)
        bound = [fed.bound_s[key] for index in range(SIZE) if (key := _member(name, index)) in fed.bound_s]
        waits_s += [max(bound) - before_s] if bound else []
    return fed, waits_s


def _backlog(nodes: int, impossible: int, possible: int) -> float:
    """All gangs at once: how long a possible one waits from the start to its last binding, on average."""
    fed = _cluster(nodes)
    for name, model in _gangs(impossible, possible):
        fed.see([group_seen(name, SIZE)])
        fed.see(in_group(pod, name) for pod in copies(model, SIZE, prefix=name))
    fed.begin()
    fed.handled_s = 0.0
    fed.run()
    return float(np.mean(list(fed.bound_s.values())))


def _cluster(nodes: int) -> HandFed:
    """Plain nodes, and some with GPUs that are all taken."""
    fed = HandFed()
    fed.see(NodeSeen(plain_node(number, 0)) for number in range(nodes))
    offered = {"cpu": "4", "memory": "32Gi", "pods": "110", GPU: str(GPUS_PER_NODE)}
    kept = [{"key": GPU, "effect": "NoSchedule"}]
    fed.see(NodeSeen(make_node(nodes + number, {}, offered, kept, "1")) for number in range(GPU_NODES))
    tenant = pod_asking({GPU: str(GPUS_PER_NODE)}, tolerant=True)
    for number, pod in enumerate(copies(tenant, GPU_NODES, prefix="tenant")):
        name = f"node-{nodes + number:05d}"
        fed.see([replace(pod, spec=replace(pod.spec, node_name=name))])
    return fed


def _gangs(impossible: int, possible: int) -> Iterator[tuple[str, Pod]]:
    every = 1 + impossible // possible
    for number in range(every * possible):
        shape = number % SHAPES
        if number % every == 0:
            asked = {"cpu": "100m"}
        elif shape < SHAPES // 2:
            asked = {"cpu": f"{5 + shape}"}
        else:
            asked = {GPU: f"{shape + 1 - SHAPES // 2}"}
        yield f"g-{number}", pod_asking(asked, tolerant=GPU in asked)


def _member(name: str, index: int) -> ObjectKey:
    return ObjectKey("default", f"{name}-{index}")
