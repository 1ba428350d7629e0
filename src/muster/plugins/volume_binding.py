"""VolumeBinding: a pod goes where the volumes of its claims are, or can be found or made for them.

Claims that have their volume pin the pod to the nodes that reach it.  For claims that wait for their first
consumer, the members of a gang are seen together: no two get the same volume, and one moves on to another
where that leaves room for the next.  In come pods, the volumes of the snapshot and what the fork has placed;
out go masks, and at the end what was chosen for each claim.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from muster.api.core import Node, Pod
from muster.api.storage import PersistentVolume, PersistentVolumeClaim, StorageClass, VolumeAttachment
from muster.base.arrays import Bool, Int32
from muster.cluster.snapshot import PodMove, Snapshot
from muster.cluster.volumes import ClaimKey, claims_of
from muster.framework.events import Change, ClusterEvent, Hint, HintRule, Rejected
from muster.framework.groups import ObjectKey, PodKey
from muster.framework.points import NodeReason, NodeVerdict
from muster.framework.ports import Prepare, PromiseVolume, SelectNode
from muster.framework.status import Status
from muster.placement.volume_matching import EMPTY, Matching, leave, place
from muster.placement.volume_offers import (
    VolumeNeeds,
    VolumeOffers,
    allows,
    find_needs,
    is_in_zone,
    offers_of,
)

NO_VOLUME = "node(s) didn't find available persistent volumes to bind"
NOT_REACHED = "node(s) didn't match PersistentVolume's node affinity"
NOT_IN_ZONE = "node(s) had no available volume zone"
_SHARED = (
    "is shared with a member on {}: claim a volume that is there before its pods"
    " (a class with volumeBindingMode Immediate)"
)
NO_SPACE = "node(s) did not have enough free storage"


class VolumeBinding:
    """Every claim of a pod has, or can get, a volume that its node reaches."""

    name: ClassVar[str] = "VolumeBinding"
    reads_metadata: ClassVar[bool] = False
    reads_pods: ClassVar[bool] = True
    only_narrows: ClassVar[bool] = True

    def is_silent(self, pod: Pod, snapshot: Snapshot) -> bool:
        return not pod.spec.volumes

    def filter(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> NodeVerdict:
        if not pod.spec.volumes:
            return NodeVerdict(np.ones(len(rows), dtype=np.bool_))
        needs = find_needs(pod, snapshot.volumes)
        if needs.refusal:
            nowhere = np.zeros(len(rows), dtype=np.bool_)
            return NodeVerdict(nowhere, (NodeReason(~nowhere, needs.refusal, resolvable=False),))
        offers = offers_of(snapshot)
        reached = np.ones(len(rows), dtype=np.bool_)
        for name in needs.volume_names:
            reached &= offers.reach(name)[rows]
        for node_name in needs.made_on:
            reached &= rows == snapshot.row_of_node.get(node_name, -1)
        found = self._can_match(needs, snapshot, offers, rows)
        reasons = (
            *_unreached(needs, snapshot, offers, rows, reached),
            *_unmatched(needs, snapshot, rows, found),
        )
        return NodeVerdict(reached & found, reasons)

    def _can_match(self, needs: VolumeNeeds, snapshot: Snapshot, offers: VolumeOffers, rows: Int32) -> Bool:
        """Rows [K] on which all claims without a volume could get one, beside those of the fork's pods."""
        found = np.ones(len(rows), dtype=np.bool_)
        if not needs.open_claims:
            return found
        matching = _matching_of(snapshot)
        known: dict[object, bool] = {}
        for index, row in enumerate(rows.tolist()):
            like = (offers.signature(row), tuple(matching.rows_of.get(claim) for claim in needs.open_claims))
            key = (like, row) if any(like[1]) else like[0]
            if key not in known:
                known[key] = _add(matching, needs, row, offers) is not None
            found[index] = known[key]
        return found

    def example(self, pod: Pod, snapshot: Snapshot, row: int, text: str) -> str:
        volumes, offers = snapshot.volumes, offers_of(snapshot)
        needs = find_needs(pod, volumes)
        if text in (NOT_REACHED, NOT_IN_ZONE):
            for name in needs.volume_names:
                if not offers.reach(name)[row]:
                    owner = "/".join(volumes.promised.get(name, ("", "")))
                    return f"volume {name} of claim {owner} pins the pod and is not reached from there"
            return f"a volume of this pod is being made for node {', '.join(needs.made_on)}"
        if needs.refusal:
            return needs.cure
        claims = [*needs.open_claims, *(key for key, _ in claims_of(pod))]
        if text == NO_VOLUME:
            found = _matching_of(snapshot)
            alone = [claim for claim in needs.open_claims if place(found, claim, row, offers) is None]
            claims = alone or claims
            away = [home for home in found.rows_of.get(claims[0], ()) if home != row]
            chosen = volumes.classes.get(volumes.claims[claims[0]].class_name) if away else None
            if chosen is not None and chosen.can_provision:
                return f"claim {'/'.join(claims[0])} {_SHARED.format(snapshot.node_names[away[0]])}"
        if text == NO_SPACE:
            claims = [claim for claim in _fresh(needs, snapshot) if offers.is_full(claim)[row]] or claims
        first = claims[0]
        claim = volumes.claims.get(first)
        class_name = claim.class_name if claim is not None else ""
        return f"claim {'/'.join(first)}: {_lack(text, class_name, snapshot, row)}"

    def rows_changed(self, placed: Pod, row: int, pod: Pod, snapshot: Snapshot) -> Int32 | None:
        """Whoever takes a volume may have taken it from anybody."""
        if not pod.spec.volumes or not placed.spec.volumes:
            return np.empty(0, dtype=np.int32)
        if not claims_of(pod) or not claims_of(placed):
            return np.empty(0, dtype=np.int32)
        return None

    def prepare(
        self, placed: Sequence[tuple[Pod, int]], snapshot: Snapshot
    ) -> Mapping[PodKey, tuple[Prepare, ...]]:
        volumes, writes = snapshot.volumes, {}
        offers = offers_of(snapshot)
        matching = _matching_of(snapshot)
        needing = [(pod, row, find_needs(pod, volumes)) for pod, row in placed if claims_of(pod)]
        for _, row, needs in needing:
            matching = _add(matching, needs, row, offers) or matching
        told: set[tuple[str, str]] = set()
        for pod, row, needs in needing:
            found: list[Prepare] = []
            key = ObjectKey(pod.metadata.namespace, pod.metadata.name)
            for claim in (claim for claim in needs.open_claims if claim not in told):
                told.add(claim)
                found.append(self._write(key, volumes.claims[claim], matching, snapshot, row))
            if found or needs.unfinished:
                writes[key] = tuple(found)
        return writes

    @staticmethod
    def _write(
        pod: PodKey, claim: PersistentVolumeClaim, matching: Matching, snapshot: Snapshot, row: int
    ) -> Prepare:
        key = ObjectKey(claim.metadata.namespace, claim.metadata.name)
        name = matching.volume_of.get(key)
        if name is None:
            return SelectNode(pod, key, claim.metadata.uid, snapshot.node_names[row])
        version = snapshot.volumes.volumes[name].metadata.resource_version
        return PromiseVolume(pod, name, version, key, claim.metadata.uid)

    def is_ready(self, pod: Pod, node: Node, snapshot: Snapshot) -> Status:
        volumes = snapshot.volumes
        for key, _ in claims_of(pod):
            claim = volumes.claims.get(key)
            if claim is None:
                return Status.unschedulable(f'persistentvolumeclaim "{key[1]}" not found')
            what = f'volume "{claim.spec.volume_name}" of claim "{key[1]}"'
            if claim.status.phase == "Lost":
                return Status.unschedulable(f"{what} is gone")
            if claim.is_bound and claim.spec.volume_name not in volumes.volumes:
                return Status.wait(f"{what} to be seen")  # the watches of both are not one
            if claim.is_bound:
                row = snapshot.row_of_node.get(node.metadata.name)
                if row is None or not offers_of(snapshot).reach(claim.spec.volume_name)[row]:
                    return Status.unschedulable(f"{what} is not reached from node {node.metadata.name}")
            elif key in volumes.choices or key in volumes.kept_for:
                class_name = claim.class_name
                chosen = volumes.classes.get(class_name)
                who = f" by {chosen.provisioner}" if chosen is not None and chosen.can_provision else ""
                gone = ", which does not exist" if class_name and chosen is None else ""
                return Status.wait(f'volume of claim "{key[1]}" (class "{class_name}"{gone}){who}')
            else:
                chosen = volumes.classes.get(claim.class_name)
                maker = f": {_why_not_made(chosen)}" if chosen is not None and chosen.can_provision else ""
                return Status.unschedulable(
                    f'claim "{key[1]}" got no volume on node {node.metadata.name}{maker}'
                )
        return Status.success()

    def hint_rules(self) -> tuple[HintRule, ...]:
        return (
            HintRule(Change.STORAGE_CHANGED, _concerns),
            HintRule(Change.NODE_ADDED),
            HintRule(Change.NODE_LABELS_CHANGED),
            HintRule(Change.POD_UPDATED),
        )


