"""An executor over an API that answers from a list, for tests of what it sends when."""

import asyncio
from collections import defaultdict
from typing import Any

import numpy as np
from tests.unit.runtime.in_process import ManualClock

from muster.api.meta import Condition
from muster.assembly.requests import WireEffect
from muster.framework.groups import ObjectKey
from muster.framework.ports import BindPod, Event, EvictPod
from muster.runtime.client import Answer
from muster.runtime.executor import Executor

Reply = bytes | Exception


class FakeApi:
    """Answers each path from a list of replies (the last one for ever), and can be held up."""

    def __init__(self) -> None:
        self.replies: dict[str, list[Reply]] = defaultdict(lambda: [b"{}"])
        self.calls: list[tuple[str, str]] = []
        self.in_flight = 0
        self.most_in_flight = 0
        self.gate = asyncio.Event()
        self.gate.set()
        self.unanswered = "nothing"  # what such a path leads to

    async def call(self, method: str, path: str, body: Any = None, *, content_type: str = "") -> Answer:
        self.calls.append((method, path))
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            await asyncio.sleep(0)
            await self.gate.wait()
            if self.unanswered in path:
                await asyncio.Event().wait()
        finally:
            self.in_flight -= 1
        replies = self.replies[path]
        reply = replies.pop(0) if len(replies) > 1 else replies[0]
        if isinstance(reply, Exception):
            raise reply
        return Answer(200, reply)


class Bench:
    """An executor with a fake API, a clock that jumps, and the events that came back."""

    def __init__(self, **settings: int) -> None:
        self.api = FakeApi()
        self.clock = ManualClock()
        self.events: list[Event] = []
        self.executor = Executor(
            self.api,  # type: ignore[arg-type]
            post=self.events.append,
            now_s=self.clock.now_s,
            rng=np.random.default_rng(1),
            pause=self.clock.pause,
            **settings,
        )

    async def perform(self, *effects: WireEffect) -> None:
        for effect in effects:
            self.executor.perform(effect)
        await self.executor._idle.wait()


def bind(name: str = "p", node: str = "n1") -> BindPod:
    return BindPod(ObjectKey("default", name), f"uid-{name}", node, "muster")


def evict(name: str = "p", preemptor: str = "") -> EvictPod:
    condition = Condition("DisruptionTarget", "True")
    return EvictPod(ObjectKey("default", name), f"uid-{name}", condition, preemptor=ObjectKey("", preemptor))
