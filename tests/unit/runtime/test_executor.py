"""One call in flight per object, retries by cause, bindings before events, and outcomes as events."""

import asyncio
import json

import pytest
from msgspec.structs import replace
from tests.unit.runtime.executor_bench import Bench, bind, evict

from muster.api.devices import Allocation
from muster.api.meta import Condition
from muster.assembly.leadership import REQUEST_TIMEOUT_S
from muster.base.errors import ApiError, Conflict, Unavailable
from muster.framework.groups import ObjectKey
from muster.framework.ports import (
    BindDone,
    BindFailed,
    DropClaim,
    EvictDone,
    EvictFailed,
    MakeClaim,
    ObjectReference,
    PatchPodStatus,
    PrepareDone,
    PrepareFailed,
    RecordEvent,
    WriteFailed,
)
from muster.runtime.client import NOT_SENT
from muster.runtime.executor import EVENT_CALLS_MAX, EVENT_PATIENCE_S, TRIES


def patch(name: str = "p") -> PatchPodStatus:
    return PatchPodStatus(ObjectKey("default", name), f"uid-{name}", Condition("PodScheduled", "False"))


def event(name: str = "p") -> RecordEvent:
    about = ObjectReference("v1", "Pod", ObjectKey("default", name), f"uid-{name}")
    return RecordEvent(about, "Normal", "Scheduled", "Binding", "assigned", "muster")


BINDING = "/api/v1/namespaces/default/pods/p/binding"
POD = "/api/v1/namespaces/default/pods/p"
STATUS = "/api/v1/namespaces/default/pods/p/status"


async def test_an_accepted_binding_is_told_as_done() -> None:
    bench = Bench()
    await bench.perform(bind())
    assert bench.events == [BindDone(ObjectKey("default", "p"), "uid-p", "n1")]
    assert bench.api.calls == [("POST", BINDING)]


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(ApiError("not found", code=404, reason="NotFound"), id="404"),
        pytest.param(ApiError("forbidden", code=403, reason="Forbidden"), id="403"),
    ],
)
async def test_a_binding_refused_for_good_is_not_said_again(error: ApiError) -> None:
    bench = Bench()
    bench.api.replies[BINDING] = [error]
    await bench.perform(bind())
    assert bench.api.calls == [("POST", BINDING)]
    assert bench.events == [
        BindFailed(ObjectKey("default", "p"), "uid-p", "n1", error.code, error.reason, str(error))
    ]


async def test_a_binding_whose_answer_got_lost_is_unknown_and_not_said_again() -> None:
    bench = Bench()
    bench.api.replies[BINDING] = [Unavailable("no answer in time", code=0, reason="NoAnswer")]
    await bench.perform(bind())
    assert [(type(e), e.code) for e in bench.events if isinstance(e, BindFailed)] == [(BindFailed, 0)]
    assert len(bench.api.calls) == 1


@pytest.mark.parametrize("body", [b"<html>log in first</html>", b"", b"null", b"[]", b'{"kind":7}'])
async def test_a_page_of_somebody_in_between_is_no_answer_to_a_binding(body: bytes) -> None:
    bench = Bench()
    bench.api.replies[BINDING] = [body]
    await bench.perform(bind())
    assert [(type(e), e.code) for e in bench.events if isinstance(e, BindFailed)] == [(BindFailed, 0)]
    assert len(bench.api.calls) == 1


async def test_a_busy_server_is_asked_again_no_sooner_than_it_said() -> None:
    bench = Bench()
    bench.api.replies[BINDING] = [Unavailable("busy", code=429, retry_after_s=3.0), b"{}"]
    await bench.perform(bind())
    assert isinstance(bench.events[0], BindDone)
    assert bench.clock.pauses == [3.0]


async def test_a_binding_that_is_to_wait_for_long_goes_back_to_the_core_with_the_time() -> None:
    bench = Bench()
    bench.api.replies[BINDING] = [Unavailable("busy", code=429, retry_after_s=600.0), b"{}"]
    await bench.perform(bind())
    (failed,) = bench.events
    assert isinstance(failed, BindFailed)
    assert (failed.code, failed.retry_after_s, bench.clock.pauses) == (429, 600.0, [])


