"""The rights in deploy/muster.yaml, beside an audit of what a whole `muster run` asks its API server for."""

from typing import Any

from aiohttp import web
from tests.test_docs import right_of, rights_given
from tests.unit.runtime.in_process import status
from tests.unit.runtime.test_process import FakeCluster

from muster.runtime.process import PODS

Right = tuple[str, str, str]

# What this run gives no occasion for; `test_docs.py` counts them by the requests that their effects make.
NOT_ASKED_HERE = {
    (group, resource, verb)
    for group, resource, verb in rights_given()
    if verb == "patch" and resource.startswith(("persistentvolume", "resourceclaim"))
}


class AuditedCluster(FakeCluster):
    """Notes the right that each request needs; refuses the first binding of `g-0` with a conflict."""

    def __init__(self) -> None:
        super().__init__()
        self.used: set[Right] = set()
        self.refused = False

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path != "/version":
            group, resource, verb = right_of(request.method, request.path)
            if request.path in self.objects:
                verb = "watch" if request.query.get("watch") == "true" else "list"
            self.used.add((group, resource, verb))
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


def pod(priority: int, cpu: str, node: str = "") -> dict[str, Any]:
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    spec = {"schedulerName": "muster", "priority": priority, "containers": [container]}
    return {"spec": {**spec, **({"nodeName": node} if node else {})}, "status": {"phase": "Pending"}}


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
