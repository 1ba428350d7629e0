"""A server of a few kinds with the plainest of rules, and short ways to ask it."""

import json
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import numpy as np

from muster.apiserver.exchange import Request, Response
from muster.apiserver.kinds import Kind, Object, Subresource
from muster.apiserver.server import ApiServer
from muster.apiserver.store import Store
from muster.apiserver.strategies.base import BaseStrategy
from muster.apiserver.strategies.namespaces import NamespaceStrategy

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
METADATA = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
GROUPS = "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups"
NODES = "/api/v1/nodes"
STATUS = Subresource("status", ("get", "patch", "update"))


class SpecAndStatus(BaseStrategy):
    """Rules of an object with both sides and a generation."""

    has_status = True
    has_generation = True


class ClusterWide(BaseStrategy):
    """Rules of an object outside any namespace."""

    namespaced = False


def grace_s(obj: Object, asked: int | None) -> int:
    """Pods of this server take what they are asked for, else five seconds."""
    return 5 if asked is None else asked


def make_kind(kind: str, strategy: BaseStrategy, *, group: str = "", **more: Any) -> Kind:
    more = {"versions": ("v1",), "namespaced": strategy.namespaced, **more}
    name = kind.lower()
    return Kind(group=group, kind=kind, resource=f"{name}s", singular=name, strategy=strategy, **more)


KINDS = (
    make_kind("Namespace", NamespaceStrategy()),
    make_kind("ConfigMap", BaseStrategy()),
    make_kind("Node", ClusterWide(), subresources=(STATUS,)),
    make_kind(
        "Pod",
        SpecAndStatus(),
        subresources=(STATUS,),
        grace_s=grace_s,
        field_selectors=("spec.nodeName", "status.phase"),
        unknown_field="field label not supported: {field}",
    ),
    make_kind(
        "PodGroup",
        SpecAndStatus(),
        group="scheduling.k8s.io",
        versions=("v1beta1", "v1alpha3"),
        subresources=(STATUS,),
        unconditional_update=False,
    ),
    make_kind("Lease", BaseStrategy(), group="coordination.k8s.io", create_on_update=True),
    make_kind("Job", SpecAndStatus(), group="batch", default_propagation="Orphan", returns_deleted=True),
)


class SmallServer:
    """An `ApiServer` and its clock."""

    def __init__(self, *, store: Store | None = None, seed: int = 1) -> None:
        self.now_s = 1_000_000.0
        self.api = ApiServer(np.random.default_rng(seed), catalog=KINDS, store=store, now_s=self.now_s)
        self.store = self.api.store

    def ask(
        self,
        method: str,
        target: str,
        body: Any = None,
        *,
        content: str = "application/json",
        user: str = "system:admin",
        groups: tuple[str, ...] = ("system:masters", "system:authenticated"),
        **headers: str,
    ) -> Response:
        """Send a request as it would come over the wire; `target` with its query."""
        url = urlsplit(target)
        raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if body is not None and content:
            sent["content-type"] = content
        query = tuple(parse_qsl(url.query, keep_blank_values=True))
        return self.api.handle(Request(method, unquote(url.path), query, sent, raw, user, groups), self.now_s)

    def object(self, method: str, target: str, body: Any = None, **more: Any) -> Object:
        """The object of an answer that must be a success."""
        response = self.ask(method, target, body, **more)
        assert response.status < 300, response.object
        assert response.object is not None
        return response.object

    def refusal(self, method: str, target: str, body: Any = None, **more: Any) -> tuple[int, str]:
        """Code and message of an answer that must be a refusal."""
        response = self.ask(method, target, body, **more)
        assert response.status >= 400, response.object
        assert response.object is not None
        return response.status, response.object["message"]

    def create_map(self, name: str, data: dict[str, str] | None = None, **metadata: Any) -> Object:
        body: Object = {"metadata": {"name": name, **metadata}}
        if data is not None:
            body["data"] = data
        return self.object("POST", MAPS, body)

    def create_pod(self, name: str, spec: Object | None = None, **metadata: Any) -> Object:
        containers = [{"name": "c", "image": "i"}]
        body = {"metadata": {"name": name, **metadata}, "spec": {"containers": containers, **(spec or {})}}
        return self.object("POST", PODS, body)
