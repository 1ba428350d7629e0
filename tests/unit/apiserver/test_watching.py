"""Watches."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.apiserver.small_server import (
    GROUPS,
    MAPS,
    MERGE_PATCH,
    METADATA,
    PODS,
    TABLE,
    SmallServer,
)

from muster.apiserver.exchange import Watch

END = {"k8s.io/initial-events-end": "true"}


@pytest.fixture
def server() -> SmallServer:
    server = SmallServer()
    server.create_map("a")
    server.create_map("b", labels={"team": "x"})
    return server


def watching(server: SmallServer, query: str = "", path: str = MAPS, **headers: str) -> Watch:
    response = server.ask("GET", f"{path}?watch=true{query}", **headers)
    assert response.status == 200
    assert response.watch is not None
    return response.watch


def events(server: SmallServer, watch: Watch, limit: int = 1000) -> list[dict[str, Any]]:
    return [json.loads(frame) for frame in watch.pull(server.now_s, limit)]


def told(server: SmallServer, watch: Watch) -> list[tuple[str, str]]:
    return [(event["type"], event["object"]["metadata"].get("name", "")) for event in events(server, watch)]


def test_a_watch_tells_what_is_there_and_then_what_happens(server: SmallServer) -> None:
    watch = watching(server)
    assert told(server, watch) == [("ADDED", "a"), ("ADDED", "b")]
    server.create_map("c")
    server.object("PATCH", f"{MAPS}/a", {"data": {"k": "v"}}, content=MERGE_PATCH)
    server.object("DELETE", f"{MAPS}/b")
    assert told(server, watch) == [("ADDED", "c"), ("MODIFIED", "a"), ("DELETED", "b")]
    assert told(server, watch) == []


def test_a_watch_goes_on_from_a_version(server: SmallServer) -> None:
    version = server.store.revision
    server.create_map("c")
    assert told(server, watching(server, f"&resourceVersion={version}")) == [("ADDED", "c")]


def test_a_version_that_is_forgotten_ends_the_watch_with_410(server: SmallServer) -> None:
    version = server.store.revision
    server.create_map("c")
    server.store.forget()
    watch = watching(server, f"&resourceVersion={version}")
    (event,) = events(server, watch)
    assert (event["type"], event["object"]["code"]) == ("ERROR", 410)
    assert watch.closed


def test_a_version_from_before_the_server_was_there_is_forgotten_too(server: SmallServer) -> None:
    (event,) = events(server, watching(server, "&resourceVersion=1"))
    assert event["object"]["code"] == 410
    assert server.refusal("GET", f"{MAPS}?resourceVersion=1&resourceVersionMatch=Exact")[0] == 410


def test_a_version_to_come_is_waited_for(server: SmallServer) -> None:
    assert told(server, watching(server, "&resourceVersion=999999")) == []


def test_what_comes_to_match_is_added_and_what_ceases_to_is_deleted(server: SmallServer) -> None:
    version = server.store.revision
    watch = watching(server, f"&resourceVersion={version}&labelSelector=team=x")
    for name, team in (("a", "x"), ("a", "x"), ("b", "y")):
        patch = {"metadata": {"labels": {"team": team}}, "data": {name: "v"}}
        server.object("PATCH", f"{MAPS}/{name}", patch, content=MERGE_PATCH)
        server.object("PATCH", f"{MAPS}/{name}", {"data": {"more": "v"}}, content=MERGE_PATCH)
    seen = events(server, watch)
    assert [(event["type"], event["object"]["metadata"]["name"]) for event in seen] == [
        ("ADDED", "a"),
        ("MODIFIED", "a"),
        ("DELETED", "b"),
    ]
    # The object as it was while it matched, with the version of the change that ended it.
    assert seen[-1]["object"]["metadata"]["labels"] == {"team": "x"}
    assert seen[-1]["object"]["metadata"]["resourceVersion"] == str(server.store.revision - 1)


def test_a_watch_of_one_namespace_hears_nothing_of_another(server: SmallServer) -> None:
    server.object("POST", "/api/v1/namespaces", {"metadata": {"name": "other"}})
    watch = watching(server)
    told(server, watch)
    server.object("POST", "/api/v1/namespaces/other/configmaps", {"metadata": {"name": "x"}})
    assert told(server, watch) == []


def test_initial_events_end_with_a_bookmark(server: SmallServer) -> None:
    query = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    seen = events(server, watching(server, query))
    assert [event["type"] for event in seen] == ["ADDED", "ADDED", "BOOKMARK"]
    bookmark = seen[-1]["object"]
    assert bookmark["kind"] == "ConfigMap"
    assert bookmark["metadata"] == {"resourceVersion": str(server.store.revision), "annotations": END}


def test_without_initial_events_only_what_happens_is_told(server: SmallServer) -> None:
    query = "&sendInitialEvents=false&resourceVersionMatch=NotOlderThan"
    watch = watching(server, query)
    assert told(server, watch) == []
    server.create_map("c")
    assert told(server, watch) == [("ADDED", "c")]


def test_bookmarks_come_by_the_minute(server: SmallServer) -> None:
    version = server.store.revision
    watch = watching(server, f"&allowWatchBookmarks=true&resourceVersion={version}&timeoutSeconds=600")
    events(server, watch)
    server.create_pod("p")  # of another kind: nothing to tell but that the revision moved
    server.now_s += 59
    assert events(server, watch) == []
    server.now_s += 2
    (event,) = events(server, watch)
    assert (event["type"], event["object"]["metadata"]["resourceVersion"]) == (
        "BOOKMARK",
        str(server.store.revision),
    )


def test_a_watch_ends_when_its_time_is_over(server: SmallServer) -> None:
    watch = watching(server, "&timeoutSeconds=5")
    assert watch.next_due_s() == server.now_s + 5
    server.now_s += 5
    assert len(events(server, watch)) == 2
    assert watch.closed
    assert watch.next_due_s() is None


def test_frames_are_taken_in_portions(server: SmallServer) -> None:
    watch = watching(server)
    server.create_map("c")
    assert [len(events(server, watch, 2)) for _ in range(3)] == [2, 1, 0]


def test_changes_of_other_kinds_in_between_hide_nothing(server: SmallServer) -> None:
    watch = watching(server)
    events(server, watch)
    for index in range(25):
        server.create_pod(f"p{index}")
    server.create_map("c")
    assert [len(events(server, watch, 3)) for _ in range(2)] == [1, 0]


def test_the_reader_is_called_when_there_is_something_and_never_after_the_end(server: SmallServer) -> None:
    watch = watching(server)
    calls: list[str] = []
    watch.on_ready = lambda: calls.append("ready")
    server.create_pod("p")
    assert calls == []
    server.create_map("c")
    assert calls == ["ready"]
    watch.stop()
    calls.clear()
    server.create_map("d")
    assert calls == []
    assert watch.pull(server.now_s) == []


def test_only_the_first_event_of_a_watched_table_has_columns(server: SmallServer) -> None:
    seen = events(server, watching(server, accept=TABLE))
    assert [len(event["object"]["columnDefinitions"]) for event in seen] == [2, 0]
    assert seen[1]["object"]["rows"][0]["cells"][0] == "b"


def test_metadata_can_be_watched_alone(server: SmallServer) -> None:
    event = events(server, watching(server, accept=METADATA))[0]
    assert event["object"].keys() == {"kind", "apiVersion", "metadata"}


def test_the_old_way_to_watch_works(server: SmallServer) -> None:
    response = server.ask("GET", "/api/v1/watch/namespaces/default/configmaps/a?watch=true")
    assert response.watch is not None
    assert told(server, response.watch) == [("ADDED", "a")]


def test_each_version_of_a_kind_is_watched_as_such(server: SmallServer) -> None:
    watches = [
        watching(server, path=GROUPS.replace("v1beta1", version)) for version in ("v1beta1", "v1alpha3")
    ]
    server.object("POST", GROUPS, {"metadata": {"name": "g"}, "spec": {"schedulingPolicy": {"basic": {}}}})
    versions = [events(server, watch)[0]["object"]["apiVersion"] for watch in watches]
    assert versions == ["scheduling.k8s.io/v1beta1", "scheduling.k8s.io/v1alpha3"]


def test_a_bad_selector_is_refused_before_anything_is_sent(server: SmallServer) -> None:
    assert server.refusal("GET", f"{PODS}?watch=1&fieldSelector=spec.hostname=x")[0] == 400


class Mirror:
    """A client that lists once and then follows a watch; it lists again when it is told that it must."""

    def __init__(self, server: SmallServer, selector: str) -> None:
        self.server, self.query = server, f"labelSelector={selector}"
        self.list()

    def list(self) -> None:
        listed = self.server.object("GET", f"{MAPS}?{self.query}")
        self.version = listed["metadata"]["resourceVersion"]
        self.objects = {item["metadata"]["name"]: item["metadata"]["uid"] for item in listed["items"]}
        self.watch = watching(self.server, f"&resourceVersion={self.version}&{self.query}")

    def follow(self, limit: int) -> bool:
        """Take some events; whether there were any."""
        seen = events(self.server, self.watch, limit)
        for event in seen:
            metadata = event["object"]["metadata"]
            if event["type"] == "ERROR":
                self.list()
                return True
            name = metadata["name"]
            known = name in self.objects
            assert known == (event["type"] != "ADDED"), (event["type"], name)
            if event["type"] == "DELETED":
                del self.objects[name]
            else:
                self.objects[name] = metadata["uid"]
            assert int(metadata["resourceVersion"]) > int(self.version)
            self.version = metadata["resourceVersion"]
        return bool(seen)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["put", "put", "label", "delete", "follow", "resume", "forget"]),
        st.sampled_from("abc"),
        st.sampled_from("xy"),
        st.integers(1, 3),
    ),
    max_size=25,
)


@given(STEPS)
@settings(max_examples=60, deadline=None)
def test_a_client_that_lists_and_watches_ends_up_with_what_is_there(
    steps: list[tuple[str, str, str, int]],
) -> None:
    server = SmallServer()
    mirrors = [Mirror(server, selector) for selector in ("", "team=x", "team!=x")]
    for verb, name, team, limit in steps:
        if verb == "put" and server.ask("GET", f"{MAPS}/{name}").status == 404:
            server.create_map(name, labels={"team": team})
        elif verb == "label":
            patch = {"metadata": {"labels": {"team": team}}}
            server.ask("PATCH", f"{MAPS}/{name}", patch, content=MERGE_PATCH)
        elif verb == "delete":
            server.ask("DELETE", f"{MAPS}/{name}")
        elif verb == "follow":
            mirrors[limit - 1].follow(limit)
        elif verb == "resume":
            mirror = mirrors[limit - 1]
            mirror.watch.stop()
            mirror.watch = watching(server, f"&resourceVersion={mirror.version}&{mirror.query}")
        elif verb == "forget":
            server.store.forget()
    for mirror in mirrors:
        while mirror.follow(2):
            pass
        listed = server.object("GET", f"{MAPS}?{mirror.query}")["items"]
        assert mirror.objects == {item["metadata"]["name"]: item["metadata"]["uid"] for item in listed}


def test_a_path_that_says_watch_is_one_whatever_the_query_says(server: SmallServer) -> None:
    response = server.ask("GET", "/api/v1/watch/namespaces/default/configmaps")
    assert response.watch is not None
    assert told(server, response.watch) == [("ADDED", "a"), ("ADDED", "b")]


def test_initial_events_of_a_version_to_come_are_an_error(server: SmallServer) -> None:
    asked = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=999999"
    watch = watching(server, asked)
    (event,) = events(server, watch)
    assert (event["type"], event["object"]["code"]) == ("ERROR", 504)
    assert event["object"]["message"].startswith("Timeout: Too large resource version: 999999")
    assert watch.closed


def test_a_version_of_more_than_64_bits_is_refused(server: SmallServer) -> None:
    assert server.refusal("GET", f"{MAPS}?watch=1&resourceVersion={1 << 64}")[0] == 500


def test_a_watch_in_yaml_is_406(server: SmallServer) -> None:
    code, message = server.refusal("GET", f"{MAPS}?watch=1", accept="application/yaml")
    assert (code, "application/json;stream=watch" in message) == (406, True)
