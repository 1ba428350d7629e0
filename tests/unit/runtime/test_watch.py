"""Lists in pages, watches that resume, and what vanished while nobody watched."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from tests.unit.runtime.in_process import ManualClock

from muster.api.core import Node
from muster.base.errors import ApiError, Expired, Unavailable
from muster.framework.ports import Event, NodeGone, NodeSeen
from muster.runtime.client import Answer
from muster.runtime.watch import BACKOFF_S_MAX, FAILURES_BEFORE_RELIST, UNSERVED_S, ListWatch, WatchedKind

NODES: WatchedKind[Node] = WatchedKind(
    "nodes", "/api/v1/nodes", Node, NodeSeen, lambda key, uid: NodeGone(key.name)
)


def node(name: str, version: int, uid: str = "") -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": uid or f"uid-{name}", "resourceVersion": str(version)}}


def page(version: int, *items: dict[str, Any], more: str = "") -> bytes:
    metadata = {"resourceVersion": str(version), **({"continue": more} if more else {})}
    return json.dumps({"metadata": metadata, "items": list(items) or None}).encode()


def frame(type_: str, obj: dict[str, Any]) -> bytes:
    return json.dumps({"type": type_, "object": obj}).encode()


GONE = frame("ERROR", {"code": 410, "reason": "Expired", "message": "too old"})
Script = list[list[bytes] | ApiError]


class ScriptedApi:
    """Lists and watches from a script; when the watches are used up it stops the test's task."""

    def __init__(self, lists: list[bytes | ApiError], watches: Script) -> None:
        self.lists = lists
        self.watches = watches
        self.list_queries: list[dict[str, str]] = []
        self.watched_from: list[str] = []

    async def call(self, method: str, path: str, *, query: Mapping[str, str], timeout_s: float) -> Answer:
        self.list_queries.append(dict(query))
        reply = self.lists.pop(0)
        if isinstance(reply, ApiError):
            raise reply
        return Answer(200, reply)

    @asynccontextmanager
    async def lines(self, path: str, query: Mapping[str, str]) -> AsyncIterator[AsyncIterator[list[bytes]]]:
        self.watched_from.append(query["resourceVersion"])
        if not self.watches:
            raise asyncio.CancelledError
        script = self.watches.pop(0)
        if isinstance(script, ApiError):
            raise script
        yield self._batches(script)

    async def _batches(self, script: list[bytes]) -> AsyncIterator[list[bytes]]:
        for line in script:
            yield [line]


class Bench:
    """A ListWatch over a script; a look at the clock takes two seconds, so no watch counts as too short."""

    def __init__(
        self,
        lists: list[bytes | ApiError],
        watches: Script,
        tick_s: float = 2.0,
        kind: WatchedKind[Node] = NODES,
    ) -> None:
        self.api = ScriptedApi(lists, watches)
        self.clock = ManualClock()
        self.events: list[str] = []
        self.synced = 0
        self.went_back: list[str] = []
        self.tick_s = tick_s
        self.is_full = False
        self.watch = ListWatch(
            kind,
            self.api,  # type: ignore[arg-type]
            post=self._note,
            has_room=self._has_room,
            on_synced=self._note_synced,
            on_went_back=self.went_back.append,
            rng=np.random.default_rng(1),
            pause=self.clock.pause,
            now_s=self._now_s,
        )

    async def run(self) -> list[str]:
        with pytest.raises(asyncio.CancelledError):
            await self.watch.run()
        return self.events

    def _now_s(self) -> float:
        self.clock.value_s += self.tick_s
        return self.clock.value_s

    def _note(self, event: Event) -> None:
        if isinstance(event, NodeSeen):
            self.events.append(f"+{event.node.metadata.name}@{event.node.metadata.resource_version}")
        elif isinstance(event, NodeGone):
            self.events.append(f"-{event.name}")

    async def _has_room(self) -> None:
        if self.is_full:
            raise asyncio.CancelledError

    def _note_synced(self) -> None:
        self.synced += 1
        self.events.append("synced")


async def test_a_list_comes_in_pages_and_then_says_that_it_is_whole() -> None:
    bench = Bench([page(9, node("a", 1), more="next"), page(9, node("b", 2))], [])
    assert await bench.run() == ["+a@1", "+b@2", "synced"]
    assert [query.get("continue") for query in bench.api.list_queries] == [None, "next"]
    assert bench.api.watched_from == ["9"]


