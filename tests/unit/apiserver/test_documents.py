"""Answers that are not about objects."""

import json
from urllib.parse import urlsplit

import pytest
from tests.unit.apiserver.small_server import SmallServer


@pytest.fixture
def server() -> SmallServer:
    return SmallServer()


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz"])
def test_health_is_one_word(server: SmallServer, path: str) -> None:
    response = server.ask("GET", path)
    assert (response.status, response.raw, response.content_type) == (200, b"ok", "text/plain; charset=utf-8")


def test_health_can_be_told_at_length(server: SmallServer) -> None:
    raw = server.ask("GET", "/livez?verbose").raw
    assert raw is not None
    assert raw.startswith(b"[+]ping ok\n")
    assert raw.endswith(b"livez check passed\n")
    assert server.ask("GET", "/livez/ping").raw == b"ok"


def test_the_version_is_that_of_the_api(server: SmallServer) -> None:
    version = server.object("GET", "/version")
    assert (version["major"], version["minor"], version["gitVersion"]) == ("1", "37", "v1.37.2")


def test_discovery_is_given_in_the_form_asked_for(server: SmallServer) -> None:
    aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
    response = server.ask("GET", "/apis", accept=aggregated)
    assert response.content_type == "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    assert server.object("GET", "/apis")["kind"] == "APIGroupList"
    assert server.object("GET", "/apis/batch")["kind"] == "APIGroup"
    assert server.object("GET", "/apis/batch/v1")["kind"] == "APIResourceList"
    assert server.object("GET", "/api/v1/")["kind"] == "APIResourceList"


def test_every_openapi_document_of_the_index_is_there(server: SmallServer) -> None:
    paths = server.object("GET", "/openapi/v3")["paths"]
    assert "apis/scheduling.k8s.io/v1beta1" in paths
    for entry in paths.values():
        url = urlsplit(entry["serverRelativeURL"])
        response = server.ask("GET", f"{url.path}?{url.query}")
        assert response.raw is not None
        assert json.loads(response.raw)["openapi"] == "3.0.0"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        pytest.param("/nope", True, id="a path"),
        pytest.param("/apis/nope.example.com", True, id="a group"),
        pytest.param("/apis/nope.example.com/v1/things", True, id="a resource of no group"),
        pytest.param("/openapi/v3/apis/nope/v1", True, id="a document"),
        pytest.param("/apis/batch/v9", False, id="a version"),
    ],
)
def test_what_is_not_there_is_404(server: SmallServer, path: str, text: bool) -> None:
    response = server.ask("GET", path)
    assert response.status == 404
    assert (response.raw == b"404 page not found\n") is text


def test_a_document_takes_no_writes(server: SmallServer) -> None:
    assert server.ask("POST", "/api/v1", {}).status == 405


def test_there_are_no_definitions_of_other_kinds_and_kubectl_is_told_so(server: SmallServer) -> None:
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert server.object("GET", path)["items"] == []
    assert server.ask("POST", path, {}).status == 404


def test_the_openapi_document_of_version_2_describes_nothing(server: SmallServer) -> None:
    response = server.ask("GET", "/openapi/v2")
    assert response.content_type.endswith("+protobuf")
    assert response.raw is not None
    assert response.raw.startswith(b"\x0a\x032.0\x12\x15")
