"""Broken claims, slices and volumes: what a gang of two is told names the object and the cure."""

from collections.abc import Callable

import pytest
from msgspec import Struct
from tests.conformance.server import CLAIMS, GROUPS
from tests.scenarios.devices.test_examples import SLICES, VOLUME_CLAIMS, Room

from muster.sim.view import condition_of

GROUP = """
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: train}
spec: {schedulingPolicy: {gang: {minCount: 2}}}
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {{name: train-{index}}}
spec:
  schedulerName: muster
  schedulingGroup: {{podGroupName: train}}
  containers: [{{name: c, image: example.com/c:1}}]
  {wants}
"""
CLAIM = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {{name: {name}{more}}}
spec: {{devices: {{requests: [{{name: gpu, exactly: {{deviceClassName: {class_name}, count: {count}}}}}]}}}}
"""
STORAGE = """
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {{name: {name}}}
provisioner: {provisioner}
volumeBindingMode: {mode}
parameters: {parameters}
"""
VOLUME_CLAIM = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{name: {name}{more}}}
spec:
  storageClassName: {class_name}
  accessModes: [{access}]
  resources: {{requests: {{storage: 10Gi}}}}
"""
BROKEN_CLASS = """
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: throws}
spec: {selectors: [{cel: {expression: 'device.attributes["gpu.example.com"].nvlink > 0'}}]}
"""
TAINT_RULE = """
apiVersion: resource.k8s.io/v1
kind: DeviceTaintRule
metadata: {name: recall}
spec:
  deviceSelector: {driver: gpu.example.com}
  taint: {key: example.com/recalled, effect: NoSchedule}
"""
CSI_NODE = """
apiVersion: storage.k8s.io/v1
kind: CSINode
metadata: {{name: {name}}}
spec: {{drivers: [{{name: disk.example.com, nodeID: {name}, allocatable: {{count: 0}}}}]}}
"""
DRIVER = """
apiVersion: storage.k8s.io/v1
kind: CSIDriver
metadata: {name: disk.example.com}
spec: {storageCapacity: true}
"""
CAPACITY = """
apiVersion: storage.k8s.io/v1
kind: CSIStorageCapacity
metadata: {name: everywhere}
storageClassName: s
capacity: 1Gi
nodeTopology: {}
"""
SIMULATED, DISK, FIRST = "muster.dev/simulated", "disk.example.com", "WaitForFirstConsumer"
HELD = ", finalizers: [example.com/hold]"


def claim(name: str, class_name: str = "gpu", count: int = 1, more: str = "") -> str:
    return CLAIM.format(name=name, class_name=class_name, count=count, more=more)


def storage(name: str = "s", provisioner: str = SIMULATED, mode: str = FIRST, **parameters: str) -> str:
    return STORAGE.format(name=name, provisioner=provisioner, mode=mode, parameters=parameters)


def volume_claim(name: str, class_name: str = "s", access: str = "ReadWriteOnce", more: str = "") -> str:
    return VOLUME_CLAIM.format(name=name, class_name=class_name, access=access, more=more)


def csi_node(name: str) -> str:
    return CSI_NODE.format(name=name)


def devices(**source: str) -> str:
    said = ", ".join(f"{key}: {value}" for key, value in source.items())
    return f"resourceClaims: [{{name: gpu, {said}}}]"


def mounts(name: str) -> str:
    return f"volumes: [{{name: v, persistentVolumeClaim: {{claimName: {name}}}}}]"


def hold(collection: str, name: str) -> Callable[[Room], None]:
    return lambda room: room.api.must("DELETE", f"{collection}/{name}") and None


def lose_a_slice(room: Room) -> None:
    for node in ("gpu-1", "gpu-2"):
        path = f"{SLICES}/{node}-gpu.example.com"
        pool = room.api.must("GET", path)["spec"]["pool"]
        room.api.merge(path, {"spec": {"pool": {**pool, "resourceSliceCount": 2}}})


def lose_a_volume(room: Room) -> None:
    room.api.merge(f"{VOLUME_CLAIMS}/v", {"spec": {"volumeName": "gone"}})
    room.api.merge(f"{VOLUME_CLAIMS}/v/status", {"status": {"phase": "Lost"}})


class Broken(Struct, frozen=True):
    """Objects that are made, what is done then, what each of two members wants, and words of the reason."""

    words: tuple[str, ...]
    wants: tuple[str, str]
    objects: tuple[str, ...] = ()
    then: Callable[[Room], None] = lambda room: None


X = (devices(resourceClaimName="x"),) * 2
TEMPLATE = (devices(resourceClaimTemplateName="none"),) * 2
V, W = mounts("v"), mounts("w")
VOLUMES = (volume_claim("v"), volume_claim("w"))
DISKS = storage(provisioner=DISK)

