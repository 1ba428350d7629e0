"""What a pod's claims for devices come to: whether they are there, its own, understood, and not full.

In come a pod and the devices of a snapshot; out come the claims that have devices and those that need some,
or why the pod can go nowhere.  Next: `device_offers.py` and `device_trials.py`, which find devices.
"""

from collections.abc import Mapping
from typing import NamedTuple

from muster.api.core import Pod
from muster.api.devices import Consumer, ResourceClaim
from muster.cluster.devices import ClaimKey, Devices, device_claims_of, user_of
from muster.placement.device_allocation import requests_of

_GOING = "it goes when no pod uses it and its finalizers are gone; make it anew then"
USERS_MAX = 256  # the API takes no more entries of reservedFor


class DeviceNeeds(NamedTuple):
    """What a pod's claims come to: why it can go nowhere (or ""), claims with devices, and the rest.

    `cure`: what would end the refusal.
    """

    refusal: str
    allocated: tuple[ClaimKey, ...] = ()
    open_claims: tuple[ClaimKey, ...] = ()
    cure: str = ""


def find_device_needs(pod: Pod, devices: Devices, users: Mapping[ClaimKey, int]) -> DeviceNeeds:
    """Look through the claims of a pod; `users`: how many pods of the trial will use each claim beside it."""
    allocated: list[ClaimKey] = []
    still_open: list[ClaimKey] = []
    own = {wanted.name for wanted in pod.spec.resource_claims or () if not wanted.resource_claim_name}
    for name, key in device_claims_of(pod):
        claim = devices.claims.get(key) if key is not None else None
        if key is None or claim is None:
            missing = f'resourceclaim "{key[1]}" not found' if key else f'the claim "{name}" is not made yet'
            cure = "create it" if key else "it is made from its template: the events of the pod say why not"
            return DeviceNeeds(f"waiting for resource claims: {missing}", cure=cure)
        user = user_of(pod, name, devices)
        refusal, cure = _refusal_of(pod, claim, devices, user, users.get(key, 0), is_own=name in own)
        if refusal:
            return DeviceNeeds(refusal, cure=cure)
        (allocated if devices.allocation_of(key) is not None else still_open).append(key)
    return DeviceNeeds("", tuple(allocated), tuple(dict.fromkeys(still_open)))


def _refusal_of(
    pod: Pod, claim: ResourceClaim, devices: Devices, user: Consumer, users: int, *, is_own: bool
) -> tuple[str, str]:
    """Why the pod cannot use the claim, or "", and the cure; `user`: it, or its group whose claim it is."""
    meta = claim.metadata
    owners = [owner.uid for owner in meta.owner_references or () if owner.controller]
    if is_own and user.uid not in owners:
        who = "pod" if user.uid == pod.metadata.uid else "pod group"
        names = f"{meta.namespace}/{meta.name} was not created for {who} {meta.namespace}/{user.name}"
        return f"ResourceClaim {names} ({who} is not owner)", "delete it: the right one is made then"
    if meta.deletion_timestamp is not None:
        return f'resourceclaim "{meta.name}" is being deleted', _GOING
    for name, request in requests_of(claim):
        if request.device_class_name not in devices.classes:
            unknown = f"request {name}: deviceclass {request.device_class_name} not found"
            return f'resourceclaim "{meta.name}": {unknown}', "create the class, or claim devices of another"
    reserved = [each.uid for each in claim.status.reserved_for or ()]
    beside = users if user.uid == pod.metadata.uid else 0  # a group is one user
    if user.uid not in reserved and len(reserved) + beside >= USERS_MAX:
        full = f"is in use by {USERS_MAX} pods, the most it can be reserved for"
        return f'resourceclaim "{meta.name}" {full}', "give some of the pods another claim"
    return "", ""
