"""Claims for devices that controllers make and tidy."""

from typing import Any

from tests.unit.controllers.small_cluster import SmallCluster

from muster.cluster.extended_resources import ANNOTATION
from muster.controllers.device_claims import DeviceClaims, claim_names_of
from muster.controllers.ports import DEVICE_CLAIM_TEMPLATES, DEVICE_CLAIMS, POD_GROUPS, PODS, Object

ASKED: Object = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}
WANTED: Object = {"name": "gpus", "resourceClaimTemplateName": "t"}
GIVEN: Object = {"devices": {"results": []}}


def make_cluster() -> SmallCluster:
    cluster = SmallCluster(DeviceClaims())
    cluster.create(DEVICE_CLAIM_TEMPLATES, "t", spec={"metadata": {"labels": {"a": "b"}}, "spec": ASKED})
    return cluster


def allocate(cluster: SmallCluster, name: str, *users: Object) -> None:
    status: dict[str, Any] = {"allocation": GIVEN, "reservedFor": list(users)}
    cluster.send("PATCH", DEVICE_CLAIMS, "default", name, {"status": status}, "status")


def as_user(obj: Object, resource: str = "pods", group: str = "") -> Object:
    found = {"resource": resource, "name": obj["metadata"]["name"], "uid": obj["metadata"]["uid"]}
    return found | ({"apiGroup": group} if group else {})


def test_a_pod_gets_a_claim_from_its_template() -> None:
    cluster = make_cluster()
    cluster.create(PODS, "p", spec={"resourceClaims": [WANTED]})
    (name,) = claim_names_of(cluster.get(PODS, "p"))
    claim = cluster.get(DEVICE_CLAIMS, name)
    assert name.startswith("p-gpus-")
    assert claim["spec"] == ASKED
    assert claim["metadata"]["labels"] == {"a": "b"}
    assert claim["metadata"]["ownerReferences"][0]["kind"] == "Pod"


def test_a_claim_that_was_deleted_is_made_again() -> None:
    cluster = make_cluster()
    cluster.create(PODS, "p", spec={"resourceClaims": [WANTED]})
    (first,) = claim_names_of(cluster.get(PODS, "p"))
    cluster.send("DELETE", DEVICE_CLAIMS, "default", first, {})
    (again,) = claim_names_of(cluster.get(PODS, "p"))
    assert again != first
    assert cluster.get(DEVICE_CLAIMS, again)["spec"] == ASKED


def test_a_template_that_comes_later_is_waited_for_and_its_lack_is_told() -> None:
    cluster = SmallCluster(DeviceClaims())
    cluster.create(PODS, "p", spec={"resourceClaims": [WANTED]})
    assert [reason for _, reason, _ in cluster.events()] == ["FailedResourceClaimCreation"]
    cluster.create(DEVICE_CLAIM_TEMPLATES, "t", spec={"spec": ASKED})
    assert len(claim_names_of(cluster.get(PODS, "p"))) == 1


def test_members_share_the_claim_of_their_group() -> None:
    cluster = make_cluster()
    cluster.create(POD_GROUPS, "g", spec={"resourceClaims": [WANTED]})
    for name in ("g-0", "g-1"):
        spec = {"schedulingGroup": {"podGroupName": "g"}, "resourceClaims": [WANTED]}
        cluster.create(PODS, name, spec=spec)
    (claim,) = cluster.all(DEVICE_CLAIMS)
    assert claim["metadata"]["ownerReferences"][0]["kind"] == "PodGroup"
    of_all = [(POD_GROUPS, "g"), (PODS, "g-0"), (PODS, "g-1")]
    assert {claim_names_of(cluster.get(*each)) for each in of_all} == {(claim["metadata"]["name"],)}


def test_a_member_that_names_another_template_than_its_group_gets_a_claim_of_its_own() -> None:
    cluster = make_cluster()
    cluster.create(POD_GROUPS, "g", spec={"resourceClaims": [WANTED]})
    other = {**WANTED, "name": "more"}
    spec = {"schedulingGroup": {"podGroupName": "g"}, "resourceClaims": [WANTED, other]}
    cluster.create(PODS, "g-0", spec=spec)
    owners = [claim["metadata"]["ownerReferences"][0]["kind"] for claim in cluster.all(DEVICE_CLAIMS)]
    assert sorted(owners) == ["Pod", "PodGroup"]


def test_members_that_are_there_first_are_told_the_claim_of_their_group() -> None:
    cluster = SmallCluster(DeviceClaims())
    cluster.create(POD_GROUPS, "g", spec={"resourceClaims": [WANTED]})
    spec = {"schedulingGroup": {"podGroupName": "g"}, "resourceClaims": [WANTED]}
    cluster.create(PODS, "g-0", spec=spec)
    assert claim_names_of(cluster.get(PODS, "g-0")) == ()
    cluster.create(DEVICE_CLAIM_TEMPLATES, "t", spec={"spec": ASKED})
    assert claim_names_of(cluster.get(PODS, "g-0")) == claim_names_of(cluster.get(POD_GROUPS, "g")) != ()


def test_the_last_user_that_ends_gives_the_devices_back() -> None:
    cluster = make_cluster()
    cluster.create(DEVICE_CLAIMS, "c", spec=ASKED)
    spec = {"resourceClaims": [{"name": "gpus", "resourceClaimName": "c"}], "nodeName": "n1"}
    users = [as_user(cluster.create(PODS, name, spec=spec)) for name in ("p", "q")]
    allocate(cluster, "c", *users)
    cluster.delete(PODS, "p")
    status = cluster.get(DEVICE_CLAIMS, "c")["status"]
    assert status["reservedFor"] == [users[1]]
    assert status["allocation"] == GIVEN
    cluster.send("PATCH", PODS, "default", "q", {"status": {"phase": "Succeeded"}}, "status")
    assert cluster.get(DEVICE_CLAIMS, "c")["status"] == {}


def test_a_group_keeps_its_claim_while_it_exists() -> None:
    cluster = make_cluster()
    group = cluster.create(POD_GROUPS, "g", spec={"resourceClaims": [WANTED]})
    (name,) = claim_names_of(cluster.get(POD_GROUPS, "g"))
    allocate(cluster, name, as_user(group, "podgroups", "scheduling.k8s.io"))
    assert cluster.get(DEVICE_CLAIMS, name)["status"]["allocation"] == GIVEN
    cluster.delete(POD_GROUPS, "g")
    cluster.patch(DEVICE_CLAIMS, name, {"metadata": {"labels": {"x": "y"}}})
    assert cluster.get(DEVICE_CLAIMS, name)["status"] == {}


def test_a_claim_made_in_place_of_extended_resources_goes_when_its_pod_ends() -> None:
    cluster = make_cluster()
    pod = cluster.create(PODS, "p", spec={"nodeName": "n1"})
    cluster.create(DEVICE_CLAIMS, "c", spec=ASKED)
    cluster.patch(DEVICE_CLAIMS, "c", {"metadata": {"annotations": {ANNOTATION: "true"}}})
    allocate(cluster, "c", as_user(pod))
    said = {"extendedResourceClaimStatus": {"resourceClaimName": "c", "requestMappings": []}}
    cluster.send("PATCH", PODS, "default", "p", {"status": said}, "status")
    assert cluster.get(DEVICE_CLAIMS, "c")["status"]["allocation"] == GIVEN
    cluster.send("PATCH", PODS, "default", "p", {"status": {"phase": "Succeeded"}}, "status")
    assert cluster.all(DEVICE_CLAIMS) == []
