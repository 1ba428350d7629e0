"""What pods need in place of extended resources, by node: a claim where the node itself offers none of them.

The claim is thought up for a decision and made once the pod is placed.  In come a pod and rows; out come keys
of claims that `device_offers.py` knows from then on.  Next: `plugins/dynamic_resources.py`.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from muster.api.core import Pod
from muster.base.arrays import Bool, Int32
from muster.cluster.devices import ClaimKey, Devices
from muster.cluster.extended_resources import (
    PLENTY,
    ExtendedClaim,
    backed_asks,
    extended_claim,
    is_extended_claim_of,
    unwritten_key,
)
from muster.cluster.snapshot import Snapshot
from muster.placement.device_offers import DeviceOffers


def uses_devices(pod: Pod, devices: Devices) -> bool:
    """Whether the pod claims devices, or may need some in place of an extended resource."""
    return bool(pod.spec.resource_claims) or bool(backed_asks(pod, devices.backed))


def missing_on(pod: Pod, snapshot: Snapshot, row: int) -> tuple[str, ...]:
    """The backed resources that the pod asks for and the node does not offer, in order of name."""
    asked = backed_asks(pod, snapshot.devices.backed)
    if not asked:
        return ()
    return tuple(name for name in asked if _is_missing(name, snapshot, np.array([row], dtype=np.int32))[0])


def by_missing(pod: Pod, snapshot: Snapshot, rows: Int32) -> Iterator[tuple[tuple[str, ...], Int32]]:
    """Indices into `rows` [K] together with what all of them lack."""
    asked = backed_asks(pod, snapshot.devices.backed)
    found: dict[tuple[str, ...], Bool] = {(): np.ones(len(rows), dtype=np.bool_)}
    for name in asked:
        lacks = _is_missing(name, snapshot, rows)
        found = {
            (*missing, *added): mask & (lacks if added else ~lacks)
            for missing, mask in found.items()
            for added in ((), (name,))
        }
    for missing, mask in found.items():
        if mask.any() or not asked:
            yield missing, np.flatnonzero(mask).astype(np.int32)


def _is_missing(name: str, snapshot: Snapshot, rows: Int32) -> Bool:
    column = snapshot.axis.find_column(name)
    if column is None:
        return np.ones(len(rows), dtype=np.bool_)
    lacks: Bool = snapshot.allocatable[rows, column] == PLENTY
    return lacks


def claims_for(
    pod: Pod, missing: Sequence[str], snapshot: Snapshot, offers: DeviceOffers, *, is_placed: bool
) -> tuple[ClaimKey, ...]:
    """The claim in place of these resources, if any, known to the offers; none where the pod has its own.

    One that is only asked about is another than that of the pod where it is placed, and the same for all who
    ask for as much.
    """
    devices = snapshot.devices
    meta = pod.metadata
    if not missing or pod.spec.node_name or unwritten_key(meta.namespace, meta.uid) in devices.choices:
        return ()
    claim = thought_up(pod, missing, devices).claim
    key = unwritten_key(meta.namespace, meta.uid, missing)
    if not is_placed:
        asked = [(each.name, each.exactly) for each in claim.spec.devices.requests or ()]
        key = unwritten_key(meta.namespace, "", (repr(asked),))
    offers.unwritten.setdefault(key, claim)
    return (key,)


def thought_up(pod: Pod, missing: Sequence[str], devices: Devices) -> ExtendedClaim:
    """The claim that is to be made."""
    return extended_claim(pod, missing, devices.backed)


def find_made(pod: Pod, devices: Devices) -> ClaimKey | None:
    """The claim that was made for the pod, once all that is to be written of it can be seen."""
    meta, status = pod.metadata, pod.status.extended_resource_claim_status
    key = (meta.namespace, status.resource_claim_name if status is not None else "")
    if unwritten_key(meta.namespace, meta.uid) in devices.choices:
        return None
    claim = devices.claims.get(key)
    if claim is None or claim.metadata.deletion_timestamp is not None:
        return None
    return key if is_extended_claim_of(claim) == meta.uid else None