CASES = [
    pytest.param(Broken(('resourceclaim "x", which does not exist',), X), id="claim-missing"),
    pytest.param(
        Broken(
            ('resourceclaim "x" is being deleted', "make it anew then"),
            X,
            (claim("x", more=HELD),),
            hold(CLAIMS, "x"),
        ),
        id="claim-deleting",
    ),
    pytest.param(
        Broken(
            ('resourceclaim "x": request gpu: deviceclass nope not found', "create the class"),
            X,
            (claim("x", "nope"),),
        ),
        id="device-class-unknown",
    ),
    pytest.param(
        Broken(
            ("no such key: nvlink (device gpu.example.com/gpu-1/gpu-0, selector of deviceclass throws)",),
            X,
            (BROKEN_CLASS, claim("x", "throws")),
        ),
        id="selector-that-fails",
    ),
    pytest.param(
        Broken(('made from resourceclaimtemplate "none": events of the pod say why it is not',), TEMPLATE),
        id="template-missing",
    ),
    pytest.param(
        Broken(
            ("pool gpu.example.com/gpu-1 is not whole: 1 of 2 slices; claim default/x: request gpu asks",),
            X,
            (claim("x"),),
            lose_a_slice,
        ),
        id="pool-not-whole",
    ),
    pytest.param(
        Broken(
            (
                "claim default/x: request gpu asks for 1 of class gpu",
                "8 more but for taint example.com/recalled",
            ),
            X,
            (TAINT_RULE, claim("x")),
        ),
        id="devices-tainted-by-a-rule",
    ),
    pytest.param(
        Broken(
            ("ReadWriteOncePod", "claim default/v is pod default/train-0's, on gpu-1"),
            (V, V),
            (storage(), volume_claim("v", access="ReadWriteOncePod")),
        ),
        id="volume-for-one-pod-used-twice",
    ),
    pytest.param(
        Broken(
            ("exceed max volume count", f"1 volumes of {DISK} would be attached, 0 can be"),
            (V, W),
            (DISKS, *VOLUMES, csi_node("gpu-1"), csi_node("gpu-2")),
        ),
        id="attach-limit",
    ),
    pytest.param(
        Broken(
            (f"claim default/v: {DISK} has no room left there for one of class s",),
            (V, W),
            (DISKS, *VOLUMES, DRIVER, CAPACITY),
        ),
        id="storage-capacity-short",
    ),
    pytest.param(
        Broken(
            (
                'claim "v" got no volume on node gpu-1',
                f"{SIMULATED} (class s) could not make it; events of the claim say why",
            ),
            (V, W),
            (storage(failures="100"), *VOLUMES),
        ),
        id="provisioner-fails",
    ),
    pytest.param(
        Broken((f'wait for: volume of claim "v" (class "s") by {DISK}',), (V, W), (DISKS, *VOLUMES)),
        id="provisioner-does-not-run",
    ),
    pytest.param(
        Broken(('persistentvolumeclaim "v" not found', "create it"), (V, W)), id="volume-claim-missing"
    ),
    pytest.param(
        Broken(
            ('persistentvolumeclaim "v" is being deleted', "make it anew then"),
            (V, W),
            (storage(), volume_claim("v", more=HELD), volume_claim("w")),
            hold(VOLUME_CLAIMS, "v"),
        ),
        id="volume-claim-deleting",
    ),
    pytest.param(
        Broken(
            ('storageclass.storage.k8s.io "s" not found, asked for by claim "v"', "create the class"),
            (V, W),
            VOLUMES,
        ),
        id="storage-class-unknown",
    ),
    pytest.param(
        Broken(
            ("claim default/v: no volume of class s is free there, and nobody makes any",),
            (V, W),
            (storage(provisioner="kubernetes.io/no-provisioner"), *VOLUMES),
        ),
        id="storage-class-that-makes-nothing",
    ),
    pytest.param(
        Broken(
            ('persistentvolumeclaim "v" bound to non-existent persistentvolume "gone"', "make it anew"),
            (V, W),
            (storage(), volume_claim("v"), volume_claim("w")),
            lose_a_volume,
        ),
        id="volume-claim-lost",
    ),
    pytest.param(
        Broken(
            ("unbound immediate PersistentVolumeClaims: v", "the events of the claims say why not yet"),
            (V, W),
            (storage(mode="Immediate", failures="100"), *VOLUMES),
        ),
        id="volume-that-comes-first-is-not-made",
    ),
]


@pytest.mark.parametrize("broken", CASES)
def test_the_group_is_told_what_is_broken_and_what_helps(broken: Broken) -> None:
    room = Room(2)
    room.cluster.sleep(1)
    for text in broken.objects:
        room.apply(text)
    broken.then(room)
    room.apply(GROUP)
    for index, wants in enumerate(broken.wants):
        room.apply(POD.format(index=index, wants=wants))
    room.cluster.sleep(20)
    assert room.bound() == 0
    group = room.api.must("GET", f"{GROUPS}/train")
    told = [condition_of(group, type_) for type_ in ("PodGroupInitiallyScheduled", "muster.dev/Waiting")]
    messages = [condition["message"] for condition in told if condition is not None]
    assert any(all(word in message for word in broken.words) for message in messages), messages
