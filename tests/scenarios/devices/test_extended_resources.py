"""Extended resources that a DeviceClass backs, from the pod to the claim and back, on virtual time."""

from typing import Any

from tests.conformance.server import CLAIMS, GROUPS, NODES, PODS
from tests.scenarios.devices.test_examples import Room

from muster.sim.view import condition_of, node_of

CLASS = """
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: whole}
spec:
  extendedResourceName: example.com/gpu
  selectors: [{cel: {expression: '"pair" in device.attributes["gpu.example.com"]'}}]
"""
GANG = """
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: g}
spec: {schedulingPolicy: {gang: {minCount: 2}}}
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {{name: {name}, annotations: {annotations}}}
spec:
  schedulerName: muster
  {group}
  containers: [{{name: c, image: example.com/c:1, resources: {{limits: {{{resource}: {count}}}}}}}]
"""
GPU, NVIDIA = "example.com/gpu", "nvidia.com/gpu"


def make_room(node_count: int = 2) -> Room:
    room = Room(node_count)
    room.apply(CLASS)
    return room


def start(
    room: Room,
    *names: str,
    count: int,
    resource: str = GPU,
    group: str = "",
    annotations: dict[str, str] | None = None,
) -> None:
    of_group = f"schedulingGroup: {{podGroupName: {group}}}" if group else ""
    said = {"group": of_group, "resource": resource, "count": count, "annotations": annotations or {}}
    for name in names:
        room.apply(POD.format(name=name, **said))
    room.cluster.sleep(2)


def pods(room: Room) -> dict[str, dict[str, Any]]:
    return {pod["metadata"]["name"]: pod for pod in room.api.items(PODS)}


def test_a_gang_gets_devices_where_no_node_offers_the_resource() -> None:
    room = make_room()
    room.apply(GANG)
    start(room, "a", "b", count=5, group="g")
    found = pods(room)
    assert sorted(node_of(pod) for pod in found.values()) == ["gpu-1", "gpu-2"]
    assert [len(devices) for devices in room.given()] == [5, 5]
    (claim,) = [each for each in room.api.items(CLAIMS) if each["metadata"]["name"].startswith("a-")]
    said = found["a"]["status"]["extendedResourceClaimStatus"]
    assert said["resourceClaimName"] == claim["metadata"]["name"]
    mapping = {"containerName": "c", "resourceName": GPU, "requestName": "container-0-request-0"}
    assert said["requestMappings"] == [mapping]
    assert claim["status"]["reservedFor"] == [
        {"resource": "pods", "name": "a", "uid": found["a"]["metadata"]["uid"]}
    ]


def test_without_devices_for_all_no_claim_is_made() -> None:
    room = make_room(1)
    room.apply(GANG)
    start(room, "a", "b", count=5, group="g")
    assert (room.bound(), room.api.items(CLAIMS)) == (0, [])
    assert "cannot allocate all claims" in str(
        condition_of(room.api.must("GET", f"{GROUPS}/g"), "PodGroupInitiallyScheduled")
    )


def test_a_class_backs_a_resource_of_its_own_name() -> None:
    room = make_room(1)
    start(room, "a", count=3, resource="deviceclass.resource.kubernetes.io/whole")
    assert [len(devices) for devices in room.given()] == [3]


def test_a_node_that_offers_the_resource_itself_gives_that() -> None:
    room = make_room(1)
    node = room.api.must("GET", f"{NODES}/gpu-1")
    amounts = {**node["status"]["allocatable"], GPU: "2"}
    room.api.merge(f"{NODES}/gpu-1/status", {"status": {"allocatable": amounts, "capacity": amounts}})
    start(room, "a", "b", count=2)
    assert (room.bound(), room.api.items(CLAIMS)) == (1, [])
    assert "Insufficient example.com/gpu" in str(condition_of(pods(room)["b"], "PodScheduled"))


