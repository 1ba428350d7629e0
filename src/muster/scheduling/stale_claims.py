"""Claims whose devices are where their pods cannot go: free again once a decision has failed on them.

Somebody gave the devices before (a scheduler that ended between writing and binding, a node that has filled
up or gone since), and nobody who is placed uses them.  In come the members that were refused; out go writes,
and whoever sees the claims free decides anew.  Next: `cycle.py`.
"""

from collections.abc import Iterator, Sequence

from muster.api.devices import ResourceClaim
from muster.cluster.devices import device_claims_of
from muster.framework.groups import ObjectKey
from muster.framework.ports import DropClaim, WriteClaim
from muster.scheduling.attempt import SCHEDULER_ERROR, Attempt
from muster.scheduling.books import Books
from muster.scheduling.claim_users import clear, is_one_of, is_prepared_for
from muster.scheduling.extended_claims import drop_made
from muster.scheduling.members import Member
from muster.scheduling.preparation import CLAIM_GATE


def free_stale(books: Books, waiting: list[Member], refused: Attempt) -> list[WriteClaim | DropClaim]:
    """Writes that free claims which nobody but these members uses, if claims were in the way.

    `waiting`: the members that were refused: of a group whose minimum was placed those left over.
    """
    if refused.reason == SCHEDULER_ERROR or CLAIM_GATE not in refused.rejectors:
        return []
    writes: dict[ObjectKey, WriteClaim] = {}
    for member, claim in _given(books, waiting):
        name = ObjectKey(claim.metadata.namespace, claim.metadata.name)
        if name not in writes:
            writes[name] = clear(books, member.key, claim)
    return [*writes.values(), *_made(books, waiting)]


def find_stale(books: Books, waiting: Sequence[Member]) -> Iterator[ObjectKey]:
    """The claims that `free_stale` would free if they are in the way."""
    for _, claim in _given(books, waiting):
        yield ObjectKey(claim.metadata.namespace, claim.metadata.name)
    for drop in _made(books, waiting):
        yield drop.claim


def _given(books: Books, waiting: Sequence[Member]) -> Iterator[tuple[Member, ResourceClaim]]:
    """Claims that have devices and are nobody's but these members', each with one that names it."""
    uids = frozenset(member.pod.metadata.uid for member in waiting)
    for member in waiting:
        for _, key in device_claims_of(member.pod):
            claim = books.state.devices.find_claim(key) if key is not None else None
            if claim is None or claim.status.allocation is None:
                continue
            name = ObjectKey(claim.metadata.namespace, claim.metadata.name)
            users = claim.status.reserved_for or ()
            if all(is_one_of(books, name, user, uids) for user in users) and not is_prepared_for(books, name):
                yield member, claim


def _made(books: Books, waiting: Sequence[Member]) -> Iterator[DropClaim]:
    """To drop what was made for these members in place of extended resources."""
    for member in waiting:
        yield from drop_made(books, member.key, member.pod.metadata.uid)
