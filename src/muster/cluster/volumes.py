"""Volumes and claims as known, and what this scheduler has chosen and nobody has seen written yet.

In come API objects as they are seen, and choices: a volume promised to a claim, a node for which a volume is
to be made.  Out comes a frozen picture that shares everything with the one before unless something changed.
Changed only inside `Scheduler.handle`.  Next: `plugins/volume_binding.py`, which decides on the picture.
"""

from collections.abc import Mapping
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from muster.api.core import Pod
from muster.api.meta import is_older
from muster.api.quantity import parse_quantity
from muster.api.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    StorageObject,
    VolumeAttachment,
)

ClaimKey = tuple[str, str]  # namespace, name

_TABLES: tuple[type, ...] = (
    PersistentVolumeClaim,
    PersistentVolume,
    StorageClass,
    CSINode,
    CSIDriver,
    CSIStorageCapacity,
    VolumeAttachment,
)


class Choice(Struct, frozen=True):
    """What was chosen for a claim: a volume that exists, or ("") one to be made for this node.

    `seen`: the API has shown the choice; should it then show another, somebody has taken it back.
    """

    volume_name: str
    node_name: str
    seen: bool = False


class Volumes(NamedTuple):
    """What is known, by name (claims and capacities by namespace and name); never changed.

    `choices`: of claims whose volume this scheduler has chosen and the API does not show yet.
    `promised`: volume → claim, for volumes that an API object or a choice gives away.  `kept_for`: claim →
    volume, where the volume says that it is this claim's and the claim does not say so yet.  `attached`:
    node → drivers and volumes that are attached to it by name.
    """

    claims: Mapping[ClaimKey, PersistentVolumeClaim]
    volumes: Mapping[str, PersistentVolume]
    classes: Mapping[str, StorageClass]
    nodes: Mapping[str, CSINode]
    drivers: Mapping[str, CSIDriver]
    capacities: Mapping[ClaimKey, CSIStorageCapacity]
    choices: Mapping[ClaimKey, Choice]
    promised: Mapping[str, ClaimKey]
    kept_for: Mapping[ClaimKey, str]
    attached: Mapping[str, frozenset[tuple[str, str]]] = {}

    def volume_of(self, claim: PersistentVolumeClaim) -> str:
        """The volume that a claim has or has been promised; "" for none."""
        if claim.spec.volume_name:
            return claim.spec.volume_name
        choice = self.choices.get((claim.metadata.namespace, claim.metadata.name))
        return choice.volume_name if choice is not None else ""


NO_VOLUMES = Volumes({}, {}, {}, {}, {}, {}, {}, {}, {})


