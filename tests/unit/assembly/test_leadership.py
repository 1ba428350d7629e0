"""When a candidate asks for the lease, when it may write, and when a new leader begins."""

from typing import Any

import pytest
from msgspec import convert

from muster.assembly.leadership import (
    LEASE_S,
    RENEW_DEADLINE_S,
    REQUEST_TIMEOUT_S,
    Candidacy,
    Lease,
)
from muster.assembly.requests import Call

NOW_S = 1_800_000_000.0


def candidate(identity: str) -> Candidacy:
    return Candidacy(name="muster", identity=identity)


def stored(call: Call | None) -> Lease:
    """The lease as a server would keep it."""
    assert call is not None
    body: dict[str, Any] = call.body
    return convert({"metadata": body["metadata"], "spec": body["spec"]}, Lease)


def take(candidacy: Candidacy, lease: Lease | None, now_s: float) -> Lease:
    """Acquire or renew, answered at once."""
    written = stored(candidacy.bid(lease, now_s))
    candidacy.won(written, now_s, now_s)
    return written


def test_the_first_leader_begins_at_once() -> None:
    first = candidate("a")
    take(first, None, NOW_S)
    assert first.leads
    assert first.begins_s == NOW_S


def test_a_lease_that_is_held_is_not_bid_for() -> None:
    lease = take(candidate("a"), None, NOW_S)
    second = candidate("b")
    assert second.bid(lease, NOW_S + 100) is None
    assert second.holder == "a"


def test_whoever_takes_over_waits_for_what_is_on_the_wire() -> None:
    lease = take(candidate("a"), None, NOW_S)
    second = candidate("b")
    assert second.bid(lease, NOW_S) is None
    take(second, lease, NOW_S + LEASE_S)
    assert second.begins_s == NOW_S + LEASE_S + REQUEST_TIMEOUT_S


def test_whoever_is_given_the_lease_begins_at_once() -> None:
    first, second = candidate("a"), candidate("b")
    lease = take(first, None, NOW_S)
    assert second.bid(lease, NOW_S) is None
    take(second, stored(first.resignation(NOW_S + 1)), NOW_S + 1)
    assert second.begins_s == NOW_S + 1


def test_a_renewal_moves_no_beginning() -> None:
    first = candidate("a")
    lease = take(first, None, NOW_S)
    take(first, lease, NOW_S + 2)
    assert first.begins_s == NOW_S


@pytest.mark.parametrize(("after_s", "may"), [(RENEW_DEADLINE_S - 0.1, True), (RENEW_DEADLINE_S, False)])
def test_nothing_is_written_once_the_deadline_has_passed(after_s: float, may: bool) -> None:
    first = candidate("a")
    take(first, None, NOW_S)
    assert first.may_write(NOW_S + after_s) is may


def test_whoever_saw_another_holder_writes_nothing() -> None:
    first, second = candidate("a"), candidate("b")
    take(first, None, NOW_S)
    lease = take(second, None, NOW_S)
    assert first.bid(lease, NOW_S + 1) is None
    assert not first.may_write(NOW_S + 1)


def test_a_lease_that_vanished_was_not_given_back() -> None:
    lease = take(candidate("a"), None, NOW_S)
    second = candidate("b")
    assert second.bid(lease, NOW_S) is None
    take(second, None, NOW_S + 1)
    assert second.begins_s == NOW_S + 1 + LEASE_S


def test_a_lease_from_a_backup_that_names_us_again_is_no_renewal() -> None:
    first, second = candidate("a"), candidate("b")
    old = take(first, None, NOW_S)
    assert second.bid(old, NOW_S) is None
    newer = take(second, old, NOW_S + LEASE_S)
    assert first.bid(newer, NOW_S + LEASE_S) is None
    take(first, old, NOW_S + LEASE_S + 1)
    assert first.begins_s == NOW_S + LEASE_S + 1 + LEASE_S


def test_a_lease_of_an_earlier_version_says_that_the_store_went_back() -> None:
    first = candidate("a")
    lease = take(first, None, NOW_S)
    newer = Lease({**lease.metadata, "resourceVersion": "12"}, lease.spec)
    first.look(newer, NOW_S + 1)
    assert not first.went_back
    first.look(Lease({**lease.metadata, "resourceVersion": "9"}, lease.spec), NOW_S + 2)
    assert first.went_back == "lease kube-system/muster is of version 9, 12 was seen before"


def test_a_lease_made_anew_under_a_lower_version_says_so_too() -> None:
    first = candidate("a")
    first.look(Lease({"resourceVersion": "12"}), NOW_S)
    first.bid(None, NOW_S + 1)
    first.won(Lease({"resourceVersion": "3"}), NOW_S + 1, NOW_S + 1)
    assert first.went_back