def _unreached(
    needs: VolumeNeeds, snapshot: Snapshot, offers: VolumeOffers, rows: Int32, reached: Bool
) -> tuple[NodeReason, ...]:
    """What the rows [K] that do not reach the pod's volumes are told: the place, or the zone, is wrong."""
    if reached.all():
        return ()
    known = [snapshot.volumes.volumes.get(name) for name in needs.volume_names]
    in_zone = np.array(
        [
            all(volume is None or node is None or is_in_zone(node, volume) for volume in known)
            for node in (snapshot.nodes[row] for row in rows.tolist())
        ],
        dtype=np.bool_,
    )
    return _reasons((~reached & in_zone, NOT_REACHED), (~reached & ~in_zone, NOT_IN_ZONE))


def _unmatched(needs: VolumeNeeds, snapshot: Snapshot, rows: Int32, found: Bool) -> tuple[NodeReason, ...]:
    """What the rows [K] without volumes for the open claims are told: no room to make one, or none.

    A claim that has a pod on this fork has its volume, or one that is being made there and nowhere else.
    """
    if found.all():
        return ()
    offers = offers_of(snapshot)
    full = np.zeros(len(rows), dtype=np.bool_)
    for claim in _fresh(needs, snapshot):
        full |= offers.is_full(claim)[rows]
    return _reasons((~found & ~full, NO_VOLUME), (~found & full, NO_SPACE))


