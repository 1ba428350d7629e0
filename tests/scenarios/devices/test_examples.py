"""The files of `examples/devices/`, and the manifests of the page about them, on virtual time."""

import re
from pathlib import Path
from typing import Any

import yaml
from tests.conformance.server import CLAIMS, EVENTS, GROUPS, NODES, PODS, Api
from tests.conformance.simulation import SimulatedCluster

from muster.apiserver.server import DEFAULT_GATES, GATES
from muster.assembly.node_manifests import nodes_from_text
from muster.sim.view import condition_of, node_of

ROOT = Path(__file__).parents[3]
FILES = ROOT / "examples" / "devices"
VOLUME_CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
RESOURCES, STORAGE = "/apis/resource.k8s.io/v1", "/apis/storage.k8s.io/v1"
COLLECTIONS = {
    "Pod": PODS,
    "PodGroup": GROUPS,
    "DeviceClass": f"{RESOURCES}/deviceclasses",
    "ResourceClaimTemplate": f"{RESOURCES}/namespaces/default/resourceclaimtemplates",
    "ResourceClaim": CLAIMS,
    "DeviceTaintRule": f"{RESOURCES}/devicetaintrules",
    "StorageClass": f"{STORAGE}/storageclasses",
    "CSINode": f"{STORAGE}/csinodes",
    "CSIDriver": f"{STORAGE}/csidrivers",
    "CSIStorageCapacity": f"{STORAGE}/namespaces/default/csistoragecapacities",
    "PersistentVolume": "/api/v1/persistentvolumes",
    "PersistentVolumeClaim": VOLUME_CLAIMS,
}
SLICES = f"{RESOURCES}/resourceslices"

LATE = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: one-more}
spec:
  devices:
    requests: [{name: r, exactly: {deviceClassName: gpu-part}}]
---
apiVersion: v1
kind: Pod
metadata: {name: late}
spec:
  schedulerName: muster
  resourceClaims: [{name: c, resourceClaimName: one-more}]
  containers: [{name: c, image: example.com/c:1}]
"""

ALL_OF_ONE = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: eight}
spec:
  devices:
    requests: [{name: r, exactly: {deviceClassName: gpu, count: 8}}]
---
apiVersion: v1
kind: Pod
metadata: {name: large}
spec:
  schedulerName: muster
  nodeSelector: {kubernetes.io/hostname: gpu-3}
  resourceClaims: [{name: c, resourceClaimName: eight}]
  containers: [{name: c, image: example.com/c:1}]
"""


class Room:
    """A cluster of the nodes in `nodes.yaml`, or of the first few, with the classes."""

    def __init__(self, node_count: int = 4, gates: frozenset[str] = DEFAULT_GATES) -> None:
        self.cluster = SimulatedCluster(kubelets=True)
        self.cluster.world.cluster.server.gates = gates
        self.api = Api(self.cluster)
        text = (FILES / "nodes.yaml").read_text(encoding="utf-8")
        for node in nodes_from_text(text, "nodes.yaml")[:node_count]:
            self.api.must("POST", NODES, node)
        self.apply((FILES / "classes.yaml").read_text(encoding="utf-8"))

    def apply(self, text: str) -> None:
        """Create the objects of a text in order."""
        for manifest in yaml.safe_load_all(text):
            self.api.must("POST", COLLECTIONS[manifest["kind"]], manifest)

    def start_gang(self) -> None:
        self.apply((FILES / "gang.yaml").read_text(encoding="utf-8"))
        self.cluster.sleep(20)

    def bound(self) -> int:
        return sum(bool(node_of(pod)) for pod in self.api.items(PODS))

    def given(self) -> list[list[tuple[str, str]]]:
        """Pool and device of every allocated claim."""
        allocations = [(claim.get("status") or {}).get("allocation") for claim in self.api.items(CLAIMS)]
        return [
            [(result["pool"], result["device"]) for result in found["devices"]["results"]]
            for found in allocations
            if found
        ]

    def message(self, name: str = "train") -> str:
        condition = condition_of(self.api.must("GET", f"{GROUPS}/{name}"), "PodGroupInitiallyScheduled")
        assert condition is not None
        return str(condition["message"])


def pair_of(device: str) -> int:
    return int(device.removeprefix("gpu-")) // 2


def test_the_driver_publishes_what_the_node_file_says() -> None:
    room = Room()
    room.cluster.sleep(1)
    counts = {
        found["metadata"]["name"].partition("-gpu.")[0]: len(found["spec"]["devices"])
        for found in room.api.items(SLICES)
        if "devices" in found["spec"]
    }
    assert counts == {"gpu-1": 8, "gpu-2": 8, "gpu-3": 8, "gpu-4": 18}
    (counters,) = [found["spec"] for found in room.api.items(SLICES) if "sharedCounters" in found["spec"]]
    assert counters["sharedCounters"] == [
        {"name": "mig-0", "counters": {"slices": {"value": "7"}, "memory": {"value": "80Gi"}}}
    ]


