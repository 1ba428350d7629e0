"""Volumes that are yet to come, and from where nobody knows: what there would be if they were there.

Members are placed on the one node for which such a volume is made: whoever needs two is refused until it is
there, and may go once it is.  In come members and the snapshot that refused them; out go the claims to wait
for, and the snapshot as it would be at best, with volumes that every node reaches.  Next: `search.py` of the
scheduler, which calls nothing impossible that such a volume could change.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from muster.api.core import Pod
from muster.api.meta import ObjectMeta
from muster.api.storage import (
    BIND_COMPLETED,
    ClaimReference,
    CSISource,
    PersistentVolume,
    PersistentVolumeClaim,
    VolumeSpec,
)
from muster.cluster.snapshot import Snapshot
from muster.cluster.volumes import ClaimKey, Volumes, claims_of
from muster.placement.volume_offers import offers_of


class Awaited(NamedTuple):
    """Claims whose volume is yet to come; `shared`: those that wait for the first of several pods here."""

    coming: tuple[ClaimKey, ...] = ()
    shared: tuple[ClaimKey, ...] = ()

    @property
    def claims(self) -> tuple[ClaimKey, ...]:
        """All of them, in order."""
        return tuple(sorted((*self.coming, *self.shared)))

    def sentence(self) -> str:
        """Why it is not known whether there is a placement, and what would help."""
        return "; ".join(self._clauses())

    def _clauses(self) -> Iterator[str]:
        if self.coming:
            names = name_claims(self.coming)
            yield f"no placement until there is a volume for {names}: from where it is reached is known then"
        if self.shared:
            names = name_claims(self.shared)
            yield (
                f"no placement has all who share {names} on one node, and from where else a volume is reached"
                " is known when it is made: claim one for several nodes that is there before its pods"
                " (ReadWriteMany, of a class with volumeBindingMode Immediate)"
            )


def find_awaited(pods: Iterable[Pod], snapshot: Snapshot) -> Awaited:
    """Look through the claims of the pods, and of who has been placed on this fork.

    A claim of one pod alone that nobody is at work for is not awaited: its volume is made where the pod goes.
    """
    counts = Counter(key for pod in pods for key, _ in claims_of(pod))
    placed = Counter(key for move in snapshot.moves for key, _ in claims_of(move.pod))
    offers, volumes = offers_of(snapshot), snapshot.volumes
    coming, shared = [], []
    for key in sorted(counts):
        claim = volumes.claims.get(key)
        if claim is None or not _is_unmade(key, claim, volumes):
            continue
        if _is_coming(key, claim, snapshot):
            coming.append(key)
        elif counts[key] + placed[key] > 1 and offers.can_make_somewhere(key):
            shared.append(key)
    return Awaited(tuple(coming), tuple(shared))


def _is_unmade(key: ClaimKey, claim: PersistentVolumeClaim, volumes: Volumes) -> bool:
    """Whether a provisioner is to make the claim's volume, and none has been found or named for it."""
    chosen = volumes.classes.get(claim.class_name)
    if claim.status.phase == "Lost" or claim.metadata.deletion_timestamp is not None:
        return False
    if volumes.volume_of(claim) or key in volumes.kept_for:
        return False
    return chosen is not None and chosen.can_provision


def _is_coming(key: ClaimKey, claim: PersistentVolumeClaim, snapshot: Snapshot) -> bool:
    """Whether its provisioner is at work, for a node or for whoever comes."""
    volumes = snapshot.volumes
    if key in volumes.choices or not volumes.classes[claim.class_name].waits:
        return True
    return claim.selected_node in snapshot.row_of_node


def as_if_there(snapshot: Snapshot, claims: Iterable[ClaimKey]) -> Snapshot:
    """The same fork with a volume for each of these claims that every node reaches, and can attach as before.

    Whatever is impossible there is so wherever the volumes come to be.
    """
    volumes = snapshot.volumes
    known, there = dict(volumes.claims), dict(volumes.volumes)
    for key in claims:
        claim = known[key]
        volume = _make(claim, volumes)
        annotations = {**(claim.metadata.annotations or {}), BIND_COMPLETED: "yes"}
        known[key] = replace(
            claim,
            metadata=replace(claim.metadata, annotations=annotations),
            spec=replace(claim.spec, volume_name=volume.metadata.name),
        )
        there[volume.metadata.name] = volume
    return snapshot.with_volumes(volumes._replace(claims=known, volumes=there))


def _make(claim: PersistentVolumeClaim, volumes: Volumes) -> PersistentVolume:
    """A volume by a name that no other has, whose handle is that by which the claim is counted without it."""
    meta = claim.metadata
    name = f"{meta.namespace}/{meta.name}"
    spec = VolumeSpec(
        access_modes=claim.spec.access_modes,
        claim_ref=ClaimReference(meta.namespace, meta.name, meta.uid),
        csi=CSISource(volumes.classes[claim.class_name].provisioner, name),
    )
    return PersistentVolume(ObjectMeta(name=name), spec)


def name_claims(claims: Sequence[tuple[str, str]]) -> str:
    """ "claim a/b", or "claim a/b and 2 more"."""
    more = f" and {len(claims) - 1} more" if len(claims) > 1 else ""
    return f"claim {'/'.join(claims[0])}{more}"
