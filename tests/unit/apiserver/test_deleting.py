"""Deletions."""

import pytest
from tests.unit.apiserver.small_server import MAPS, MERGE_PATCH, PODS, SmallServer

JOBS = "/apis/batch/v1/namespaces/default/jobs"
NO_FINALIZERS = {"metadata": {"finalizers": None}}


@pytest.fixture
def server() -> SmallServer:
    return SmallServer()


def test_an_object_goes_at_once_and_the_answer_names_it(server: SmallServer) -> None:
    uid = server.create_map("a")["metadata"]["uid"]
    status = server.object("DELETE", f"{MAPS}/a")
    assert status["status"] == "Success"
    assert status["details"] == {"name": "a", "kind": "configmaps", "uid": uid}
    assert server.ask("GET", f"{MAPS}/a").status == 404


def test_what_is_not_there_cannot_be_deleted(server: SmallServer) -> None:
    assert server.refusal("DELETE", f"{MAPS}/a") == (404, 'configmaps "a" not found')


def test_a_finalizer_keeps_an_object_until_it_is_taken_away(server: SmallServer) -> None:
    server.create_map("a", finalizers=["x.y/z"])
    assert "deletionTimestamp" in server.object("DELETE", f"{MAPS}/a")["metadata"]
    server.object("PATCH", f"{MAPS}/a", {"data": {"k": "v"}}, content=MERGE_PATCH)
    assert server.ask("GET", f"{MAPS}/a").status == 200
    server.object("PATCH", f"{MAPS}/a", NO_FINALIZERS, content=MERGE_PATCH)
    assert server.ask("GET", f"{MAPS}/a").status == 404


def test_no_finalizer_can_be_added_to_what_goes(server: SmallServer) -> None:
    server.create_map("a", finalizers=["x.y/z"])
    server.object("DELETE", f"{MAPS}/a")
    added = {"metadata": {"finalizers": ["x.y/z", "more.x/y"]}}
    code, message = server.refusal("PATCH", f"{MAPS}/a", added, content=MERGE_PATCH)
    assert code == 422
    assert "no new finalizers can be added if the object is being deleted" in message


def test_a_graceful_deletion_sets_the_time_and_waits(server: SmallServer) -> None:
    server.create_pod("p")
    pod = server.object("DELETE", f"{PODS}/p?gracePeriodSeconds=30")
    assert pod["metadata"]["deletionGracePeriodSeconds"] == 30
    assert pod["metadata"]["generation"] == 2
    assert server.ask("GET", f"{PODS}/p").status == 200


def test_grace_can_be_shortened_and_not_lengthened(server: SmallServer) -> None:
    server.create_pod("p")
    first = server.object("DELETE", f"{PODS}/p?gracePeriodSeconds=30")["metadata"]
    assert server.object("DELETE", f"{PODS}/p?gracePeriodSeconds=60")["metadata"] == first
    shorter = server.object("DELETE", f"{PODS}/p?gracePeriodSeconds=10")["metadata"]
    assert shorter["deletionGracePeriodSeconds"] == 10
    assert shorter["deletionTimestamp"] < first["deletionTimestamp"]


def test_grace_that_is_over_is_not_moved_into_the_past(server: SmallServer) -> None:
    server.create_pod("p")
    server.object("DELETE", f"{PODS}/p?gracePeriodSeconds=30")
    server.now_s += 20
    metadata = server.object("DELETE", f"{PODS}/p?gracePeriodSeconds=10")["metadata"]
    assert metadata["deletionGracePeriodSeconds"] == 1
    assert metadata["deletionTimestamp"] == "1970-01-12T13:47:00Z"


