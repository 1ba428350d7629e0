"""Claims that have devices for pods of ours which only wait: given back, and again until it is seen.

A scheduler that ended between writing and binding leaves such claims; so does a write that lands late, or one
that was refused.  Their gang may never be tried again, and half a minute is enough to decide on one that is.
In come claims as they are seen, refusals and time; out go writes.  Next: `preparation.py`, which gives back
what its own decisions led to.
"""

from muster.api.devices import ResourceClaim
from muster.cluster.devices import ClaimKey
from muster.cluster.extended_resources import is_extended_claim_of
from muster.framework.groups import ObjectKey
from muster.framework.ports import DropClaim, WriteClaim
from muster.scheduling.books import Books
from muster.scheduling.claim_users import clear, is_prepared_for, members_using
from muster.scheduling.extended_claims import drop_made
from muster.scheduling.members import Stage

IDLE_S = 30.0
ASK_AGAIN_S = 5.0  # after a refusal


def watch_claims(books: Books, now_s: float) -> None:
    """Everything has been listed: half a minute from now is the first look at what somebody else has left."""
    for claim in books.state.devices.freeze().claims.values():
        watch_claim(books, claim, now_s, was_asked=False)


def watch_claim(books: Books, claim: ResourceClaim, now_s: float, *, was_asked: bool) -> None:
    """A claim is seen; one that was asked to give its devices back and has some still is looked at now."""
    key = (claim.metadata.namespace, claim.metadata.name)
    if not books.synced:
        return
    if claim.status.allocation is None or not claim.status.reserved_for:
        books.claims_due.remove(key)
    else:
        _look_by(books, key, now_s if was_asked else now_s + IDLE_S)


def refuse_clear(books: Books, effect: WriteClaim, now_s: float) -> None:
    """A claim could not be given back, or nobody knows: unless it is seen changed, that is asked for again.

    What was asked once may land late, so nobody is bound with the claim before.
    """
    key = (effect.claim.namespace, effect.claim.name)
    if books.state.devices.is_freed(key):
        _look_by(books, key, now_s + ASK_AGAIN_S)


def free_idle(books: Books, now_s: float) -> list[WriteClaim | DropClaim]:
    """Look at the claims whose time has come, and give back those that nobody is being bound with."""
    effects: list[WriteClaim | DropClaim] = []
    for key in books.claims_due.take_due(now_s):
        claim = books.state.devices.find_claim(key)
        if claim is None or claim.status.allocation is None:
            continue
        name = ObjectKey(*key)
        users = [tuple(members_using(books, name, user)) for user in claim.status.reserved_for or ()]
        members = [member for using in users for member in using]
        if not all(users) or all(member.pod.spec.node_name for member in members):
            continue  # it is somebody else's, or well used
        _look_by(books, key, now_s + IDLE_S)
        waits = all(member.stage is Stage.WAITING and books.members.is_ours(member.pod) for member in members)
        is_idle = waits and not is_prepared_for(books, name)
        if not is_idle and not books.state.devices.is_freed(key):
            continue
        if uid := is_extended_claim_of(claim):
            effects += drop_made(books, members[0].key, uid)
        else:
            effects.append(clear(books, members[0].key, claim))
    return effects


def next_look_s(books: Books) -> float | None:
    """When the next claim is looked at."""
    return books.claims_due.next_due_s()


def _look_by(books: Books, key: ClaimKey, at_s: float) -> None:
    known = books.claims_due.find_rank(key)
    if known is None or at_s < known[0]:
        books.claims_due.put(key, (at_s,))
