"""The effects of one scheduler process on their way to the API server, and what becomes of each.

Plays the part of `runtime/executor.py`: one call in flight per object, answers that may pass are asked for
again, a binding whose answer got lost is reported as unknown and never repeated blindly.  Nothing leaves a
process that may not write any more.  The places on the wire are not played, nor whom `runtime/patience.py`
keeps from them: a storm has fewer calls at once than there are places.  Next: `line.py`.
"""

import itertools
import math
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from muster.assembly.claim_steps import is_over, steps_of
from muster.assembly.leadership import REQUEST_TIMEOUT_S
from muster.assembly.requests import JSON, Call, WireEffect, mark_of, may_go_unmarked, path_of, request_of
from muster.controllers.ports import PODS
from muster.framework.groups import ObjectKey
from muster.framework.ports import (
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
from muster.sim.storm.line import Answer, Line
from muster.sim.storm.weather import Sky
from muster.sim.view import node_of, uid_of

TRIES = 5
BACKOFF_S_FIRST, BACKOFF_S_MAX = 0.1, 2.0

Lane = tuple[type, ObjectKey]
Done = Callable[[Answer], None]


class Outbox:
    """Performs effects over a line.

    `tell` takes the outcomes, `later` runs an action of this process after a while of its own clock,
    `may_write` is asked before each write, and `lost` called when the answer is no.
    """

    def __init__(
        self,
        line: Line,
        sky: Sky,
        *,
        tell: Callable[[Event], None],
        later: Callable[[Callable[[], None], float], None],
        now_s: Callable[[], float],
        may_write: Callable[[], bool],
        lost: Callable[[], None],
    ) -> None:
        self._line = line
        self._sky = sky
        self._tell = tell
        self._later = later
        self._now_s = now_s
        self._may_write = may_write
        self._lost = lost
        self._lanes: dict[Lane, deque[WireEffect]] = {}
        self._lands_until_s = -math.inf
        self._sequence = itertools.count()

    @property
    def is_over(self) -> bool:
        """Whether nothing of it can land any more, not even a write that was given up; events aside."""
        return self.is_idle and self._lands_until_s <= self._now_s()

    @property
    def is_idle(self) -> bool:
        """Whether nothing is on the wire or waits for it, events aside."""
        return not self._lanes

    def perform(self, effect: WireEffect) -> None:
        """Queue an effect, and start it if its object is free."""
        if isinstance(effect, RecordEvent):
            call = request_of(effect, now_s=self._now_s(), sequence=next(self._sequence))
            self._send(call, lambda answer: None, repeat_unanswered=False)
            return
        lane_key: Lane = (PatchGroupStatus if isinstance(effect, PatchGroupStatus) else object, effect.key)
        lane = self._lanes.get(lane_key)
        if lane is not None:
            lane.append(effect)
            return
        self._lanes[lane_key] = deque([effect])
        self._start(lane_key)

    def _start(self, lane_key: Lane) -> None:
        effect = self._lanes[lane_key][0]
        if isinstance(effect, BindPod):
            self._bind(effect, lane_key)
        elif isinstance(effect, EvictPod):
            self._evict(effect, lane_key)
        elif isinstance(effect, Prepare):
            self._prepare(effect, lane_key)
        elif isinstance(effect, PatchPodStatus | PatchGroupStatus):
            self._patch(effect, lane_key)

    def _finish(self, lane_key: Lane, event: Event | None) -> None:
        """One effect is over: tell of it, and go on with the next of its object."""
        lane = self._lanes[lane_key]
        lane.popleft()
        if lane:
            self._start(lane_key)
        else:
            del self._lanes[lane_key]
        if event is not None:
            self._tell(event)

    def _finish_later(self, lane_key: Lane, event: Event | None, answer: Answer) -> None:
        """Keep the object for as long as the server wants to be left alone, then go on."""
        if answer.retry_after_s:
            self._later(lambda: self._finish(lane_key, event), answer.retry_after_s)
        else:
            self._finish(lane_key, event)

    # ── one effect each ──

    def _bind(self, effect: BindPod, lane_key: Lane) -> None:
        def answered(answer: Answer) -> None:
            if answer.code == 409:
                look = Call("GET", path_of(PODS, *effect.key), JSON, {})
                self._send(look, lambda found: conclude(answer, found), repeat_unanswered=True)
            else:
                conclude(answer, None)

        def conclude(answer: Answer, found: Answer | None) -> None:
            is_there = (
                found is not None
                and found.code == 200
                and (uid_of(found.body), node_of(found.body)) == (effect.uid, effect.node_name)
            )
            if is_there or 0 < answer.code < 300:
                self._finish(lane_key, BindDone(effect.key, effect.uid, effect.node_name))
            else:
                self._finish(lane_key, _bind_failed(effect, answer))

        self._send(request_of(effect, now_s=self._now_s()), answered, repeat_unanswered=False)

    def _evict(self, effect: EvictPod, lane_key: Lane) -> None:
        """Mark, then delete: both may be said twice, for the uid is a precondition."""

        def marked(answer: Answer) -> None:
            if 0 < answer.code < 300 or may_go_unmarked(effect, answer.code):
                self._send(request_of(effect, now_s=self._now_s()), concluded, repeat_unanswered=True)
            else:
                concluded(answer)

        def concluded(answer: Answer) -> None:
            if answer.code in (404, 409):
                self._finish(lane_key, EvictDone(effect.key, effect.uid, is_gone=True))
            elif 0 < answer.code < 300:
                self._finish(lane_key, EvictDone(effect.key, effect.uid))
            else:
                failed = EvictFailed(effect.key, effect.uid, answer.code, answer.message)
                self._finish_later(lane_key, failed, answer)

        self._send(mark_of(effect), marked, repeat_unanswered=True)

    def _prepare(self, effect: Prepare, lane_key: Lane) -> None:
        steps = steps_of(effect)

        def answered(answer: Answer) -> None:
            if 0 < answer.code < 300 or is_over(effect, answer.code):
                go_on(answer.body)
            else:
                failed = PrepareFailed(effect, answer.code, answer.message)
                self._finish_later(lane_key, failed, answer)

        def go_on(found: Mapping[str, Any] | None) -> None:
            try:
                call = steps.send(found)
            except StopIteration:
                self._finish(lane_key, PrepareDone(effect))
                return
            self._send(call, answered, repeat_unanswered=call.method != "POST")

        go_on(None)

    def _patch(self, effect: PatchPodStatus | PatchGroupStatus, lane_key: Lane) -> None:
        def answered(answer: Answer) -> None:
            is_done = 0 < answer.code < 300
            outcome = None if is_done else WriteFailed(effect, answer.code, answer.message)
            self._finish_later(lane_key, outcome, answer)

        self._send(request_of(effect, now_s=self._now_s()), answered, repeat_unanswered=True)

    # ── sending ──

    def _send(self, call: Call, done: Done, *, repeat_unanswered: bool, tried: int = 1) -> None:
        """Send, and send again while the cause may pass: 429, 5xx, no connection; a lost answer if told."""
        if call.method != "GET" and not self._may_write():
            self._lost()
            return

        def answered(answer: Answer) -> None:
            is_lost = answer.code == 0 and answer.was_sent
            may_pass = answer.code in (0, 429) or answer.code >= 500
            if call.method != "GET" and (is_lost or answer.code >= 500):
                self._lands_until_s = self._now_s() + REQUEST_TIMEOUT_S
            if not may_pass or tried >= TRIES or (is_lost and not repeat_unanswered):
                done(answer)
                return
            self._later(
                lambda: self._send(call, done, repeat_unanswered=repeat_unanswered, tried=tried + 1),
                self._pause_s(answer, tried),
            )

        self._line.send(call, lambda answer: self._later(lambda: answered(answer), 0.0), REQUEST_TIMEOUT_S)

    def _pause_s(self, answer: Answer, tried: int) -> float:
        """How long to wait before it is said again; as long as the server asked for, and some."""
        ceiling_s = min(BACKOFF_S_MAX, BACKOFF_S_FIRST * 2.0 ** (tried - 1))
        return max(ceiling_s * self._sky.between(0.5, 1.0), answer.retry_after_s or 0.0)


def _bind_failed(effect: BindPod, answer: Answer) -> BindFailed:
    is_unsent = answer.code == 0 and not answer.was_sent
    return BindFailed(
        key=effect.key,
        uid=effect.uid,
        node_name=effect.node_name,
        code=503 if is_unsent else answer.code,  # never sent is as good as refused: it cannot land
        reason="ServiceUnavailable" if is_unsent else answer.reason,
        message=answer.message or "no answer",
        retry_after_s=answer.retry_after_s,
    )
