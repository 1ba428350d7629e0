"""Who leads: taking, keeping, losing and giving back a lease, judged by one's own clock."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any

import numpy as np
import pytest
from tests.unit.runtime.in_process import ManualClock

from muster.assembly.leadership import LEASE_S, RENEW_DEADLINE_S, RETRY_S
from muster.base.errors import ApiError, ConfigError, Conflict, Unavailable
from muster.runtime.client import Answer
from muster.runtime.leader import LeaderElector

COLLECTION = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"


class LeaseApi:
    """One lease with optimistic concurrency; `fault` is raised by every call while it is set."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.version = 0
        self.fault: ApiError | None = None
        self.calls: list[str] = []
        self.answers = asyncio.Event()  # while cleared, writes are done and their answers are on their way
        self.answers.set()
        self.loses_answers = False

    async def call(self, method: str, path: str, body: Any = None, *, timeout_s: float = 5.0) -> Answer:
        self.calls.append(method)
        if self.fault is not None:
            raise self.fault
        if method == "GET":
            if self.lease is None:
                raise ApiError("not found", code=404)
        elif method == "POST":
            assert path == COLLECTION
            self.store(body)
        else:
            assert path == f"{COLLECTION}/muster"
            assert self.lease is not None
            if body["metadata"]["resourceVersion"] != self.lease["metadata"]["resourceVersion"]:
                raise Conflict("the object has been modified", code=409)
            self.store(body)
        if method != "GET":
            await self.answers.wait()
            if self.loses_answers:
                raise Unavailable("no answer in time", code=0, reason="NoAnswer")
        return Answer(200, json.dumps(self.lease).encode())

    def store(self, body: dict[str, Any]) -> None:
        self.version += 1
        self.lease = {**body, "metadata": {**body["metadata"], "resourceVersion": str(self.version)}}

    @property
    def spec(self) -> dict[str, Any]:
        assert self.lease is not None
        return dict(self.lease["spec"])


def never(how: str) -> None:
    raise AssertionError(how)


def elector_of(
    api: LeaseApi, clock: ManualClock, identity: str, *, on_went_back: Callable[[str], None] = never
) -> LeaderElector:
    return LeaderElector(
        api,  # type: ignore[arg-type]
        name="muster",
        identity=identity,
        now_s=clock.now_s,
        rng=np.random.default_rng(1),
        pause=clock.pause,
        on_went_back=on_went_back,
    )


async def leave_on_the_wire(api: LeaseApi, work: Coroutine[Any, Any, None]) -> None:
    """Cancel whoever writes once the write is done, while its answer is on its way."""
    before = api.version
    api.answers.clear()
    task = asyncio.create_task(work)
    while api.version == before:
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])


@pytest.fixture
def api() -> LeaseApi:
    return LeaseApi()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_800_000_000.0)


async def test_the_first_to_come_makes_the_lease(api: LeaseApi, clock: ManualClock) -> None:
    elector = elector_of(api, clock, "a")
    await elector.acquire()
    assert elector.leads
    assert api.spec == {
        "holderIdentity": "a",
        "leaseDurationSeconds": 15,
        "acquireTime": "2027-01-15T08:00:00.000000Z",
        "renewTime": "2027-01-15T08:00:00.000000Z",
        "leaseTransitions": 0,
    }


async def test_a_renewal_moves_renew_time_only(api: LeaseApi, clock: ManualClock) -> None:
    elector = elector_of(api, clock, "a")
    await elector.acquire()
    before = api.spec
    clock.value_s += 2
    assert await elector._try()
    assert {name for name, value in api.spec.items() if before[name] != value} == {"renewTime"}


async def test_a_second_one_waits_until_it_has_seen_no_renewal_for_the_whole_duration(
    api: LeaseApi, clock: ManualClock
) -> None:
    await elector_of(api, clock, "a").acquire()
    began_s = clock.value_s
    second = elector_of(api, clock, "b")
    await second.acquire()
    assert clock.value_s - began_s >= LEASE_S
    assert (api.spec["holderIdentity"], api.spec["leaseTransitions"]) == ("b", 1)


@pytest.mark.parametrize(("looks_only", "method"), [(False, "GET"), (True, "GET"), (False, "POST")])
async def test_who_does_not_lead_heeds_retry_after(
    api: LeaseApi, clock: ManualClock, looks_only: bool, method: str
) -> None:
    asked_s: list[float] = []
    began_s, elector = clock.value_s, elector_of(api, clock, "a")

    async def call(*args: Any, **kwargs: Any) -> Answer:
        if args[0] == method:
            asked_s.append(clock.value_s - began_s)
            if len(asked_s) == 1:
                raise Unavailable("slow down", code=429, retry_after_s=10.0)
            if looks_only:
                raise asyncio.CancelledError
        return await LeaseApi.call(api, *args, **kwargs)

    api.call = call  # type: ignore[method-assign]
    await asyncio.wait([asyncio.create_task(elector.stand_by() if looks_only else elector.acquire())])
    assert 10.0 <= asked_s[1] < 12.0


