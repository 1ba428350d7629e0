"""The rights in deploy/muster.yaml, beside an audit of what a whole `muster run` asks its API server for."""

import asyncio
import logging
from typing import Any

import pytest
from aiohttp import web
from tests.test_docs import right_of, rights_given
from tests.unit.runtime.in_process import status
from tests.unit.runtime.test_health import ask
from tests.unit.runtime.test_process import FakeCluster

from muster.base.errors import ConfigError
from muster.runtime.kinds import KINDS, PODS
from muster.runtime.process import SchedulerProcess

Right = tuple[str, str, str]

# What this run gives no occasion for; `test_docs.py` counts them by the requests that their effects make.
NOT_ASKED_HERE = {
    (group, resource, verb)
    for group, resource, verb in rights_given()
    if verb in ("patch", "create", "delete") and resource.startswith(("persistentvolume", "resourceclaim"))
}


class AuditedCluster(FakeCluster):
    """Notes the right that each request needs; refuses the first binding of `g-0` with a conflict."""

    def __init__(self) -> None:
        super().__init__()
        self.used: set[Right] = set()
        self.refused = False
        self.denied: Right | None = None
        self.denials = 0

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path != "/version":
            group, resource, verb = right_of(request.method, request.path)
            if request.path in self.objects:
                verb = "watch" if request.query.get("watch") == "true" else "list"
            self.used.add((group, resource, verb))
            if (group, resource, verb) == self.denied:
                async with self.changed:
                    self.denials += 1
                    self.changed.notify_all()
                return status(403, "Forbidden", f"muster cannot {verb} resource {resource!r}")
        if request.method == "DELETE":
            async with self.changed:
                self.bound["deleted"] = request.path
                self.changed.notify_all()
        return await super().answer(request)

    async def _bind(self, name: str, body: dict[str, Any]) -> web.Response:
        if name == "g-0" and not self.refused:
            self.refused = True
            return status(409, "Conflict", "pod g-0 is already assigned")
        return await super()._bind(name, body)


def pod(priority: int, cpu: str, node: str = "", only: str = "") -> dict[str, Any]:
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    spec: dict[str, Any] = {"schedulerName": "muster", "priority": priority, "containers": [container]}
    if node:
        spec["nodeName"] = node
    if only:
        by_name = {"key": "metadata.name", "operator": "In", "values": [only]}
        required = {"nodeSelectorTerms": [{"matchFields": [by_name]}]}
        spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    return {"spec": spec, "status": {"phase": "Pending"}}


async def test_every_request_has_its_right_and_every_right_its_request() -> None:
    cluster = AuditedCluster()
    cluster.add_node("n1", "4")
    cluster.put(PODS.path, "victim", **pod(0, "2", node="n1"))
    async with cluster.running():
        await cluster.wait_for(cluster.add_gang(2))
        cluster.put(PODS.path, "preemptor", **pod(100, "2"))
        await cluster.wait_for({"deleted"})
    assert cluster.used - rights_given() == set()
    assert rights_given() - cluster.used == NOT_ASKED_HERE


# ── one right less ───────────────────────────────────────────────────────────────────────────────

NEEDED = {kind.name for kind in KINDS if not kind.without}


async def sign_of(right: Right, process: SchedulerProcess) -> bool:
    """Whether a metric or the readiness tells whoever runs this process what it may not do."""
    page = process._page.text().decode()

    def counted(name: str) -> bool:
        lines = [line for line in page.splitlines() if line.startswith(f"{name} ")]
        return bool(lines) and float(lines[0].split()[-1]) > 0

    _, resource, verb = right
    if resource == "leases":
        code, text = await ask(process.make_health(), "/readyz")
        return code == 500 and f"cannot {verb} resource 'leases'" in text
    if verb in ("list", "watch"):
        return counted(f'muster_watch_failures_total{{resource="{resource}"}}')
    name = {
        "pods/binding": 'muster_bindings_total{result="failed"}',
        "pods": f'muster_{"bindings" if verb == "get" else "evictions"}_total{{result="failed"}}',
        "events": 'muster_events_total{result="dropped"}',
    }
    return counted(name.get(resource, 'muster_status_writes_total{result="failed"}'))


@pytest.mark.parametrize("right", sorted(rights_given() - NOT_ASKED_HERE), ids="-".join)
async def test_a_right_that_is_missing_is_named_and_no_gang_is_bound_in_part_b139(
    right: Right, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "muster")
    cluster = AuditedCluster()
    cluster.denied = right
    cluster.refused = right != ("", "pods", "get")  # only that one needs a conflict
    if right[1:] == ("leases", "update"):
        given_back = {"metadata": {"name": "muster", "resourceVersion": "1"}, "spec": {"holderIdentity": ""}}
        cluster.leases["muster"] = given_back
    cluster.add_node("n1", "2")
    cluster.add_node("n2", "2")
    cluster.put(PODS.path, "victim", **pod(0, "2", node="n2"))
    cluster.put(PODS.path, "preemptor", **pod(100, "2", only="n2"))
    gang = cluster.add_gang(2)
    process = cluster.process()
    running = asyncio.create_task(process.run())
    if right[1] in NEEDED and right[2] == "list":
        with pytest.raises(ConfigError, match=f"may not list {right[1]}: .* cannot list"):
            await running
        return
    is_mute = right[1] in ("leases", "pods/binding")
    async with cluster.changed:
        await cluster.changed.wait_for(lambda: cluster.denials >= (2 if right[1] == "pods/binding" else 1))
        await cluster.changed.wait_for(lambda: is_mute or gang <= set(cluster.bound))
    process.stop()
    assert await running == 0
    assert set(cluster.bound) & gang == (set() if is_mute else gang)
    assert await sign_of(right, process)
    assert "cannot" in caplog.text