def test_every_member_gets_a_linked_pair_and_a_volume() -> None:
    room = Room()
    room.start_gang()
    assert room.bound() == 4
    given = room.given()
    assert [len(devices) for devices in given] == [2, 2, 2, 2]
    assert all(len({(pool, pair_of(device)) for pool, device in devices}) == 1 for devices in given)
    assert len({device for devices in given for device in devices}) == 8
    volumes: list[Any] = [claim["status"]["phase"] for claim in room.api.items(VOLUME_CLAIMS)]
    assert volumes == ["Bound"] * 4


def test_without_room_for_all_nobody_gets_anything() -> None:
    room = Room(node_count=1)
    slice_path = f"{SLICES}/gpu-1-gpu.example.com"
    room.cluster.sleep(1)
    devices = room.api.must("GET", slice_path)["spec"]["devices"]
    room.api.merge(slice_path, {"spec": {"devices": devices[:7]}})
    room.start_gang()
    assert (room.bound(), room.given()) == (0, [])
    assert "cannot allocate all claims" in room.message()


def test_the_manifests_of_the_page_do_what_it_says() -> None:
    page = (ROOT / "docs" / "devices-and-volumes.md").read_text(encoding="utf-8")
    room = Room(gates=GATES)
    for block in re.findall(r"```yaml\n(.*?)```", page, flags=re.DOTALL):
        room.apply(block)
    room.cluster.sleep(1)
    nodes = {pod["metadata"]["name"]: node_of(pod) for pod in room.api.items(PODS)}
    assert nodes["notebook"] == "gpu-4"
    assert nodes["writer"] == ""
    assert nodes["reader-0"] == nodes["reader-1"] != ""
    claims = {claim["metadata"]["name"]: claim["status"] for claim in room.api.items(CLAIMS)}
    (result,) = claims.pop("small")["allocation"]["devices"]["results"]
    assert (result["pool"], result["device"]) == ("gpu-4", "mig-0-1g-0")
    parts = [result["device"] for result in claims.pop("mixed")["allocation"]["devices"]["results"]]
    assert parts == ["mig-0-3g-0", "mig-0-1g-1", "mig-0-1g-2", "mig-0-1g-3"]
    extended = [claims.pop(name) for name in list(claims) if "-extended-resources-" in name]
    assert [len(each["allocation"]["devices"]["results"]) for each in extended] == [2, 2]
    (shared,) = claims.values()
    assert [(user["resource"], user["name"]) for user in shared["reservedFor"]] == [("podgroups", "readers")]
    assert (nodes["small-shard"], nodes["large-shard"]) == ("gpu-2", "gpu-1")
    room.cluster.sleep(30)
    assert room.bound() == 9
    failed = [event for event in room.api.items(EVENTS) if event["reason"] == "ProvisioningFailed"]
    assert len(failed) == 2


def test_a_device_out_of_service_is_given_again_when_its_taint_goes() -> None:
    page = (ROOT / "docs" / "devices-and-volumes.md").read_text(encoding="utf-8")
    (rule,) = (
        block for block in re.findall(r"```yaml\n(.*?)```", page, flags=re.DOTALL) if "TaintRule" in block
    )
    room = Room(3)
    room.apply(rule)
    room.apply(ALL_OF_ONE)
    room.cluster.sleep(5)
    (pod,) = room.api.items(PODS)
    condition = condition_of(pod, "PodScheduled")
    assert condition is not None
    assert "asks for 8 of class gpu: of 8 devices there 7 would do, 7 free, 1 more but for taint" in str(
        condition
    )
    room.api.must("DELETE", f"{RESOURCES}/devicetaintrules/fans-fail")
    room.cluster.sleep(60)
    assert node_of(room.api.items(PODS)[0]) == "gpu-3"


def test_a_gpu_whose_parts_are_taken_is_not_given_as_a_whole() -> None:
    page = (ROOT / "docs" / "devices-and-volumes.md").read_text(encoding="utf-8")
    room = Room()
    blocks = re.findall(r"```yaml\n(.*?)```", page, flags=re.DOTALL)
    for block in blocks[:2]:
        room.apply(block)
    room.apply(LATE)
    room.cluster.sleep(1)
    pods = {pod["metadata"]["name"]: pod for pod in room.api.items(PODS)}
    assert node_of(pods["tuner"]) == "gpu-4"
    condition = condition_of(pods["late"], "PodScheduled")
    assert condition is not None
    assert "cannot allocate all claims" in condition["message"]
    room.api.must("DELETE", f"{PODS}/tuner")
    room.cluster.sleep(60)
    late = next(pod for pod in room.api.items(PODS) if pod["metadata"]["name"] == "late")
    assert node_of(late) == "gpu-4"