async def test_a_renewal_does_not_wait_for_retry_after(api: LeaseApi, clock: ManualClock) -> None:
    elector = elector_of(api, clock, "a")
    await elector.acquire()
    api.fault = Unavailable("slow down", code=429, retry_after_s=60.0)
    before = len(api.calls)
    await elector.hold()
    assert len(api.calls) - before == RENEW_DEADLINE_S / RETRY_S


async def test_a_lease_that_was_given_back_is_taken_at_once(api: LeaseApi, clock: ManualClock) -> None:
    first = elector_of(api, clock, "a")
    await first.acquire()
    await first.release()
    assert api.spec["holderIdentity"] == ""
    await elector_of(api, clock, "b").acquire()
    assert clock.pauses == []


async def test_who_goes_while_its_renewal_is_on_the_wire_gives_back_what_the_renewal_left(
    api: LeaseApi, clock: ManualClock
) -> None:
    elector = elector_of(api, clock, "a")
    await elector.acquire()
    await leave_on_the_wire(api, elector.hold())
    releasing = asyncio.create_task(elector.release())
    await asyncio.sleep(0)
    api.answers.set()
    await releasing
    assert api.spec["holderIdentity"] == ""


async def test_who_goes_while_it_asks_for_the_lease_gives_back_what_it_gets(
    api: LeaseApi, clock: ManualClock
) -> None:
    elector = elector_of(api, clock, "a")
    await leave_on_the_wire(api, elector.acquire())
    api.answers.set()
    await elector.release()
    assert api.spec["holderIdentity"] == ""


async def test_a_lease_whose_last_renewal_was_not_answered_is_given_back(
    api: LeaseApi, clock: ManualClock
) -> None:
    elector = elector_of(api, clock, "a")
    await elector.acquire()
    api.loses_answers = True
    assert not await elector._try()
    api.loses_answers = False
    await elector.release()
    assert api.spec["holderIdentity"] == ""


async def test_another_clock_far_off_does_not_make_a_lease_look_stale(
    api: LeaseApi, clock: ManualClock
) -> None:
    other = elector_of(api, ManualClock(0.0), "a")  # half a century behind
    await other.acquire()
    assert not await elector_of(api, clock, "b")._try()


async def test_who_cannot_renew_leaves_before_the_lease_can_be_taken(
    api: LeaseApi, clock: ManualClock
) -> None:
    elector = elector_of(api, clock, "a")
    await elector.acquire()
    began_s = clock.value_s
    api.fault = Unavailable("down", code=503)
    await elector.hold()
    assert RENEW_DEADLINE_S <= clock.value_s - began_s < LEASE_S


async def test_who_sees_another_holder_leaves_at_once(api: LeaseApi, clock: ManualClock) -> None:
    elector = elector_of(api, clock, "a")
    await elector.acquire()
    api.store({**(api.lease or {}), "spec": {**api.spec, "holderIdentity": "b"}})
    await elector.hold()
    assert not elector.leads
    assert len(clock.pauses) == 1


async def test_a_conflict_while_renewing_is_not_the_end(api: LeaseApi, clock: ManualClock) -> None:
    elector = elector_of(api, clock, "a")
    await elector.acquire()
    api.fault = Conflict("modified", code=409)
    assert not await elector._try()
    api.fault = None
    assert await elector._try()


@pytest.mark.parametrize("restored_after", ["a renewal", "a look of a standby"])
async def test_a_lease_of_an_earlier_version_is_told_and_not_renewed(
    api: LeaseApi, clock: ManualClock, restored_after: str
) -> None:
    told: list[str] = []
    elector = elector_of(api, clock, "a", on_went_back=told.append)
    await elector.acquire()
    assert api.lease is not None
    backup = api.lease
    await elector._try()
    api.lease = backup
    if restored_after == "a renewal":
        assert not await elector._try()
    else:

        async def pause(seconds: float) -> None:
            raise TimeoutError

        elector._pause = pause
        with pytest.raises(TimeoutError):
            await elector.stand_by()
    assert told == ["lease kube-system/muster is of version 1, 2 was seen before"]
    assert api.lease == backup


async def test_of_two_that_try_one_leads(api: LeaseApi, clock: ManualClock) -> None:
    first, second = elector_of(api, clock, "a"), elector_of(api, clock, "b")
    assert await first._try()
    assert not await second._try()


async def test_nothing_is_given_back_that_is_not_held(api: LeaseApi, clock: ManualClock) -> None:
    await elector_of(api, clock, "a").acquire()
    second = elector_of(api, clock, "b")
    await second._try()
    await second.release()
    assert api.spec["holderIdentity"] == "a"


async def test_who_takes_over_an_expired_lease_knows_until_when_writes_of_the_other_may_land(
    api: LeaseApi, clock: ManualClock
) -> None:
    await elector_of(api, clock, "a").acquire()
    began_s = clock.value_s
    second = elector_of(api, clock, "b")
    await second.acquire()
    assert second.candidacy.had_other
    assert began_s + LEASE_S + 5.0 <= second.candidacy.begins_s <= began_s + LEASE_S + 6.2