async def test_changes_come_as_events_and_the_next_watch_starts_after_the_last() -> None:
    frames = [
        frame("ADDED", node("a", 10)),
        frame("MODIFIED", node("a", 11)),
        frame("DELETED", node("a", 12)),
    ]
    bench = Bench([page(9)], [frames])
    assert await bench.run() == ["synced", "+a@10", "+a@11", "-a"]
    assert bench.api.watched_from == ["9", "12"]


async def test_what_is_no_news_is_not_told_and_counts_as_seen() -> None:
    kind = replace(NODES, is_no_news=lambda told, now: now.metadata.resource_version != "7")
    bench = Bench(
        [page(3, node("a", 2)), page(5, node("a", 5))],
        [
            [frame("MODIFIED", node("a", 5)), GONE],
            [
                frame("MODIFIED", node("a", 6)),
                frame("MODIFIED", node("a", 7)),
                frame("DELETED", node("a", 8)),
            ],
        ],
        kind=kind,
    )
    assert await bench.run() == ["+a@2", "synced", "+a@7", "-a"]


async def test_a_bookmark_moves_the_place_and_tells_nothing() -> None:
    bench = Bench([page(9)], [[frame("BOOKMARK", {"metadata": {"resourceVersion": "50"}})]])
    assert await bench.run() == ["synced"]
    assert bench.api.watched_from == ["9", "50"]


async def test_a_broken_watch_is_resumed_without_listing_again() -> None:
    broken = Unavailable("connection reset", code=0)
    bench = Bench([page(9)], [[frame("ADDED", node("a", 10))], broken])
    assert await bench.run() == ["synced", "+a@10"]
    assert bench.api.watched_from == ["9", "10", "10"]
    assert len(bench.api.list_queries) == 1


@pytest.mark.parametrize(
    "expired",
    [
        pytest.param([GONE], id="told-in-the-stream"),
        pytest.param(Expired("too old", code=410), id="told-on-opening"),
    ],
)
async def test_after_410_the_list_tells_what_vanished_and_what_changed(
    expired: list[bytes] | ApiError,
) -> None:
    lists: list[bytes | ApiError] = [
        page(9, node("a", 1), node("b", 2), node("c", 3)),
        page(20, node("b", 2), node("c", 15)),
    ]
    bench = Bench(lists, [expired])
    assert await bench.run() == ["+a@1", "+b@2", "+c@3", "synced", "+c@15", "-a"]
    assert bench.api.watched_from == ["9", "20"]


async def test_an_object_made_anew_meanwhile_is_gone_first() -> None:
    bench = Bench([page(9, node("a", 1)), page(20, node("a", 12, uid="other"))], [[GONE]])
    assert await bench.run() == ["+a@1", "synced", "-a", "+a@12"]


async def test_synced_is_said_once_however_often_the_list_is_repeated() -> None:
    bench = Bench([page(9), page(20)], [[GONE]])
    await bench.run()
    assert bench.synced == 1


async def test_a_list_that_expires_between_pages_is_taken_in_one_piece() -> None:
    lists = [
        page(9, node("a", 1), more="next"),
        Expired("too old", code=410),
        page(12, node("a", 1), node("b", 2)),
    ]
    bench = Bench(lists, [])
    assert await bench.run() == ["+a@1", "+b@2", "synced"]
    assert "limit" not in bench.api.list_queries[-1]


async def test_failures_wait_longer_each_time_and_never_equally_long() -> None:
    broken: Script = [Unavailable("down", code=503) for _ in range(3)]
    bench = Bench([page(9)], broken)
    await bench.run()
    first, second, third = bench.clock.pauses
    assert 0.25 <= first <= 0.5 <= second <= 1.0 <= third <= 2.0
    assert len({first, second / 2, third / 4}) == 3


async def test_the_time_the_server_asks_for_is_kept() -> None:
    bench = Bench([page(9)], [Unavailable("busy", code=429, retry_after_s=9.0)])
    await bench.run()
    assert bench.clock.pauses == [9.0]


async def test_a_place_that_cannot_be_resumed_is_given_up_in_the_end() -> None:
    broken: Script = [Unavailable("internal error", code=500) for _ in range(FAILURES_BEFORE_RELIST)]
    bench = Bench([page(9, node("a", 1)), page(30)], broken)
    assert await bench.run() == ["+a@1", "synced", "-a"]
    assert bench.went_back == []


