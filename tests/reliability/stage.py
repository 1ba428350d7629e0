"""A stock cluster, gangs on it, a watch of its pods, and `muster run` processes: what the checks are made of.

`open_stage(nodes=…)` starts the control plane of `tests/controlplane` (no scheduler, no controllers), or the
embedded one where that is asked for (no scheduler, no kubelets), makes the nodes and watches pods into a
`Ledger`.  Requests of the stage go straight to the API server; only the schedulers go through the proxy,
where there is one.
"""

import asyncio
import base64
import contextlib
import json
import os
import signal
import ssl
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import aiohttp
from tests.conformance.cluster_process import ClusterProcess
from tests.conformance.embedded import BARE
from tests.conformance.forms import MUSTER, find_free_port
from tests.conformance.manifests import delete_options, group_manifest, node_manifest, pod_manifest
from tests.conformance.server import GROUPS, NODES, PODS
from tests.controlplane.start import PORT_OFFSETS, ControlPlane
from tests.reliability.ledger import Ledger
from tests.reliability.proxy import FaultProxy

Object = dict[str, Any]

PATIENCE_S = 90.0
LOOK_S = 0.05
PIECE_BYTES = 1 << 20
EVERY_POD = "/api/v1/pods"
JSON = {"Content-Type": "application/json"}
MERGE = {"Content-Type": "application/merge-patch+json"}
UNPROTECTED = {"metadata": {"finalizers": None}}


class Late(Exception):
    """Something did not come about in time; the text says what."""


async def until(is_done: Callable[[], bool], what: str, patience_s: float = PATIENCE_S) -> None:
    """Wait until it is so.  Raises Late."""
    end_s = time.monotonic() + patience_s
    while not is_done():
        if time.monotonic() > end_s:
            raise Late(f"{what}: not within {patience_s:.0f} s")
        await asyncio.sleep(LOOK_S)


class Server(NamedTuple):
    """An API server: where, the admin's token, what trusts its certificate, and the admin's kubeconfig."""

    url: str
    token: str
    trust: ssl.SSLContext
    kubeconfig: Path


