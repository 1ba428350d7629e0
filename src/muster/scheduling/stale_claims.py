"""Claims whose devices are where their pods cannot go: free again once a decision has failed on them.

Somebody gave the devices before (a scheduler that ended between writing and binding, a node that has filled
up or gone since), and nobody who is placed uses them.  In come the members that were refused; out go writes,
and whoever sees the claims free decides anew.  Next: `cycle.py`.
"""

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
    devices = books.state.devices
    uids = frozenset(member.pod.metadata.uid for member in waiting)
    writes: dict[ObjectKey, WriteClaim] = {}
    for member in waiting:
        for _, key in device_claims_of(member.pod):
            claim = devices.find_claim(key) if key is not None else None
            if claim is None or claim.status.allocation is None:
                continue
            meta = claim.metadata
            name = ObjectKey(meta.namespace, meta.name)
            if name in writes or not all(
                is_one_of(books, name, user, uids) for user in claim.status.reserved_for or ()
            ):
                continue
            if not is_prepared_for(books, name):
                writes[name] = clear(books, member.key, claim)
    dropped = [drop for member in waiting for drop in drop_made(books, member.key, member.pod.metadata.uid)]
    return [*writes.values(), *dropped]
