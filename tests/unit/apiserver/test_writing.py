"""Create, update and patch."""

import pytest
from tests.unit.apiserver.small_server import GROUPS, MAPS, MERGE_PATCH, PODS, SmallServer

from muster.apiserver.patching import copied

GROUP = {"metadata": {"name": "g"}, "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}}
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"


@pytest.fixture
def server() -> SmallServer:
    return SmallServer()


def test_a_new_object_gets_uid_time_version_and_place(server: SmallServer) -> None:
    response = server.ask("POST", MAPS, {"metadata": {"name": "a"}})
    assert response.status == 201
    assert response.object is not None
    metadata = response.object["metadata"]
    assert metadata["namespace"] == "default"
    assert metadata["resourceVersion"] == str(server.store.revision)
    assert {"uid", "creationTimestamp"} <= metadata.keys()


def test_a_name_in_use_is_409(server: SmallServer) -> None:
    server.create_map("a")
    assert server.refusal("POST", MAPS, {"metadata": {"name": "a"}}) == (
        409,
        'configmaps "a" already exists',
    )


def test_a_name_is_generated_when_only_its_start_is_given(server: SmallServer) -> None:
    names = {
        server.object("POST", MAPS, {"metadata": {"generateName": "gen-"}})["metadata"]["name"]
        for _ in range(20)
    }
    assert len(names) == 20
    assert all(name.startswith("gen-") and len(name) == 9 for name in names)


def test_a_creation_may_not_bring_a_version(server: SmallServer) -> None:
    code, message = server.refusal("POST", MAPS, {"metadata": {"name": "a", "resourceVersion": "5"}})
    assert (code, message) == (500, "resourceVersion should not be set on objects to be created")


def test_nothing_is_created_where_there_is_no_namespace(server: SmallServer) -> None:
    target = "/api/v1/namespaces/nowhere/configmaps"
    assert server.refusal("POST", target, {"metadata": {"name": "a"}}) == (
        404,
        'namespaces "nowhere" not found',
    )


def test_nothing_is_created_in_a_namespace_that_goes(server: SmallServer) -> None:
    server.object("POST", "/api/v1/namespaces", {"metadata": {"name": "n"}})
    server.object("DELETE", "/api/v1/namespaces/n")
    code, message = server.refusal("POST", "/api/v1/namespaces/n/configmaps", {"metadata": {"name": "a"}})
    assert code == 403
    assert message.endswith("unable to create new content in namespace n because it is being terminated")


def test_another_namespace_in_the_body_is_refused(server: SmallServer) -> None:
    code, message = server.refusal("POST", MAPS, {"metadata": {"name": "a", "namespace": "other"}})
    assert (code, message) == (
        400,
        "the namespace of the provided object does not match the namespace sent on the request",
    )


def test_a_dry_creation_answers_and_writes_nothing(server: SmallServer) -> None:
    before = server.store.revision
    assert server.ask("POST", f"{MAPS}?dryRun=All", {"metadata": {"name": "a"}}).status == 201
    assert server.store.revision == before
    assert server.ask("GET", f"{MAPS}/a").status == 404


def test_an_update_from_an_old_version_is_409(server: SmallServer) -> None:
    old = server.create_map("a", {"k": "1"})
    server.object("PATCH", f"{MAPS}/a", {"data": {"k": "2"}}, content=MERGE_PATCH)
    code, message = server.refusal("PUT", f"{MAPS}/a", old)
    assert code == 409
    assert message.endswith("please apply your changes to the latest version and try again")


def test_an_update_without_version_is_taken_or_not_as_the_kind_says(server: SmallServer) -> None:
    server.create_map("a")
    assert server.object("PUT", f"{MAPS}/a", {"metadata": {"name": "a"}, "data": {"k": "v"}})["data"] == {
        "k": "v"
    }
    server.object("POST", GROUPS, GROUP)
    assert server.refusal("PUT", f"{GROUPS}/g", GROUP) == (
        422,
        'podgroups.scheduling.k8s.io "g" is invalid: metadata.resourceVersion: Invalid value: 0: '
        "must be specified for an update",
    )


def test_an_update_of_another_uid_is_409(server: SmallServer) -> None:
    server.create_map("a")
    code, message = server.refusal("PUT", f"{MAPS}/a", {"metadata": {"name": "a", "uid": "other"}})
    assert code == 409
    assert "Precondition failed: UID in precondition: other" in message


def test_an_update_that_changes_nothing_writes_nothing(server: SmallServer) -> None:
    obj = server.create_map("a", {"k": "v"})
    before = server.store.revision
    assert server.object("PUT", f"{MAPS}/a", obj) == obj
    assert server.store.revision == before


def test_the_name_in_the_body_must_be_that_of_the_path(server: SmallServer) -> None:
    server.create_map("a")
    assert server.refusal("PUT", f"{MAPS}/a", {"metadata": {"name": "b"}})[1] == (
        "the name of the object (b) does not match the name on the URL (a)"
    )
    assert "name must be provided" in server.refusal("PUT", f"{MAPS}/a", {"metadata": {}})[1]


def test_a_put_creates_only_where_the_kind_says_so(server: SmallServer) -> None:
    assert server.refusal("PUT", f"{MAPS}/a", {"metadata": {"name": "a"}})[0] == 404
    assert server.ask("PUT", f"{LEASES}/l", {"metadata": {"name": "l"}}).status == 201


def test_a_put_that_creates_cannot_meet_a_uid(server: SmallServer) -> None:
    code, message = server.refusal("PUT", f"{LEASES}/l", {"metadata": {"name": "l", "uid": "u"}})
    assert code == 409
    assert message.endswith("UID in precondition: u, UID in object meta: ")


def test_an_owner_is_kept_once(server: SmallServer) -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}
    other = {**owner, "name": "q"}
    body = {"metadata": {"name": "a", "ownerReferences": [owner, owner, other]}}
    response = server.ask("POST", MAPS, body)
    assert response.object is not None
    assert response.object["metadata"]["ownerReferences"] == [owner, other]
    assert "duplicate UID(s) observed: u" in response.headers[0][1]


def test_a_version_that_is_no_number_is_a_fault(server: SmallServer) -> None:
    server.create_map("a")
    assert server.refusal("PUT", f"{MAPS}/a", {"metadata": {"name": "a", "resourceVersion": "x"}})[0] == 500


def test_status_is_written_through_its_own_path_only(server: SmallServer) -> None:
    pod = server.create_pod("p")
    changed = {**copied(pod), "status": {"phase": "Running"}}
    assert server.object("PUT", f"{PODS}/p", changed)["status"] == {}
    changed["spec"]["nodeName"] = "n"
    changed["metadata"].pop("resourceVersion")
    written = server.object("PUT", f"{PODS}/p/status", changed)
    assert written["status"] == {"phase": "Running"}
    assert "nodeName" not in written["spec"]


def test_a_stored_object_never_changes_under_who_holds_it(server: SmallServer) -> None:
    server.create_pod("p")
    kind = server.api.catalog.by_name["pods"]
    held = server.store.get(kind, "default", "p")
    before = copied(held)
    server.object("PATCH", f"{PODS}/p", {"metadata": {"labels": {"a": "b"}}}, content=MERGE_PATCH)
    server.object("PATCH", f"{PODS}/p/status", {"status": {"phase": "Failed"}}, content=MERGE_PATCH)
    server.object("DELETE", f"{PODS}/p")
    assert held == before
