"""A scheduler attached to the server in this process: changes become its events, its effects requests.

In come changes of nodes, pods and groups; out go requests, and their answers come back as outcomes.
Which request an effect is stands in `requests.py`.  Next: `embedded.py`, which decides the order.
"""

import itertools
from collections import deque
from collections.abc import Callable
from typing import Protocol

from muster.apiserver.exchange import Request, Response
from muster.assembly.claim_steps import is_over, steps_of
from muster.assembly.requests import Call, WireEffect, mark_of, may_go_unmarked, request_of
from muster.controllers.ports import (
    COMPOSITE_POD_GROUPS,
    CSI_DRIVERS,
    CSI_NODES,
    DEVICE_CLAIMS,
    DEVICE_CLASSES,
    DEVICE_SLICES,
    DEVICE_TAINT_RULES,
    DISRUPTION_BUDGETS,
    NAMESPACES,
    NODES,
    POD_GROUPS,
    PODS,
    STORAGE_CAPACITIES,
    STORAGE_CLASSES,
    VOLUME_ATTACHMENTS,
    VOLUME_CLAIMS,
    VOLUMES,
    Kind,
    Seen,
)
from muster.dialects.native import event_of
from muster.framework.ports import (
    BindDone,
    BindFailed,
    BindPod,
    Effect,
    Event,
    EvictDone,
    EvictFailed,
    EvictPod,
    Prepare,
    PrepareDone,
    PrepareFailed,
    RecordEvent,
    Search,
    SearchDone,
    TimeReached,
    WakeAt,
    WriteFailed,
)
from muster.placement.exact import Limits, solve

# in the order a scheduler is first shown them
WATCHED = (
    *(NAMESPACES, NODES, STORAGE_CLASSES, CSI_NODES, CSI_DRIVERS, STORAGE_CAPACITIES, VOLUMES, VOLUME_CLAIMS),
    VOLUME_ATTACHMENTS,
    *(DEVICE_CLASSES, DEVICE_TAINT_RULES, DEVICE_SLICES, DEVICE_CLAIMS),
    *(DISRUPTION_BUDGETS, COMPOSITE_POD_GROUPS, POD_GROUPS, PODS),
)

_USER = "system:kube-scheduler"

SEARCH_S = 0.05  # so long a search seems to take
BRANCHES_PER_MS = 4  # a search ends after a number of steps here, not at a time: runs repeat exactly

Send = Callable[[Call, str, float], Response]
SearchElsewhere = Callable[[Search, Callable[[Event], None]], None]  # calls back with the answer
Whereabouts = Callable[[str, str], tuple[str, str] | None]


class Reactor(Protocol):
    """A scheduler: events in, effects out."""

    def handle(self, event: Event, now_s: float) -> list[Effect]:
        """Take one event and say what should be done about it, in order."""
        ...


