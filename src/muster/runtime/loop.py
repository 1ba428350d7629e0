"""The one task that owns the scheduler: events go in one at a time, effects come out, timers fire.

In come Events from the watches (`runtime/watch.py`) and outcomes from `runtime/executor.py`, by `post`; out
go Effects to `perform`.  Nobody else may call the scheduler: that is why it needs no locks.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import Protocol

from muster.framework.ports import Effect, Event, TimeReached, WakeAt

DRAIN_EVENTS_MAX = 2000  # a burst of a thousand pods leads to one cycle, not to a thousand
DRAIN_S_MAX = 0.020
RESTS = 4.0  # a look that came to nothing is followed by so many times its length without one
ROOM_EVENTS = 20_000  # watches wait beyond this, so that a flood stays in the server and not in our memory


class Reactor(Protocol):
    """A scheduler, as far as the loop sees it."""

    def handle(self, event: Event, now_s: float) -> Iterable[Effect]:
        """Take one event and say what should be done about it."""
        ...


class SchedulerLoop:
    """Feeds one scheduler.  `post` and `perform` are called from tasks of the same asyncio loop only."""

    def __init__(
        self, scheduler: Reactor, *, perform: Callable[[Effect], None], now_s: Callable[[], float]
    ) -> None:
        self._scheduler = scheduler
        self._perform = perform
        self._now_s = now_s
        self._inbox: deque[Event] = deque()
        self._arrived = asyncio.Event()
        self._drained = asyncio.Event()
        self._drained.set()
        self._wake_s: float | None = None
        self._rest_until_s = 0.0
        self._performed = 0

    @property
    def backlog(self) -> int:
        """Events that wait to be handled."""
        return len(self._inbox)

    def post(self, event: Event) -> None:
        """Queue an event."""
        self._inbox.append(event)
        self._arrived.set()
        if len(self._inbox) >= ROOM_EVENTS:
            self._drained.clear()

    async def has_room(self) -> None:
        """Wait until the inbox is not overfull; for watches only, outcomes are posted without asking."""
        await self._drained.wait()

    async def run(self) -> None:
        """Handle events and timers until cancelled.  What the scheduler raises goes through: it is a bug."""
        later = asyncio.get_running_loop().call_later
        while True:
            wait_s = self.step()
            if wait_s == 0.0:
                await asyncio.sleep(0)  # sockets and timers of others have their turn between two steps
                continue
            timer = None if wait_s is None else later(wait_s, self._arrived.set)
            try:
                await self._arrived.wait()
            finally:
                if timer is not None:
                    timer.cancel()

    def step(self) -> float | None:
        """Drain what has come, fire a timer that is due; give the seconds to the next step (None: idle)."""
        began_s = self._now_s()
        handled = 0
        while self._inbox and handled < DRAIN_EVENTS_MAX:
            now_s = self._now_s()
            if now_s - began_s > DRAIN_S_MAX:
                break
            self._handle(self._inbox.popleft(), now_s)
            handled += 1
        now_s = self._now_s()
        due_s = self._due_s()
        if due_s is not None and due_s <= now_s:
            self._fire(now_s)
            due_s = self._due_s()
        if len(self._inbox) < ROOM_EVENTS:
            self._drained.set()
        if self._inbox:
            return 0.0
        self._arrived.clear()
        return None if due_s is None else max(0.0, due_s - self._now_s())

    def _due_s(self) -> float | None:
        return None if self._wake_s is None else max(self._wake_s, self._rest_until_s)

    def _fire(self, now_s: float) -> None:
        """Let the scheduler look at what has changed.

        Where nothing came of it, and there is nothing to go on with, others have their turn before the next
        time: looking at a gang of thousands whenever one more of its members was seen took two seconds.
        """
        self._wake_s = None
        performed = self._performed
        self._handle(TimeReached(), now_s)
        ended_s = self._now_s()
        goes_on = self._wake_s is not None and self._wake_s <= ended_s
        is_in_vain = self._performed == performed and not goes_on
        self._rest_until_s = ended_s + RESTS * (ended_s - now_s) if is_in_vain else 0.0

    def _handle(self, event: Event, now_s: float) -> None:
        for effect in self._scheduler.handle(event, now_s):
            if isinstance(effect, WakeAt):
                self._wake_s = effect.at_s
            else:
                self._performed += 1
                self._perform(effect)
