"""For whom a claim for devices is reserved, as far as this scheduler knows them: pods, and groups of pods.

In come consumers as claims name them; out comes whether anybody is bound who uses the claim.  Next:
`preparation.py` and `stale_claims.py`, which give claims back that nobody bound uses.
"""

from collections.abc import Iterator

from muster.api.devices import Consumer, ResourceClaim
from muster.cluster.devices import device_claims_of
from muster.framework.groups import ObjectKey, PodKey
from muster.framework.ports import WriteClaim
from muster.scheduling.books import Books
from muster.scheduling.members import Member, Stage, group_entity


def clear(books: Books, pod: PodKey, claim: ResourceClaim) -> WriteClaim:
    """Take a claim's devices and users away if it is still as it was seen.

    Nobody is bound with it before it is seen changed, for the write may land late.
    """
    meta = claim.metadata
    books.state.devices.free((meta.namespace, meta.name), meta.resource_version)
    name = ObjectKey(meta.namespace, meta.name)
    return WriteClaim(pod, name, meta.uid, meta.resource_version, None, (), clears=True)


def is_bound(books: Books, claim: ObjectKey, user: Consumer) -> bool:
    """Whether the pod is bound, or any pod of the group that uses the claim."""
    return any(member.pod.spec.node_name for member in members_using(books, claim, user))


def is_waiting(books: Books, claim: ObjectKey, user: Consumer) -> bool:
    """Whether these are pods that are known and none of them is bound: they are tried anew."""
    members = list(members_using(books, claim, user))
    return bool(members) and not any(member.pod.spec.node_name for member in members)


def is_one_of(books: Books, claim: ObjectKey, user: Consumer, uids: frozenset[str]) -> bool:
    """Whether it is one of these pods, or a group of which only these use the claim."""
    members = list(members_using(books, claim, user))
    return bool(members) and all(member.pod.metadata.uid in uids for member in members)


def is_prepared_for(books: Books, claim: ObjectKey) -> bool:
    """Whether a member that is placed and not bound yet uses the claim, written on it or not."""
    members = (books.members.find(each.key) for each in books.preparations)
    return any(
        found == claim
        for member in members
        if member is not None
        for _, found in device_claims_of(member.pod)
    )


def members_using(books: Books, claim: ObjectKey, user: Consumer) -> Iterator[Member]:
    """The pod, or the pods of the group that use the claim."""
    key = ObjectKey(claim.namespace, user.name)
    if user.resource == "podgroups":
        for mate in books.members.cast(group_entity(key)).of(*Stage):
            if any(found == claim for _, found in device_claims_of(mate.pod)):
                yield mate
        return
    member = books.members.find(key)
    if member is not None and member.pod.metadata.uid == user.uid:
        yield member
