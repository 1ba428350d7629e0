"""Who is evicted for somebody more important with claims: for room or an attachment, never for devices."""

import pytest
from tests.conformance.server import PODS
from tests.scenarios.devices.test_broken import FIRST, claim, devices, mounts, storage, volume_claim
from tests.scenarios.devices.test_examples import Room

from muster.sim.view import node_of

POD = """
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  schedulerName: muster
  priorityClassName: {priority}
  {group}
  containers: [{{name: c, image: example.com/c:1, resources: {{requests: {{cpu: {cpu}}}}}}}]
  {wants}
"""
GROUP = """
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: train}
spec: {priorityClassName: high, schedulingPolicy: {gang: {minCount: 2}}}
"""
VOLUME = """
apiVersion: v1
kind: PersistentVolume
metadata: {{name: disk-{name}}}
spec:
  capacity: {{storage: 10Gi}}
  accessModes: [{access}]
  storageClassName: s
  csi: {{driver: disk.example.com, volumeHandle: disk-{name}}}
"""
CSI_NODE = """
apiVersion: storage.k8s.io/v1
kind: CSINode
metadata: {name: gpu-1}
spec: {drivers: [{name: disk.example.com, nodeID: gpu-1, allocatable: {count: 1}}]}
"""
LITTLE, MOST = "1", "60"  # of the 64 cores of the node
ALONE = "ReadWriteOncePod"


def one_node() -> Room:
    """One node, of eight GPUs, and two priorities."""
    room = Room(1)
    for name, value in (("low", 1), ("high", 100)):
        metadata = {"name": name}
        body = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": metadata}
        path = "/apis/scheduling.k8s.io/v1/priorityclasses"
        room.api.must("POST", path, body | {"value": value})
    return room


def pod(name: str, priority: str, cpu: str, wants: str = "", group: str = "") -> str:
    grouped = f"schedulingGroup: {{podGroupName: {group}}}" if group else ""
    return POD.format(name=name, priority=priority, cpu=cpu, wants=wants, group=grouped)


def running(room: Room) -> list[str]:
    """The pods that have a node once all has come to rest."""
    room.cluster.sleep(40)
    return sorted(each["metadata"]["name"] for each in room.api.items(PODS) if node_of(each))


def disks(room: Room, *names: str, access: str = "ReadWriteOnce", mode: str = FIRST) -> None:
    room.apply(storage(provisioner="kubernetes.io/no-provisioner", mode=mode))
    for name in names:
        room.apply(VOLUME.format(name=name, access=access))
        room.apply(volume_claim(name, access=access))


@pytest.mark.parametrize("kind", ["devices", "volume", "volume to be made"])
def test_room_is_made_for_a_pod_with_claims(kind: str) -> None:
    room = one_node()
    wants = mounts("v")
    if kind == "devices":
        room.apply(claim("c"))
        wants = devices(resourceClaimName="c")
    elif kind == "volume":
        disks(room, "v")
    else:
        room.apply(storage())
        room.apply(volume_claim("v"))
    room.apply(pod("weak", "low", MOST))
    assert running(room) == ["weak"]
    room.apply(pod("strong", "high", MOST, wants))
    assert running(room) == ["strong"]


def test_room_is_made_for_a_gang_with_claims_and_for_no_part_of_it() -> None:
    room = one_node()
    room.apply(GROUP + "---" + claim("a", count=4) + "---" + claim("b", count=4))
    room.apply(pod("weak", "low", MOST))
    assert running(room) == ["weak"]
    room.apply(pod("train-0", "high", "20", devices(resourceClaimName="a"), "train"))
    assert running(room) == ["weak"]
    room.apply(pod("train-1", "high", "20", devices(resourceClaimName="b"), "train"))
    assert running(room) == ["train-0", "train-1"]


def test_nobody_is_evicted_for_a_gang_that_would_not_get_its_devices() -> None:
    room = one_node()
    room.apply(GROUP + "---" + claim("a", count=4) + "---" + claim("b", count=5))
    room.apply(pod("weak", "low", MOST))
    for name, claimed in (("train-0", "a"), ("train-1", "b")):
        room.apply(pod(name, "high", "20", devices(resourceClaimName=claimed), "train"))
    assert running(room) == ["weak"]


def test_a_claim_for_one_pod_goes_from_the_weaker_to_the_stronger() -> None:
    room = one_node()
    disks(room, "v", access=ALONE)
    room.apply(pod("weak", "low", LITTLE, mounts("v")))
    assert running(room) == ["weak"]
    room.apply(pod("equal", "low", LITTLE, mounts("v")))
    assert running(room) == ["weak"]
    room.apply(pod("strong", "high", LITTLE, mounts("v")))
    assert running(room) == ["strong"]


def test_the_last_attachment_goes_from_the_weaker_to_the_stronger() -> None:
    room = one_node()
    room.apply(CSI_NODE)
    disks(room, "v", "w", mode="Immediate")
    room.cluster.sleep(5)
    room.apply(pod("weak", "low", LITTLE, mounts("v")))
    assert running(room) == ["weak"]
    room.apply(pod("strong", "high", LITTLE, mounts("w")))
    assert running(room) == ["strong"]


def test_nobody_is_evicted_for_the_devices_of_its_claim() -> None:
    room = one_node()
    room.apply(claim("c", count=8) + "---" + claim("d", count=8))
    room.apply(pod("weak", "low", LITTLE, devices(resourceClaimName="c")))
    assert running(room) == ["weak"]
    room.apply(pod("strong", "high", LITTLE, devices(resourceClaimName="d")))
    assert running(room) == ["weak"]
