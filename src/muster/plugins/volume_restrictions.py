"""VolumeRestrictions: a claim with the access mode ReadWriteOncePod is for one pod of the whole cluster."""

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from muster.api.core import Pod
from muster.api.storage import ONE_POD, VolumeAttachment
from muster.base.arrays import Int32
from muster.cluster.snapshot import Snapshot
from muster.cluster.volumes import ClaimKey, Volumes, claims_of
from muster.framework.events import Change, ClusterEvent, Hint, HintRule, Rejected
from muster.framework.points import NodeReason, NodeVerdict
from muster.placement.volume_users import users_of_claims

IN_USE = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by "
    "another pod"
)


class VolumeRestrictions:
    """No node takes a pod whose claim for one pod alone is another's already."""

    name: ClassVar[str] = "VolumeRestrictions"
    reads_metadata: ClassVar[bool] = False
    reads_pods: ClassVar[bool] = True
    only_narrows: ClassVar[bool] = True

    def is_silent(self, pod: Pod, snapshot: Snapshot) -> bool:
        return not pod.spec.volumes

    def filter(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> NodeVerdict:
        taken = False
        if pod.spec.volumes:
            alone = set(_alone(pod, snapshot.volumes))
            taken = bool(alone) and not alone.isdisjoint(users_of_claims(snapshot))
        feasible = np.full(len(rows), not taken)
        return NodeVerdict(feasible, (NodeReason(~feasible, IN_USE),) if taken else ())

    def example(self, pod: Pod, snapshot: Snapshot, row: int, text: str) -> str:
        alone = set(_alone(pod, snapshot.volumes))
        for there in snapshot.live_rows().tolist():
            for other in snapshot.pods_on(there):
                shared = sorted(alone & {key for key, _ in claims_of(other)})
                if shared:
                    user = f"{other.metadata.namespace}/{other.metadata.name}"
                    return f"claim {'/'.join(shared[0])} is pod {user}'s, on {snapshot.node_names[there]}"
        return "some claim of it is another pod's"

    def rows_changed(self, placed: Pod, row: int, pod: Pod, snapshot: Snapshot) -> Int32 | None:
        """Everywhere, where both would use one such claim; else nowhere."""
        if pod.spec.volumes and placed.spec.volumes:
            shared = set(_alone(pod, snapshot.volumes)) & {key for key, _ in claims_of(placed)}
            if shared:
                return None
        return np.empty(0, dtype=np.int32)

    def hint_rules(self) -> tuple[HintRule, ...]:
        return (
            HintRule(Change.POD_FREED, _shares),
            HintRule(Change.STORAGE_CHANGED, _is_no_attachment),
            HintRule(Change.POD_UPDATED),
        )


def _alone(pod: Pod, volumes: Volumes) -> Iterator[ClaimKey]:
    for key, _ in claims_of(pod):
        claim = volumes.claims.get(key)
        if claim is not None and ONE_POD in (claim.spec.access_modes or ()):
            yield key


def _is_no_attachment(rejected: Rejected, event: ClusterEvent) -> Hint:
    return Hint.SKIP if isinstance(event.storage, VolumeAttachment) else Hint.QUEUE


def _shares(rejected: Rejected, event: ClusterEvent) -> Hint:
    """A pod that went and had a claim in common with one that waits."""
    if event.pod is None:
        return Hint.QUEUE
    gone = {key for key, _ in claims_of(event.pod)}
    waiting = {key for pod in rejected.pods for key, _ in claims_of(pod)}
    return Hint.SKIP if gone.isdisjoint(waiting) else Hint.QUEUE
