"""A cluster small enough to read: the real store, a server without rules, and the controllers under test.

The server keeps objects, gives names, uids and versions, and knows finalizers, grace and preconditions;
it defaults and validates nothing, so each test says what an object holds.
"""

import copy
from collections.abc import Iterable
from typing import Any

from muster.apiserver.exchange import Request, Response
from muster.apiserver.kinds import Kind as Row
from muster.apiserver.routing import Catalog
from muster.apiserver.store import Store
from muster.assembly.embedded import EmbeddedCluster
from muster.assembly.view import kind_of
from muster.controllers.objects import rfc3339
from muster.controllers.ports import Controller, Kind, Object

START_S = 1_700_000_000.0

_ROWS = (
    ("", "v1", "Namespace", "namespaces", False),
    ("", "v1", "Node", "nodes", False),
    ("", "v1", "Pod", "pods", True),
    ("", "v1", "ConfigMap", "configmaps", True),
    ("", "v1", "Event", "events", True),
    ("", "v1", "PersistentVolume", "persistentvolumes", False),
    ("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", True),
    ("storage.k8s.io", "v1", "StorageClass", "storageclasses", False),
    ("resource.k8s.io", "v1", "ResourceClaim", "resourceclaims", True),
    ("resource.k8s.io", "v1", "ResourceClaimTemplate", "resourceclaimtemplates", True),
    ("resource.k8s.io", "v1", "ResourceSlice", "resourceslices", False),
    ("batch", "v1", "Job", "jobs", True),
    ("coordination.k8s.io", "v1", "Lease", "leases", True),
    ("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", True),
    ("scheduling.k8s.io", "v1beta1", "PodGroup", "podgroups", True),
    ("scheduling.k8s.io", "v1beta1", "Workload", "workloads", True),
)


class SmallServer:
    """Serves `assembly.embedded.Server`."""

    def __init__(self) -> None:
        self.store = Store()
        self.catalog = Catalog(
            Row(group, (version,), kind, resource, kind.lower(), namespaced, strategy=None)  # type: ignore[arg-type]
            for group, version, kind, resource, namespaced in _ROWS
        )
        self.refusals: list[tuple[str, str, int, str]] = []  # method, part of the path, code, message
        self.requests: list[Request] = []
        self._numbers = iter(range(1, 1_000_000))

    def handle(self, request: Request, now_s: float) -> Response:
        self.requests.append(request)
        for method, part, code, message in self.refusals:
            if method == request.method and part in request.path:
                return _refused(code, message)
        row, namespace, name, sub = self._route(request.path)
        body = copy.deepcopy(request.body)
        assert isinstance(body, dict)
        if request.method == "POST":
            return self._create(row, namespace, body, now_s)
        obj = self.store.get(row, namespace, name)
        if obj is None:
            return _refused(404, f"{name} not found")
        wanted = (body.get("preconditions") or body.get("metadata") or {}).get("uid")
        if wanted not in (None, obj["metadata"]["uid"]):
            return _refused(409, "another uid")
        version = (body.get("metadata") or {}).pop("resourceVersion", None)
        if version not in (None, obj["metadata"]["resourceVersion"]):
            return _refused(409, "the object has been modified")
        if request.method == "DELETE":
            return self._delete(row, obj, body, now_s)
        new = _merged(obj, body) if request.method == "PATCH" else body
        if sub == "finalize" and not new["spec"]["finalizers"]:
            return Response(200, self.store.delete(row, new, now_s))
        return Response(200, self._put(row, obj, new, now_s))

    def _route(self, path: str) -> tuple[Row, str, str, str]:
        parts = path.split("/")[1:]
        rest = parts[2:] if parts[0] == "api" else parts[3:]
        group = "" if parts[0] == "api" else parts[1]
        namespace = ""
        if rest[0] == "namespaces" and len(rest) > 2 and rest[2] != "finalize":
            namespace, rest = rest[1], rest[2:]
        row = next(row for row in self.catalog.kinds if (row.group, row.resource) == (group, rest[0]))
        return row, namespace, *([*rest[1:], "", ""][:2])  # type: ignore[return-value]

    def _create(self, row: Row, namespace: str, body: Object, now_s: float) -> Response:
        number = next(self._numbers)
        metadata = body["metadata"]
        metadata.setdefault("name", f"{metadata.get('generateName', '')}{number:05}")
        if namespace:
            metadata["namespace"] = namespace
        if self.store.get(row, namespace, metadata["name"]) is not None:
            return _refused(409, f"{metadata['name']} already exists")
        metadata.update(uid=f"uid-{number}", creationTimestamp=rfc3339(now_s))
        return Response(201, self.store.create(row, body, now_s))

    def _delete(self, row: Row, obj: Object, options: Object, now_s: float) -> Response:
        new = copy.deepcopy(obj)
        metadata = new["metadata"]
        grace_s = options.get("gracePeriodSeconds")
        if row.resource == "pods":
            given = new["spec"].get("terminationGracePeriodSeconds", 0) if grace_s is None else grace_s
            metadata["deletionGracePeriodSeconds"] = given if new["spec"].get("nodeName") else 0
        finalizer = {"Foreground": "foregroundDeletion", "Orphan": "orphan"}.get(
            options.get("propagationPolicy", "")
        )
        if finalizer:
            metadata["finalizers"] = [*(metadata.get("finalizers") or ()), finalizer]
        if "deletionTimestamp" not in metadata:
            grace = metadata.get("deletionGracePeriodSeconds", 0)
            metadata["deletionTimestamp"] = rfc3339(now_s + grace)
        return Response(200, self._put(row, obj, new, now_s))

    def _put(self, row: Row, old: Object, new: Object, now_s: float) -> Object:
        metadata = new["metadata"]
        held = (
            metadata.get("finalizers")
            or metadata.get("deletionGracePeriodSeconds")
            or (new.get("spec") or {}).get("finalizers")
        )
        if metadata.get("deletionTimestamp") and not held:
            return self.store.delete(row, new, now_s)
        if {**new, "metadata": {**metadata, "resourceVersion": ""}} == {
            **old,
            "metadata": {**old["metadata"], "resourceVersion": ""},
        }:
            return old
        return self.store.update(row, new, now_s)