class Stage:
    """The cluster as admin, and what the watch showed of it."""

    def __init__(
        self, server: Server, session: aiohttp.ClientSession, folder: Path, cores_of: dict[str, int]
    ) -> None:
        self.server = server
        self.folder = folder
        self.size_of: dict[str, int] = {}
        self.ledger = Ledger(cores_of, self.size_of)
        self._session = session

    def proxy(self, **options: Any) -> FaultProxy:
        """One in front of the server, with the admin's rights; `options` as `FaultProxy` takes them."""
        server = self.server
        return FaultProxy(server.url, token=server.token, tls=server.trust, **options)

    async def call(self, method: str, path: str, body: Object | None = None) -> Object:
        """Send and give the object; 404 is no fault of DELETE and PATCH.  Raises RuntimeError if refused."""
        data = None if body is None else json.dumps(body)
        headers = MERGE if method == "PATCH" else JSON
        async with self._session.request(
            method, self.server.url + path, data=data, headers=headers
        ) as answer:
            found: Object = await answer.json()
            if answer.status >= 300 and not (method in ("DELETE", "PATCH") and answer.status == 404):
                raise RuntimeError(f"{method} {path}: {answer.status} {found.get('message')}")
            return found

    async def create_gang(self, name: str, size: int, *, cores: int = 1, **annotations: str) -> None:
        """A gang that needs all its pods, so many cores each.

        `bind_timeout="10"` is the annotation `muster.dev/bind-timeout`.
        """
        self.size_of[name] = size
        group = group_manifest({"group": name, "gang": size})
        group["metadata"]["annotations"] = {
            f"muster.dev/{key.replace('_', '-')}": value for key, value in annotations.items()
        }
        await self.call("POST", GROUPS, group)
        await asyncio.gather(*(self.create_member(name, number, cores=cores) for number in range(size)))

    async def create_member(self, gang: str, number: int, *, cores: int = 1) -> None:
        """One pod of a gang."""
        short = {"group": gang, "cpu": cores}
        await self.call("POST", PODS, pod_manifest(f"{gang}-{number:02}", short, scheduler="muster"))

    async def create_filler(self, node: str, cores: int) -> None:
        """A lone pod, put on a node by hand: room that is gone."""
        pod = pod_manifest(f"filler-{node}", {"node": node, "cpu": cores}, scheduler="nobody")
        await self.call("POST", PODS, pod)

    async def fill(self) -> None:
        """Take all room that is left."""
        for node, cores in self.ledger.cores_of.items():
            if left := cores - self.ledger.used(node):
                await self.create_filler(node, left)

    async def delete_pod(self, name: str) -> None:
        """Remove a pod at once."""
        await self.call("DELETE", f"{PODS}/{name}", delete_options(gracePeriodSeconds=0))

    async def delete_gang(self, name: str) -> None:
        """Remove the group and what there is of its pods.

        There is no controller that takes a group's protection off: without that every group would stay.
        """
        pods = (f"{name}-{number:02}" for number in range(self.size_of[name]))
        await asyncio.gather(*map(self.delete_pod, pods))
        await self.call("DELETE", f"{GROUPS}/{name}", delete_options(gracePeriodSeconds=0))
        await self.call("PATCH", f"{GROUPS}/{name}", UNPROTECTED)

    async def delete_fillers(self) -> None:
        """Give the room back."""
        await asyncio.gather(*(self.delete_pod(f"filler-{name}") for name in self.ledger.cores_of))

    async def group(self, name: str) -> Object:
        """The PodGroup as it is."""
        return await self.call("GET", f"{GROUPS}/{name}")

    async def follow(self) -> None:
        """Watch pods into the ledger, for ever."""
        rest = b""
        listed = await self.call("GET", EVERY_POD)
        version = listed["metadata"]["resourceVersion"]
        while True:
            path = f"{EVERY_POD}?watch=1&resourceVersion={version}"
            async with self._session.get(self.server.url + path) as answer:
                async for piece in answer.content.iter_any():
                    *lines, rest = (rest + piece).split(b"\n")
                    for line in lines:
                        event = json.loads(line)
                        if event["type"] == "ERROR":
                            raise RuntimeError(f"the watch of the check broke: {event['object']}")
                        version = event["object"]["metadata"]["resourceVersion"]
                        self.ledger.see(event["type"], event["object"], time.monotonic())


class Scheduler:
    """One `muster run`, whose log goes to a file of the folder; `async with` starts it and ends it."""

    def __init__(
        self, folder: Path, name: str = "muster", *, kubeconfig: Path, elects_leader: bool = False
    ) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        self._process: asyncio.subprocess.Process | None = None
        self._health = ""
        self._command = [*MUSTER, "run", "--kubeconfig", str(kubeconfig), "--scheduler-name", "muster"]
        self._command += [] if elects_leader else ["--leader-elect=false"]

    async def __aenter__(self) -> "Scheduler":
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    @property
    def process_id(self) -> int:
        """Of the running process."""
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._process is not None and self._process.returncode is None

    async def launch(self) -> None:
        """Start it; whether it becomes ready is another question."""
        address = f"127.0.0.1:{find_free_port((0,))}"
        self._health = f"http://{address}"
        command = [*self._command, "--metrics-bind-address", address]
        with self.log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(*command, stdout=log, stderr=log)

    async def start(self) -> None:
        """Start it and wait until it is in sync.  Raises Late."""
        await self.launch()
        end_s = time.monotonic() + PATIENCE_S
        while await self.page("/readyz") is None:
            if not self.is_running or time.monotonic() > end_s:
                raise Late(f"{self.name} did not become ready; see {self.log}")
            await asyncio.sleep(LOOK_S)

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the process, if it still runs."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.process_id, number)

    async def ended(self, patience_s: float = PATIENCE_S) -> int:
        """Wait until it has ended and give the exit code.  Raises Late."""
        assert self._process is not None
        try:
            async with asyncio.timeout(patience_s):
                return await self._process.wait()
        except TimeoutError:
            raise Late(f"{self.name} did not end within {patience_s:.0f} s; see {self.log}") from None

    async def stop(self) -> None:
        """End it whatever it does."""
        if self.is_running:
            self.send(signal.SIGKILL)
            await self.ended()

    async def leads(self) -> bool:
        """Whether it says that it holds the lease."""
        text = await self.page("/metrics") or ""
        lines = [line for line in text.splitlines() if line.startswith("leader_election_master_status{")]
        return bool(lines) and all(line.endswith(" 1.0") for line in lines)

    async def page(self, path: str) -> str | None:
        """A page of its health server; None unless it answers 200."""
        timeout = aiohttp.ClientTimeout(total=2.0)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout) as session,
                session.get(self._health + path) as got,
            ):
                return await got.text() if got.status == 200 else None
        except (aiohttp.ClientError, TimeoutError):
            return None


