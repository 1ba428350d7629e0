"""Searches in their own thread."""

import asyncio
import threading

import numpy as np
import pytest

from muster.framework.groups import ObjectKey
from muster.framework.ports import Event, Search, SearchDone
from muster.placement.exact import Limits
from muster.placement.packing import Answer, Packing, Problem, Verdict, group_problem
from muster.runtime.searcher import Searcher

PROBLEM = group_problem(
    Packing(
        room=np.array([[4]]),
        need=np.array([[3], [1]]),
        conflict=np.zeros((2, 2), dtype=np.bool_),
        feasible=np.ones((2, 1), dtype=np.bool_),
    ),
    available=np.array([1, 1]),
    needed=2,
    domains=(np.array([0]),),
    is_exact=True,
)


def search(ticket: int, group: str = "g", time_ms: int = 1000) -> Search:
    return Search(ticket, ObjectKey("default", group), PROBLEM, time_ms)


class Inbox:
    """Takes events and lets a test wait for so many."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._arrived = asyncio.Event()

    def post(self, event: Event) -> None:
        self.events.append(event)
        self._arrived.set()

    async def wait_for(self, count: int) -> list[int]:
        while len(self.events) < count:
            self._arrived.clear()
            await self._arrived.wait()
        return [event.ticket for event in self.events if isinstance(event, SearchDone)]


class Gate:
    """A solver that says when it has begun, and ends when it may."""

    def __init__(self) -> None:
        self.began = threading.Event()
        self.may_end = threading.Event()
        self.limits: list[Limits] = []

    def __call__(self, problem: Problem, limits: Limits) -> Answer:
        self.limits.append(limits)
        self.began.set()
        self.may_end.wait(10)
        return Answer(Verdict.IMPOSSIBLE)


async def test_a_search_is_answered() -> None:
    inbox = Inbox()
    searcher = Searcher(post=inbox.post)
    searcher.perform(search(7))
    await inbox.wait_for(1)
    (done,) = inbox.events
    assert isinstance(done, SearchDone)
    assert done.ticket == 7
    assert done.answer.verdict is Verdict.FOUND
    searcher.stop()


async def test_the_loop_runs_on_while_a_search_does() -> None:
    inbox, gate = Inbox(), Gate()
    searcher = Searcher(post=inbox.post, solve=gate)
    searcher.perform(search(1, time_ms=300))
    await asyncio.to_thread(gate.began.wait, 10)
    assert inbox.events == []
    gate.may_end.set()
    assert await inbox.wait_for(1) == [1]
    assert gate.limits == [Limits(time_ms=300)]
    searcher.stop()


async def test_a_later_search_for_the_same_group_replaces_one_that_has_not_begun() -> None:
    inbox, gate = Inbox(), Gate()
    searcher = Searcher(post=inbox.post, solve=gate)
    searcher.perform(search(1, "busy"))
    await asyncio.to_thread(gate.began.wait, 10)
    searcher.perform(search(2, "g"))
    searcher.perform(search(3, "other"))
    searcher.perform(search(4, "g"))
    assert searcher.waiting == 2
    gate.may_end.set()
    assert await inbox.wait_for(3) == [1, 3, 4]
    searcher.stop()


async def test_a_solver_that_raises_has_given_up_and_the_next_is_asked(
    caplog: pytest.LogCaptureFixture,
) -> None:
    inbox = Inbox()

    def solve(problem: Problem, limits: Limits) -> Answer:
        raise MemoryError

    searcher = Searcher(post=inbox.post, solve=solve)
    searcher.perform(search(1, "one"))
    searcher.perform(search(2, "other"))
    assert await inbox.wait_for(2) == [1, 2]
    assert all(isinstance(e, SearchDone) and e.answer.verdict is Verdict.GAVE_UP for e in inbox.events)
    assert "default/one" in caplog.text
    searcher.stop()


async def test_nothing_is_answered_after_the_stop() -> None:
    inbox, gate = Inbox(), Gate()
    searcher = Searcher(post=inbox.post, solve=gate)
    searcher.perform(search(1))
    searcher.perform(search(2, "other"))
    await asyncio.to_thread(gate.began.wait, 10)
    searcher.stop()
    gate.may_end.set()
    await asyncio.sleep(0)
    assert inbox.events == []
    assert searcher.waiting == 0
