"""VolumeBinding."""

import numpy as np
from msgspec.structs import replace
from tests.unit.cluster.volume_objects import make_claim, make_class, make_volume, mounts

from muster.api.core import LabelSelector
from muster.api.meta import ObjectMeta
from muster.api.storage import (
    ClaimStatus,
    CSIDriver,
    CSIDriverSpec,
    CSIStorageCapacity,
    StorageClass,
    StorageObject,
    TopologyExpression,
    TopologyTerm,
)
from muster.cluster.snapshot import Snapshot
from muster.cluster.volumes import Choice
from muster.framework.events import Change, ClusterEvent, Hint, Rejected
from muster.framework.groups import ObjectKey
from muster.framework.ports import PromiseVolume, SelectNode
from muster.framework.status import Verdict
from muster.plugins.volume_binding import NO_SPACE, NO_VOLUME, NOT_IN_ZONE, NOT_REACHED, VolumeBinding
from muster.testing.builders import ClusterBuilder, make_cluster, make_pod
from muster.testing.conformance import check_plugin


def cluster_with(*objects: StorageObject) -> ClusterBuilder:
    """n1 and n3 in zone a, n2 in zone b."""
    cluster = make_cluster()
    for zone in ("a", "b", "a"):
        cluster.node(labels={"zone": zone})
    for each in objects:
        cluster.state.volumes.apply(each)
    return cluster


def feasible(snapshot: Snapshot, *claims: str, name: str = "p") -> list[bool]:
    pod = make_pod(name, volumes=mounts(*claims))
    return VolumeBinding().filter(pod, snapshot, snapshot.live_rows()).feasible.tolist()


def test_it_keeps_the_contract() -> None:
    snapshot = cluster_with(
        make_class(), make_claim("c"), make_claim("d"), make_volume("v", zone="a")
    ).snapshot()
    pods = [make_pod("p", volumes=mounts("c")), make_pod("q", volumes=mounts("d")), make_pod("r")]
    check_plugin(VolumeBinding(), pods=pods, snapshots=[snapshot])


def test_a_pod_goes_where_its_volume_is() -> None:
    snapshot = cluster_with(make_claim("c", volume="v"), make_volume("v", zone="b", claim="c")).snapshot()
    verdict = VolumeBinding().filter(make_pod(volumes=mounts("c")), snapshot, snapshot.live_rows())
    assert verdict.feasible.tolist() == [False, True, False]
    assert [(reason.text, reason.resolvable) for reason in verdict.reasons] == [(NOT_REACHED, False)]


def test_a_claim_that_is_missing_is_named_on_every_node() -> None:
    snapshot = cluster_with().snapshot()
    verdict = VolumeBinding().filter(make_pod(volumes=mounts("c")), snapshot, snapshot.live_rows())
    assert not verdict.feasible.any()
    assert [reason.text for reason in verdict.reasons] == ['persistentvolumeclaim "c" not found']


def test_an_open_claim_needs_a_volume_that_is_free_and_reached() -> None:
    cluster = cluster_with(make_class(), make_claim("c"), make_volume("v", zone="a"))
    assert feasible(cluster.snapshot(), "c") == [True, False, True]
    pod, snapshot = make_pod(volumes=mounts("c")), cluster.snapshot()
    reasons = VolumeBinding().filter(pod, snapshot, snapshot.live_rows()).reasons
    assert [reason.text for reason in reasons] == [NO_VOLUME]


def test_members_do_not_get_the_same_volume() -> None:
    objects = (make_class(), make_claim("c"), make_claim("d"), make_volume("v", zone="a"))
    fork = cluster_with(*objects).snapshot().fork()
    fork.place(make_pod("first", volumes=mounts("c")), 0)
    assert feasible(fork, "d") == [False, False, False]


def test_a_member_moves_on_to_another_volume_for_the_next() -> None:
    objects = (make_class(), make_claim("c"), make_claim("big", size="5Gi"))
    volumes = (make_volume("small", zone="a"), make_volume("large", zone="a", size="9Gi"))
    snapshot = cluster_with(*objects, make_volume("tiny", zone="b", size="1Gi"), *volumes).snapshot()
    fork = snapshot.fork()
    fork.place(make_pod("first", volumes=mounts("c")), 0)
    assert feasible(fork, "big") == [True, False, True]


def test_who_shares_a_claim_must_reach_what_the_first_got() -> None:
    fork = cluster_with(make_class(), make_claim("c"), make_volume("v", zone="a")).snapshot().fork()
    fork.place(make_pod("first", volumes=mounts("c")), 0)
    assert feasible(fork, "c", name="second") == [True, False, True]


def test_only_pods_with_claims_change_each_other() -> None:
    snapshot = cluster_with().snapshot()
    plain, with_claim = make_pod("p"), make_pod("q", volumes=mounts("c"))
    changed = VolumeBinding().rows_changed(plain, 0, with_claim, snapshot)
    assert changed is not None
    assert not changed.size
    assert VolumeBinding().rows_changed(with_claim, 0, with_claim, snapshot) is None