class VolumeBook:
    """The objects by kind and name, and the choices by claim."""

    def __init__(self) -> None:
        self._objects: dict[type, dict[ClaimKey, StorageObject]] = {kind: {} for kind in _TABLES}
        self._choices: dict[ClaimKey, Choice] = {}
        self._frozen: Volumes | None = NO_VOLUMES

    def apply(self, found: StorageObject) -> bool:
        """Take over an object as seen; False if it is older than what is known."""
        table = self._objects[type(found)]
        key = _key_of(found)
        known = table.get(key)
        if (
            known is not None
            and known.metadata.uid == found.metadata.uid
            and is_older(found.metadata, known.metadata)
        ):
            return False
        table[key] = found
        self._frozen = None
        if isinstance(found, PersistentVolumeClaim):
            self._see_claim(key, found)
        elif isinstance(found, PersistentVolume) and found.spec.claim_ref is not None:
            owner = (found.spec.claim_ref.namespace, found.spec.claim_ref.name)
            name = found.metadata.name
            for other in [each for each, choice in self._choices.items() if choice.volume_name == name]:
                if other != owner:
                    del self._choices[other]
        return True

    def _see_claim(self, key: ClaimKey, claim: PersistentVolumeClaim) -> None:
        """A choice ends when the claim has its volume, or when its node is taken back (nothing was made)."""
        choice = self._choices.get(key)
        if choice is None:
            return
        if claim.is_bound:
            del self._choices[key]
        elif not choice.volume_name and claim.selected_node == choice.node_name:
            self._choices[key] = replace(choice, seen=True)
        elif not choice.volume_name and choice.seen:
            del self._choices[key]

    def remove(self, kind: type, key: ClaimKey, uid: str) -> StorageObject | None:
        """Forget an object that is gone; None if this very one is not known."""
        known = self._objects[kind].get(key)
        if known is None or (uid and known.metadata.uid != uid):
            return None
        del self._objects[kind][key]
        if kind is PersistentVolumeClaim:
            self._choices.pop(key, None)
        self._frozen = None
        return known

    def choose(self, key: ClaimKey, choice: Choice) -> None:
        """Count a claim's volume as chosen before the API agrees."""
        self._choices[key] = choice
        self._frozen = None

    def unchoose(self, key: ClaimKey) -> None:
        """The choice is given up; what the API shows counts again."""
        if self._choices.pop(key, None) is not None:
            self._frozen = None

    def freeze(self) -> Volumes:
        """The picture now: the same object until something changes."""
        if self._frozen is None:
            tables = [dict(self._objects[kind]) for kind in _TABLES]
            claims, volumes, classes, nodes, drivers, capacities, _ = tables
            self._frozen = Volumes(
                claims,  # type: ignore[arg-type]
                {name: found for (_, name), found in volumes.items()},  # type: ignore[misc]
                {name: found for (_, name), found in classes.items()},  # type: ignore[misc]
                {name: found for (_, name), found in nodes.items()},  # type: ignore[misc]
                {name: found for (_, name), found in drivers.items()},  # type: ignore[misc]
                capacities,  # type: ignore[arg-type]
                dict(self._choices),
                self._promises(),
                self._kept(),
                self._attached(),
            )
        return self._frozen

    def _promises(self) -> dict[str, ClaimKey]:
        promised: dict[str, ClaimKey] = {}
        for volume in self._objects[PersistentVolume].values():
            assert isinstance(volume, PersistentVolume)
            reference = volume.spec.claim_ref
            if reference is not None:
                promised[volume.metadata.name] = (reference.namespace, reference.name)
        promised |= {choice.volume_name: key for key, choice in self._choices.items() if choice.volume_name}
        return promised

    def _attached(self) -> dict[str, frozenset[tuple[str, str]]]:
        found: dict[str, set[tuple[str, str]]] = {}
        for each in self._objects[VolumeAttachment].values():
            assert isinstance(each, VolumeAttachment)
            volume_name = each.spec.source.persistent_volume_name
            if volume_name and each.spec.attacher:
                found.setdefault(each.spec.node_name, set()).add((each.spec.attacher, volume_name))
        return {node_name: frozenset(there) for node_name, there in found.items()}

    def _kept(self) -> dict[ClaimKey, str]:
        """A volume that names a claim, by its uid or for whichever has the name; the first by name.

        One that is not what it asks for will not be bound to it, whatever it says.
        """
        kept: dict[ClaimKey, str] = {}
        for volume in self._objects[PersistentVolume].values():
            assert isinstance(volume, PersistentVolume)
            reference, name = volume.spec.claim_ref, volume.metadata.name
            if reference is None:
                continue
            key = (reference.namespace, reference.name)
            claim = self._objects[PersistentVolumeClaim].get(key)
            if not isinstance(claim, PersistentVolumeClaim) or claim.spec.volume_name:
                continue
            is_for_it = reference.uid in ("", claim.metadata.uid)
            stays = volume.metadata.deletion_timestamp is None
            if is_for_it and stays and can_keep_promise(volume, claim):
                kept[key] = min(name, kept.get(key, name))
        return kept


def size_of(volume: PersistentVolume) -> int:
    """Its capacity in bytes."""
    return parse_quantity((volume.spec.capacity or {}).get("storage", 0))


def asked_of(claim: PersistentVolumeClaim) -> int:
    """What a claim asks for, in bytes."""
    requests = claim.spec.resources.requests if claim.spec.resources is not None else None
    return parse_quantity((requests or {}).get("storage", 0))


def can_keep_promise(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether a volume that names a claim may be bound to it: neither class nor labels matter then."""
    offered, asked = volume.spec, claim.spec
    if offered.volume_mode != asked.volume_mode:
        return False
    if (offered.volume_attributes_class_name or "") != (asked.volume_attributes_class_name or ""):
        return False
    if not set(asked.access_modes or ()) <= set(offered.access_modes or ()):
        return False
    return size_of(volume) >= asked_of(claim)


def claims_of(pod: Pod) -> tuple[tuple[ClaimKey, bool], ...]:
    """The claims whose volumes a pod mounts, each with whether it is made for this pod (ephemeral)."""
    found: list[tuple[ClaimKey, bool]] = []
    for volume in pod.spec.volumes or ():
        source = volume.get("persistentVolumeClaim")
        if isinstance(source, dict):
            found.append(((pod.metadata.namespace, str(source.get("claimName") or "")), False))
        elif volume.get("ephemeral") is not None:
            found.append(((pod.metadata.namespace, f"{pod.metadata.name}-{volume.get('name')}"), True))
    return tuple(found)


def _key_of(found: StorageObject) -> ClaimKey:
    return (found.metadata.namespace, found.metadata.name)
