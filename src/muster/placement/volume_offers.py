"""What volumes there are for whom, and from where they are reached.

In come the volumes of a snapshot and its nodes; out go, for a claim, the volumes that would do, best first,
and whether one could be made.  Next: `volume_matching.py`, which gives them out.
Axis: N node rows.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from muster.api.core import Node, Pod
from muster.api.quantity import parse_quantity
from muster.api.selectors import matches_node_term, matches_selector
from muster.api.storage import (
    AVAILABLE,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from muster.base.arrays import Bool
from muster.cluster.snapshot import Snapshot
from muster.cluster.volumes import ClaimKey, Volumes, asked_of, can_keep_promise, claims_of, size_of

# Zone and region: the label, and the old one that nodes and volumes of former days still carry.
_ZONE_LABELS = {
    "topology.kubernetes.io/zone": "failure-domain.beta.kubernetes.io/zone",
    "topology.kubernetes.io/region": "failure-domain.beta.kubernetes.io/region",
}
_GOING = "it goes when no pod uses it any more; make it anew then"
_MAKE_ANEW = "delete the claim and make it anew, or restore the volume"
_ZONE_SEPARATOR = "__"


class VolumeNeeds(NamedTuple):
    """What a pod's claims come to.

    `refusal`: why it can go nowhere, or ""; `volume_names`: volumes that its claims have or were promised;
    `made_on`: nodes for which volumes of its claims are being made; `open_claims`: those that wait for their
    first consumer; `unfinished`: some claim has no volume for good yet; `cure`: what would end the refusal.
    """

    refusal: str
    volume_names: tuple[str, ...] = ()
    made_on: tuple[str, ...] = ()
    open_claims: tuple[ClaimKey, ...] = ()
    unfinished: bool = False
    cure: str = ""


def find_needs(pod: Pod, volumes: Volumes) -> VolumeNeeds:
    """Look through the claims of a pod."""
    names: list[str] = []
    made_on: list[str] = []
    still_open: list[ClaimKey] = []
    immediate: dict[str, PersistentVolumeClaim] = {}
    unfinished = False
    for key, is_ephemeral in claims_of(pod):
        claim = volumes.claims.get(key)
        refusal, cure = _refusal_of(pod, key, claim, volumes, is_ephemeral=is_ephemeral)
        if refusal or claim is None:
            return VolumeNeeds(refusal, cure=cure)
        unfinished |= not claim.is_bound
        name = volumes.volume_of(claim) or volumes.kept_for.get(key, "")
        if claim.spec.volume_name and not claim.is_bound and key not in volumes.choices:
            immediate[key[1]] = claim
        elif name:
            names.append(name)
        elif key in volumes.choices:
            made_on.append(volumes.choices[key].node_name)
        elif _waits(claim, volumes):
            if key not in still_open:
                still_open.append(key)
        else:
            immediate[key[1]] = claim
    if immediate:
        text = f"pod has unbound immediate PersistentVolumeClaims: {', '.join(sorted(immediate))}"
        return VolumeNeeds(text, cure=_why_unbound(immediate[min(immediate)], volumes))
    return VolumeNeeds("", tuple(names), tuple(made_on), tuple(still_open), unfinished)


def owns(pod: Pod, claim: PersistentVolumeClaim) -> bool:
    """Whether an ephemeral claim was made for this very pod; others may use it under no circumstances."""
    return any(owner.uid == pod.metadata.uid for owner in claim.metadata.owner_references or ())


def _refusal_of(
    pod: Pod, key: ClaimKey, claim: PersistentVolumeClaim | None, volumes: Volumes, *, is_ephemeral: bool
) -> tuple[str, str]:
    """Why the pod can go nowhere with this claim, or "", and the cure."""
    called = f'persistentvolumeclaim "{key[1]}"'
    if claim is None and is_ephemeral:
        cure = "it is made from the pod's template: the events of the pod say why not"
        return f"waiting for ephemeral volume controller to create the {called}", cure
    if claim is None:
        return f"{called} not found", "create it"
    if is_ephemeral and not owns(pod, claim):
        where = f"{pod.metadata.namespace}/"
        owned = f'was not created for pod "{where}{pod.metadata.name}" (pod is not owner)'
        return f'PVC "{where}{key[1]}" {owned}', "delete it: the right one is made then"
    if claim.status.phase == "Lost":
        lost = f'bound to non-existent persistentvolume "{claim.spec.volume_name}"'
        return f"{called} {lost}", _MAKE_ANEW
    if claim.metadata.deletion_timestamp is not None:
        return f"{called} is being deleted", _GOING
    if claim.is_bound and claim.spec.volume_name not in volumes.volumes:
        lost = f'persistentvolume "{claim.spec.volume_name}", which does not exist'
        return f"{called} is bound to {lost}", _MAKE_ANEW
    if not volumes.volume_of(claim) and claim.class_name and claim.class_name not in volumes.classes:
        unknown = f'storageclass.storage.k8s.io "{claim.class_name}" not found, asked for by claim "{key[1]}"'
        return unknown, "create the class, or claim a volume of another"
    return "", ""


def _why_unbound(claim: PersistentVolumeClaim, volumes: Volumes) -> str:
    """What helps a claim whose volume should have come before any pod: all that can be seen from here."""
    called, name, class_name = f"claim {claim.metadata.name}", claim.spec.volume_name, claim.class_name
    volume, chosen = volumes.volumes.get(name), volumes.classes.get(class_name)
    if name and volume is None:
        return f"{called} names volume {name}, which does not exist: create it, or make the claim anew"
    if volume is not None and (owner := volume.spec.claim_ref) is not None:
        if (owner.namespace, owner.name) != (claim.metadata.namespace, claim.metadata.name):
            other = f"{owner.namespace}/{owner.name}"
            return f"{called} names volume {name}, which is for claim {other}: make it anew"
    elif volume is not None and not suits(volume, claim):
        return f"{called} names volume {name}, which is not of its class, mode, access and size: make it anew"
    if not name and not class_name:
        return (
            f"{called} has no class: create a volume without one that suits it, or make it anew with a class"
        )
    if not name and chosen is not None and not chosen.can_provision:
        return f"nobody makes volumes of class {class_name}: create one that suits {called}"
    return "their volumes come before any pod does: the events of the claims say why not yet"


def _waits(claim: PersistentVolumeClaim, volumes: Volumes) -> bool:
    chosen = volumes.classes.get(claim.class_name)
    return chosen is not None and chosen.waits


class VolumeOffers:
    """What a frozen snapshot has to offer; serves `volume_matching.Offers`."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._volumes = snapshot.volumes
        self._nodes = snapshot.nodes
        self._row_of_node = snapshot.row_of_node
        self._reach: dict[str, Bool] = {}
        self._suiting: dict[ClaimKey, tuple[str, ...]] = {}
        self._makes: dict[ClaimKey, tuple[Bool, Bool]] = {}
        self._signatures: list[object] | None = None

    def reach(self, name: str) -> Bool:
        """[N] the nodes that reach a volume; none where there is no such volume."""
        known = self._reach.get(name)
        if known is None:
            volume = self._volumes.volumes.get(name)
            found = [
                volume is not None and node is not None and reaches(node, volume) for node in self._nodes
            ]
            known = self._reach[name] = np.array(found, dtype=np.bool_)
        return known

    def volumes_for(self, claim: ClaimKey, rows: frozenset[int]) -> Sequence[str]:
        """Volumes that nobody has and that will do, the smallest first, names breaking ties."""
        where = sorted(rows)
        return [name for name in self._suiting_for(claim) if self.reach(name)[where].all()]

    def can_make(self, claim: ClaimKey, rows: frozenset[int]) -> bool:
        """Whether a provisioner can make it there; what several nodes would reach nobody knows before."""
        return len(rows) == 1 and bool(self._where_made(claim)[0][next(iter(rows))])

    def can_make_somewhere(self, claim: ClaimKey) -> bool:
        """Whether there is a node for which a provisioner can make it."""
        return bool(self._where_made(claim)[0].any())

    def is_full(self, claim: ClaimKey) -> Bool:
        """[N] where a volume could be made for the claim if its provisioner had the room."""
        return self._where_made(claim)[1]

    def signature(self, row: int) -> object:
        """Equal for rows on which every claim has the same offers."""
        if self._signatures is None:
            free = [name for name in sorted(self._volumes.volumes) if name not in self._volumes.promised]
            waiting = [
                key
                for key, claim in sorted(self._volumes.claims.items())
                if not self._volumes.volume_of(claim)
                and key not in self._volumes.kept_for
                and _waits(claim, self._volumes)
            ]
            columns = [self.reach(name) for name in free] + [self._where_made(key)[0] for key in waiting]
            table = np.array(columns, dtype=np.bool_).reshape(len(columns), len(self._nodes))
            self._signatures = [np.packbits(table[:, index]).tobytes() for index in range(len(self._nodes))]
        return self._signatures[row]

    def _suiting_for(self, key: ClaimKey) -> tuple[str, ...]:
        known = self._suiting.get(key)
        if known is None:
            claim = self._volumes.claims[key]
            free = (
                volume
                for name, volume in self._volumes.volumes.items()
                if name not in self._volumes.promised and is_free(volume)
            )
            suiting = [(size_of(volume), volume.metadata.name) for volume in free if suits(volume, claim)]
            known = self._suiting[key] = tuple(name for _, name in sorted(suiting))
        return known

    def _where_made(self, key: ClaimKey) -> tuple[Bool, Bool]:
        """[N] where a volume can be made for the claim; [N] where it could if there were the room."""
        known = self._makes.get(key)
        if known is None:
            claim = self._volumes.claims[key]
            chosen = self._volumes.classes.get(claim.class_name)
            found = np.zeros(len(self._nodes), dtype=np.bool_)
            full = np.zeros(len(self._nodes), dtype=np.bool_)
            if chosen is not None and chosen.can_provision:
                for row, node in enumerate(self._nodes):
                    if node is not None and self._is_allowed(claim, chosen, node):
                        found[row] = self._has_room(claim, chosen, node)
                        full[row] = not found[row]
            known = self._makes[key] = (found, full)
        return known

    def _is_allowed(self, claim: PersistentVolumeClaim, chosen: StorageClass, node: Node) -> bool:
        selected = claim.selected_node
        if selected and selected in self._row_of_node and selected != node.metadata.name:
            return False  # its provisioner is at work for that node
        return allows(chosen, node)

    def _has_room(self, claim: PersistentVolumeClaim, chosen: StorageClass, node: Node) -> bool:
        driver = self._volumes.drivers.get(chosen.provisioner)
        if driver is None or not driver.spec.storage_capacity:
            return True
        return any(has_room(capacity, claim, node) for capacity in self._capacities_of(chosen))

    def _capacities_of(self, chosen: StorageClass) -> Iterator[CSIStorageCapacity]:
        name = chosen.metadata.name
        return (found for found in self._volumes.capacities.values() if found.storage_class_name == name)