async def test_a_binding_that_is_decided_on_anew_by_now_is_not_sent_any_more() -> None:
    bench = Bench()
    now_s = bench.clock.now_s()
    bench.api.replies[STATUS] = [Unavailable("busy", code=429, retry_after_s=60.0)]
    bench.executor.perform(patch())
    await bench.perform(replace(bind(), until_s=now_s + 300.0))  # has waited for five times a minute
    assert ("POST", BINDING) not in bench.api.calls
    assert [(event.reason, event.code) for event in bench.events if isinstance(event, BindFailed)] == [
        ("Overdue", 503)
    ]


async def test_a_binding_is_not_said_again_when_it_could_land_too_late() -> None:
    bench = Bench()
    bench.api.replies[BINDING] = [Unavailable("busy", code=429, retry_after_s=20.0)]
    await bench.perform(replace(bind(), until_s=bench.clock.now_s() + 44.0))
    assert bench.api.calls == [("POST", BINDING)] * 2


async def test_pauses_grow_and_the_tries_end() -> None:
    bench = Bench()
    bench.api.replies[BINDING] = [Unavailable("down", code=503, reason="ServiceUnavailable")]
    await bench.perform(bind())
    assert len(bench.api.calls) == TRIES
    assert bench.clock.pauses == sorted(bench.clock.pauses)
    failed = bench.events[0]
    assert isinstance(failed, BindFailed)
    assert failed.code == 503


async def test_a_binding_that_never_left_is_refused_rather_than_unknown() -> None:
    bench = Bench()
    bench.api.replies[BINDING] = [Unavailable("connection refused", code=0, reason=NOT_SENT)]
    await bench.perform(bind())
    failed = bench.events[0]
    assert isinstance(failed, BindFailed)
    assert failed.code == 503


@pytest.mark.parametrize(
    ("node", "uid", "expected"),
    [
        pytest.param("n1", "uid-p", BindDone, id="there-already"),
        pytest.param("n2", "uid-p", BindFailed, id="somewhere-else"),
        pytest.param("n1", "another", BindFailed, id="another-pod-of-that-name"),
    ],
)
async def test_a_conflict_is_done_if_the_pod_is_where_it_should_be(
    node: str, uid: str, expected: type
) -> None:
    bench = Bench()
    bench.api.replies[BINDING] = [Conflict("already assigned", code=409, reason="Conflict")]
    bench.api.replies[POD] = [
        b'{"metadata":{"name":"p","namespace":"default","uid":"%s"},"spec":{"nodeName":"%s"}}'
        % (uid.encode(), node.encode())
    ]
    await bench.perform(bind())
    assert [type(event) for event in bench.events] == [expected]


async def test_a_status_write_is_said_again_even_if_the_answer_got_lost() -> None:
    bench = Bench()
    bench.api.replies[STATUS] = [Unavailable("reset", code=0, reason="NoAnswer"), b"{}"]
    await bench.perform(patch())
    assert bench.events == []
    assert bench.executor.counts.written == 1


async def test_a_status_write_that_is_given_up_comes_back_to_the_core() -> None:
    bench = Bench()
    bench.api.replies[STATUS] = [ApiError("pods not found", code=404)]
    await bench.perform(patch())
    assert bench.events == [WriteFailed(patch(), 404, "pods not found")]


async def test_a_write_that_is_given_up_leaves_the_server_alone_for_as_long_as_it_asks() -> None:
    bench = Bench()
    bench.api.replies[STATUS] = [Unavailable("busy", code=429, retry_after_s=7.0)] * TRIES + [b"{}"]
    await bench.perform(patch(), patch())
    assert bench.clock.pauses == [7.0] * TRIES
    assert [type(event) for event in bench.events] == [WriteFailed]
    assert len(bench.api.calls) == TRIES + 1


async def test_one_object_has_one_call_in_flight_and_keeps_its_order() -> None:
    bench = Bench()
    await bench.perform(patch(), bind(), patch())
    assert bench.api.most_in_flight == 1
    assert [path for _, path in bench.api.calls] == [STATUS, BINDING, STATUS]


async def test_different_objects_go_side_by_side_up_to_the_limit() -> None:
    bench = Bench(calls_max=4)
    await bench.perform(*(bind(f"p{number}") for number in range(10)))
    assert bench.api.most_in_flight == 4
    assert bench.executor.counts.bound == 10


