"""Totals agree with their parts: what must hold of the state after every step.

The simulator calls `check_state` after each one; whatever it raises is a fault of ours.
"""

import numpy as np

from muster.base.errors import InvariantViolated
from muster.cluster.axes import add_saturating
from muster.cluster.pod_records import PodKey
from muster.cluster.requests import host_ports, pod_requests
from muster.cluster.snapshot import Snapshot
from muster.cluster.state import ClusterState


def check_state(state: ClusterState) -> None:
    """Count everything again from the pods and compare with columns and snapshot.

    Raises   InvariantViolated naming the first thing that does not agree.
    """
    snapshot = state.snapshot()
    _check_rows(state, snapshot)
    _check_pods(state, snapshot)


def _check_rows(state: ClusterState, snapshot: Snapshot) -> None:
    """Names, rows and liveness are one bijection, and dead rows are empty."""
    for name, row in snapshot.row_of_node.items():
        node = snapshot.nodes[row]
        if snapshot.node_names[row] != name or node is None or node.metadata.name != name:
            raise InvariantViolated(f"row {row} should be node {name}, is {snapshot.node_names[row]}")
    alive = sorted(snapshot.row_of_node.values())
    if snapshot.live_rows().tolist() != alive:
        raise InvariantViolated(f"live rows are {snapshot.live_rows().tolist()}, nodes are on {alive}")
    for row in np.flatnonzero(~snapshot.live).tolist():
        if snapshot.requested[row].any() or snapshot.allocatable[row].any() or snapshot.pods_on(row):
            raise InvariantViolated(f"dead row {row} is not empty")
    for array in (snapshot.live, snapshot.allocatable, snapshot.requested, snapshot.unschedulable):
        if array.flags.writeable:
            raise InvariantViolated("a frozen snapshot has an array that can be written")


def _check_pods(state: ClusterState, snapshot: Snapshot) -> None:
    """Every placed pod is on exactly one row, and a row's total is the sum over its pods."""
    where: dict[PodKey, str] = {}
    for row in snapshot.live_rows().tolist():
        total = snapshot.axis.row({})
        ports = 0
        for pod in snapshot.pods_on(row):
            key = (pod.metadata.namespace, pod.metadata.name)
            if key in where:
                raise InvariantViolated(
                    f"pod {key[0]}/{key[1]} is on {where[key]} and {snapshot.node_names[row]}"
                )
            where[key] = snapshot.node_names[row]
            if pod.is_terminal:
                raise InvariantViolated(f"pod {key[0]}/{key[1]} has ended and still takes room")
            total = add_saturating(total, snapshot.axis.row(pod_requests(pod)))
            ports += len(host_ports(pod))
        if not np.array_equal(total, snapshot.requested[row]):
            raise InvariantViolated(
                f"node {snapshot.node_names[row]}: pods ask for {total.tolist()},"
                f" counted are {snapshot.requested[row].tolist()}"
            )
        if ports != len(snapshot.host_ports_on(row)):
            raise InvariantViolated(f"node {snapshot.node_names[row]}: host ports do not agree with its pods")
    strays = {node_name for node_name, _ in state.pods_placed()} - snapshot.row_of_node.keys()
    if state.strays != strays:
        raise InvariantViolated(f"pods are on unknown nodes {sorted(strays)}, kept is {sorted(state.strays)}")
    for node_name, pod in state.pods_placed():
        key = (pod.metadata.namespace, pod.metadata.name)
        if state.node_of(key) != node_name:
            raise InvariantViolated(
                f"pod {key[0]}/{key[1]} counts on {node_name}, is on {state.node_of(key)}"
            )
        if node_name in snapshot.row_of_node and where.get(key) != node_name:
            raise InvariantViolated(f"pod {key[0]}/{key[1]} is missing on {node_name}")