def test_volumes_are_promised_and_nodes_selected_for_the_whole_gang_at_once() -> None:
    objects = (make_class(), make_claim("c"), make_claim("d"), make_volume("v", zone="a"))
    made = make_class("make", provisioner="a/b")
    other = make_claim("e", storage_class_name="make")
    snapshot = cluster_with(*objects, make_volume("w", zone="b"), made, other).snapshot()
    placed = [(make_pod(name, volumes=mounts(name)), row) for name, row in (("c", 0), ("d", 1), ("e", 2))]
    writes = VolumeBinding().prepare([*placed, (make_pod("plain"), 0)], snapshot)
    assert writes == {
        ObjectKey("default", "c"): (
            PromiseVolume(ObjectKey("default", "c"), "v", "5", ObjectKey("default", "c"), "uid-c"),
        ),
        ObjectKey("default", "d"): (
            PromiseVolume(ObjectKey("default", "d"), "w", "5", ObjectKey("default", "d"), "uid-d"),
        ),
        ObjectKey("default", "e"): (
            SelectNode(ObjectKey("default", "e"), ObjectKey("default", "e"), "uid-e", "n3"),
        ),
    }


def test_who_has_all_its_volumes_needs_nothing() -> None:
    snapshot = cluster_with(make_claim("c", volume="v"), make_volume("v", claim="c")).snapshot()
    assert VolumeBinding().prepare([(make_pod(volumes=mounts("c")), 0)], snapshot) == {}


def test_a_member_is_ready_when_its_claims_are_bound_where_it_is() -> None:
    cluster = cluster_with(make_class(provisioner="a/b"), make_claim("c"))
    pod, node = make_pod(volumes=mounts("c")), cluster.state.node("n2")
    assert node is not None
    cluster.state.volumes.choose(("default", "c"), Choice("", "n2"))
    waiting = VolumeBinding().is_ready(pod, node, cluster.snapshot())
    assert (waiting.verdict, waiting.message) == (Verdict.WAIT, 'volume of claim "c" (class "wait") by a/b')
    cluster.state.volumes.remove(StorageClass, ("", "wait"), "uid-wait")
    waiting = VolumeBinding().is_ready(pod, node, cluster.snapshot())
    assert waiting.message == 'volume of claim "c" (class "wait", which does not exist)'
    cluster.state.volumes.apply(make_volume("v", zone="b", claim="c"))
    cluster.state.volumes.apply(make_claim("c", volume="v"))
    assert VolumeBinding().is_ready(pod, node, cluster.snapshot()).ok
    cluster.state.volumes.apply(make_volume("v", zone="a", claim="c"))
    assert VolumeBinding().is_ready(pod, node, cluster.snapshot()).verdict is Verdict.UNSCHEDULABLE


def test_a_volume_whose_watch_is_late_is_waited_for_and_one_that_is_lost_is_not() -> None:
    cluster = cluster_with(make_class(provisioner="a/b"), make_claim("c", volume="v"))
    pod, node = make_pod(volumes=mounts("c")), cluster.state.node("n2")
    assert node is not None
    assert VolumeBinding().is_ready(pod, node, cluster.snapshot()).verdict is Verdict.WAIT
    cluster.state.volumes.apply(replace(make_claim("c", volume="v"), status=ClaimStatus("Lost")))
    assert (
        VolumeBinding().is_ready(pod, node, cluster.snapshot()).message == 'volume "v" of claim "c" is gone'
    )


def test_a_claim_whose_volume_is_kept_for_it_is_waited_for() -> None:
    cluster = cluster_with(make_class(), make_claim("c"), make_volume("v", zone="b", claim="c"))
    pod, node = make_pod(volumes=mounts("c")), cluster.state.node("n2")
    assert node is not None
    assert feasible(cluster.snapshot(), "c") == [False, True, False]
    assert VolumeBinding().prepare([(pod, 1)], cluster.snapshot()) == {ObjectKey("default", "p"): ()}
    assert VolumeBinding().is_ready(pod, node, cluster.snapshot()).verdict is Verdict.WAIT


def test_a_node_in_another_zone_and_a_provisioner_that_is_full_are_told_apart() -> None:
    labels = {"topology.kubernetes.io/zone": "eu-1"}
    cluster = make_cluster().node(labels={"topology.kubernetes.io/zone": "eu-2"}).node(labels=labels)
    driver = CSIDriver(ObjectMeta("a/b"), CSIDriverSpec(storage_capacity=True))
    claims = (make_class(provisioner="a/b"), make_claim("c"), make_claim("far", volume="v"))
    for each in (driver, *claims, make_volume("v", claim="far", labels=labels)):
        cluster.state.volumes.apply(each)
    snapshot, pod = cluster.snapshot(), make_pod(volumes=mounts("far", "c"))
    reasons = VolumeBinding().filter(pod, snapshot, snapshot.live_rows()).reasons
    assert [(reason.text, reason.rejected.tolist()) for reason in reasons] == [
        (NOT_IN_ZONE, [True, False]),
        (NO_SPACE, [True, True]),
    ]
    lack = "a/b has no room left there for one of class wait"
    assert VolumeBinding().example(pod, snapshot, 1, NO_SPACE) == f"claim default/c: {lack}"


