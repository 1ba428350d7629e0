"""What strategies and handlers are given."""

from typing import Any

import numpy as np
import pytest
from tests.unit.apiserver.small_server import MAPS, SmallServer

from muster.apiserver.exchange import Request, Response
from muster.apiserver.kinds import Access, Kind, Object, Refused, Subresource
from muster.apiserver.patching import copied
from muster.apiserver.server import ApiServer
from muster.apiserver.statuses import success


@pytest.fixture
def server() -> SmallServer:
    server = SmallServer()
    server.create_map("a", {"k": "v"})
    return server


def call_of(server: SmallServer) -> Any:
    return server.api.call(Request("GET", ""), server.now_s)


def test_a_strategy_sees_other_objects(server: SmallServer) -> None:
    call = call_of(server)
    assert call.get("configmaps", "default", "a")["data"] == {"k": "v"}
    assert call.get("configmaps", "default", "b") is None
    assert [obj["metadata"]["name"] for obj in call.list("configmaps")] == ["a"]
    assert {obj["metadata"]["name"] for obj in call.list("namespaces")} >= {"default", "kube-system"}


def test_a_warning_is_given_once(server: SmallServer) -> None:
    call = call_of(server)
    call.warn("x")
    call.warn("x")
    assert call.warnings == ["x"]


def test_a_handler_writes_what_it_read_and_nothing_newer(server: SmallServer) -> None:
    call = call_of(server)
    obj = copied(call.get("configmaps", "default", "a"))
    obj["data"] = {"k": "w"}
    call.write("configmaps", obj)
    assert server.object("GET", f"{MAPS}/a")["data"] == {"k": "w"}
    obj["metadata"]["resourceVersion"] = "1"
    with pytest.raises(Refused) as caught:
        call.write("configmaps", obj)
    assert caught.value.code == 409


def test_a_dry_run_of_a_handler_writes_nothing(server: SmallServer) -> None:
    call = call_of(server)
    call.dry_run = True
    obj = copied(call.get("configmaps", "default", "a"))
    call.write("configmaps", {**obj, "data": {}})
    call.delete("configmaps", "default", "a", {})
    assert server.object("GET", f"{MAPS}/a")["data"] == {"k": "v"}


def test_a_handler_deletes_as_a_client_does(server: SmallServer) -> None:
    call = call_of(server)
    assert call.delete("configmaps", "default", "a", {"dryRun": ["All"]}).status == 200
    assert server.ask("GET", f"{MAPS}/a").status == 200
    call = call_of(server)
    with pytest.raises(Refused):
        call.delete("configmaps", "default", "a", {"preconditions": {"uid": "other"}})
    call.delete("configmaps", "default", "a", {})
    assert server.ask("GET", f"{MAPS}/a").status == 404


def echo(request: Request, namespace: str, name: str, body: Object, access: Access) -> Response:
    access.warn(f"{namespace}/{name}")
    return Response(201, {**success(201), "target": body.get("target"), "dry": access.dry_run})


def test_a_subresource_with_a_handler_is_answered_by_it(server: SmallServer) -> None:
    kinds: list[Kind] = []
    for kind in server.api.catalog.kinds:
        if kind.kind == "Pod":
            sub = Subresource("binding", ("create",), kind="Binding", version="v1", handler=echo)
            kind = Kind(
                **{name: getattr(kind, name) for name in kind.__struct_fields__} | {"subresources": (sub,)}
            )
        kinds.append(kind)
    server.api = ApiServer(np.random.default_rng(1), catalog=kinds)
    target = {"kind": "Node", "name": "n"}
    path = "/api/v1/namespaces/default/pods/p/binding?dryRun=All"
    response = server.ask("POST", path, {"metadata": {"name": "p"}, "target": target})
    assert response.object is not None
    assert (response.object["target"], response.object["dry"]) == (target, True)
    assert response.headers == (("Warning", '299 - "default/p"'),)
    assert server.ask("GET", path).status == 405