def reaches(node: Node, volume: PersistentVolume) -> bool:
    """Whether a node meets the volume's node affinity and is in its zone (labels of the volume)."""
    affinity = volume.spec.node_affinity
    if affinity is not None and affinity.required is not None:
        terms = affinity.required.node_selector_terms or ()
        if not any(matches_node_term(term, node) for term in terms):
            return False
    return is_in_zone(node, volume)


def is_in_zone(node: Node, volume: PersistentVolume) -> bool:
    """Whether a node is in the zone and region that the volume's labels name; a node with neither is in all.

    A volume with an old label is held against the new one of a node that has no old one.
    """
    labels, have = volume.metadata.labels or {}, node.metadata.labels or {}
    if not any(key in have or old in have for key, old in _ZONE_LABELS.items()):
        return True
    for key, old in _ZONE_LABELS.items():
        for said, there in (
            (labels.get(key), have.get(key)),
            (labels.get(old), have.get(old, have.get(key))),
        ):
            if said is not None and there not in said.split(_ZONE_SEPARATOR):
                return False
    return True


def offers_of(snapshot: Snapshot) -> VolumeOffers:
    """What the frozen snapshot has to offer, reckoned once."""
    offers: VolumeOffers = snapshot.fold("VolumeBinding offers", VolumeOffers, lambda value, moves: value)
    return offers


