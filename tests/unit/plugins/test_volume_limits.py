"""NodeVolumeLimits."""

from tests.unit.cluster.volume_objects import make_claim, make_class, make_volume, mounts

from muster.api.meta import ObjectMeta
from muster.api.storage import (
    AttachmentSource,
    AttachmentSpec,
    CSIDriver,
    CSIDriverSpec,
    CSINode,
    CSINodeSpec,
    NodeDriver,
    NodeResources,
    VolumeAttachment,
)
from muster.framework.events import Change, ClusterEvent, Hint, Rejected
from muster.framework.groups import ObjectKey
from muster.plugins.volume_binding import VolumeBinding
from muster.plugins.volume_limits import EXCEEDED, NodeVolumeLimits
from muster.plugins.volume_restrictions import VolumeRestrictions
from muster.testing.builders import ClusterBuilder, make_cluster, make_pod
from muster.testing.conformance import check_plugin

NAMES = ("a", "b", "c")


def cluster_with(limit: int) -> ClusterBuilder:
    """n1 attaches so many volumes of the driver, n2 says nothing."""
    cluster = make_cluster().nodes(2)
    driver = NodeDriver("disk.example.com", NodeResources(limit))
    cluster.state.volumes.apply(CSINode(ObjectMeta("n1"), CSINodeSpec([driver])))
    for name in NAMES:
        cluster.state.volumes.apply(make_claim(name, volume=f"v-{name}"))
        cluster.state.volumes.apply(make_volume(f"v-{name}", claim=name))
    return cluster


def feasible(cluster: ClusterBuilder, *claims: str) -> list[bool]:
    snapshot = cluster.snapshot()
    pod = make_pod(volumes=mounts(*claims))
    return NodeVolumeLimits().filter(pod, snapshot, snapshot.live_rows()).feasible.tolist()


def test_it_keeps_the_contract() -> None:
    pods = [make_pod("p", volumes=mounts("a")), make_pod("q", volumes=mounts("b"))]
    check_plugin(NodeVolumeLimits(), pods=pods, snapshots=[cluster_with(1).snapshot()])


def test_a_node_attaches_no_more_than_it_can() -> None:
    cluster = cluster_with(2).running("old", "n1", volumes=mounts("a"))
    assert feasible(cluster, "b") == [True, True]
    assert feasible(cluster, "b", "c") == [False, True]
    snapshot = cluster.snapshot()
    pod = make_pod(volumes=mounts("b", "c"))
    reasons = NodeVolumeLimits().filter(pod, snapshot, snapshot.live_rows()).reasons
    assert [reason.text for reason in reasons] == [EXCEEDED]


def test_a_volume_that_is_there_already_counts_once() -> None:
    assert feasible(cluster_with(1).running("old", "n1", volumes=mounts("a")), "a") == [True, True]


def test_volumes_that_are_to_be_made_count_too() -> None:
    cluster = cluster_with(1).running("old", "n1", volumes=mounts("a"))
    cluster.state.volumes.apply(make_class(provisioner="disk.example.com"))
    cluster.state.volumes.apply(make_claim("new"))
    assert feasible(cluster, "new") == [False, True]


def test_what_is_attached_already_stays_beyond_a_limit_that_was_lowered() -> None:
    cluster = (
        cluster_with(1).running("old", "n1", volumes=mounts("a")).running("too", "n1", volumes=mounts("b"))
    )
    assert feasible(cluster, "a") == [True, True]
    assert feasible(cluster, "c") == [False, True]


def attach(cluster: ClusterBuilder, volume: str, node: str = "n1") -> ClusterBuilder:
    source = AttachmentSource(volume)
    spec = AttachmentSpec("disk.example.com", node, source)
    meta = ObjectMeta(f"csi-{volume}-{node}", uid=f"uid-{volume}-{node}")
    cluster.state.volumes.apply(VolumeAttachment(meta, spec))
    return cluster


def test_what_is_still_attached_counts_though_its_pod_is_gone() -> None:
    cluster = attach(cluster_with(1), "v-a")
    assert feasible(cluster, "b") == [False, True]
    assert feasible(cluster, "a") == [True, True]
    cluster.state.volumes.remove(VolumeAttachment, ("", "csi-v-a-n1"), "")
    assert feasible(cluster, "b") == [True, True]


def test_a_volume_of_a_pod_that_is_attached_counts_once() -> None:
    cluster = attach(cluster_with(2).running("old", "n1", volumes=mounts("a")), "v-a")
    assert feasible(attach(cluster, "v-a", node="n2"), "b") == [True, True]


def test_an_attachment_matters_to_limits_alone() -> None:
    (attached,) = attach(cluster_with(1), "v-a").state.volumes._objects[VolumeAttachment].values()
    rejected = Rejected(ObjectKey("default", "g"), None, (make_pod(volumes=mounts("b")),))
    event = ClusterEvent(Change.STORAGE_CHANGED, storage=attached)
    hints = {
        plugin.name: [
            rule.helps is None or rule.helps(rejected, event) is Hint.QUEUE
            for rule in plugin.hint_rules()
            if rule.change is Change.STORAGE_CHANGED
        ]
        for plugin in (NodeVolumeLimits(), VolumeBinding(), VolumeRestrictions())
    }
    assert hints == {"NodeVolumeLimits": [True], "VolumeBinding": [False], "VolumeRestrictions": [False]}


def test_a_raised_limit_counts_at_once() -> None:
    cluster = cluster_with(1).running("old", "n1", volumes=mounts("a"))
    assert feasible(cluster, "b") == [False, True]
    driver = NodeDriver("disk.example.com", NodeResources(2))
    cluster.state.volumes.apply(CSINode(ObjectMeta("n1"), CSINodeSpec([driver])))
    assert feasible(cluster, "b") == [True, True]


def test_a_driver_that_must_run_is_missed_where_it_does_not() -> None:
    cluster = cluster_with(2)
    spec = CSIDriverSpec(prevent_pod_scheduling_if_missing=True)
    cluster.state.volumes.apply(CSIDriver(ObjectMeta("disk.example.com"), spec))
    assert feasible(cluster, "a") == [True, False]
    snapshot, pod = cluster.snapshot(), make_pod(volumes=mounts("a"))
    (reason,) = NodeVolumeLimits().filter(pod, snapshot, snapshot.live_rows()).reasons
    assert reason.text == "disk.example.com CSI driver is not installed on the node"
    assert "n2" in NodeVolumeLimits().example(pod, snapshot, 1, reason.text)