async def test_events_go_after_the_bindings_that_wait() -> None:
    bench = Bench(calls_max=1)
    await bench.perform(bind("a"), event("a"), bind("b"), event("b"), bind("c"))
    kinds = ["event" if "events" in path else "binding" for _, path in bench.api.calls]
    assert kinds == ["binding", "binding", "binding", "event", "event"]


async def test_events_wait_while_a_binding_is_on_the_wire() -> None:
    bench = Bench()
    bench.api.gate.clear()
    bench.executor.perform(bind("a"))
    bench.executor.perform(event("a"))
    await asyncio.sleep(0)
    assert len(bench.api.calls) == 1
    bench.api.gate.set()
    await bench.executor._idle.wait()
    assert bench.executor.counts.events_written == 1


async def test_events_take_a_few_connections_only() -> None:
    bench = Bench()
    await bench.perform(*(event(f"p{number}") for number in range(3 * EVENT_CALLS_MAX)))
    assert bench.api.most_in_flight == EVENT_CALLS_MAX


async def test_events_do_not_wait_for_ever() -> None:
    bench = Bench()
    bench.api.gate.clear()
    bench.executor.perform(bind("a"))
    bench.executor.perform(event("a"))
    bench.clock.value_s += EVENT_PATIENCE_S + 1
    bench.executor.perform(bind("b"))
    await asyncio.sleep(0)
    assert sum("events" in path for _, path in bench.api.calls) == 1
    bench.executor.stop()


async def test_too_many_events_are_dropped_and_counted() -> None:
    bench = Bench(calls_max=1, events_waiting_max=2)
    bench.api.gate.clear()
    for effect in (bind(), event("a"), event("b"), event("c")):
        bench.executor.perform(effect)
    assert bench.executor.counts.events_dropped == 1
    bench.api.gate.set()
    await bench.executor._idle.wait()
    assert bench.executor.counts.events_written == 2


async def test_a_refused_event_is_dropped_and_counted_and_told_nobody() -> None:
    bench = Bench()
    bench.api.replies["/apis/events.k8s.io/v1/namespaces/default/events"] = [ApiError("no", code=403)]
    await bench.perform(event())
    assert bench.events == []
    assert bench.executor.counts.events_dropped == 1


async def test_finish_performs_what_is_decided_and_events_last() -> None:
    bench = Bench(calls_max=1)
    bench.api.gate.clear()
    for effect in (bind("a"), bind("b"), event("a")):
        bench.executor.perform(effect)
    finishing = asyncio.create_task(bench.executor.finish(60.0))
    await asyncio.sleep(0)
    bench.api.gate.set()
    assert await finishing is True
    assert bench.executor.counts.bound == 2
    assert ["events" in path for _, path in bench.api.calls] == [False, False, True]


async def test_finish_drops_the_events_that_time_does_not_reach() -> None:
    bench = Bench()
    bench.api.gate.clear()
    for number in range(EVENT_CALLS_MAX + 3):
        bench.executor.perform(event(f"p{number}"))
    assert await bench.executor.finish(0.0) is True
    assert bench.executor.counts.events_dropped == 3


async def test_finish_gives_up_when_the_server_does_not_answer() -> None:
    bench = Bench()
    bench.api.gate.clear()
    bench.executor.perform(bind())
    assert await bench.executor.finish(0.0) is False


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(Unavailable("no answer in time", code=0, reason="NoAnswer"), id="no-answer"),
        pytest.param(Unavailable("timed out", code=504, reason="Timeout"), id="504"),
    ],
)
async def test_finish_waits_until_a_write_that_was_given_up_cannot_land_any_more(error: ApiError) -> None:
    bench = Bench()
    bench.api.replies[BINDING] = [error]
    await bench.perform(bind())
    given_up_s = bench.clock.now_s()
    assert await bench.executor.finish(60.0) is True
    assert bench.clock.now_s() == given_up_s + REQUEST_TIMEOUT_S
    assert await bench.executor.finish(60.0) is True
    assert bench.clock.now_s() == given_up_s + REQUEST_TIMEOUT_S


async def test_finish_says_so_where_a_write_that_was_given_up_may_still_land() -> None:
    bench = Bench()
    bench.api.replies[BINDING] = [Unavailable("no answer in time", code=0, reason="NoAnswer")]
    await bench.perform(bind())
    bench.executor._pause = asyncio.sleep
    assert await bench.executor.finish(0.0) is False


