"""Claims made in place of extended resources that lead to nothing: dropped, so that others get the devices.

A claim is made for one place of one pod; a pod that is placed again gets another.  In come pods that give
their place up, are placed anew or found none, and claims as they are seen; out go `DropClaim`s.
Next: `preparation.py`.
"""

from muster.api.devices import ResourceClaim
from muster.cluster.extended_resources import is_extended_claim_of
from muster.framework.groups import ObjectKey, PodKey
from muster.framework.ports import DropClaim
from muster.scheduling.books import Books
from muster.scheduling.members import Stage


def drop_made(books: Books, pod: PodKey, uid: str) -> list[DropClaim]:
    """Delete the claims that have been made for a pod so far."""
    return [
        DropClaim(pod, ObjectKey(made.namespace, made.name), uid, made.uid)
        for made in (claim.metadata for claim in books.state.devices.made_for(uid))
    ]


def drop_unwanted(books: Books, before: ResourceClaim | None, now: ResourceClaim) -> list[DropClaim]:
    """Delete a claim that appears when its pod has given its place up already."""
    uid = is_extended_claim_of(now)
    is_news = before is None or (before.status.allocation is None and now.status.allocation is not None)
    if not uid or not is_news or now.metadata.deletion_timestamp is not None:
        return []
    for owner in now.metadata.owner_references or ():
        member = books.members.find(ObjectKey(now.metadata.namespace, owner.name))
        if (
            member is not None
            and member.pod.metadata.uid == uid
            and member.stage is Stage.WAITING
            and books.members.is_ours(member.pod)
        ):
            claim = ObjectKey(now.metadata.namespace, now.metadata.name)
            return [DropClaim(member.key, claim, uid, now.metadata.uid)]
    return []
