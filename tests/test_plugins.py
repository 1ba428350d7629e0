"""Every plugin of the default profile: the contract kit, and a message that a user can act on.

A message names the rule, how much it costs (nodes, or members where no node was looked at) and an example.
That each has its entry in the guide is `test_plugin_guide.py`'s to test.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.cluster.device_objects import make_claim as make_claim_of_devices
from tests.unit.cluster.device_objects import make_class, make_device, make_request, make_slice
from tests.unit.cluster.volume_objects import make_claim, make_volume, mounts
from tests.unit.scheduling.world import World

from muster.api.core import Pod, PodClaim
from muster.api.devices import DeviceObject
from muster.api.meta import ObjectMeta
from muster.api.storage import CSINode, CSINodeSpec, NodeDriver, NodeResources
from muster.assembly.profiles import BUILT_IN
from muster.cluster.gpu_annotations import GPU_MILLI
from muster.cluster.snapshot import Snapshot
from muster.framework.points import (
    Filter,
    MemberCheck,
    PlacementFeasible,
    PlacementGenerator,
    PreEnqueue,
)
from muster.framework.runner import Runner, Weighted
from muster.scheduling.conditions import INITIALLY_SCHEDULED, WAITING
from muster.scheduling.reasons import Explanations, shortfall_of_filters
from muster.testing.builders import make_cluster, make_pod

UNIT_TESTS = Path(__file__).parent / "unit" / "plugins"
REJECTING = (PreEnqueue, MemberCheck, PlacementGenerator, Filter, PlacementFeasible)

APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
        ]
    }
}
EVEN = [
    {
        "maxSkew": 1,
        "topologyKey": "rack",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
]
ON_SSD = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
            ]
        }
    }
}


def two_nodes() -> World:
    return World().node("n1", cpu=4, labels={"rack": "r1"}).node("n2", cpu=4, labels={"rack": "r2"})


def with_volume(**words: Any) -> Snapshot:
    """n1 may attach one volume of the driver, and its pod `user` has claim c; claim d has a volume, too."""
    cluster = make_cluster().nodes(2)
    driver = NodeDriver("disk.example.com", NodeResources(1))
    cluster.state.volumes.apply(CSINode(ObjectMeta("n1"), CSINodeSpec([driver])))
    for name, zone in (("c", ""), ("d", ""), ("far", "elsewhere")):
        cluster.state.volumes.apply(make_claim(name, volume=f"v-{name}", **words))
        cluster.state.volumes.apply(make_volume(f"v-{name}", claim=name, **({"zone": zone} if zone else {})))
    return cluster.running("user", "n1", volumes=mounts("c")).snapshot()


def with_devices(claim: DeviceObject) -> Snapshot:
    """Two nodes, of which n1 has one device."""
    cluster = make_cluster().nodes(2)
    for each in (make_slice("n1", make_device("gpu-0", pair=0)), make_class(), claim):
        cluster.state.devices.apply(each)
    return cluster.snapshot()


def by_filters(pod: Pod, snapshot: Snapshot) -> str:
    """What a pod is told that all filters were asked about."""
    runner = Runner([Weighted(plugin()) for plugin in BUILT_IN.values()])
    rows = snapshot.live_rows()
    short = shortfall_of_filters(pod, runner.filter(pod, snapshot, rows), snapshot, rows)
    return Explanations(runner).show([short], {}, snapshot)[short.text]


def by_group(world: World) -> str:
    """What group "g" is told after a while."""
    world.run(6)
    told = world.condition("g", INITIALLY_SCHEDULED) or world.condition("g", WAITING)
    return (told.message or "") if told is not None else ""


MESSAGES: dict[str, tuple[Callable[[], World | str], tuple[str, ...]]] = {
    "SchedulingGates": (
        lambda: two_nodes().group("g", 3).members("g", 0).members("g", 1, 2, gates=["hold"]),
        ("scheduling gates of pod g-1: hold", "1 more members have gates"),
    ),
    "GangScheduling": (
        lambda: two_nodes().group("g", 3).members("g", 0, 1, 2, cpu=4),
        (
            "minCount (3) cannot be satisfied: 2 scheduled, 0 remaining",
            "2 Insufficient cpu",
            "n1: 4 cpu asked, 0 of 4 free",
        ),
    ),
    "TopologyPlacement": (
        lambda: two_nodes().group("g", 2, topology_keys=("row",)).members("g", 0, 1),
        ("none of 2 nodes have the label row", "n1 for example"),
    ),
    "UnsupportedRules": (
        lambda: (
            two_nodes()
            .group("g", 2)
            .members("g", 0)
            .members("g", 1, volumes=[{"name": "v", "rbd": {"image": "i"}}])
        ),
        ("spec.volumes[0].rbd", "1 of 2 members", "pod g-1"),
    ),
    "NodeUnschedulable": (
        lambda: World().node("n1").node("n2", unschedulable=True).group("g", 2).members("g", 0, 1, cpu=5),
        ("1 node(s) were unschedulable", "n2: spec.unschedulable is true"),
    ),
    "NodeName": (  # a pod that names its node is bound for the scheduler: only filters are asked about one
        lambda: by_filters(make_pod("p", node="n9"), make_cluster().nodes(2).snapshot()),
        (
            "2 node(s) didn't match the requested node name",
            "n1: the pod names node n9, which does not exist",
        ),
    ),
    "TaintToleration": (
        lambda: (
            World()
            .node("n1", taints=[{"key": "dedicated", "value": "infer", "effect": "NoSchedule"}])
            .node("n2", cpu=1)
            .group("g", 2)
            .members("g", 0, 1, cpu=2)
        ),
        ("1 node(s) had untolerated taint {dedicated: infer}", "n1: taint dedicated=infer:NoSchedule"),
    ),
    "NodeAffinity": (
        lambda: two_nodes().group("g", 2).members("g", 0, 1, affinity=ON_SSD),
        (
            "2 node(s) didn't match Pod's node affinity/selector",
            "n1: node affinity asks disk In (ssd), which is not there",
        ),
    ),
    "NodePorts": (
        lambda: (
            two_nodes()
            .pod("web", node="n1", host_ports=[80])
            .group("g", 2)
            .members("g", 0, 1, host_ports=[80])
        ),
        (
            "2 node(s) didn't have free ports",
            "n1: host port 80/TCP is taken by pod default/web",
        ),
    ),
    "VolumeRestrictions": (
        lambda: by_filters(make_pod(volumes=mounts("c")), with_volume(access_modes=["ReadWriteOncePod"])),
        (
            "2 node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod",
            "n1: claim default/c is pod default/user's, on n1",
        ),
    ),
    "NodeVolumeLimits": (
        lambda: by_filters(make_pod(volumes=mounts("d")), with_volume()),
        (
            "1 node(s) exceed max volume count",
            "n1: 2 volumes of disk.example.com would be attached, 1 can be",
        ),
    ),
    "VolumeBinding": (
        lambda: by_filters(make_pod(volumes=mounts("far")), with_volume()),
        (
            "1 node(s) didn't match PersistentVolume's node affinity",
            "n2: volume v-far of claim default/far pins the pod and is not reached from there",
        ),
    ),
    "DynamicResources": (
        lambda: by_filters(
            make_pod(resource_claims=[PodClaim("c", "c")]),
            with_devices(make_claim_of_devices("c", make_request("r", 2))),
        ),
        (
            "2 cannot allocate all claims",
            "n1: claim default/c: request r asks for 2 of class gpu: of 1 devices there 1 would do, 1 free",
        ),
    ),
    "NodeResourcesFit": (
        lambda: two_nodes().pod("x", node="n1", cpu=3).group("g", 2).members("g", 0, 1, cpu=4),
        ("2 Insufficient cpu", "n1: 4 cpu asked, 1 of 4 free"),
    ),
    "GpuDevices": (
        lambda: by_filters(
            make_pod(gpu=1, annotations={GPU_MILLI: "600"}),
            make_cluster()
            .nodes(2, gpu=1)
            .running("old", "n1", gpu=1, annotations={GPU_MILLI: "500"})
            .running("new", "n2", gpu=1, annotations={GPU_MILLI: "700"})
            .snapshot(),
        ),
        ("2 node(s) had no GPU with 600 thousandths left", "n1: its 1 GPUs have 500 thousandths left"),
    ),
    "PodTopologySpread": (
        lambda: (
            two_nodes()
            .pod("x", node="n2", cpu=4)
            .group("g", 2)
            .members("g", 0, 1, cpu=1, labels={"app": "web"}, topologySpreadConstraints=EVEN)
        ),
        (
            "1 node(s) didn't match pod topology spread constraints",
            "n1: rack=r1 would have 2 such pods, the emptiest has 0, maxSkew is 1",
        ),
    ),
    "InterPodAffinity": (
        lambda: two_nodes().group("g", 3).members("g", 0, 1, 2, labels={"app": "web"}, affinity=APART),
        (
            "2 node(s) didn't match pod anti-affinity rules",
            "n1: pod default/g-0 in kubernetes.io/hostname=n1 must be kept away from",
        ),
    ),
}


def rejecting() -> list[str]:
    return [name for name, plugin in BUILT_IN.items() if any(isinstance(plugin(), p) for p in REJECTING)]


def test_every_plugin_that_refuses_has_a_message_here() -> None:
    assert list(MESSAGES) == rejecting()


@pytest.mark.parametrize("name", list(MESSAGES))
def test_a_refusal_names_the_rule_what_it_costs_and_an_example(name: str) -> None:
    make, parts = MESSAGES[name]
    made = make()
    told = made if isinstance(made, str) else by_group(made)
    assert [part for part in parts if part not in told] == [], told


@pytest.mark.parametrize("name", list(BUILT_IN))
def test_every_plugin_runs_through_the_contract_kit(name: str) -> None:
    module = getattr(BUILT_IN[name], "__module__", "").rpartition(".")[2]
    text = (UNIT_TESTS / f"test_{module}.py").read_text(encoding="utf-8")
    assert f"check_plugin({name}(" in text
