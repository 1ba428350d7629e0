"""An API server that is none: lists, watches and bindings from memory, for `muster run` to be measured alone.

`StubServer(nodes, cores)` is an async context manager on a port of 127.0.0.1 chosen by the system.
Whatever is asked that is not a list, a watch or a binding is said yes to.  `create_gang` and `delete_gang`
tell the watches; `flood` sends lines of 4 KB about other schedulers' pods down the watch of pods, as many a
second as asked, or as many as are taken.  What the bindings come to stands in `ledger`.
"""

import asyncio
import json
import time
from collections import defaultdict
from types import TracebackType
from typing import Any

from aiohttp import web
from tests.conformance.manifests import group_manifest, node_manifest, pod_manifest
from tests.reliability.ledger import Ledger

Object = dict[str, Any]

PODS = "/api/v1/pods"
NODES = "/api/v1/nodes"
GROUPS = "/apis/scheduling.k8s.io/v1beta1/podgroups"
LINE_BYTES = 4096
OTHERS = 1000  # pods of other schedulers
TICK_S = 0.02
CHUNKS_WAITING_MAX = 50  # of the flood: a second's worth
STOP_S = 0.1
_VERSION = b"@VERSION@"


class StubServer:
    """The server; `taken` counts the lines of the flood that were written to the watch."""

    def __init__(self, nodes: int, cores: int) -> None:
        names = [f"n{number:03}" for number in range(nodes)]
        self.size_of: dict[str, int] = {}
        self.ledger = Ledger(dict.fromkeys(names, cores), self.size_of)
        self.address = ""
        self.taken = 0
        self._version = 1000
        self._objects: dict[str, dict[str, Object]] = defaultdict(dict)
        self._watches: dict[str, list[asyncio.Queue[bytes]]] = defaultdict(list)
        for name in names:
            self._put(NODES, node_manifest(name, {"cpu": cores}))
        others = [_other(number, names[number % nodes]) for number in range(OTHERS)]
        for pod in others:
            self._put(PODS, pod)
        self._lines = [_line_of(pod) for pod in others]

    async def __aenter__(self) -> "StubServer":
        self._runner = web.ServerRunner(web.Server(self._answer), shutdown_timeout=STOP_S)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        host, port = self._runner.addresses[0][:2]
        self.address = f"http://{host}:{port}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._runner.cleanup()

    @property
    def is_watched(self) -> bool:
        """Whether pods and groups are watched by now."""
        return bool(self._watches[PODS] and self._watches[GROUPS])

    async def create_gang(self, name: str, size: int) -> None:
        """The group, then its pods of one core each."""
        self.size_of[name] = size
        self._put(GROUPS, _in_namespace(group_manifest({"group": name, "gang": size})))
        for number in range(size):
            self._put_pod(pod_manifest(f"{name}-{number:02}", {"group": name}, scheduler="muster"))

    async def delete_gang(self, name: str) -> None:
        """Its pods, then the group."""
        for number in range(self.size_of[name]):
            self._see("DELETED", self._drop(PODS, f"{name}-{number:02}"))
        self._drop(GROUPS, name)

    async def flood(self, lines_a_s: int) -> None:
        """Send so many lines a second until cancelled, never more than a second ahead of the reader."""
        began_s = time.monotonic()
        sent = 0
        while True:
            due = int((time.monotonic() - began_s) * lines_a_s) - sent
            await self._send_others(max(0, min(due, lines_a_s)))
            sent += max(0, due)
            await asyncio.sleep(TICK_S)

    # ── what is there ────────────────────────────────────────────────────────────────────────────

    def _put(self, path: str, thing: Object) -> None:
        self._version += 1
        metadata = thing["metadata"]
        kind = "MODIFIED" if metadata["name"] in self._objects[path] else "ADDED"
        thing["metadata"] = {
            "uid": f"{path}/{metadata['name']}/{self._version}",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            **metadata,
            "resourceVersion": str(self._version),
        }
        self._objects[path][metadata["name"]] = thing
        self._tell(path, kind, thing)

    def _put_pod(self, pod: Object) -> None:
        self._put(PODS, _in_namespace(pod))
        self._see("MODIFIED", pod)

    def _drop(self, path: str, name: str) -> Object:
        self._version += 1
        thing = self._objects[path].pop(name)
        thing["metadata"]["resourceVersion"] = str(self._version)
        self._tell(path, "DELETED", thing)
        return thing

    def _tell(self, path: str, kind: str, thing: Object) -> None:
        if watches := self._watches[path]:
            line = json.dumps({"type": kind, "object": thing}).encode() + b"\n"
            for queue in watches:
                queue.put_nowait(line)

    def _see(self, kind: str, pod: Object) -> None:
        self.ledger.see(kind, pod, time.monotonic())

    async def _send_others(self, count: int) -> None:
        parts = []
        for _ in range(count):
            self._version += 1
            before, after = self._lines[self._version % OTHERS]
            parts += [before, b"%d" % self._version, after]
        for queue in self._watches[PODS] if parts else ():
            while queue.qsize() > CHUNKS_WAITING_MAX:
                await asyncio.sleep(TICK_S)
            queue.put_nowait(b"".join(parts))
        self.taken += count

    # ── what is asked ────────────────────────────────────────────────────────────────────────────

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        path = request.path
        if path == "/version":
            return web.json_response({"gitVersion": "v1.37.2"})
        if request.method == "GET" and request.query.get("watch") == "true":
            return await self._stream(request)
        if request.method == "GET":
            items = list(self._objects[path].values())
            return web.json_response({"metadata": {"resourceVersion": str(self._version)}, "items": items})
        if path.endswith("/binding"):
            self._bind(path.split("/")[-2], await request.json())
        return web.json_response({}, status=201)

    async def _stream(self, request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        queue: asyncio.Queue[bytes] = asyncio.Queue()
        watches = self._watches[request.path]
        watches.append(queue)
        try:
            while True:
                await response.write(await queue.get())
        finally:
            watches.remove(queue)

    def _bind(self, name: str, binding: Object) -> None:
        pod = self._objects[PODS][name]
        self._put_pod({**pod, "spec": {**pod["spec"], "nodeName": binding["target"]["name"]}})


def _in_namespace(thing: Object) -> Object:
    thing["metadata"]["namespace"] = "default"
    return thing


def _line_of(pod: Object) -> tuple[bytes, bytes]:
    """A line of the watch about it, before and after its version."""
    told = {
        "type": "MODIFIED",
        "object": {**pod, "metadata": {**pod["metadata"], "resourceVersion": "@VERSION@"}},
    }
    before, after = json.dumps(told).encode().split(_VERSION)
    return before, after + b"\n"


def _other(number: int, node: str) -> Object:
    """A running pod of another scheduler, with what an API server keeps of one: four kibibytes of it."""
    pod = pod_manifest(f"other-{number:04}", {"cpu": 0, "node": node}, scheduler="default-scheduler")
    _in_namespace(pod)["metadata"]["labels"] = {f"app.example.com/label-{n}": f"value-{n}" for n in range(6)}
    container = pod["spec"]["containers"][0]
    container["resources"] = {"requests": {"memory": "1Mi"}}
    container["env"] = [{"name": f"VARIABLE_{n}", "value": f"value of {n}"} for n in range(12)]
    container["volumeMounts"] = [{"name": "token", "mountPath": "/var/run/secrets/token", "readOnly": True}]
    conditions = ("Initialized", "Ready", "ContainersReady", "PodScheduled", "PodReadyToStartContainers")
    pod["status"] = {
        "phase": "Running",
        "startTime": "2026-01-01T00:00:00Z",
        "podIP": "10.0.0.1",
        "conditions": [
            {"type": each, "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
            for each in conditions
        ],
        "containerStatuses": [{"name": "c", "ready": True, "restartCount": 0, "image": "i", "imageID": "i"}],
    }
    fields = {f"f:field-{n}": {"f:nested": {}, "f:another": {}} for n in range(200)}
    managed: Object = {
        "manager": "kubelet",
        "operation": "Update",
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }
    pod["metadata"]["managedFields"] = [managed]
    while len(json.dumps(pod)) > LINE_BYTES:
        fields.popitem()
    return pod
