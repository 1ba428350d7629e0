"""How early the alternatives are that claims get: requests with `firstAvailable` name the best first.

In come the claims and the names of what was met ("request/alternative"); out comes 0..100.  Source: KEP-4816.
Next: `plugins/dynamic_resources.py`, which prefers nodes by it.
"""

from collections.abc import Iterable, Sequence

from muster.api.devices import Request, ResourceClaim


def have_alternatives(claims: Iterable[ResourceClaim]) -> bool:
    """Whether any request leaves a choice."""
    return any(len(each.first_available or ()) > 1 for claim in claims for each in _requests(claim))


def preference(claims: Sequence[ResourceClaim], met: Sequence[Sequence[str]]) -> float:
    """100 where every request with a choice got its first alternative, 0 where each got its last.

    `met`: by claim, the names that its results have.
    """
    found: list[float] = []
    for claim, names in zip(claims, met, strict=True):
        for request in _requests(claim):
            alternatives = [f"{request.name}/{each.name}" for each in request.first_available or ()]
            if len(alternatives) > 1:
                place = next((alternatives.index(name) for name in names if name in alternatives), None)
                last = len(alternatives) - 1
                found.append(0.0 if place is None else 1.0 - place / last)
    return 100.0 * sum(found) / len(found) if found else 0.0


def _requests(claim: ResourceClaim) -> Sequence[Request]:
    return claim.spec.devices.requests or ()