async def test_who_stands_by_takes_the_lease_in_the_moment_in_which_it_runs_out(
    api: LeaseApi, clock: ManualClock
) -> None:
    await elector_of(api, clock, "a").acquire()
    began_s = clock.value_s
    await elector_of(api, clock, "b").acquire()
    assert clock.value_s == began_s + LEASE_S


async def test_who_has_looked_at_a_lease_all_the_while_does_not_wait_it_out_again(
    api: LeaseApi, clock: ManualClock
) -> None:
    await elector_of(api, clock, "a").acquire()
    began_s = clock.value_s
    second = elector_of(api, clock, "b")

    async def pause(seconds: float) -> None:
        await clock.pause(seconds)
        if clock.value_s >= began_s + LEASE_S:
            raise TimeoutError

    second._pause = pause
    with pytest.raises(TimeoutError):
        await second.stand_by()
    assert await second._try()


async def test_who_stands_by_takes_nothing(api: LeaseApi, clock: ManualClock) -> None:
    elector = elector_of(api, clock, "a")
    looks = 0

    async def pause(seconds: float) -> None:
        nonlocal looks
        looks += 1
        api.fault = Unavailable("down", code=503) if looks == 1 else None
        if looks == 3:
            raise TimeoutError

    elector._pause = pause
    with pytest.raises(TimeoutError):
        await elector.stand_by()
    assert api.calls == ["GET"] * 3


async def test_after_a_lease_that_was_given_back_nothing_need_be_waited_for(
    api: LeaseApi, clock: ManualClock
) -> None:
    first, second = elector_of(api, clock, "a"), elector_of(api, clock, "b")
    await first.acquire()
    assert not await second._try()
    await first.release()
    await second.acquire()
    assert second.candidacy.had_other
    assert second.candidacy.begins_s <= clock.value_s
    assert sum(clock.pauses) < 2.0


async def test_who_slept_longer_than_its_lease_may_not_write(api: LeaseApi, clock: ManualClock) -> None:
    boot = ManualClock(5.0)
    elector = LeaderElector(
        api,  # type: ignore[arg-type]
        name="muster",
        identity="a",
        on_went_back=never,
        now_s=clock.now_s,
        rng=np.random.default_rng(1),
        pause=clock.pause,
        boot_s=boot.now_s,
    )
    assert not elector.may_write
    await elector.acquire()
    assert elector.may_write
    boot.value_s += RENEW_DEADLINE_S  # the machine slept: the monotonic clock did not go on
    assert not elector.may_write
    assert await elector._try()
    assert elector.may_write


async def test_the_deadline_counts_from_when_a_renewal_was_sent(api: LeaseApi, clock: ManualClock) -> None:
    elector = elector_of(api, clock, "a")
    await elector.acquire()
    slow = api.call

    async def call(*args: Any, **words: Any) -> Answer:
        clock.value_s += 2.0
        return await slow(*args, **words)

    api.call = call  # type: ignore[method-assign]
    assert await elector._try()  # two requests: four seconds
    clock.value_s += RENEW_DEADLINE_S - 4.0
    assert not elector.may_write


def led_under(api: LeaseApi, clock: ManualClock, identity: str, lease: str) -> LeaderElector:
    return LeaderElector(
        api,  # type: ignore[arg-type]
        name="muster",
        identity=identity,
        now_s=clock.now_s,
        rng=np.random.default_rng(1),
        pause=clock.pause,
        led_under=lease,
        on_went_back=never,
    )


async def test_two_processes_of_one_name_with_different_leases_are_refused(
    api: LeaseApi, clock: ManualClock
) -> None:
    await led_under(api, clock, "a", "mine").acquire()
    with pytest.raises(ConfigError, match="placed by a under the lease mine, not muster"):
        await led_under(api, clock, "b", "").acquire()
    with pytest.raises(ConfigError, match="under the lease mine, not yours"):
        await led_under(api, clock, "c", "yours").acquire()
    assert not await led_under(api, clock, "d", "mine")._try()  # stands by


async def test_whoever_takes_the_name_over_says_under_which_lease(api: LeaseApi, clock: ManualClock) -> None:
    first = led_under(api, clock, "a", "mine")
    await first.acquire()
    await first.release()
    await led_under(api, clock, "b", "").acquire()
    assert api.lease is not None
    assert "annotations" not in api.lease["metadata"]


@pytest.mark.parametrize("answer", [{}, {"kind": "Status"}, {"spec": {"holderIdentity": "b"}}])
async def test_a_bid_that_is_answered_with_another_lease_is_not_won(answer: dict[str, Any]) -> None:
    class Careless(LeaseApi):
        async def call(self, method: str, path: str, body: Any = None, *, timeout_s: float = 5.0) -> Answer:
            known = await super().call(method, path, body, timeout_s=timeout_s)
            return known if method == "GET" else Answer(200, json.dumps(answer).encode())

    elector = elector_of(Careless(), ManualClock(), "a")
    assert not await elector._try()
    assert not elector.leads
