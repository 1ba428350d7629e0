"""NodeVolumeLimits: a node attaches no more volumes of a driver than its CSINode says it can."""

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from muster.api.core import Pod
from muster.base.arrays import Int32
from muster.cluster.snapshot import Snapshot
from muster.cluster.volumes import Volumes, claims_of
from muster.framework.events import Change, ClusterEvent, Hint, HintRule, Rejected
from muster.framework.points import NodeReason, NodeVerdict

EXCEEDED = "node(s) exceed max volume count"


class NodeVolumeLimits:
    """Volumes that a node would have to attach, of all its pods and this one, stay within its limits."""

    name: ClassVar[str] = "NodeVolumeLimits"
    reads_metadata: ClassVar[bool] = False
    reads_pods: ClassVar[bool] = True

    def filter(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> NodeVerdict:
        feasible = np.ones(len(rows), dtype=np.bool_)
        volumes = snapshot.volumes
        if not pod.spec.volumes or not volumes.nodes:
            return NodeVerdict(feasible)
        wanted = set(_attached(pod, volumes))
        if not wanted:
            return NodeVerdict(feasible)
        for index, row in enumerate(rows.tolist()):
            limits = _limits_of(snapshot.node_names[row], volumes)
            if limits:
                feasible[index] = _fits(wanted, snapshot, row, limits)
        return NodeVerdict(feasible, () if feasible.all() else (NodeReason(~feasible, EXCEEDED),))

    def example(self, pod: Pod, snapshot: Snapshot, row: int, text: str) -> str:
        wanted = set(_attached(pod, snapshot.volumes))
        there = _with_those_there(wanted, snapshot, row)
        for driver, limit in sorted(_limits_of(snapshot.node_names[row], snapshot.volumes).items()):
            count = sum(driver == each for each, _ in there)
            if count > limit and any(driver == each for each, _ in wanted):
                return f"{count} volumes of {driver} would be attached, {limit} can be"
        return ""

    def rows_changed(self, placed: Pod, row: int, pod: Pod, snapshot: Snapshot) -> Int32 | None:
        """The row itself, where both attach something."""
        changes = bool(pod.spec.volumes and placed.spec.volumes and claims_of(pod) and claims_of(placed))
        return np.array([row] if changes else [], dtype=np.int32)

    def hint_rules(self) -> tuple[HintRule, ...]:
        return (
            HintRule(Change.POD_FREED, _had_volumes),
            HintRule(Change.STORAGE_CHANGED),
            HintRule(Change.NODE_ADDED),
            HintRule(Change.POD_UPDATED),
        )


def _limits_of(node_name: str, volumes: Volumes) -> dict[str, int]:
    """Driver → how many volumes the node can attach; drivers without a limit are not there."""
    found = volumes.nodes.get(node_name)
    drivers = found.spec.drivers or () if found is not None else ()
    return {
        driver.name: driver.allocatable.count
        for driver in drivers
        if driver.allocatable is not None and driver.allocatable.count is not None
    }


def _attached(pod: Pod, volumes: Volumes) -> Iterator[tuple[str, str]]:
    """Driver and volume of every claim; a volume still to be made counts by its claim."""
    for key, _ in claims_of(pod):
        claim = volumes.claims.get(key)
        if claim is None:
            continue
        name = volumes.volume_of(claim)
        volume = volumes.volumes.get(name) if name else None
        if volume is not None:
            if volume.spec.csi is not None:
                yield volume.spec.csi.driver, volume.spec.csi.volume_handle
            continue
        chosen = volumes.classes.get(claim.class_name)
        if chosen is not None and chosen.can_provision:
            yield chosen.provisioner, "/".join(key)


def _fits(wanted: set[tuple[str, str]], snapshot: Snapshot, row: int, limits: dict[str, int]) -> bool:
    there = _with_those_there(wanted, snapshot, row)
    drivers = {driver for driver, _ in wanted} & limits.keys()
    return all(sum(driver == each for each, _ in there) <= limits[driver] for driver in drivers)


def _with_those_there(wanted: set[tuple[str, str]], snapshot: Snapshot, row: int) -> set[tuple[str, str]]:
    """The volumes that the node would have attached."""
    there = set(wanted)
    for other in snapshot.pods_on(row):
        if other.spec.volumes:
            there.update(_attached(other, snapshot.volumes))
    return there


def _had_volumes(rejected: Rejected, event: ClusterEvent) -> Hint:
    return Hint.QUEUE if event.pod is None or claims_of(event.pod) else Hint.SKIP
