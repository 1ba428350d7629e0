"""Groups that are harder to place, in process: by preemption, and in trees of groups.

The sizes are those of kube-scheduler's own benchmark.  Next: `rows.py`.
"""

import resource
from typing import Any

import numpy as np
from msgspec.structs import replace

from bench.hand_fed import HandFed, group_seen
from bench.in_process import figures
from bench.objects import copies, in_group, plain_node, pod_asking
from muster.framework.groups import Group, ObjectKey
from muster.framework.ports import CompositeSeen, GroupSeen, NodeSeen

VICTIMS_PER_NODE = 4
PREEMPTORS = 10
PREEMPTOR_PRIORITY = 100


def preempt(nodes: int) -> dict[str, Any]:
    """Lone pods of higher priority, each as large as a node, in a cluster full of running gangs.

    A gang of four is on each node; what is timed are whole cycles that ask for evictions.
    """
    fed = HandFed()
    fed.see(NodeSeen(plain_node(number, 0)) for number in range(nodes))
    small = pod_asking({"cpu": "1"})
    for number in range(nodes):
        name = f"v-{number}"
        fed.see([group_seen(name, VICTIMS_PER_NODE)])
        for victim in copies(small, VICTIMS_PER_NODE, prefix=name):
            spec = replace(victim.spec, node_name=f"node-{number:05d}")
            fed.see([in_group(replace(victim, spec=spec), name)])
    fed.begin()
    fed.run()
    large = pod_asking({"cpu": "4"})
    large = replace(large, spec=replace(large.spec, priority=PREEMPTOR_PRIORITY))
    count = min(PREEMPTORS, nodes)
    fed.see(copies(large, count, prefix="high"))
    fed.run(until_s=60.0)
    bound = sum(ObjectKey("default", f"high-{number}") in fed.node_of for number in range(count))
    evicted = nodes * VICTIMS_PER_NODE - sum(key.name.startswith("v-") for key in fed.pods)
    faults = [] if bound == count else [f"{bound} of {count} preemptors bound"]
    faults += (
        [] if evicted == count * VICTIMS_PER_NODE else [f"{evicted} pods evicted for {count} preemptors"]
    )
    times_ms = 1000.0 * np.array(fed.evicting_s or [float("nan")])
    return {
        "preempting_p50_ms": float(np.percentile(times_ms, 50)),
        "preempting_p99_ms": float(np.percentile(times_ms, 99)),
        "evictions": evicted,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1.024 / 1000.0,
        "wrong": faults,
    }


def preempt_with_gang(nodes: int, members: int) -> dict[str, Any]:
    """One gang of members as large as a node, in a cluster full of lone pods of three lower priorities."""
    fed = HandFed()
    fed.see(NodeSeen(plain_node(number, 0)) for number in range(nodes))
    small = pod_asking({"cpu": "1"})
    for number in range(nodes):
        for index, victim in enumerate(copies(small, VICTIMS_PER_NODE, prefix=f"v-{number}")):
            spec = replace(victim.spec, node_name=f"node-{number:05d}", priority=(number + index) % 3)
            fed.see([replace(victim, spec=spec)])
    fed.begin()
    fed.run()
    key = ObjectKey("default", "high")
    fed.see([GroupSeen(Group(key, "uid-high", "1", min_count=members, priority=PREEMPTOR_PRIORITY))])
    large = pod_asking({"cpu": "4"})
    large = replace(large, spec=replace(large.spec, priority=PREEMPTOR_PRIORITY))
    before_s = fed.handled_s
    fed.see(in_group(pod, "high") for pod in copies(large, members, prefix="high"))
    fed.run(until_s=60.0)
    bound = sum(key.name.startswith("high-") for key in fed.node_of)
    evicted = nodes * VICTIMS_PER_NODE - sum(key.name.startswith("v-") for key in fed.pods)
    faults = [] if bound == members else [f"{bound} of {members} preemptors bound"]
    if evicted != members * VICTIMS_PER_NODE:
        faults.append(f"{evicted} pods evicted for {members} preemptors")
    return {
        "preempting_p50_ms": 1000.0 * float(np.median(fed.evicting_s or [float("nan")])),
        "all_events_ms": 1000.0 * (fed.handled_s - before_s),
        "evictions": evicted,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1.024 / 1000.0,
        "wrong": faults,
    }


def make_trees(nodes: int, trees: int, groups: int, size: int) -> dict[str, Any]:
    """Place composite groups of `groups` gangs of `size` pods each, all known before the first decision."""
    fed = HandFed()
    fed.see(NodeSeen(plain_node(number, 0)) for number in range(nodes))
    model = pod_asking({"cpu": "100m"})
    for tree in range(trees):
        root = ObjectKey("default", f"c-{tree}")
        fed.see([CompositeSeen(Group(root, f"uid-c-{tree}", "1", min_count=groups, is_composite=True))])
        for child in range(groups):
            name = f"c-{tree}-{child}"
            key = ObjectKey("default", name)
            fed.see([GroupSeen(Group(key, f"uid-{name}", "1", min_count=size, parent=root))])
            fed.see(in_group(pod, name) for pod in copies(model, size, prefix=name))
    fed.begin()
    before_s = fed.handled_s
    fed.run()
    pods = trees * groups * size
    faults = [] if len(fed.node_of) == pods else [f"{len(fed.node_of)} of {pods} pods bound"]
    return figures(fed, trees) | {"pods_per_s": pods / (fed.handled_s - before_s), "wrong": faults}