@pytest.mark.parametrize(
    ("path", "error"),
    [
        pytest.param(BINDING, Unavailable("refused", code=0, reason=NOT_SENT), id="never-left"),
        pytest.param(BINDING, Unavailable("busy", code=429), id="told-to-wait"),
        pytest.param(BINDING, ApiError("forbidden", code=403), id="refused"),
        pytest.param(POD, Unavailable("no answer in time", code=0, reason="NoAnswer"), id="only-read"),
    ],
)
async def test_finish_does_not_wait_for_what_cannot_land(path: str, error: ApiError) -> None:
    bench = Bench()
    bench.api.replies[BINDING] = [Conflict("already assigned", code=409)]
    bench.api.replies[path] = [error]
    await bench.perform(bind())
    over_s = bench.clock.now_s()
    assert await bench.executor.finish(60.0) is True
    assert bench.clock.now_s() == over_s


async def test_stop_drops_what_has_not_been_sent_and_what_comes_after() -> None:
    bench = Bench(calls_max=1)
    bench.api.gate.clear()
    for name in ("a", "b", "c"):
        bench.executor.perform(bind(name))
    await asyncio.sleep(0)
    bench.executor.stop()
    bench.executor.perform(bind("d"))
    bench.api.gate.set()
    await bench.executor._idle.wait()
    assert len(bench.api.calls) == 1


async def test_a_victim_is_marked_and_then_deleted() -> None:
    bench = Bench()
    await bench.perform(evict())
    assert bench.api.calls == [("PATCH", STATUS), ("DELETE", POD)]
    assert bench.events == [EvictDone(ObjectKey("default", "p"), "uid-p")]
    assert bench.executor.counts.evicted == 1


@pytest.mark.parametrize("path", [STATUS, POD])
@pytest.mark.parametrize("code", [404, 409])
async def test_a_victim_that_is_gone_or_another_by_now_is_none(path: str, code: int) -> None:
    bench = Bench()
    error = Conflict("another", code=409) if code == 409 else ApiError("gone", code=404)
    another = b'{"metadata":{"name":"p","uid":"uid-other"}}'
    bench.api.replies[POD] = [another]
    bench.api.replies[path] = [error, another]
    await bench.perform(evict())
    assert bench.events == [EvictDone(ObjectKey("default", "p"), "uid-p", is_gone=True)]


async def test_a_deletion_is_said_again_even_if_the_answer_got_lost() -> None:
    bench = Bench()
    bench.api.replies[POD] = [Unavailable("reset", code=0, reason="NoAnswer"), b"{}"]
    await bench.perform(evict())
    assert bench.events == [EvictDone(ObjectKey("default", "p"), "uid-p")]


async def test_a_refused_mark_or_deletion_comes_back_to_the_core() -> None:
    for path in (STATUS, POD):
        bench = Bench()
        bench.api.replies[path] = [ApiError("may not", code=403)]
        await bench.perform(evict(preemptor="g"))
        assert bench.events == [EvictFailed(ObjectKey("default", "p"), "uid-p", 403, "may not")]
        assert bench.executor.counts.evict_failures == 1


async def test_a_victim_whose_mark_or_deletion_is_given_up_is_left_alone_for_as_long_as_the_server_asks() -> (
    None
):
    for path in (STATUS, POD):
        bench = Bench()
        bench.api.replies[path] = [Unavailable("busy", code=429, retry_after_s=7.0)] * TRIES + [b"{}"]
        await bench.perform(evict(), evict())
        assert bench.clock.pauses == [7.0] * TRIES
        assert [type(event) for event in bench.events] == [EvictFailed, EvictDone]


async def test_who_is_released_goes_even_where_the_mark_is_refused() -> None:
    bench = Bench()
    bench.api.replies[STATUS] = [ApiError("may not", code=403)]
    await bench.perform(evict())
    assert bench.api.calls == [("PATCH", STATUS), ("DELETE", POD)]
    assert bench.events == [EvictDone(ObjectKey("default", "p"), "uid-p")]


async def test_a_page_of_somebody_in_between_is_no_answer_to_a_deletion() -> None:
    bench = Bench()
    bench.api.replies[POD] = [b"<html>log in first</html>"]
    await bench.perform(evict())
    assert [type(event) for event in bench.events] == [EvictFailed]
    assert bench.api.calls.count(("DELETE", POD)) == TRIES


