"""Perform Effects over HTTP, many at once but one at a time per object; outcomes go back as Events.

In come BindPod, EvictPod, PatchPodStatus, PatchGroupStatus and RecordEvent from `runtime/loop.py`; how each
looks as a request is `assembly/requests.py`.  What is worth saying again is said again here, and only what
is safe to say twice: a binding whose answer got lost is reported as unknown, never repeated blindly.
"""

import asyncio
import itertools
import logging
import math
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct

from muster.api.core import Pod
from muster.assembly.claim_steps import is_over, steps_of
from muster.assembly.leadership import REQUEST_TIMEOUT_S
from muster.assembly.requests import (
    Call,
    WireEffect,
    mark_of,
    may_go_unmarked,
    path_of,
    request_of,
)
from muster.base.errors import ApiError, Conflict, Unavailable
from muster.controllers.ports import PODS
from muster.framework.groups import ObjectKey
from muster.framework.ports import (
    OVERDUE,
    BindDone,
    BindFailed,
    BindPod,
    Event,
    EvictDone,
    EvictFailed,
    EvictPod,
    PatchGroupStatus,
    PatchPodStatus,
    Prepare,
    PrepareDone,
    PrepareFailed,
    RecordEvent,
    WriteFailed,
)
from muster.runtime import patience
from muster.runtime.client import NOT_SENT, Answer, ApiClient, SomeObject
from muster.runtime.patience import Patience, Turn

CALLS_MAX = 64  # about what keeps an API server on a few cores busy; more only queues there
LATE_FACTOR_MAX = 2  # so many times as many, where the server answers nobody
EVENT_CALLS_MAX = 16
EVENTS_WAITING_MAX = 10_000
EVENT_PATIENCE_S = 5.0  # so long an event lets bindings go first, even if they never pause
TRIES = 5
BACKOFF_S_FIRST, BACKOFF_S_MAX = 0.1, 2.0
BINDING_PAUSE_S_MAX = 30.0  # one that is to wait longer is decided on anew by then: its room may be gone
UNKNOWN = 0

log = logging.getLogger("muster.executor")

Lane = tuple[type, ObjectKey]


class Counts(Struct):
    """What has been done; `runtime/metrics.py` shows it."""

    bound: int = 0
    bind_failures: int = 0
    evicted: int = 0
    evict_failures: int = 0
    written: int = 0
    write_failures: int = 0
    events_written: int = 0
    events_dropped: int = 0
    retries: int = 0
    fenced: int = 0  # not sent, for this process may not lead any more