def test_no_grace_ends_a_waiting_deletion(server: SmallServer) -> None:
    server.create_pod("p")
    server.object("DELETE", f"{PODS}/p?gracePeriodSeconds=30")
    server.object(
        "DELETE", f"{PODS}/p", {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
    )
    assert server.ask("GET", f"{PODS}/p").status == 404


def test_watches_see_a_gracefully_deleted_object_change_before_it_goes(server: SmallServer) -> None:
    server.create_pod("p")
    start = server.store.revision
    server.object("DELETE", f"{PODS}/p?gracePeriodSeconds=0")
    changes = server.store.changes_after(start)
    assert [change.type for change in changes] == ["MODIFIED", "DELETED"]
    assert all("deletionTimestamp" in change.object["metadata"] for change in changes)


@pytest.mark.parametrize(
    ("policy", "finalizers"),
    [
        pytest.param("Foreground", ["foregroundDeletion"], id="foreground"),
        pytest.param("Orphan", ["orphan"], id="orphan"),
    ],
)
def test_a_policy_leaves_its_finalizer_to_the_garbage_collector(
    server: SmallServer, policy: str, finalizers: list[str]
) -> None:
    server.create_map("a")
    obj = server.object("DELETE", f"{MAPS}/a?propagationPolicy={policy}")
    assert obj["metadata"]["finalizers"] == finalizers


def test_background_deletion_takes_the_finalizer_of_another_policy_away(server: SmallServer) -> None:
    server.create_map("a", finalizers=["x.y/z"])
    server.object("DELETE", f"{MAPS}/a?propagationPolicy=Foreground")
    obj = server.object("DELETE", f"{MAPS}/a?propagationPolicy=Background")
    assert obj["metadata"]["finalizers"] == ["x.y/z"]


def test_a_kind_may_orphan_by_default(server: SmallServer) -> None:
    server.object(
        "POST", JOBS, {"metadata": {"name": "j"}, "spec": {"template": {"spec": {"containers": []}}}}
    )
    assert server.object("DELETE", f"{JOBS}/j")["metadata"]["finalizers"] == ["orphan"]


@pytest.mark.parametrize("field", ["uid", "resourceVersion"])
def test_a_failed_precondition_is_409_and_deletes_nothing(server: SmallServer, field: str) -> None:
    server.create_map("a")
    options = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {field: "1"}}
    code, message = server.refusal("DELETE", f"{MAPS}/a", options)
    assert code == 409
    assert 'on ConfigMap "a": the' in message
    assert server.ask("GET", f"{MAPS}/a").status == 200


def test_a_collection_is_deleted_by_selector(server: SmallServer) -> None:
    for name, team in (("a", "x"), ("b", "y"), ("c", "x")):
        server.create_map(name, labels={"team": team})
    deleted = server.object("DELETE", f"{MAPS}?labelSelector=team=x")
    assert [item["metadata"]["name"] for item in deleted["items"]] == ["a", "c"]
    assert [item["metadata"]["name"] for item in server.object("GET", MAPS)["items"]] == ["b"]


def test_a_dry_deletion_deletes_nothing(server: SmallServer) -> None:
    server.create_map("a")
    server.create_pod("p")
    server.object("DELETE", f"{MAPS}/a?dryRun=All")
    server.object("DELETE", f"{PODS}/p?dryRun=All&gracePeriodSeconds=0")
    assert server.ask("GET", f"{MAPS}/a").status == 200
    assert "deletionTimestamp" not in server.object("GET", f"{PODS}/p")["metadata"]


def test_options_that_are_no_object_are_refused(server: SmallServer) -> None:
    server.create_map("a")
    assert server.refusal("DELETE", f"{MAPS}/a", b"[]")[0] == 400
    assert server.refusal("DELETE", f"{MAPS}/a", b"{")[0] == 400


@pytest.mark.parametrize(
    ("given", "found"),
    [({"kind": 5}, "number"), ({"kind": {}, "apiVersion": []}, "array"), ({"apiVersion": True}, "bool")],
)
def test_options_whose_kind_or_version_is_no_text_are_refused(
    server: SmallServer, given: dict[str, object], found: str
) -> None:
    code, message = server.refusal("DELETE", f"{MAPS}/a", given)
    assert code == 400
    assert message.startswith(
        f"couldn't get version/kind; json parse error: json: cannot unmarshal {found} into"
    )
