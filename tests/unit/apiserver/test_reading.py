"""Get and list."""

import pytest
from tests.unit.apiserver.small_server import GROUPS, MAPS, PODS, SmallServer

from muster.apiserver.kinds import Object


@pytest.fixture
def server() -> SmallServer:
    server = SmallServer()
    for name in "edcba":
        server.create_map(name, {"k": name}, labels={"half": "first" if name < "d" else "second"})
    return server


def names(page: Object) -> list[str]:
    return [item["metadata"]["name"] for item in page["items"]]


def test_a_list_is_in_order_and_its_items_have_no_type(server: SmallServer) -> None:
    listed = server.object("GET", MAPS)
    assert names(listed) == list("abcde")
    assert (listed["kind"], listed["apiVersion"]) == ("ConfigMapList", "v1")
    assert listed["metadata"] == {"resourceVersion": str(server.store.revision)}
    assert listed["items"][0].keys() == {"metadata", "data"}


def test_an_object_is_shown_in_the_version_asked_for(server: SmallServer) -> None:
    server.object("POST", GROUPS, {"metadata": {"name": "g"}, "spec": {"schedulingPolicy": {"basic": {}}}})
    other = GROUPS.replace("v1beta1", "v1alpha3")
    assert server.object("GET", f"{other}/g")["apiVersion"] == "scheduling.k8s.io/v1alpha3"
    assert server.object("GET", f"{GROUPS}/g")["apiVersion"] == "scheduling.k8s.io/v1beta1"


def test_pages_are_all_of_one_moment(server: SmallServer) -> None:
    first = server.object("GET", f"{MAPS}?limit=2")
    assert names(first) == ["a", "b"]
    assert first["metadata"]["remainingItemCount"] == 3
    server.object("DELETE", f"{MAPS}/c")
    server.create_map("cc")
    second = server.object("GET", f"{MAPS}?limit=2&continue={first['metadata']['continue']}")
    assert names(second) == ["c", "d"]
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    last = server.object("GET", f"{MAPS}?limit=2&continue={second['metadata']['continue']}")
    assert names(last) == ["e"]
    assert "continue" not in last["metadata"]


def test_a_page_with_a_selector_does_not_say_how_many_remain(server: SmallServer) -> None:
    page = server.object("GET", f"{MAPS}?limit=1&labelSelector=half=first")
    assert names(page) == ["a"]
    assert "remainingItemCount" not in page["metadata"]


@pytest.mark.parametrize(
    ("query", "code", "why"),
    [
        pytest.param("continue=abc", 400, "invalid character 'i' looking for beginning of value", id="token"),
        pytest.param("resourceVersion=abc", 400, 'strconv.ParseUint: parsing "abc"', id="version"),
        pytest.param(f"resourceVersion={'9' * 5000}", 400, "value out of range", id="version-of-any-length"),
        pytest.param("resourceVersion=999999", 504, "Too large resource version: 999999", id="to come"),
    ],
)
def test_what_cannot_be_read_is_refused(server: SmallServer, query: str, code: int, why: str) -> None:
    refused, message = server.refusal("GET", f"{MAPS}?{query}")
    assert refused == code
    assert why in message


def test_a_version_of_any_length_is_refused_where_one_object_or_a_watch_is_asked_for(
    server: SmallServer,
) -> None:
    long = "9" * 5000
    for target in (f"{MAPS}/a?resourceVersion={long}", f"{MAPS}?watch=true&resourceVersion={long}"):
        refused, message = server.refusal("GET", target)
        assert (refused, message[-18:]) == (500, "value out of range")


def test_a_token_and_a_version_do_not_go_together(server: SmallServer) -> None:
    first = server.object("GET", f"{MAPS}?limit=2")["metadata"]
    query = f"continue={first['continue']}&resourceVersion={first['resourceVersion']}"
    assert server.refusal("GET", f"{MAPS}?{query}")[1] == (
        "specifying resource version is not allowed when using continue"
    )


def test_an_exact_version_is_the_past(server: SmallServer) -> None:
    moment = server.store.revision
    server.object("DELETE", f"{MAPS}/a")
    query = f"resourceVersion={moment}&resourceVersionMatch="
    assert names(server.object("GET", f"{MAPS}?{query}Exact")) == list("abcde")
    assert names(server.object("GET", f"{MAPS}?{query}NotOlderThan")) == list("bcde")


def test_a_past_that_is_forgotten_is_410(server: SmallServer) -> None:
    moment = server.store.revision - 1
    first = server.object("GET", f"{MAPS}?limit=2")
    server.object("DELETE", f"{MAPS}/a")
    server.store.forget()
    assert server.refusal("GET", f"{MAPS}?resourceVersion={moment}&resourceVersionMatch=Exact") == (
        410,
        "The resourceVersion for the provided list is too old.",
    )
    response = server.ask("GET", f"{MAPS}?limit=2&continue={first['metadata']['continue']}")
    assert response.status == 410
    assert response.object is not None
    rest = server.object("GET", f"{MAPS}?limit=9&continue={response.object['metadata']['continue']}")
    assert names(rest) == ["c", "d", "e"]


def test_a_selector_limits_a_list(server: SmallServer) -> None:
    assert names(server.object("GET", f"{MAPS}?labelSelector=half=second")) == ["d", "e"]
    assert names(server.object("GET", f"{MAPS}?fieldSelector=metadata.name!=a")) == list("bcde")


def test_a_list_in_a_namespace_that_is_not_there_is_empty(server: SmallServer) -> None:
    assert server.object("GET", "/api/v1/namespaces/nowhere/configmaps")["items"] == []


def test_the_status_path_gives_the_object(server: SmallServer) -> None:
    server.create_pod("p")
    assert server.object("GET", f"{PODS}/p/status") == server.object("GET", f"{PODS}/p")


def test_from_the_cache_all_of_a_list_comes_whatever_its_limit(server: SmallServer) -> None:
    whole = server.object("GET", f"{MAPS}?limit=2&resourceVersion=0")
    assert names(whole) == ["a", "b", "c", "d", "e"]
    assert whole["metadata"].keys() == {"resourceVersion"}


def test_a_version_of_more_than_64_bits_is_none(server: SmallServer) -> None:
    for number in (str(1 << 64), "9" * 5000):
        code, message = server.refusal("GET", f"{MAPS}?resourceVersion={number}")
        assert (code, message.endswith("value out of range")) == (400, True)
        assert server.refusal("GET", f"{MAPS}/a?resourceVersion={number}")[0] == 500
