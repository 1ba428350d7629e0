"""Devices that must become ready before a pod is bound: when they were given, and given back where not.

In come writes of claims and members that gave their place up; out go writes.  Source: KEP-5007 (binding
conditions).  Next: `preparation.py`.
"""

from msgspec.structs import replace

from muster.api.times import format_seconds
from muster.cluster.device_readiness import find_unready
from muster.cluster.devices import device_claims_of
from muster.framework.groups import ObjectKey
from muster.framework.ports import MakeClaim, Prepare, WriteClaim
from muster.scheduling.books import Books
from muster.scheduling.claim_users import clear, is_bound
from muster.scheduling.preparations import Preparation


def stamped(writes: tuple[Prepare, ...] | None, now_s: float) -> tuple[Prepare, ...] | None:
    """The writes with the time on every allocation; the API takes no other later."""
    if writes is None:
        return None
    return tuple(
        replace(write, allocation=replace(write.allocation, allocation_timestamp=format_seconds(now_s)))
        if isinstance(write, WriteClaim | MakeClaim) and write.allocation is not None
        else write
        for write in writes
    )


def free_unready(books: Books, preparation: Preparation) -> list[WriteClaim]:
    """Claims of a member that another decision had given devices which are still not ready: free again.

    Not while a pod that is bound uses them.
    """
    member = books.members.find(preparation.key)
    if member is None:
        return []
    written = {tuple(write.claim) for write in preparation.writes if isinstance(write, WriteClaim)}
    freed: list[WriteClaim] = []
    devices = books.state.devices
    for _, key in device_claims_of(member.pod):
        claim = devices.find_claim(key) if key is not None and key not in written else None
        if claim is None or find_unready(claim) is None:
            continue
        meta = claim.metadata
        name = ObjectKey(meta.namespace, meta.name)
        if not any(is_bound(books, name, user) for user in claim.status.reserved_for or ()):
            freed.append(clear(books, preparation.key, claim))
    return freed