async def test_an_api_that_is_switched_off_for_a_while_is_asked_ever_more_seldom_and_then_read_b138() -> None:
    off = ApiError("the server could not find the requested resource", code=404)
    lists: list[bytes | ApiError] = [page(9, node("a", 1)), *[off] * 6, page(30, node("a", 1), node("b", 20))]
    bench = Bench(lists, [off] * FAILURES_BEFORE_RELIST)
    assert await bench.run() == ["+a@1", "synced", "+b@20"]
    pauses = bench.clock.pauses
    assert len(pauses) == FAILURES_BEFORE_RELIST + 6
    assert pauses[:5] == sorted(pauses[:5])
    assert min(pauses[-3:]) >= BACKOFF_S_MAX / 2


async def test_a_restored_backup_is_noticed_and_nothing_of_it_is_told() -> None:
    too_large: Script = [Unavailable("too large resource version", code=504)] * FAILURES_BEFORE_RELIST
    frames = [frame("ADDED", node("a", 50))]
    bench = Bench([page(9), page(20, node("b", 15))], [frames, *too_large])
    await bench.watch.run()
    assert bench.events == ["synced", "+a@50"]
    assert bench.went_back == ["a list of nodes is of version 20, 50 was seen before"]


async def test_a_restored_backup_that_has_gone_on_for_long_shows_by_an_object() -> None:
    bench = Bench([page(9, node("a", 8)), page(30, node("a", 5))], [[GONE]])
    await bench.watch.run()
    assert bench.events == ["+a@8", "synced"]
    assert bench.went_back == ["nodes a is of version 5, 8 was seen before"]


async def test_an_object_made_anew_is_not_older_than_the_one_before() -> None:
    bench = Bench([page(9, node("a", 8)), page(30, node("a", 5, uid="other"))], [[GONE]])
    assert await bench.run() == ["+a@8", "synced", "-a", "+a@5"]


async def test_who_takes_over_and_lists_afresh_still_notices_a_restored_backup() -> None:
    bench = Bench([page(9), page(4)], [])
    await bench.run()
    bench.watch.forget_place()
    await bench.watch.run()
    assert bench.went_back == ["a list of nodes is of version 4, 9 was seen before"]


async def test_versions_that_are_no_numbers_are_not_compared() -> None:
    lists: list[bytes | ApiError] = [page(9, node("a", 8)), page(30, node("a", 5))]
    lists = [
        text.replace(b'"8"', b'"x8"').replace(b'"9"', b'"y9"') for text in lists if isinstance(text, bytes)
    ]
    bench = Bench(lists, [[GONE]])
    assert await bench.run() == ["+a@x8", "synced", "+a@5"]


async def test_a_watch_that_ends_at_once_is_not_repeated_at_once() -> None:
    bench = Bench([page(9)], [[]], tick_s=0.001)
    await bench.run()
    assert len(bench.clock.pauses) == 1


async def test_an_unreadable_object_is_left_out_and_the_others_are_told() -> None:
    bad = node("bad", 5) | {"spec": {"taints": "none"}}
    frames = [frame("MODIFIED", bad), frame("ADDED", node("c", 10))]
    bench = Bench([page(9, node("a", 1), bad, node("b", 2))], [frames])
    assert await bench.run() == ["+a@1", "+b@2", "synced", "+c@10"]
    assert bench.watch.counts.unreadable == 2


async def test_what_nobody_had_room_for_when_the_watch_was_stopped_is_told_when_it_begins_again() -> None:
    bench = Bench([page(9), page(10, node("a", 10))], [[frame("ADDED", node("a", 10))]])
    bench.is_full = True
    await bench.run()
    bench.is_full = False
    bench.watch.forget_place()
    assert await bench.run() == ["synced", "+a@10", "synced"]


@pytest.mark.parametrize("code", [403, 404])
async def test_a_kind_one_can_do_without_holds_nobody_up_and_is_asked_for_again(
    code: int, caplog: pytest.LogCaptureFixture
) -> None:
    kind = replace(NODES, without="nobody is counted")
    refusals: list[bytes | ApiError] = [ApiError("no", code=code), ApiError("no", code=code), page(9)]
    bench = Bench(refusals, [], kind=kind)
    await bench.run()
    assert bench.watch.synced
    assert bench.synced == 1
    assert bench.clock.pauses == [UNSERVED_S, UNSERVED_S]
    assert [record.message for record in caplog.records if "nobody is counted" in record.message] == [
        f"nodes: {'not served' if code == 404 else 'not allowed: no'}; nobody is counted"
    ]