def is_free(volume: PersistentVolume) -> bool:
    """Whether a volume that nobody was promised may be given away: it is available, and stays."""
    return volume.metadata.deletion_timestamp is None and volume.status.phase == AVAILABLE


def suits(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether a volume is what a claim asks for: class, attributes, mode, access, size and labels."""
    selector = claim.spec.selector
    if volume.class_name != claim.class_name:
        return False
    if selector is not None and not matches_selector(selector, volume.metadata.labels):
        return False
    return can_keep_promise(volume, claim)


def allows(chosen: StorageClass, node: Node) -> bool:
    """Whether a class may have volumes where this node is."""
    terms = chosen.allowed_topologies
    if not terms:
        return True
    labels = node.metadata.labels or {}
    return any(
        all(labels.get(each.key) in each.values for each in term.match_label_expressions or ())
        for term in terms
    )


def has_room(capacity: CSIStorageCapacity, claim: PersistentVolumeClaim, node: Node) -> bool:
    """Whether a provisioner says that it can still make such a volume where this node is."""
    if capacity.node_topology is None or not matches_selector(capacity.node_topology, node.metadata.labels):
        return False
    largest = capacity.maximum_volume_size if capacity.maximum_volume_size is not None else capacity.capacity
    return largest is not None and parse_quantity(largest) >= asked_of(claim)