def _fresh(needs: VolumeNeeds, snapshot: Snapshot) -> list[ClaimKey]:
    """The open claims that no pod placed on this fork uses."""
    known = _matching_of(snapshot).rows_of
    return [claim for claim in needs.open_claims if claim not in known]


def _reasons(*told: tuple[Bool, str]) -> tuple[NodeReason, ...]:
    """Rows [K] with what they are told, those that concern any."""
    return tuple(NodeReason(mask, text, resolvable=False) for mask, text in told if mask.any())


def _lack(text: str, class_name: str, snapshot: Snapshot, row: int) -> str:
    """What a claim of this class lacks on a node that says `text`."""
    chosen, node = snapshot.volumes.classes.get(class_name), snapshot.nodes[row]
    if text == NO_SPACE and chosen is not None:
        return f"{chosen.provisioner} has no room left there for one of class {class_name}"
    if chosen is not None and not chosen.can_provision:
        return f"no volume of class {class_name} is free there, and nobody makes any"
    if chosen is not None and node is not None and not allows(chosen, node):
        return (
            f"no volume of class {class_name} is free there, and allowedTopologies of the class leave it out"
        )
    return f"no volume of class {class_name} is free or can be made for it there"


def _why_not_made(chosen: StorageClass) -> str:
    """What is to be said of a volume whose maker gave the choice of the node back."""
    return (
        f"{chosen.provisioner} (class {chosen.metadata.name}) could not make it; events of the claim say why"
    )


def _matching_of(snapshot: Snapshot) -> Matching:
    """What pods placed on this fork have taken between them."""
    offers = offers_of(snapshot)

    def step(matching: Matching, moves: Sequence[PodMove]) -> Matching:
        for move in moves:
            needs = find_needs(move.pod, snapshot.volumes)
            if move.sign > 0:
                matching = _add(matching, needs, move.row, offers) or matching
            else:
                for claim in needs.open_claims:
                    matching = leave(matching, claim, move.row)
        return matching

    return snapshot.fold("VolumeBinding", lambda _: EMPTY, step)


def _add(matching: Matching, needs: VolumeNeeds, row: int, offers: VolumeOffers) -> Matching | None:
    found: Matching | None = matching
    for claim in needs.open_claims:
        found = place(found, claim, row, offers) if found is not None else None
    return found


def _concerns(rejected: Rejected, event: ClusterEvent) -> Hint:
    """A claim of the pods; a volume that is free or promised to one of them; whatever tells of classes."""
    keys = {key for pod in rejected.pods for key, _ in claims_of(pod)}
    found = event.storage
    if not keys or isinstance(found, VolumeAttachment):
        return Hint.SKIP
    if isinstance(found, PersistentVolumeClaim):
        return Hint.QUEUE if (found.metadata.namespace, found.metadata.name) in keys else Hint.SKIP
    if isinstance(found, PersistentVolume) and found.spec.claim_ref is not None:
        reference = found.spec.claim_ref
        return Hint.QUEUE if (reference.namespace, reference.name) in keys else Hint.SKIP
    return Hint.QUEUE
