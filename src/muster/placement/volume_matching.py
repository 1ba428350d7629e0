"""Claims → volumes, for all pods of a trial at once: who gets which volume, or one that is to be made.

A claim takes a volume that nobody has; where all that would do are taken, holders move on to others as far
as it takes (augmenting paths), so that a pod is refused only where no assignment exists.  In come what each
claim could take and where its pods are; out goes a matching.  Next: `plugins/volume_binding.py`.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from muster.cluster.volumes import ClaimKey


class Offers(Protocol):
    """What there is to take."""

    def volumes_for(self, claim: ClaimKey, rows: frozenset[int]) -> Sequence[str]:
        """Volumes that will do for the claim and can be reached from all these rows, best first."""
        ...

    def can_make(self, claim: ClaimKey, rows: frozenset[int]) -> bool:
        """Whether a volume can be made for the claim that all these rows reach."""
        ...


class Matching(NamedTuple):
    """Where each claim's pods are, which volume it has; those in neither table of volumes are to be made.

    Never changed; `place` and `leave` give others.
    """

    rows_of: dict[ClaimKey, tuple[int, ...]]
    volume_of: dict[ClaimKey, str]
    holder_of: dict[str, ClaimKey]


EMPTY = Matching({}, {}, {})


def place(matching: Matching, claim: ClaimKey, row: int, offers: Offers) -> Matching | None:
    """The matching with one more pod on `row` that uses the claim; None where there is none."""
    found = Matching(dict(matching.rows_of), dict(matching.volume_of), dict(matching.holder_of))
    found.rows_of[claim] = tuple(sorted((*found.rows_of.get(claim, ()), row)))
    held = found.volume_of.get(claim)
    if held is not None and held in offers.volumes_for(claim, frozenset(found.rows_of[claim])):
        return found
    if held is not None:
        del found.volume_of[claim], found.holder_of[held]
    return found if _seat(found, claim, offers, set()) else None


def leave(matching: Matching, claim: ClaimKey, row: int) -> Matching:
    """The matching with one pod less on `row` that uses the claim."""
    found = Matching(dict(matching.rows_of), dict(matching.volume_of), dict(matching.holder_of))
    left = list(found.rows_of.get(claim, ()))
    if row in left:
        left.remove(row)
    if left:
        found.rows_of[claim] = tuple(left)
        return found
    found.rows_of.pop(claim, None)
    held = found.volume_of.pop(claim, None)
    if held is not None:
        del found.holder_of[held]
    return found


def _seat(found: Matching, claim: ClaimKey, offers: Offers, tried: set[str]) -> bool:
    """Give the claim a volume, a free one first, one to be made next, somebody else's last."""
    rows = frozenset(found.rows_of[claim])
    names = [name for name in offers.volumes_for(claim, rows) if name not in tried]
    for name in names:
        if name not in found.holder_of:
            found.volume_of[claim] = name
            found.holder_of[name] = claim
            return True
    if offers.can_make(claim, rows):
        return True
    for name in names:
        if name in tried:
            continue
        tried.add(name)
        holder = found.holder_of[name]
        del found.volume_of[holder]
        found.holder_of[name], found.volume_of[claim] = claim, name
        if _seat(found, holder, offers, tried):
            return True
        del found.volume_of[claim]
        found.holder_of[name], found.volume_of[holder] = holder, name
    return False