def test_where_nothing_is_made_for_a_shared_claim_it_does_not_matter_that_there_is_no_room() -> None:
    """There is room in zone a, and nothing else than the claim's first pod keeps n3 from having it made."""
    driver = CSIDriver(ObjectMeta("a/b"), CSIDriverSpec(storage_capacity=True))
    topology = LabelSelector(match_labels={"zone": "a"})
    room = CSIStorageCapacity(ObjectMeta("room", "default"), "wait", "9Gi", node_topology=topology)
    claims = (make_claim("c"), make_claim("d"))
    fork = cluster_with(driver, room, make_class(provisioner="a/b"), *claims).snapshot().fork()
    fork.place(make_pod("first", volumes=mounts("c")), 0)
    for names, text, rows in (("c", NO_VOLUME, [1, 2]), ("d", NO_SPACE, [1])):
        pod = make_pod("p", volumes=mounts(*names))
        (reason,) = VolumeBinding().filter(pod, fork, fork.live_rows()).reasons
        assert (reason.text, np.flatnonzero(reason.rejected).tolist()) == (text, rows)
    both = make_pod("p", volumes=mounts("c", "d"))
    assert VolumeBinding().example(both, fork, 1, NO_SPACE).startswith("claim default/d")


def test_a_class_of_which_nobody_makes_volumes_is_named() -> None:
    snapshot = cluster_with(make_class(), make_claim("c")).snapshot()
    told = VolumeBinding().example(make_pod(volumes=mounts("c")), snapshot, 0, NO_VOLUME)
    assert told == "claim default/c: no volume of class wait is free there, and nobody makes any"


def test_of_several_claims_the_one_without_a_volume_is_named_and_where_its_class_has_none() -> None:
    term = TopologyTerm([TopologyExpression("zone", ["mars"])])
    far = make_class("far", provisioner="a/b", allowed_topologies=[term])
    claims = (make_claim("c"), make_claim("d", storage_class_name="far"))
    snapshot = cluster_with(make_class(provisioner="a/b"), far, *claims).snapshot()
    told = VolumeBinding().example(make_pod(volumes=mounts("c", "d")), snapshot, 0, NO_VOLUME)
    lack = "no volume of class far is free there, and allowedTopologies of the class leave it out"
    assert told == f"claim default/d: {lack}"


def test_a_claim_that_members_on_two_nodes_would_share_is_told_with_the_cure() -> None:
    fork = cluster_with(make_class(provisioner="a/b"), make_claim("c")).snapshot().fork()
    fork.place(make_pod("first", volumes=mounts("c")), 0)
    told = VolumeBinding().example(make_pod("p", volumes=mounts("c")), fork, 1, NO_VOLUME)
    assert told == (
        "claim default/c is shared with a member on n1: claim a volume that is there before its pods"
        " (a class with volumeBindingMode Immediate)"
    )


def test_a_member_whose_choice_was_taken_back_will_never_be_ready_there() -> None:
    cluster = cluster_with(make_class(provisioner="a/b"), make_claim("c"))
    node = cluster.state.node("n1")
    assert node is not None
    status = VolumeBinding().is_ready(make_pod(volumes=mounts("c")), node, cluster.snapshot())
    assert status.verdict is Verdict.UNSCHEDULABLE
    assert status.message == (
        'claim "c" got no volume on node n1: a/b (class wait) could not make it; events of the claim say why'
    )


def test_only_what_could_help_wakes_who_waits() -> None:
    rejected = Rejected(None, None, (make_pod(volumes=mounts("c")),))
    helps = next(rule.helps for rule in VolumeBinding().hint_rules() if rule.change is Change.STORAGE_CHANGED)
    assert helps is not None
    answers = [
        helps(rejected, ClusterEvent(Change.STORAGE_CHANGED, storage=found))
        for found in (
            make_claim("c"),
            make_claim("d"),
            make_volume("v"),
            make_volume("v", claim="d"),
            make_class(),
        )
    ]
    assert answers == [Hint.QUEUE, Hint.SKIP, Hint.QUEUE, Hint.SKIP, Hint.QUEUE]
    stranger = replace(rejected, pods=(make_pod(),))
    assert helps(stranger, ClusterEvent(Change.STORAGE_CHANGED, storage=make_class())) is Hint.SKIP


def test_rows_of_like_nodes_are_asked_about_once() -> None:
    cluster = cluster_with(make_class(), make_claim("c"), make_volume("v", zone="a"))
    rows = np.array([2, 0], dtype=np.int32)
    verdict = VolumeBinding().filter(make_pod(volumes=mounts("c")), cluster.snapshot(), rows)
    assert verdict.feasible.tolist() == [True, True]
