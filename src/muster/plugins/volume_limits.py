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
NOT_INSTALLED = "{} CSI driver is not installed on the node"


class NodeVolumeLimits:
    """Volumes that a node would have to attach, of all its pods and this one, stay within its limits."""

    name: ClassVar[str] = "NodeVolumeLimits"
    reads_metadata: ClassVar[bool] = False
    reads_pods: ClassVar[bool] = True
    only_narrows: ClassVar[bool] = True

    def is_silent(self, pod: Pod, snapshot: Snapshot) -> bool:
        return not pod.spec.volumes

    def filter(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> NodeVerdict:
        feasible = np.ones(len(rows), dtype=np.bool_)
        volumes = snapshot.volumes
        if not pod.spec.volumes or not (volumes.nodes or volumes.drivers):
            return NodeVerdict(feasible)
        wanted = set(_attached(pod, volumes))
        if not wanted:
            return NodeVerdict(feasible)
        reasons = []
        for driver in sorted({driver for driver, _ in wanted if _must_run(driver, volumes)}):
            runs = [_runs(driver, snapshot.node_names[row], volumes) for row in rows.tolist()]
            missing = ~np.array(runs, dtype=np.bool_)
            if missing.any():
                reasons.append(NodeReason(missing, NOT_INSTALLED.format(driver)))
                feasible &= ~missing
        over = np.zeros(len(rows), dtype=np.bool_)
        for index, row in enumerate(rows.tolist()):
            limits = _limits_of(snapshot.node_names[row], volumes)
            over[index] = bool(limits) and not _fits(wanted, snapshot, row, limits)
        if over.any():
            reasons.append(NodeReason(over, EXCEEDED))
        return NodeVerdict(feasible & ~over, tuple(reasons))

    def example(self, pod: Pod, snapshot: Snapshot, row: int, text: str) -> str:
        if text != EXCEEDED:
            return (
                f"its CSINode does not name the driver; {snapshot.node_names[row]} takes none of its volumes"
            )
        wanted = set(_attached(pod, snapshot.volumes))
        there = wanted | _attached_on(snapshot, row)
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


def _must_run(driver: str, volumes: Volumes) -> bool:
    """Whether pods with volumes of a driver go only where it runs, as its CSIDriver may ask."""
    found = volumes.drivers.get(driver)
    return found is not None and found.spec.prevent_pod_scheduling_if_missing


def _runs(driver: str, node_name: str, volumes: Volumes) -> bool:
    found = volumes.nodes.get(node_name)
    return found is not None and any(each.name == driver for each in found.spec.drivers or ())


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
    """Whether what is new to the node stays within its limits; what is there stays, even beyond them."""
    there = _attached_on(snapshot, row)
    drivers = {driver for driver, _ in wanted - there} & limits.keys()
    return all(sum(driver == each for each, _ in wanted | there) <= limits[driver] for driver in drivers)


def _attached_on(snapshot: Snapshot, row: int) -> set[tuple[str, str]]:
    """The volumes that the node has attached: for its pods, or still from pods that are gone."""
    volumes, there = snapshot.volumes, set[tuple[str, str]]()
    for driver, name in volumes.attached.get(snapshot.node_names[row], ()):
        volume = volumes.volumes.get(name)
        if volume is not None and volume.spec.csi is not None:
            there.add((driver, volume.spec.csi.volume_handle))
    for other in snapshot.pods_on(row):
        if other.spec.volumes:
            there.update(_attached(other, volumes))
    return there


def _had_volumes(rejected: Rejected, event: ClusterEvent) -> Hint:
    return Hint.QUEUE if event.pod is None or claims_of(event.pod) else Hint.SKIP