class SmallCluster:
    """The server, some controllers, and a clock that only `run` moves."""

    def __init__(self, *controllers: Controller) -> None:
        self.server = SmallServer()
        self.cluster = EmbeddedCluster(self.server, controllers=controllers)
        self.now_s = START_S
        for name in ("default", "kube-node-lease"):
            self.create(Kind("", "v1", "namespaces"), name, namespace="", spec={"finalizers": ["kubernetes"]})

    def create(
        self, kind: Kind, name: str, *, namespace: str = "default", meta: Object | None = None, **fields: Any
    ) -> Object:
        """Create an object and let the controllers come to rest."""
        row = next(row for row in self.server.catalog.kinds if kind_of(row) == kind)
        body = {
            "apiVersion": f"{kind.group}/{kind.version}".lstrip("/"),
            "kind": row.kind,
            "metadata": {"name": name, **(meta or {})},
            **fields,
        }
        return self.send("POST", kind, namespace, "", body)

    def send(self, method: str, kind: Kind, namespace: str, name: str, body: Object, sub: str = "") -> Object:
        """Send a request as a user and let the controllers come to rest; gives the object."""
        response = self.try_send(method, kind, namespace, name, body, sub)
        assert response.status < 400, response.object
        assert response.object is not None
        return response.object

    def try_send(
        self, method: str, kind: Kind, namespace: str, name: str, body: Object, sub: str = ""
    ) -> Response:
        """The same, giving the answer whatever it is."""
        root = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
        place = f"/namespaces/{namespace}" if namespace else ""
        path = "/".join(part for part in (f"{root}{place}/{kind.resource}", name, sub) if part)
        response = self.cluster.request(Request(method, path, body=body), self.now_s)
        self.settle()
        return response

    def patch(self, kind: Kind, name: str, body: Object, *, namespace: str = "default") -> Object:
        return self.send("PATCH", kind, namespace, name, body)

    def delete(self, kind: Kind, name: str, *, namespace: str = "default", **options: Any) -> None:
        self.try_send("DELETE", kind, namespace, name, options)

    def find(self, kind: Kind, name: str, *, namespace: str = "default") -> Object | None:
        row = next(row for row in self.server.catalog.kinds if kind_of(row) == kind)
        return self.server.store.get(row, namespace, name)

    def get(self, kind: Kind, name: str, *, namespace: str = "default") -> Object:
        found = self.find(kind, name, namespace=namespace)
        assert found is not None, f"{kind.resource} {namespace}/{name} is not there"
        return found

    def all(self, kind: Kind) -> list[Object]:
        row = next(row for row in self.server.catalog.kinds if kind_of(row) == kind)
        return list(self.server.store.list(row))

    def events(self) -> list[tuple[str, str, str]]:
        """Type, reason and message of all Events in the order they were written."""
        found = sorted(
            self.all(Kind("", "v1", "events")), key=lambda event: int(event["metadata"]["resourceVersion"])
        )
        return [(event["type"], event["reason"], event["message"]) for event in found]

    def settle(self) -> None:
        """Do everything that is due now.  A controller that never comes to rest fails the test."""
        for _ in range(1000):
            due_s = self.cluster.advance(self.now_s)
            if due_s is None or due_s > self.now_s:
                return
        raise AssertionError("the controllers do not come to rest")

    def run(self, seconds: float) -> None:
        """Let time pass, doing what is due when it is due."""
        end_s = self.now_s + seconds
        while True:
            self.settle()
            due_s = self.cluster.advance(self.now_s)
            if due_s is None or due_s > end_s:
                break
            self.now_s = max(due_s, self.now_s)
        self.now_s = end_s
        self.settle()


def names(objects: Iterable[Object]) -> list[str]:
    return [obj["metadata"]["name"] for obj in objects]


def make_cluster(*controllers: Controller) -> SmallCluster:
    return SmallCluster(*controllers)


def _refused(code: int, message: str) -> Response:
    reason = {404: "NotFound", 409: "Conflict"}.get(code, "Invalid")
    return Response(code, {"kind": "Status", "code": code, "reason": reason, "message": message})


def _merged(target: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = _merged(result.get(key), value)
    return result
