"""One device in two claims, of which both have users: two schedulers gave it away in the same moment.

The API forbids it to nobody.  A claim of ours that was written later goes back before anybody is bound; what
is left is the rival that looks too late, or not at all.  A device cannot be taken from a pod that runs, so
the pods of ours are told.  In comes a claim as seen before and now; out go Events.  Next: `preparation.py`.
"""

from muster.api.devices import ResourceClaim
from muster.api.meta import is_older
from muster.cluster.device_pools import DeviceId
from muster.cluster.devices import whole_devices
from muster.framework.groups import ObjectKey
from muster.framework.ports import Effect, ObjectReference, RecordEvent
from muster.scheduling.books import Books
from muster.scheduling.claim_users import members_using
from muster.scheduling.conditions import shorten
from muster.scheduling.members import Member, Stage

DEVICE_IN_TWO_CLAIMS = "DeviceInTwoClaims"


def tell_double(books: Books, before: ResourceClaim | None, now: ResourceClaim) -> list[Effect]:
    """A warning on every pod of ours that keeps a device which another claim has since this was seen."""
    devices = books.state.devices
    key = (now.metadata.namespace, now.metadata.name)
    known = set(whole_devices(before))
    effects: list[Effect] = []
    for device in (device for device in whole_devices(now) if device not in known):
        for other in (other for other in devices.holders_of(device) if other != key):
            theirs = devices.find_claim(other)
            if theirs is not None:
                effects += _warn(books, device, now, theirs) + _warn(books, device, theirs, now)
    return effects


def _warn(books: Books, device: DeviceId, claim: ResourceClaim, other: ResourceClaim) -> list[Effect]:
    note = (
        f"device {'/'.join(device)} is in claim {_name_of(claim)}, which this pod uses, and in claim "
        f"{_name_of(other)}: two schedulers gave it away in the same moment"
    )
    return [
        RecordEvent(
            regarding=ObjectReference("v1", "Pod", member.key, member.pod.metadata.uid),
            type="Warning",
            reason=DEVICE_IN_TWO_CLAIMS,
            action="Binding",
            note=shorten(note),
            scheduler_name=member.pod.spec.scheduler_name,
        )
        for member in _keepers(books, claim, is_first=is_older(claim.metadata, other.metadata))
    ]


def _keepers(books: Books, claim: ResourceClaim, *, is_first: bool) -> list[Member]:
    """Pods of ours that use the claim and will not give it back: bound, asked for, or first."""
    name = ObjectKey(claim.metadata.namespace, claim.metadata.name)
    users = (
        member for user in claim.status.reserved_for or () for member in members_using(books, name, user)
    )
    found = []
    for member in users:
        is_asked = is_first or books.preparations.find(member.pod.metadata.uid) is None
        is_kept = member.stage is Stage.BOUND or (member.stage is Stage.ASSUMED and is_asked)
        if is_kept and books.members.is_ours(member.pod):
            found.append(member)
    return found


def _name_of(claim: ResourceClaim) -> str:
    return f"{claim.metadata.namespace}/{claim.metadata.name}"
