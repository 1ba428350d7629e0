"""Claims in place of extended resources as requests."""

from typing import Any

from muster.api.core import ExtendedResourceRequest
from muster.api.devices import AllocatedDevice, Allocation, DeviceAllocation, DeviceRequest, Request
from muster.assembly.claim_steps import is_over, steps_of
from muster.assembly.requests import Call
from muster.framework.groups import ObjectKey
from muster.framework.ports import DropClaim, MakeClaim

POD, CLAIMS = ObjectKey("default", "p"), "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
MADE = {"metadata": {"name": "p-extended-resources-x", "uid": "uid-c"}}
MAKE = MakeClaim(
    POD,
    ObjectKey("default", "unwritten"),
    "u",
    (Request("container-0-request-0", DeviceRequest(device_class_name="gpu", count=2)),),
    (ExtendedResourceRequest("c", "example.com/gpu", "container-0-request-0"),),
    Allocation(DeviceAllocation([AllocatedDevice("container-0-request-0", "d", "n1", "gpu-0")])),
)
DROP = DropClaim(POD, ObjectKey("default", "old"), "u", "uid-old")


def played(effect: MakeClaim | DropClaim, answer: dict[str, Any]) -> list[Call]:
    steps, calls = steps_of(effect), []
    try:
        calls.append(steps.send(None))
        while True:
            calls.append(steps.send(answer))
    except StopIteration:
        return calls


def test_the_claim_is_created_given_its_devices_and_named_on_the_pod() -> None:
    create, give, say = played(MAKE, MADE)
    assert (create.method, create.path) == ("POST", CLAIMS)
    meta = create.body["metadata"]
    assert meta["generateName"] == "p-extended-resources-"
    assert meta["annotations"] == {"resource.kubernetes.io/extended-resource-claim": "true"}
    assert meta["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": True}
    ]
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 2}
    assert create.body["spec"]["devices"]["requests"] == [
        {"name": "container-0-request-0", "exactly": exactly}
    ]
    assert (give.method, give.path) == ("PATCH", f"{CLAIMS}/p-extended-resources-x/status")
    assert give.body["metadata"] == {"uid": "uid-c"}
    assert give.body["status"]["reservedFor"] == [{"resource": "pods", "name": "p", "uid": "u"}]
    assert [each["device"] for each in give.body["status"]["allocation"]["devices"]["results"]] == ["gpu-0"]
    assert (say.method, say.path) == ("PATCH", "/api/v1/namespaces/default/pods/p/status")
    said = say.body["status"]["extendedResourceClaimStatus"]
    assert said["resourceClaimName"] == "p-extended-resources-x"
    assert said["requestMappings"] == [
        {"containerName": "c", "resourceName": "example.com/gpu", "requestName": "container-0-request-0"}
    ]


def test_a_claim_is_let_go_and_deleted() -> None:
    free, delete = played(DROP, {})
    assert (free.method, free.path) == ("PATCH", f"{CLAIMS}/old")
    assert (delete.method, delete.path) == ("DELETE", f"{CLAIMS}/old")
    assert delete.body["preconditions"] == {"uid": "uid-old"}


def test_what_is_gone_is_dropped_but_not_made() -> None:
    assert is_over(DROP, 404)
    assert is_over(DROP, 409)
    assert is_over(DROP, 422)
    assert not is_over(DROP, 403)
    assert not is_over(MAKE, 409)
