"""What the watch shows: who was created, bound and told when, by one clock that no scheduler can touch.

In come the watches of pods, groups and Scheduled events; out come times, and faults found on the way (a pod
that moved).  Times are seconds of this process's monotonic clock, taken when the line arrived.  Next:
`measures.py`, which makes figures of them, and `checks.py`.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable

import msgspec
from msgspec import Struct

from bench.wire import Api

GROUPS = "/apis/scheduling.k8s.io/v1beta1/podgroups"
EVENTS = "/api/v1/events?fieldSelector=reason%3DScheduled"
CONDITION = "PodGroupInitiallyScheduled"


class Metadata(Struct, rename="camel"):
    name: str = ""
    resource_version: str = ""


class GroupOfPod(Struct, rename="camel"):
    pod_group_name: str = ""


class Spec(Struct, frozen=True, rename="camel"):
    node_name: str = ""
    scheduling_group: GroupOfPod | None = None


class Condition(Struct):
    type: str = ""
    status: str = ""


class Status(Struct, frozen=True):
    conditions: list[Condition] | None = None


class Item(Struct):
    metadata: Metadata
    spec: Spec = Spec()
    status: Status = Status()


class Frame(Struct):
    type: str
    object: Item


class Seen(Struct):
    """All that was seen in one run, by name of pod or group."""

    created_s: dict[str, float] = {}
    bound_s: dict[str, float] = {}
    node_of: dict[str, str] = {}
    group_of: dict[str, str] = {}
    group_created_s: dict[str, float] = {}
    groups_told: set[str] = set()
    event_s: list[float] = []
    moved: list[str] = []


class Observer:
    """Keeps the watches; `seen` grows.  An async context manager."""

    def __init__(self, api: Api) -> None:
        self.seen = Seen()
        self._api = api
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> "Observer":
        kinds: list[tuple[str, Callable[[Frame, float], None]]] = [
            ("/api/v1/pods", self._see_pod),
            (GROUPS, self._see_group),
            (EVENTS, self._see_event),
        ]
        for path, see in kinds:
            page = await self._api.call("GET", path)
            version = msgspec.json.decode(page, type=Item).metadata.resource_version
            self._tasks.append(asyncio.ensure_future(self._follow(path, version, see)))
        return self

    async def __aexit__(self, *error: object) -> None:
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def wait_for_binds(self, count: int, patience_s: float) -> bool:
        """Wait until so many pods are bound; False if the time runs out first."""
        return await self._wait(lambda: len(self.seen.bound_s) >= count, patience_s)

    async def wait_for_events(self, count: int, silence_s: float) -> None:
        """Wait for so many Scheduled events, or until none came for a while: some schedulers drop some."""
        last = -1
        while len(self.seen.event_s) < count and len(self.seen.event_s) != last:
            last = len(self.seen.event_s)
            await self._wait(lambda: len(self.seen.event_s) >= count, silence_s)

    async def _wait(self, is_done: Callable[[], bool], patience_s: float) -> bool:
        until_s = time.monotonic() + patience_s
        while not is_done():
            if time.monotonic() > until_s:
                return False
            for task in self._tasks:
                if task.done():
                    task.result()
            await asyncio.sleep(0.05)
        return True

    async def _follow(self, path: str, version: str, see: Callable[[Frame, float], None]) -> None:
        decoder = msgspec.json.Decoder(Frame)
        while True:
            async for lines in self._api.watch(path, version):
                now_s = time.monotonic()
                for line in lines:
                    frame = decoder.decode(line)
                    see(frame, now_s)
                    version = frame.object.metadata.resource_version or version

    def _see_pod(self, frame: Frame, now_s: float) -> None:
        seen, name, spec = self.seen, frame.object.metadata.name, frame.object.spec
        if frame.type not in ("ADDED", "MODIFIED"):
            return
        if name not in seen.created_s:
            seen.created_s[name] = now_s
            if spec.scheduling_group is not None:
                seen.group_of[name] = spec.scheduling_group.pod_group_name
        if spec.node_name:
            if name not in seen.bound_s:
                seen.bound_s[name] = now_s
                seen.node_of[name] = spec.node_name
            elif seen.node_of[name] != spec.node_name:
                seen.moved.append(name)

    def _see_group(self, frame: Frame, now_s: float) -> None:
        name = frame.object.metadata.name
        self.seen.group_created_s.setdefault(name, now_s)
        conditions = frame.object.status.conditions or ()
        if any(each.type == CONDITION and each.status == "True" for each in conditions):
            self.seen.groups_told.add(name)

    def _see_event(self, frame: Frame, now_s: float) -> None:
        if frame.type == "ADDED":
            self.seen.event_s.append(now_s)
