"""The null gang binder: what any gang scheduler must at least write, and nothing decided.

    python -m bench.null_binder KUBECONFIG

Watches pods and groups and binds each complete gang, and each lone pod, to the next nodes in turn; patches
each group once, when its gang is bound, and writes the Scheduled events when no binding waits.  It imports
nothing of Muster.  64 calls are on the wire at once, as in the load generator.  It prints `ready` once it
watches.
"""

import asyncio
import itertools
import sys
from collections import deque
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import uvloop
from msgspec import Struct

from bench.wire import JSON, STRATEGIC, Api, Refused

CALLS_MAX = 64
GROUPS = "/apis/scheduling.k8s.io/v1beta1/podgroups"
NAME = "null-gang-binder"


class Metadata(Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class GroupOfPod(Struct, rename="camel"):
    pod_group_name: str = ""


class Gang(Struct, rename="camel"):
    min_count: int = 1


class Policy(Struct):
    gang: Gang | None = None


class Spec(Struct, frozen=True, rename="camel"):
    node_name: str = ""
    scheduling_group: GroupOfPod | None = None
    scheduling_policy: Policy | None = None


class Item(Struct):
    metadata: Metadata
    spec: Spec = Spec()


class Page(Struct):
    metadata: Metadata
    items: list[Item]


class Frame(Struct):
    type: str
    object: Item


class Waiting(Struct):
    """A gang as far as it has come."""

    namespace: str
    name: str
    min_count: int | None = None
    pods: list[Metadata] = []
    is_released: bool = False
    unbound: int = 0
    is_told: bool = False


class Binder:
    """Everything it knows and has still to write."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._nodes = itertools.cycle([""])
        self._gangs: dict[tuple[str, str], Waiting] = {}
        self._seen: set[str] = set()
        self._bindings: deque[tuple[Metadata, Waiting | None]] = deque()
        self._patches: deque[Waiting] = deque()
        self._events: deque[tuple[Metadata, str]] = deque()
        self._calls = 0
        self._sequence = itertools.count()
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """List, watch, bind, until killed."""
        nodes = msgspec.json.decode(await self._api.call("GET", "/api/v1/nodes"), type=Page)
        self._nodes = itertools.cycle([node.metadata.name for node in nodes.items])
        groups = msgspec.json.decode(await self._api.call("GET", GROUPS), type=Page)
        pods = msgspec.json.decode(await self._api.call("GET", "/api/v1/pods"), type=Page)
        for group in groups.items:
            self._see_group(group)
        for pod in pods.items:
            self._see_pod(pod)
        print("ready", flush=True)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follow(GROUPS, groups.metadata.resource_version, self._see_group))
            tasks.create_task(self._follow("/api/v1/pods", pods.metadata.resource_version, self._see_pod))

    async def _follow(self, path: str, version: str, see: Callable[[Item], None]) -> None:
        decoder = msgspec.json.Decoder(Frame)
        while True:
            async for lines in self._api.watch(path, version):
                for line in lines:
                    frame = decoder.decode(line)
                    version = frame.object.metadata.resource_version or version
                    if frame.type == "ADDED":
                        see(frame.object)

    def _see_group(self, item: Item) -> None:
        gang = self._gang(item.metadata.namespace, item.metadata.name)
        policy = item.spec.scheduling_policy
        gang.min_count = policy.gang.min_count if policy and policy.gang else 1
        self._release(gang)

    def _see_pod(self, item: Item) -> None:
        meta = item.metadata
        if item.spec.node_name or meta.uid in self._seen:
            return
        self._seen.add(meta.uid)
        group = item.spec.scheduling_group
        if group is None:
            self._bindings.append((meta, None))
            self._start_calls()
            return
        gang = self._gang(meta.namespace, group.pod_group_name)
        gang.pods.append(meta)
        self._release(gang)

    def _gang(self, namespace: str, name: str) -> Waiting:
        return self._gangs.setdefault((namespace, name), Waiting(namespace, name))

    def _release(self, gang: Waiting) -> None:
        if gang.min_count is None or not (gang.is_released or len(gang.pods) >= gang.min_count):
            return
        gang.is_released = True
        gang.unbound += len(gang.pods)
        self._bindings += [(pod, gang) for pod in gang.pods]
        gang.pods = []
        self._start_calls()

    def _start_calls(self) -> None:
        while self._calls < CALLS_MAX:
            if self._patches:
                work = self._patch(self._patches.popleft())
            elif self._bindings:
                work = self._bind(*self._bindings.popleft())
            elif self._events:
                work = self._write_event(*self._events.popleft())
            else:
                return
            self._calls += 1
            task = asyncio.ensure_future(self._finish(work))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _finish(self, work: Awaitable[None]) -> None:
        try:
            await work
        except Refused as error:
            print(error, file=sys.stderr, flush=True)
        finally:
            self._calls -= 1
            self._start_calls()

    async def _bind(self, pod: Metadata, gang: Waiting | None) -> None:
        node = next(self._nodes)
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/binding"
        await self._api.call("POST", path, msgspec.json.encode(body))
        self._events.append((pod, node))
        if gang is not None:
            gang.unbound -= 1
            if gang.unbound == 0 and not gang.is_told:
                gang.is_told = True
                self._patches.append(gang)

    async def _patch(self, gang: Waiting) -> None:
        condition = {
            "type": "PodGroupInitiallyScheduled",
            "status": "True",
            "reason": "Scheduled",
            "lastTransitionTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "message": "",
        }
        path = f"/apis/scheduling.k8s.io/v1beta1/namespaces/{gang.namespace}/podgroups/{gang.name}/status"
        body = msgspec.json.encode({"status": {"conditions": [condition]}})
        await self._api.call("PATCH", path, body, STRATEGIC)

    async def _write_event(self, pod: Metadata, node: str) -> None:
        body = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": f"{pod.name}.{next(self._sequence):x}", "namespace": pod.namespace},
            "eventTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "reportingController": NAME,
            "reportingInstance": NAME,
            "action": "Binding",
            "reason": "Scheduled",
            "type": "Normal",
            "note": f"Successfully assigned {pod.namespace}/{pod.name} to {node}",
            "regarding": {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": pod.name,
                "namespace": pod.namespace,
                "uid": pod.uid,
            },
        }
        path = f"/apis/events.k8s.io/v1/namespaces/{pod.namespace}/events"
        await self._api.call("POST", path, msgspec.json.encode(body), JSON)


async def main(kubeconfig: Path) -> None:
    """Run until killed."""
    async with Api(kubeconfig, connections=CALLS_MAX) as api:
        await Binder(api).run()


if __name__ == "__main__":
    uvloop.run(main(Path(sys.argv[1])))