@pytest.mark.parametrize("path", [STATUS, POD])
async def test_a_conflict_over_a_pod_that_is_still_there_is_no_end_of_it(path: str) -> None:
    bench = Bench()
    pod = json.dumps({"metadata": {"name": "p", "namespace": "default", "uid": "uid-p"}}).encode()
    bench.api.replies[POD] = [pod]
    bench.api.replies[path] = [Conflict("modified meanwhile", code=409), pod]
    await bench.perform(evict())
    assert bench.events == [EvictFailed(ObjectKey("default", "p"), "uid-p", 409, "modified meanwhile")]


async def test_nothing_is_written_while_the_lease_is_not_renewed() -> None:
    bench, leads = Bench(), [False]
    bench.executor._may_write = lambda: leads[0]
    await bench.perform(bind(), patch())
    assert bench.api.calls == []
    assert bench.executor.counts.fenced > 0
    failed = next(event for event in bench.events if isinstance(event, BindFailed))
    assert failed.code == 503  # it never left: nothing of it can land
    leads[0] = True
    await bench.perform(bind("q"))
    assert bench.api.calls == [("POST", "/api/v1/namespaces/default/pods/q/binding")]


async def test_the_lease_is_looked_at_before_every_request_of_an_effect() -> None:
    """Before the second step and before another try, too."""
    lost = Unavailable("reset", code=0, reason="NoAnswer")
    for effect, replies, sent in (
        (evict(), [], [("PATCH", STATUS)]),
        (MAKE, [], [("POST", CLAIMS)]),
        (DROP, [], [("PATCH", f"{CLAIMS}/old")]),
        (patch(), [lost], [("PATCH", STATUS)]),
        (bind(), [Unavailable("busy", code=429)], [("POST", BINDING)]),
    ):
        bench = Bench()
        bench.api.replies[sent[0][1]] = replies or [b"{}"]
        bench.executor._may_write = lambda api=bench.api: not api.calls  # type: ignore[misc]
        await bench.perform(effect)
        assert bench.api.calls == sent
        assert bench.executor.counts.fenced > 0


async def test_whoever_must_wait_keeps_nobody_else_waiting() -> None:
    bench = Bench(calls_max=1)
    told = asyncio.Event()

    async def pause(seconds: float) -> None:
        await told.wait()

    bench.executor._pause = pause
    busy = Unavailable("busy", code=429, reason="TooManyRequests")
    busy.retry_after_s = 20.0
    bench.api.replies[BINDING] = [busy, b"{}"]
    bench.executor.perform(bind())
    bench.executor.perform(bind("q"))
    for _ in range(20):
        await asyncio.sleep(0)
    assert [event.key.name for event in bench.events if isinstance(event, BindDone)] == ["q"]
    told.set()
    await bench.executor._idle.wait()
    assert [event.key.name for event in bench.events if isinstance(event, BindDone)] == ["q", "p"]


CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
MAKE = MakeClaim(ObjectKey("default", "p"), ObjectKey("default", "unwritten"), "uid-p", (), (), Allocation())
DROP = DropClaim(ObjectKey("default", "p"), ObjectKey("default", "old"), "uid-p", "uid-old")


async def test_a_claim_is_made_under_the_name_that_the_server_gives_it() -> None:
    bench = Bench()
    bench.api.replies[CLAIMS] = [b'{"metadata": {"name": "p-x", "uid": "uid-c"}}']
    await bench.perform(MAKE)
    assert bench.api.calls == [("POST", CLAIMS), ("PATCH", f"{CLAIMS}/p-x/status"), ("PATCH", STATUS)]
    assert bench.events == [PrepareDone(MAKE)]


async def test_a_claim_whose_creation_got_no_answer_is_not_made_twice() -> None:
    bench = Bench()
    bench.api.replies[CLAIMS] = [Unavailable("no answer", code=0)]
    await bench.perform(MAKE)
    assert bench.api.calls == [("POST", CLAIMS)]
    assert [event.code for event in bench.events if isinstance(event, PrepareFailed)] == [0]


async def test_a_claim_that_is_gone_already_is_dropped() -> None:
    bench = Bench()
    bench.api.replies[f"{CLAIMS}/old"] = [ApiError("gone", code=404), ApiError("gone", code=404)]
    await bench.perform(DROP)
    assert bench.api.calls == [("PATCH", f"{CLAIMS}/old"), ("DELETE", f"{CLAIMS}/old")]
    assert bench.events == [PrepareDone(DROP)]
