"""Victims and the released: marked, then deleted by uid, and what comes of refusals on the way."""

import json

import pytest
from tests.unit.runtime.executor_bench import Bench, evict

from muster.base.errors import ApiError, Conflict, Unavailable
from muster.framework.groups import ObjectKey
from muster.framework.ports import EvictDone, EvictFailed
from muster.runtime.executor import TRIES

POD = "/api/v1/namespaces/default/pods/p"
STATUS = f"{POD}/status"


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
