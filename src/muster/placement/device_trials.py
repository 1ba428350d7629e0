"""What members of a gang get between them while they are placed one by one: devices of every claim, so far.

One more pod on a node may change what others have got: those of its node first, and where devices are
reached from several nodes (or cut from counters that several nodes share), those everywhere.  In come claims
and rows; out come trials, which never change.  Next: `plugins/dynamic_resources.py`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from muster.cluster.devices import ClaimKey
from muster.placement.device_allocation import Given, Reach, allocate
from muster.placement.device_ledger import Ledger
from muster.placement.device_offers import DeviceOffers


class Trial(NamedTuple):
    """Claims that have been met: `homes` has the row of each pod that uses a claim, `given` its devices."""

    homes: dict[ClaimKey, tuple[int, ...]]
    given: dict[ClaimKey, tuple[Given, ...]]
    rows: dict[int, tuple[ClaimKey, ...]]


NOTHING = Trial({}, {}, {})


def add(trial: Trial, claims: Sequence[ClaimKey], row: int, offers: DeviceOffers) -> Trial | None:
    """The trial with these open claims met on `row` as well; None when there is no way.

    Raises   GaveUp, SelectorError.
    """
    reached = {offer.id for offer in offers.on(row)}
    is_moved = any(given.offer.id not in reached for claim in claims for given in trial.given.get(claim, ()))
    found = None if is_moved else _try_alone(trial, claims, row, offers)
    if found is None and offers.are_linked:
        found = _try_together(trial, claims, row, offers)
    return None if found is None else _with(trial, claims, row, found)


def leave(trial: Trial, claims: Sequence[ClaimKey], row: int) -> Trial:
    """The trial without one pod that uses these claims; what nobody uses any more is free."""
    homes, given = dict(trial.homes), dict(trial.given)
    for claim in claims:
        left = list(homes.get(claim, ()))
        if row in left:
            left.remove(row)
        if left:
            homes[claim] = tuple(left)
        else:
            homes.pop(claim, None)
            given.pop(claim, None)
    rows = {**trial.rows, row: tuple(key for key in trial.rows.get(row, ()) if row in homes.get(key, ()))}
    return Trial(homes, given, rows)


def _with(
    trial: Trial, claims: Sequence[ClaimKey], row: int, found: dict[ClaimKey, tuple[Given, ...]]
) -> Trial:
    homes = {**trial.homes, **{claim: (*trial.homes.get(claim, ()), row) for claim in claims}}
    there = tuple(dict.fromkeys((*trial.rows.get(row, ()), *claims)))
    return Trial(homes, {**trial.given, **found}, {**trial.rows, row: there})


def _try_alone(
    trial: Trial, claims: Sequence[ClaimKey], row: int, offers: DeviceOffers
) -> dict[ClaimKey, tuple[Given, ...]] | None:
    """Only claims of this row alone get other devices."""
    fresh = [claim for claim in claims if claim not in trial.given]
    there = [claim for claim in trial.rows.get(row, ()) if set(trial.homes[claim]) == {row}]
    together = (*there, *fresh)
    if not fresh:
        return {}
    return _allocate(trial, together, [offers.reach(row)] * len(together), offers)


def _try_together(
    trial: Trial, claims: Sequence[ClaimKey], row: int, offers: DeviceOffers
) -> dict[ClaimKey, tuple[Given, ...]] | None:
    """All claims get other devices that could be in the way of these, directly or by way of others."""
    together = _concerned(trial, claims, row, offers)
    homes = [(*trial.homes.get(claim, ()), *((row,) if claim in claims else ())) for claim in together]
    reaches = [_common_reach(rows, offers) for rows in homes]
    return _allocate(trial, together, reaches, offers)


def _concerned(
    trial: Trial, claims: Sequence[ClaimKey], row: int, offers: DeviceOffers
) -> tuple[ClaimKey, ...]:
    """These claims, those of the trial that may have a device of more than one node, and who is beside."""
    rows = {row}
    linked = {
        claim
        for claim, homes in trial.homes.items()
        if claim in claims or any(offers.may_have_linked(claim, home) for home in homes)
    }
    for claim in linked:
        rows.update(trial.homes[claim])
    beside = {claim for home in rows for claim in trial.rows.get(home, ())}
    concerned = linked | beside | set(claims)
    return tuple(claim for claim in dict.fromkeys((*trial.given, *claims)) if claim in concerned)


def _common_reach(rows: Sequence[int], offers: DeviceOffers) -> Reach:
    """What is reached from all of these rows."""
    first, *others = dict.fromkeys(rows)
    reaches = [offers.reach(other) for other in others]
    common, is_whole = offers.reach(first)
    for reach in reaches:
        ids = {offer.id for offer in reach.offers}
        common = [offer for offer in common if offer.id in ids]
        is_whole = is_whole and reach.is_whole
    return Reach(common, is_whole)


def _allocate(
    trial: Trial, claims: Sequence[ClaimKey], reaches: Sequence[Reach], offers: DeviceOffers
) -> dict[ClaimKey, tuple[Given, ...]] | None:
    """Give these claims devices beside what the others of the trial have."""
    ledger = Ledger(offers.devices)
    fixed = trial.given.keys() - set(claims)
    for claim in fixed if offers.are_linked else ():
        for given in trial.given[claim]:
            if not given.is_admin:
                ledger.give(given.offer, given.amounts)
    wanted = [offers.claim_of(claim) for claim in claims]
    found = allocate(wanted, reaches, ledger, offers.eligible)
    return None if found is None else dict(zip(claims, found, strict=True))