@contextlib.asynccontextmanager
async def open_stage(*, nodes: int, cores: int, is_embedded: bool = False) -> AsyncIterator[Stage]:
    """A control plane with so many nodes of so many cores.  Raises BuildError or StartError."""
    with tempfile.TemporaryDirectory(prefix="muster-reliability-") as folder:
        serving = _embedded(Path(folder)) if is_embedded else _stock(Path(folder))
        async with (
            serving as server,
            aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=32, ssl=server.trust),
                headers={"Authorization": f"Bearer {server.token}"},
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=10.0),
                read_bufsize=PIECE_BYTES,
            ) as session,
        ):
            names = [f"n{number:02}" for number in range(nodes)]
            stage = Stage(server, session, Path(folder), dict.fromkeys(names, cores))
            for name in names:
                await stage.call("POST", NODES, node_manifest(name, {"cpu": cores}))
            following = asyncio.create_task(stage.follow())
            try:
                yield stage
            finally:
                following.cancel()
                await asyncio.wait([following])


@contextlib.asynccontextmanager
async def _stock(folder: Path) -> AsyncIterator[Server]:
    plane = ControlPlane(folder / "controlplane", find_free_port(PORT_OFFSETS))
    await asyncio.to_thread(plane.start)
    try:
        certificate = plane.directory / "apiserver-certificates" / "apiserver.crt"  # it made it for itself
        trust = ssl.create_default_context(cafile=str(certificate))
        yield Server(plane.url, plane.token, trust, plane.kubeconfig)
    finally:
        await asyncio.to_thread(plane.stop)


@contextlib.asynccontextmanager
async def _embedded(folder: Path) -> AsyncIterator[Server]:
    cluster = ClusterProcess(folder, *BARE, "--no-scheduler")
    await asyncio.to_thread(cluster.__enter__)
    try:
        content = json.loads(cluster.kubeconfig.read_text())
        where, who = content["clusters"][0]["cluster"], content["users"][0]["user"]
        authority = base64.b64decode(where["certificate-authority-data"]).decode()
        trust = ssl.create_default_context(cadata=authority)
        yield Server(where["server"], who["token"], trust, cluster.kubeconfig)
    finally:
        await asyncio.to_thread(cluster.stop)


def kubeconfig_for(folder: Path, server: str) -> Path:
    """A file that leads to a server which asks for no credentials."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "proxy",
        "clusters": [{"name": "proxy", "cluster": {"server": server}}],
        "users": [{"name": "nobody", "user": {}}],
        "contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": "nobody"}}],
    }
    file = folder / "kubeconfig"
    file.write_text(json.dumps(content))
    file.chmod(0o600)
    return file