def test_where_some_nodes_offer_it_and_others_have_devices_either_wakes_who_waits() -> None:
    room = make_room(2)
    node = room.api.must("GET", f"{NODES}/gpu-1")
    amounts = {**node["status"]["allocatable"], GPU: "8"}
    room.api.merge(f"{NODES}/gpu-1/status", {"status": {"allocatable": amounts, "capacity": amounts}})
    start(room, "a", count=8)
    start(room, "b", count=8)
    start(room, "c", count=8)
    homes = {node_of(pod): name for name, pod in pods(room).items()}
    assert homes.keys() == {"gpu-1", "gpu-2", ""}
    assert len(room.api.items(CLAIMS)) == 1
    room.api.must("DELETE", f"{PODS}/{homes['gpu-2']}")
    room.cluster.sleep(60)
    assert node_of(pods(room)["c"]) == "gpu-2"
    start(room, "d", count=8)
    room.api.must("DELETE", f"{PODS}/{homes['gpu-1']}")
    room.cluster.sleep(60)
    assert node_of(pods(room)["d"]) == "gpu-1"


def test_a_pod_that_waited_for_a_class_goes_when_it_comes() -> None:
    room = Room(1)
    start(room, "a", count=2)
    assert room.bound() == 0
    assert "Insufficient example.com/gpu" in str(condition_of(pods(room)["a"], "PodScheduled"))
    room.apply(CLASS)
    room.cluster.sleep(30)
    assert room.bound() == 1


def test_the_devices_of_a_pod_that_ends_are_another_s() -> None:
    room = make_room(1)
    start(room, "a", count=8)
    start(room, "b", count=8)
    assert node_of(pods(room)["b"]) == ""
    room.api.must("DELETE", f"{PODS}/a")
    room.cluster.sleep(60)
    assert node_of(pods(room)["b"]) == "gpu-1"
    (claim,) = room.api.items(CLAIMS)
    assert claim["metadata"]["name"].startswith("b-extended-resources-")


def test_parts_of_gpus_are_given_only_where_the_node_itself_offers_gpus() -> None:
    """A class backs nvidia.com/gpu: whole ones may be devices for a claim, parts of one never."""
    room = Room(2)
    room.apply(CLASS.replace(GPU, NVIDIA))
    half = {"muster.dev/gpu-milli": "500"}
    start(room, "half", count=1, resource=NVIDIA, annotations=half)
    start(room, "whole", count=8, resource=NVIDIA)
    assert {name: bool(node_of(pod)) for name, pod in pods(room).items()} == {"half": False, "whole": True}
    assert "no GPU with 500 thousandths left" in str(condition_of(pods(room)["half"], "PodScheduled"))
    assert len(room.given()) == 1
    node = "gpu-2" if node_of(pods(room)["whole"]) == "gpu-1" else "gpu-1"
    amounts = {**room.api.must("GET", f"{NODES}/{node}")["status"]["allocatable"], NVIDIA: "1"}
    room.api.merge(f"{NODES}/{node}/status", {"status": {"allocatable": amounts, "capacity": amounts}})
    room.cluster.sleep(30)
    start(room, "other-half", count=1, resource=NVIDIA, annotations=half)
    start(room, "third-half", count=1, resource=NVIDIA, annotations=half)
    homes = {name: node_of(pod) for name, pod in pods(room).items()}
    assert (homes["half"], homes["other-half"], homes["third-half"]) == (node, node, "")
    assert len(room.given()) == 1


def test_a_claim_of_an_earlier_attempt_is_dropped_and_another_made() -> None:
    room = make_room(1)
    room.apply(
        POD.format(name="a", group="schedulingGates: [{name: later}]", resource=GPU, count=8, annotations={})
    )
    room.cluster.sleep(1)
    uid = pods(room)["a"]["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": uid, "controller": True}
    exactly = {"deviceClassName": "whole", "count": 8}
    left = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "name": "left-over",
            "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
            "ownerReferences": [owner],
        },
        "spec": {"devices": {"requests": [{"name": "container-0-request-0", "exactly": exactly}]}},
    }
    room.api.must("POST", CLAIMS, left)
    room.api.merge(f"{PODS}/a", {"spec": {"schedulingGates": None}})
    room.cluster.sleep(30)
    assert node_of(pods(room)["a"]) == "gpu-1"
    (claim,) = room.api.items(CLAIMS)
    assert claim["metadata"]["name"] != "left-over"