class Executor:
    """Sends effects to the API server.  `perform` never blocks; `finish` waits for what is on the wire."""

    def __init__(
        self,
        client: ApiClient,
        *,
        post: Callable[[Event], None],
        now_s: Callable[[], float],
        rng: np.random.Generator,
        pause: Callable[[float], Awaitable[None]],
        instance: str = "",
        calls_max: int = CALLS_MAX,
        events_waiting_max: int = EVENTS_WAITING_MAX,
        may_write: Callable[[], bool] = lambda: True,
    ) -> None:
        self.counts = Counts()
        self._client = client
        self._post = post
        self._now_s = now_s
        self._rng = rng
        self._pause = pause
        self._instance = instance
        self._may_write = may_write
        self._lands_until_s = -math.inf  # until then a write that was given up may still land
        self._pausing = 0  # calls that wait before they are said again: they keep nobody else waiting
        self._calls_max = calls_max
        self._events_waiting_max = events_waiting_max
        self._lanes: dict[Lane, deque[WireEffect]] = {}
        self._ready: deque[Lane] = deque()  # lanes with work and no call in flight
        self._ready_slow: deque[Lane] = deque()  # those of them whose gang the server keeps waiting
        self._patience = Patience(now_s)
        self._events: deque[tuple[float, RecordEvent]] = deque()  # with the time each was queued
        self._calls: set[asyncio.Task[None]] = set()
        self._event_calls = 0
        self._sequence = itertools.count()
        self._idle = asyncio.Event()
        self._idle.set()
        self._is_stopped = False

    @property
    def waiting(self) -> int:
        """Effects not on the wire yet, events aside."""
        return sum(len(lane) for lane in self._lanes.values())

    def perform(self, effect: WireEffect) -> None:
        """Queue an effect and start it as soon as its object and a connection are free."""
        if self._is_stopped:
            return
        if isinstance(effect, RecordEvent):
            if len(self._events) >= self._events_waiting_max:
                self.counts.events_dropped += 1
                return
            self._events.append((self._now_s(), effect))
        else:
            lane_key: Lane = (PatchGroupStatus if isinstance(effect, PatchGroupStatus) else Pod, effect.key)
            lane = self._lanes.get(lane_key)
            if lane is None:
                self._lanes[lane_key] = deque([effect])
                self._line_up(lane_key)
            else:
                lane.append(effect)
        self._start_calls()

    async def finish(self, patience_s: float) -> bool:
        """Perform what has been decided for at most so long; False if some of it may land later.

        A write that was given up without a clear answer may, for as long as a request may take.  Events come
        last, and those that the time does not reach are dropped.
        """
        try:
            async with asyncio.timeout(patience_s):
                await self._idle.wait()
                if (left_s := self._lands_until_s - self._now_s()) > 0.0:
                    await self._pause(left_s)
        except TimeoutError:
            is_done = not self._lanes and self._lands_until_s <= self._now_s()
            self.stop()
            return is_done
        return True

    def stop(self) -> None:
        """Drop everything at once, and all that is still to come: another process leads now."""
        self._is_stopped = True
        self.counts.events_dropped += len(self._events)
        self._lanes.clear()
        self._ready.clear()
        self._ready_slow.clear()
        self._events.clear()
        for call in self._calls:
            call.cancel()

    # ── who is next ──────────────────────────────────────────────────────────────────────────────

    def _start_calls(self) -> None:
        """Start calls while there is work: bindings and conditions first, events when those are done."""
        while self._ready_slow and self._patience.has_place:
            self._start_next_of(self._ready_slow.popleft())
        while self._has_place:
            if self._ready:
                lane_key = self._ready.popleft()
                if self._is_slow(lane_key) and not self._patience.has_place:
                    self._ready_slow.append(lane_key)
                else:
                    self._start_next_of(lane_key)
            elif self._is_time_for_events():
                self._event_calls += 1
                queued_s, effect = self._events.popleft()
                self._start(self._write_event(effect, queued_s))
            else:
                break

    @property
    def _has_place(self) -> bool:
        """Whether another call may go out; who has waited for too long holds no place, up to a bound."""
        on_the_wire = len(self._calls) - self._pausing
        return (
            on_the_wire - self._patience.calls < self._calls_max
            and on_the_wire < self._calls_max * LATE_FACTOR_MAX
        )

    def _line_up(self, lane_key: Lane) -> None:
        (self._ready_slow if self._is_slow(lane_key) else self._ready).append(lane_key)

    def _is_slow(self, lane_key: Lane) -> bool:
        effect = self._lanes[lane_key][0]
        return isinstance(effect, BindPod) and self._patience.is_slow(effect)

    def _start_next_of(self, lane_key: Lane) -> None:
        effect = self._lanes[lane_key].popleft()
        turn = self._patience.begin(effect) if isinstance(effect, BindPod) else None
        self._start(self._perform_in(lane_key, effect, turn))

    def _lose_patience(self, turn: Turn) -> None:
        self._patience.lose(turn)
        self._start_calls()

    def _is_time_for_events(self) -> bool:
        """An API server that binds is not kept from it; a long wave of bindings does not silence events."""
        if not self._events or self._event_calls >= EVENT_CALLS_MAX:
            return False
        busy = len(self._calls) - self._patience.calls
        return busy == self._event_calls or self._now_s() - self._events[0][0] > EVENT_PATIENCE_S

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._calls.add(task)
        self._idle.clear()
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._calls.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            task.get_loop().call_exception_handler({"message": "an effect raised", "exception": error})
        self._start_calls()
        if not self._calls:
            self._idle.set()

    async def _perform_in(self, lane_key: Lane, effect: WireEffect, turn: Turn | None) -> None:
        lane = self._lanes[lane_key]
        try:
            if isinstance(effect, BindPod):
                await self._bind(effect, turn)
            elif isinstance(effect, EvictPod):
                await self._evict(effect)
            elif isinstance(effect, Prepare):
                await self._prepare(effect)
            elif isinstance(effect, PatchPodStatus | PatchGroupStatus):
                await self._patch(effect)
        finally:
            if turn is not None:
                self._patience.end(turn)
            if lane and lane_key in self._lanes:
                self._line_up(lane_key)
            else:
                self._lanes.pop(lane_key, None)

    # ── one effect each ──────────────────────────────────────────────────────────────────────────

    async def _bind(self, effect: BindPod, turn: Turn | None) -> None:
        call = request_of(effect, now_s=self._now_s())
        try:
            await self._send(call, repeat_unanswered=False, turn=turn, until_s=effect.until_s)
        except Conflict as error:
            # Said twice (an answer of 5xx may hide a success), or somebody else was faster.
            if await self._is_bound_as_asked(effect):
                self._bound(effect)
            else:
                self._bind_failed(effect, error)
        except ApiError as error:
            self._bind_failed(effect, error)
        else:
            self._bound(effect)

    async def _is_bound_as_asked(self, effect: BindPod) -> bool:
        try:
            pod = await self._look_at(effect.key)
        except (ApiError, msgspec.DecodeError, RecursionError) as error:
            log.warning("whether %s was bound all the same could not be seen: %s", effect.key, error)
            return False
        return pod.metadata.uid == effect.uid and pod.spec.node_name == effect.node_name

    async def _is_gone(self, effect: EvictPod) -> bool:
        """Whether a conflict means that another pod has the name; many writers of one pod get it as well."""
        try:
            pod = await self._look_at(effect.key)
        except (ApiError, msgspec.DecodeError, RecursionError) as error:
            return isinstance(error, ApiError) and error.code == 404
        return pod.metadata.uid != effect.uid

    async def _look_at(self, key: ObjectKey) -> Pod:
        answer = await self._send(Call("GET", path_of(PODS, *key), "", {}), repeat_unanswered=True)
        return msgspec.json.decode(answer, type=Pod)

    def _bound(self, effect: BindPod) -> None:
        self.counts.bound += 1
        self._post(BindDone(effect.key, effect.uid, effect.node_name))

    def _bind_failed(self, effect: BindPod, error: ApiError) -> None:
        self.counts.bind_failures += 1
        log.warning("binding %s to %s: %s", effect.key, effect.node_name, error)
        is_unsent = error.code == UNKNOWN and error.reason == NOT_SENT
        self._post(
            BindFailed(
                key=effect.key,
                uid=effect.uid,
                node_name=effect.node_name,
                code=503 if is_unsent else error.code,  # never sent is as good as refused: it cannot land
                reason="ServiceUnavailable" if is_unsent else error.reason,
                message=str(error),
                retry_after_s=error.retry_after_s,
            )
        )

    async def _evict(self, effect: EvictPod) -> None:
        """Mark, then delete: both may be said twice, for the uid is a precondition."""
        try:
            await self._mark(effect)
            await self._send(request_of(effect, now_s=self._now_s()), repeat_unanswered=True)
        except ApiError as error:
            if error.code == 404 or (error.code == 409 and await self._is_gone(effect)):
                self._post(EvictDone(effect.key, effect.uid, is_gone=True))
                return
            self.counts.evict_failures += 1
            log.warning("evicting %s for %s: %s", effect.key, effect.preemptor, error)
            await self._heed(error)
            self._post(EvictFailed(effect.key, effect.uid, error.code, str(error)))
        else:
            self.counts.evicted += 1
            self._post(EvictDone(effect.key, effect.uid))

    async def _mark(self, effect: EvictPod) -> None:
        try:
            await self._send(mark_of(effect), repeat_unanswered=True)
        except ApiError as error:
            if not may_go_unmarked(effect, error.code):
                raise
            log.warning("%s is deleted without a condition that says why: %s", effect.key, error)

    async def _prepare(self, effect: Prepare) -> None:
        """A version or a uid is the precondition: said twice is as good as said once."""
        try:
            await self._step_through(effect)
        except ApiError as error:
            self.counts.write_failures += 1
            log.info("claim %s for pod %s: %s", effect.claim, effect.key, error)
            await self._heed(error)
            self._post(PrepareFailed(effect, error.code, str(error)))
        else:
            self.counts.written += 1
            self._post(PrepareDone(effect))

    async def _step_through(self, effect: Prepare) -> None:
        """One call after the other; what is created is not said twice: there would be two of it."""
        steps, answer = steps_of(effect), None
        while True:
            try:
                call = steps.send(answer)
            except StopIteration:
                return
            try:
                answer = _object_in(await self._send(call, repeat_unanswered=call.method != "POST"))
            except ApiError as error:
                if not is_over(effect, error.code):
                    raise
                answer = {}

    async def _patch(self, effect: PatchPodStatus | PatchGroupStatus) -> None:
        try:
            await self._send(request_of(effect, now_s=self._now_s()), repeat_unanswered=True)
        except ApiError as error:
            self.counts.write_failures += 1
            level = logging.INFO if error.code in (404, 409) else logging.WARNING  # gone, or made anew
            log.log(level, "status of %s: %s", effect.key, error)
            await self._heed(error)
            self._post(WriteFailed(effect, error.code, str(error)))
        else:
            self.counts.written += 1

    async def _write_event(self, effect: RecordEvent, queued_s: float) -> None:
        call = request_of(effect, now_s=queued_s, sequence=next(self._sequence), instance=self._instance)
        try:
            await self._send(call, repeat_unanswered=True)
            self.counts.events_written += 1
        except Conflict:
            self.counts.events_written += 1  # its first try had arrived
        except ApiError as error:
            self.counts.events_dropped += 1
            log.info("event %s of %s was dropped: %s", effect.reason, effect.regarding.key, error)
        finally:
            self._event_calls -= 1

    async def _send(
        self, call: Call, *, repeat_unanswered: bool, turn: Turn | None = None, until_s: float = math.inf
    ) -> bytes:
        """Send, and send again while the cause may pass: 429, 5xx, no connection; a lost answer if told.

        Nothing is sent that could land after `until_s`.
        """
        for tried in itertools.count(1):
            if self._now_s() + REQUEST_TIMEOUT_S > until_s:
                raise ApiError("others were waited for until it was too late", code=503, reason=OVERDUE)
            try:
                self._check_fence(call)
                return (await self._ask(call, turn)).body
            except Unavailable as error:
                if call.method != "GET" and error.code != 429 and error.reason != NOT_SENT:
                    self._lands_until_s = self._now_s() + REQUEST_TIMEOUT_S
                is_lost = error.code == UNKNOWN and error.reason != NOT_SENT
                is_long = turn is not None and (error.retry_after_s or 0.0) > BINDING_PAUSE_S_MAX
                if tried >= TRIES or is_long or (is_lost and not repeat_unanswered):
                    raise
                self.counts.retries += 1
                ceiling = min(BACKOFF_S_MAX, BACKOFF_S_FIRST * 2.0 ** (tried - 1))
                seconds = ceiling * (0.5 + 0.5 * float(self._rng.random()))
                await self._wait(max(seconds, error.retry_after_s or 0.0), turn)
        raise AssertionError("the loop above returns or raises")

    async def _ask(self, call: Call, turn: Turn | None) -> Answer:
        body = call.body if call.method != "GET" else None
        timer = None
        if turn is not None:
            timer = asyncio.get_running_loop().call_later(patience.SLOW_S, self._lose_patience, turn)
        try:
            answer = await self._client.call(call.method, call.path, body, content_type=call.content_type)
        finally:
            if timer is not None:
                timer.cancel()
        answer.read(SomeObject)  # a page of somebody in between, however friendly, is no answer of the API
        return answer

    async def _heed(self, error: ApiError) -> None:
        """Keep the object to ourselves for as long as the server wants to be left alone."""
        if error.retry_after_s:
            await self._wait(error.retry_after_s)

    def _check_fence(self, call: Call) -> None:
        if call.method != "GET" and not self._may_write():
            self.counts.fenced += 1
            raise Unavailable("the lease was not renewed in time", code=UNKNOWN, reason=NOT_SENT)

    async def _wait(self, seconds: float, turn: Turn | None = None) -> None:
        """Wait without taking up the place of a call; who is slow holds none."""
        place = 0 if turn is not None and turn.is_slow else 1
        self._pausing += place
        try:
            self._start_calls()
            await self._pause(seconds)
        finally:
            self._pausing -= place


def _object_in(body: bytes) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
