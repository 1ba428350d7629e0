"""The one door of the server."""

from urllib.parse import quote

import pytest
from tests.unit.apiserver.small_server import MAPS, PODS, SmallServer

from muster.apiserver.exchange import Request
from muster.apiserver.patching import copied


def test_a_cluster_begins_with_its_namespaces() -> None:
    listed = SmallServer().object("GET", "/api/v1/namespaces")["items"]
    names = [item["metadata"]["name"] for item in listed]
    assert names == ["default", "kube-node-lease", "kube-public", "kube-system"]


def test_callers_in_this_process_give_and_get_objects() -> None:
    server = SmallServer()
    body = {"metadata": {"name": "a", "labels": {"x": "y"}}, "data": {"k": "v"}}
    before = copied(body)
    response = server.api.handle(Request("POST", MAPS, body=body), server.now_s)
    assert response.object is not None
    assert response.object["data"] == {"k": "v"}
    assert body == before
    patch = Request("PATCH", f"{MAPS}/a", body={"data": {"k": "w"}})  # a merge patch unless said otherwise
    assert server.api.handle(patch, server.now_s).object["data"] == {"k": "w"}  # type: ignore[index]


def test_equal_seeds_give_equal_clusters() -> None:
    def uids(seed: int) -> list[str]:
        server = SmallServer(seed=seed)
        made = [server.object("POST", MAPS, {"metadata": {"generateName": "m-"}}) for _ in range(3)]
        return [f"{obj['metadata']['name']} {obj['metadata']['uid']}" for obj in made]

    assert uids(1) == uids(1)
    assert uids(1) != uids(2)


def test_a_slash_at_the_end_changes_nothing() -> None:
    server = SmallServer()
    server.create_map("a")
    assert server.object("GET", f"{MAPS}/a/") == server.object("GET", f"{MAPS}/a")


def test_a_name_with_a_slash_is_a_subresource_that_is_not_there() -> None:
    assert SmallServer().refusal("GET", f"{PODS}/a/b")[0] == 404


def test_a_bad_request_leaves_the_server_as_it_was() -> None:
    server = SmallServer()
    before = server.store.revision
    for body in (b"", b"{", b"[]", b'{"metadata": 5}', b'{"metadata": {"labels": [1]}}', b"\xff\xfe"):
        assert server.refusal("POST", MAPS, body)[0] == 400
    assert server.store.revision == before


def test_a_timeout_that_is_no_duration_is_refused_but_for_watches() -> None:
    server = SmallServer()
    for text, why in (("abc", "invalid"), ("5", "missing unit in")):
        code, message = server.refusal("GET", f"{MAPS}?timeout={text}")
        assert (code, message) == (
            400,
            f'invalid timeout specified in the request URL - time: {why} duration "{text}"',
        )
    for text in ("", "0", "5s", "-1.5m"):
        assert server.ask("GET", f"{MAPS}?timeout={text}").status == 200
    assert server.ask("GET", f"{MAPS}?watch=1&timeout=abc").status == 200


def test_a_name_that_would_be_another_path_is_refused() -> None:
    for name, why in (("..", "may not be '..'"), (".", "may not be '.'"), ("a%b", "may not contain '%'")):
        code, message = SmallServer().refusal("GET", f"{MAPS}/{name}")
        assert (code, message) == (400, f'Name parameter invalid: "{name}": {why}')


@pytest.mark.parametrize("name", ["a\x1b[31m", "\x9b31m", "a\nb", "\u202e"])
def test_no_message_brings_what_a_terminal_would_obey(name: str) -> None:
    server = SmallServer()
    answers = [
        server.refusal("GET", f"{MAPS}/{quote(name)}")[1],
        server.refusal("POST", MAPS, {"metadata": {"name": "ok"}, "kind": name})[1],
        server.refusal("POST", f"{MAPS}?fieldValidation=Strict", {name: 1, "metadata": {"name": "ok"}})[1],
        server.refusal("POST", f"/api/v1/namespaces/{quote(name)}/configmaps", {"metadata": {"name": "ok"}})[
            1
        ],
        server.refusal("GET", f"{MAPS}?labelSelector={quote(name)}")[1],
        server.refusal("GET", f"{PODS}?fieldSelector={quote(name)}%3D1")[1],
        server.refusal("POST", f"{MAPS}?fieldValidation={quote(name)}", {"metadata": {"name": "ok"}})[1],
        server.refusal("GET", f"{MAPS}?resourceVersion={quote(name)}")[1],
    ]
    assert [answer for answer in answers if not answer.isprintable()] == []
