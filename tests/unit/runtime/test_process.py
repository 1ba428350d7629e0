"""One whole `muster run` against an API server of fifty lines: it leads, binds, and leaves in good order."""

import asyncio
import json
import socket
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
import pytest
from aiohttp import ClientError, ClientSession, web
from tests.unit.runtime.in_process import PairDialer, status

from muster.assembly.config import Config
from muster.assembly.profiles import build
from muster.base.errors import ConfigError
from muster.runtime import process as process_module
from muster.runtime.clock import Clock
from muster.runtime.credentials import Nobody
from muster.runtime.kinds import GROUPS, KINDS, NODES, PODS
from muster.runtime.kubeconfig import Access
from muster.runtime.metrics import Address
from muster.runtime.process import RunSettings, SchedulerProcess, lease_names
from muster.runtime.watch import WatchedKind

LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"


class FakeCluster:
    """Lists and watches of three kinds, bindings, patches, events and leases; tells of every binding."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, dict[str, Any]]] = {kind.path: {} for kind in KINDS}
        self.watchers: dict[str, list[asyncio.Queue[bytes]]] = defaultdict(list)
        self.leases: dict[str, dict[str, Any]] = {}
        self.leases_read: set[str] = set()
        self.unserved: set[str] = set()
        self.forbidden: set[str] = set()
        self.version = 100
        self.date = ""  # by the server's clock
        self.bound: dict[str, str] = {}
        self.changed = asyncio.Condition()
        self.hangs: asyncio.Event | None = None  # bindings get no answer before it is set
        self.dialer = PairDialer(self.answer)

    def put(self, path: str, name: str, **parts: Any) -> None:
        """Create or replace an object and tell the watches."""
        self.version += 1
        old = self.objects[path].get(name)
        metadata = {"name": name, "uid": f"uid-{name}", "resourceVersion": str(self.version)}
        metadata |= {"creationTimestamp": "2026-01-01T00:00:00Z"}
        if path != NODES.path:
            metadata["namespace"] = "default"
        self.objects[path][name] = {**(old or {}), "metadata": metadata, **parts}
        frame = {"type": "MODIFIED" if old else "ADDED", "object": self.objects[path][name]}
        for queue in self.watchers[path]:
            queue.put_nowait(json.dumps(frame).encode() + b"\n")

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        path = request.path
        if path == "/version":
            return web.json_response({"gitVersion": "v1.37.2"}, headers={"Date": self.date})
        if any(path.endswith(end) for end in self.forbidden):
            return status(403, "Forbidden", f"{path} is forbidden")
        if path in self.unserved:
            return status(404, "NotFound", "the server could not find the requested resource")
        if path in self.objects and request.method == "GET":
            if request.query.get("watch") == "true":
                return await self._watch(request)
            items = list(self.objects[path].values())
            return web.json_response({"metadata": {"resourceVersion": str(self.version)}, "items": items})
        if path.startswith(LEASE):
            return await self._lease(request)
        if path.endswith("/binding") and self.hangs is not None:
            async with self.changed:
                self.bound[path.split("/")[-2]] = ""
                self.changed.notify_all()
            await self.hangs.wait()
        if path.endswith("/binding"):
            return await self._bind(path.split("/")[-2], await request.json())
        return web.json_response({}, status=201)

    async def _bind(self, name: str, body: dict[str, Any]) -> web.Response:
        pod = self.objects[PODS.path][name]
        self.put(PODS.path, name, spec={**pod["spec"], "nodeName": body["target"]["name"]})
        async with self.changed:
            self.bound[name] = body["target"]["name"]
            self.changed.notify_all()
        return web.json_response({"kind": "Status", "status": "Success"}, status=201)

    async def _watch(self, request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        queue: asyncio.Queue[bytes] = asyncio.Queue()
        for found in self.objects[request.path].values():
            if int(found["metadata"]["resourceVersion"]) > int(request.query["resourceVersion"]):
                queue.put_nowait(json.dumps({"type": "ADDED", "object": found}).encode() + b"\n")
        self.watchers[request.path].append(queue)
        async with self.changed:
            self.changed.notify_all()
        while True:
            await response.write(await queue.get())

    async def _lease(self, request: web.BaseRequest) -> web.Response:
        if request.method == "GET":
            name = request.path.removeprefix(LEASE + "/")
            async with self.changed:
                self.leases_read.add(name)
                self.changed.notify_all()
            lease = self.leases.get(name)
            return web.json_response(lease) if lease else status(404, "NotFound", "no lease")
        body = await request.json()
        self.version += 1
        body["metadata"]["resourceVersion"] = str(self.version)
        async with self.changed:
            self.leases[body["metadata"]["name"]] = body
            self.changed.notify_all()
        return web.json_response(body)

    def process(self, **settings: Any) -> SchedulerProcess:
        access = Access(server="http://cluster.test", tls=None, credentials=Nobody(), origin="kubeconfig")
        config = Config(scheduler_names=("muster",))
        return SchedulerProcess(
            RunSettings(config=config, **settings),
            access,
            build(config, third_party={}),
            clock=Clock(),
            rng=np.random.default_rng(1),
            dial=self.dialer,
        )

    @asynccontextmanager
    async def running(self, **settings: Any) -> AsyncIterator[None]:
        """A process that is told to stop at the end, and must then end well."""
        process = self.process(**settings)
        task = asyncio.create_task(process.run())
        yield
        process.stop()
        assert await task == 0

    async def wait_for(self, names: set[str]) -> None:
        async with self.changed:
            await self.changed.wait_for(lambda: names <= set(self.bound))

    def add_gang(self, count: int) -> set[str]:
        self.put(GROUPS.path, "g", spec={"schedulingPolicy": {"gang": {"minCount": count}}})
        names = {f"g-{number}" for number in range(count)}
        for name in sorted(names):
            container = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
            group = {"podGroupName": "g"}
            spec = {"schedulerName": "muster", "schedulingGroup": group, "containers": [container]}
            self.put(PODS.path, name, spec=spec)
        return names

    def add_node(self, name: str, cpu: str) -> None:
        room = {"cpu": cpu, "memory": "8Gi", "pods": "110"}
        self.put(NODES.path, name, status={"allocatable": room, "capacity": room})


@pytest.fixture
async def cluster() -> AsyncIterator[FakeCluster]:
    made = FakeCluster()
    yield made
    await made.dialer.close()


async def test_a_gang_that_was_there_before_is_bound_whole(cluster: FakeCluster) -> None:
    cluster.add_node("n1", "4")
    names = cluster.add_gang(3)
    async with cluster.running():
        await cluster.wait_for(names)
    assert set(cluster.bound.values()) == {"n1"}


async def test_what_comes_by_watch_is_bound_too(cluster: FakeCluster) -> None:
    async with cluster.running():
        async with cluster.changed:
            await cluster.changed.wait_for(lambda: "muster" in cluster.leases)
        cluster.add_node("n1", "4")
        await cluster.wait_for(cluster.add_gang(2))


async def test_the_lease_is_taken_and_given_back(cluster: FakeCluster) -> None:
    cluster.add_node("n1", "4")
    async with cluster.running():
        await cluster.wait_for(cluster.add_gang(1))
        assert cluster.leases["muster"]["spec"]["holderIdentity"]
    assert cluster.leases["muster"]["spec"]["holderIdentity"] == ""


async def test_probes_are_answered_while_the_scheduler_runs(cluster: FakeCluster) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    async with cluster.running(metrics_address=Address("127.0.0.1", port)):
        assert await probe(port) == "ok"
    with pytest.raises(ClientError):
        await probe(port, tries=1)


async def probe(port: int, tries: int = 10_000) -> str:
    """What is answered, once somebody listens."""
    async with ClientSession() as session:
        while True:
            tries -= 1
            try:
                async with session.get(f"http://127.0.0.1:{port}/livez") as answer:
                    return await answer.text()
            except ClientError:
                if not tries:
                    raise


async def test_an_address_that_somebody_has_ends_it_and_names_the_option(cluster: FakeCluster) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = Address("127.0.0.1", taken.getsockname()[1])
        with pytest.raises(ConfigError, match="--metrics-bind-address: cannot listen on"):
            await cluster.process(metrics_address=address).run()
    assert not cluster.leases  # before it leads


async def test_who_stands_by_for_the_first_of_its_leases_looks_at_the_others_too(
    cluster: FakeCluster,
) -> None:
    held = {"holderIdentity": "another", "leaseDurationSeconds": 15}
    cluster.leases = {
        name: {"metadata": {"name": name, "resourceVersion": "1"}, "spec": held}
        for name in ("first", "muster")
    }
    async with cluster.running(lease_name="first"), cluster.changed:
        await cluster.changed.wait_for(lambda: cluster.leases_read == {"first", "muster"})


async def test_a_clock_that_is_far_from_the_servers_is_told_at_the_start(
    cluster: FakeCluster, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.date = "Fri, 01 Jan 2100 00:00:00 GMT"
    async with cluster.running(), cluster.changed:
        await cluster.changed.wait_for(lambda: cluster.watchers[NODES.path])
    assert "behind the server's" in caplog.text
    assert "set their clocks by NTP" in caplog.text


async def test_a_restored_backup_ends_the_process_so_that_a_fresh_one_begins(
    cluster: FakeCluster, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.add_node("n1", "4")
    process = cluster.process(elects_leader=False)
    task = asyncio.create_task(process.run())
    async with cluster.changed:
        await cluster.changed.wait_for(lambda: cluster.watchers[NODES.path])
    cluster.version = 50
    for queue in cluster.watchers[NODES.path]:
        expired = {"type": "ERROR", "object": {"code": 410, "message": "too old"}}
        queue.put_nowait(json.dumps(expired).encode() + b"\n")
    assert await task == 1
    assert "restored from a backup" in caplog.text


async def test_the_lease_is_kept_where_a_binding_may_still_land(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_module, "FINISH_S", 0.0)
    cluster.hangs = asyncio.Event()
    cluster.add_node("n1", "4")
    names = cluster.add_gang(2)
    async with cluster.running():
        await cluster.wait_for(names)
    cluster.hangs.set()
    assert cluster.leases["muster"]["spec"]["holderIdentity"]


async def test_without_election_no_lease_is_touched(cluster: FakeCluster) -> None:
    cluster.add_node("n1", "4")
    async with cluster.running(elects_leader=False):
        await cluster.wait_for(cluster.add_gang(1))
    assert cluster.leases == {}


def test_a_standby_in_sync_decides_nothing_until_it_leads(cluster: FakeCluster) -> None:
    process = cluster.process()
    for watch in process._watches:
        watch.synced = True
    process._begin_when_ready()
    assert process._loop.backlog == 0
    process._start_leading()
    assert process._loop.backlog == 1


def test_a_leader_decides_nothing_until_everything_is_listed(cluster: FakeCluster) -> None:
    process = cluster.process()
    process._start_leading()
    assert process._loop.backlog == 0
    assert process._check_sync() == f"not listed yet: {', '.join(kind.name for kind in KINDS)}"


async def test_a_cluster_without_pod_groups_is_refused_with_a_hint(cluster: FakeCluster) -> None:
    cluster.unserved.add(GROUPS.path)
    with pytest.raises(ConfigError, match="does not serve /apis/scheduling") as caught:
        await cluster.process().run()
    assert "muster check" in caught.value.hint


@pytest.mark.parametrize("kind", [NODES, GROUPS, PODS], ids=lambda kind: kind.name)
async def test_without_the_right_to_list_it_says_at_once_what_it_may_not(
    cluster: FakeCluster, kind: WatchedKind[Any]
) -> None:
    cluster.forbidden.add(kind.path)
    with pytest.raises(ConfigError, match=f"may not list {kind.name}: .* is forbidden"):
        await cluster.process().run()


@pytest.mark.parametrize("end", ["/status", "/events"])
async def test_without_the_right_to_tell_a_gang_is_bound_whole_all_the_same(
    cluster: FakeCluster, end: str
) -> None:
    cluster.forbidden.add(end)
    cluster.add_node("n1", "4")
    async with cluster.running():
        await cluster.wait_for(cluster.add_gang(3))
    assert len(cluster.bound) == 3


async def test_without_the_right_to_bind_nothing_is_bound_and_every_failure_is_counted(
    cluster: FakeCluster, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.forbidden.add("/binding")
    cluster.add_node("n1", "4")
    names = cluster.add_gang(2)
    process = cluster.process(elects_leader=False)
    failures = asyncio.Event()
    post = process._executor._post

    def count(event: Any) -> None:
        post(event)
        if process._executor.counts.bind_failures >= len(names):
            failures.set()

    process._executor._post = count
    task = asyncio.create_task(process.run())
    await failures.wait()
    process.stop()
    assert await task == 0
    assert cluster.bound == {}
    assert b'muster_bindings_total{result="failed"} 2.0' in process._page.text()
    assert "binding default/g-0 to n1: " in caplog.text


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        pytest.param(
            RunSettings(config=Config(scheduler_names=("b", "a", "b"))), ("a", "b"), id="one-a-name"
        ),
        pytest.param(
            RunSettings(config=Config(scheduler_names=("b",)), lease_name="mine"),
            ("mine", "b"),
            id="one-of-its-own-first",
        ),
    ],
)
def test_leases_are_one_a_name_in_one_order(settings: RunSettings, expected: tuple[str, ...]) -> None:
    assert lease_names(settings) == expected