class Loopback:
    """One scheduler, its timer, and the performer of its effects.

    `send` performs a request as a user; `whereabouts` tells uid and node of a pod by namespace and name.
    `search_elsewhere` is set where searches must not hold up this thread; else they are done in place.
    """

    def __init__(
        self, scheduler: Reactor, send: Send, whereabouts: Whereabouts, *, listed_revision: int
    ) -> None:
        self.scheduler = scheduler
        self.listed_revision = listed_revision
        self.wake_s: float | None = None
        self.dropped_events = 0
        self.search_elsewhere: SearchElsewhere | None = None
        self._send = send
        self._whereabouts = whereabouts
        self._sequence = itertools.count()
        self._answers: deque[tuple[float, Event]] = deque()  # of searches, with the time each is due

    def next_due_s(self) -> float | None:
        """When the scheduler is to be told the next thing that nobody else tells it."""
        times = [] if self.wake_s is None else [self.wake_s]
        return min([*times, *(due_s for due_s, _ in self._answers)], default=None)

    def take_due(self, now_s: float) -> Event | None:
        """An answer that is due, or that the time it asked for has come; None when neither is so."""
        if self._answers and self._answers[0][0] <= now_s:
            return self._answers.popleft()[1]
        if self.wake_s is not None and self.wake_s <= now_s:
            self.wake_s = None
            return TimeReached()
        return None

    def deliver(self, event: Event, now_s: float) -> list[WireEffect]:
        """Tell the scheduler, keep its timer, and give the effects that need a request."""
        wire: list[WireEffect] = []
        for effect in self.scheduler.handle(event, now_s):
            if isinstance(effect, WakeAt):
                self.wake_s = effect.at_s
            elif isinstance(effect, Search):
                self._search(effect, now_s)
            else:
                wire.append(effect)
        return wire

    def _search(self, effect: Search, now_s: float) -> None:
        if self.search_elsewhere is not None:
            self.search_elsewhere(effect, lambda done: self._answers.append((now_s, done)))
            return
        answer = solve(effect.problem, Limits(branches=BRANCHES_PER_MS * effect.time_ms))
        self._answers.append((now_s + SEARCH_S, SearchDone(effect.ticket, answer)))

    def perform(self, effect: WireEffect, now_s: float) -> Event | None:
        """Send the request of an effect; give the outcome that the scheduler is to be told."""
        if isinstance(effect, EvictPod):
            return self._evict(effect, now_s)
        if isinstance(effect, Prepare):
            return self._prepare(effect, now_s)
        call = request_of(effect, now_s=now_s, sequence=next(self._sequence))
        response = self._send(call, _USER, now_s)
        if isinstance(effect, BindPod):
            return self._binding_outcome(effect, response)
        if response.status < 400:
            return None
        if isinstance(effect, RecordEvent):
            self.dropped_events += 1
            return None
        return WriteFailed(effect, response.status, _status(response)[1])

    def _prepare(self, effect: Prepare, now_s: float) -> Event:
        steps, answer = steps_of(effect), None
        while True:
            try:
                call = steps.send(answer)
            except StopIteration:
                return PrepareDone(effect)
            response = self._send(call, _USER, now_s)
            if response.status >= 400 and not is_over(effect, response.status):
                return PrepareFailed(effect, response.status, _status(response)[1])
            answer = response.object or {}

    def _evict(self, effect: EvictPod, now_s: float) -> Event:
        """Mark, then delete; a pod that is gone, or another of its name, is nothing to evict."""
        mark = mark_of(effect)
        for call in (mark, request_of(effect, now_s=now_s)):
            response = self._send(call, _USER, now_s)
            if call is mark and may_go_unmarked(effect, response.status):
                continue
            if response.status in (404, 409):
                return EvictDone(effect.key, effect.uid, is_gone=True)
            if response.status >= 400:
                return EvictFailed(effect.key, effect.uid, response.status, _status(response)[1])
        return EvictDone(effect.key, effect.uid)

    def _binding_outcome(self, effect: BindPod, response: Response) -> Event:
        if response.status < 400:
            return BindDone(effect.key, effect.uid, effect.node_name)
        if self._whereabouts(*effect.key) == (effect.uid, effect.node_name):
            return BindDone(effect.key, effect.uid, effect.node_name)
        reason, message = _status(response)
        return BindFailed(effect.key, effect.uid, effect.node_name, response.status, reason, message)


def is_watched(kind: Kind) -> bool:
    """Whether schedulers are told of this kind."""
    return kind in WATCHED


def event_of_change(change: Seen) -> Event:
    """The event that tells a scheduler of a change.  Raises ObjectInvalid if the object cannot be read."""
    return event_of(change.kind.resource, change.object, gone=change.after is None)


def _status(response: Response) -> tuple[str, str]:
    body = response.object or {}
    return str(body.get("reason") or ""), str(body.get("message") or "")


def as_request(call: Call, user: str) -> Request:
    """A call as the server takes it from somebody in this process."""
    return Request(
        method=call.method,
        path=call.path,
        headers={"content-type": call.content_type, "user-agent": user},
        body=call.body,
        user=user,
    )
