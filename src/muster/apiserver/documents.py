"""Answers that are not about objects: discovery, version, health, and the OpenAPI documents."""

import hashlib
from functools import cache

import msgspec

from muster.apiserver.discovery import (
    AGGREGATED,
    aggregated,
    api_group,
    api_groups,
    api_resources,
    api_versions,
)
from muster.apiserver.exchange import Request, Response
from muster.apiserver.openapi import document_of
from muster.apiserver.routing import Catalog
from muster.apiserver.schemas import Schemas
from muster.apiserver.statuses import method_not_allowed, no_such_path

_TEXT = "text/plain; charset=utf-8"
_HEALTH = ("healthz", "livez", "readyz")
_CHECKS = ("ping", "log", "etcd")
EMBEDDED = "muster up"  # as the platform of /version: what tells this server from any other
_VERSION = {
    "major": "1",
    "minor": "37",
    "emulationMajor": "1",
    "emulationMinor": "37",
    "minCompatibilityMajor": "1",
    "minCompatibilityMinor": "36",
    "gitVersion": "v1.37.2",
    "gitCommit": "",
    "gitTreeState": "",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": EMBEDDED,
}
# kubectl asks for these two before it says that a kind is not known.  No definitions: none can be made.  An
# OpenAPI v2 document (in protobuf: version, title, its version, no paths) that describes nothing: v3 does.
_OPENAPI_V2 = b"\x0a\x032.0\x12\x15\x0a\x0aKubernetes\x12\x07v1.37.2\x42\x00"
_OPENAPI_V2_TYPE = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_DEFINITIONS = ["apis", "apiextensions.k8s.io", "v1", "customresourcedefinitions"]
_NO_DEFINITIONS = {
    "kind": "CustomResourceDefinitionList",
    "apiVersion": "apiextensions.k8s.io/v1",
    "metadata": {"resourceVersion": "1"},
    "items": [],
}


class Documents:
    """The documents of one catalog; those that cost something are made once, when first asked for."""

    def __init__(self, catalog: Catalog, schemas: Schemas) -> None:
        self._catalog = catalog
        self._openapi = cache(lambda group, version: _encoded(document_of(catalog, schemas, group, version)))

    def find(self, request: Request, parts: list[str]) -> Response | None:
        """The answer when the path names a document; None when it may name a resource."""
        if len(parts) > 3 or (len(parts) == 3 and parts[0] == "api"):
            return self._openapi_document(request, parts) if parts[0] == "openapi" else None
        if not self._is_document(parts):
            return None
        if request.method != "GET":
            raise method_not_allowed()
        if not parts:
            return Response(200, {"paths": self._paths()})
        if parts[0] in _HEALTH:
            return Response(200, raw=_health(request, parts), content_type=_TEXT)
        if parts[0] == "version":
            return Response(200, dict(_VERSION))
        if parts[0] == "openapi":
            return self._openapi_document(request, parts)
        return self._discovery(request, parts)

    def missing(self, request: Request, parts: list[str]) -> Response:
        """The answer for a path that is not there at all."""
        if parts == _DEFINITIONS and request.method == "GET":
            return Response(200, dict(_NO_DEFINITIONS))
        if parts == ["openapi", "v2"] and request.method == "GET":
            return Response(200, raw=_OPENAPI_V2, content_type=_OPENAPI_V2_TYPE)
        if len(parts) == 3 and parts[0] == "apis" and parts[1] in self._catalog.groups:
            raise no_such_path()
        if len(parts) == 2 and parts[0] == "api":
            raise no_such_path()
        return Response(404, raw=b"404 page not found\n", content_type=_TEXT)

    def _is_document(self, parts: list[str]) -> bool:
        groups = self._catalog.groups
        if parts and parts[0] in _HEALTH and parts[1:] in ([check] for check in _CHECKS):
            return True
        if not parts or parts in ([name] for name in ("version", "api", "apis", *_HEALTH)):
            return True
        if parts[0] == "openapi":
            return len(parts) > 1 and parts[1] == "v3"
        if parts[0] == "api":
            return parts[1:] == ["v1"]
        if parts[0] == "apis" and parts[1] in groups and parts[1]:
            return len(parts) == 2 or parts[2] in groups[parts[1]]
        return False

    def _discovery(self, request: Request, parts: list[str]) -> Response:
        wants_aggregated = "apidiscovery.k8s.io" in request.headers.get("accept", "")
        if len(parts) == 1 and wants_aggregated:
            document = aggregated(self._catalog, core=parts[0] == "api")
            return Response(200, document, content_type=AGGREGATED)
        if parts == ["api"]:
            return Response(200, api_versions())
        if parts == ["apis"]:
            return Response(200, api_groups(self._catalog))
        if parts[0] == "api":
            return Response(200, api_resources(self._catalog, "", parts[1]))
        if len(parts) == 2:
            return Response(200, api_group(self._catalog, parts[1]))
        return Response(200, api_resources(self._catalog, parts[1], parts[2]))

    def _openapi_document(self, request: Request, parts: list[str]) -> Response:
        if parts == ["openapi", "v3"]:
            paths = {}
            for path, group, version in self._openapi_paths():
                digest = hashlib.sha512(self._openapi(group, version)).hexdigest().upper()
                paths[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash={digest}"}
            return Response(200, {"paths": paths}, content_type=_TEXT)
        for path, group, version in self._openapi_paths():
            if parts[2:] == path.split("/"):
                return Response(200, raw=self._openapi(group, version))
        return Response(404, raw=b"404 page not found\n", content_type=_TEXT)

    def _openapi_paths(self) -> list[tuple[str, str, str]]:
        return [
            (f"apis/{group}/{version}" if group else f"api/{version}", group, version)
            for group, versions in self._catalog.groups.items()
            for version in versions
        ]

    def _paths(self) -> list[str]:
        paths = [
            "/api",
            "/api/v1",
            "/apis",
            "/apis/",
            "/healthz",
            "/livez",
            "/openapi/v3",
            "/readyz",
            "/version",
        ]
        for group, versions in self._catalog.groups.items():
            if group:
                paths += [f"/apis/{group}", *(f"/apis/{group}/{version}" for version in versions)]
        return sorted(paths)


def _health(request: Request, parts: list[str]) -> bytes:
    """A word, or with ?verbose a line for each thing that was looked at."""
    if len(parts) > 1 or request.first("verbose") is None:
        return b"ok"
    lines = [f"[+]{check} ok" for check in _CHECKS]
    return "\n".join([*lines, f"{parts[0]} check passed", ""]).encode()


def _encoded(document: object) -> bytes:
    return msgspec.json.encode(document)
