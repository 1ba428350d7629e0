"""Volumes that are yet to come, and what there would be if they were there."""

import numpy as np
import pytest
from msgspec.structs import replace
from tests.unit.cluster.volume_objects import make_claim, make_class, make_volume, mounts

from muster.api.meta import ObjectMeta
from muster.api.storage import (
    ClaimStatus,
    CSIDriver,
    CSIDriverSpec,
    CSINode,
    CSINodeSpec,
    NodeDriver,
    NodeResources,
    StorageObject,
)
from muster.cluster.snapshot import Snapshot
from muster.cluster.volumes import Choice
from muster.placement.awaited_volumes import Awaited, as_if_there, find_awaited, name_claims
from muster.plugins.volume_binding import VolumeBinding
from muster.plugins.volume_limits import NodeVolumeLimits
from muster.testing.builders import ClusterBuilder, make_cluster, make_pod

KEY = ("default", "c")
MAKER = "disk.example.com"
MADE = make_class("made", provisioner=MAKER)
NOW = make_class("now", provisioner=MAKER, waits=False)
TWO = [make_pod(name, volumes=mounts("c")) for name in ("p", "q")]


def cluster_with(*objects: StorageObject) -> ClusterBuilder:
    """Two nodes, n1 in zone a and n2 in zone b."""
    cluster = make_cluster().node(labels={"zone": "a"}).node(labels={"zone": "b"})
    for each in (MADE, NOW, make_class(), *objects):
        cluster.state.volumes.apply(each)
    return cluster


def made(**fields: str) -> StorageObject:
    """A claim of the class that makes volumes where its first pod goes."""
    return make_claim("c", storage_class_name="made", **fields)


def feasible(snapshot: Snapshot) -> list[bool]:
    return VolumeBinding().filter(TWO[1], snapshot, snapshot.live_rows()).feasible.tolist()


def test_a_claim_that_several_share_waits_for_the_first_of_them() -> None:
    snapshot = cluster_with(made()).snapshot()
    assert find_awaited(TWO, snapshot) == Awaited(shared=(KEY,))
    assert find_awaited(TWO[:1], snapshot) == Awaited()


def test_who_is_placed_on_the_fork_shares_a_claim_too() -> None:
    fork = cluster_with(made()).snapshot().fork()
    fork.place(TWO[0], 0)
    assert find_awaited(TWO[1:], fork) == Awaited(shared=(KEY,))


@pytest.mark.parametrize(
    "claim",
    [
        made(node="n2"),
        make_claim("c", storage_class_name="now"),
    ],
    ids=["at work for a node", "at work for whoever comes"],
)
def test_a_volume_that_is_being_made_is_awaited_by_one_pod_too(claim: StorageObject) -> None:
    assert find_awaited(TWO[:1], cluster_with(claim).snapshot()) == Awaited(coming=(KEY,))


def test_a_volume_that_has_been_asked_for_is_awaited_by_one_pod_too() -> None:
    cluster = cluster_with(made())
    cluster.state.volumes.choose(KEY, Choice("", "n1"))
    assert find_awaited(TWO[:1], cluster.snapshot()) == Awaited(coming=(KEY,))


@pytest.mark.parametrize(
    "objects",
    [
        [],
        [make_claim("c")],
        [make_claim("c", node="n1")],
        [make_claim("c", storage_class_name="unheard of")],
        [make_claim("c", storage_class_name="made", volume="v"), make_volume("v", claim="c")],
        [make_claim("c", storage_class_name="made"), make_volume("v", claim="c", storage_class_name="made")],
        [make_claim("c", storage_class_name="made", volume_name="v")],
        [replace(made(), status=ClaimStatus("Lost"))],
        [replace(made(), metadata=ObjectMeta("c", "default", deletion_timestamp="x"))],
        [made(), CSIDriver(ObjectMeta(name=MAKER), CSIDriverSpec(storage_capacity=True))],
    ],
    ids=[
        "none",
        "no maker",
        "asked of nobody",
        "no class",
        "bound",
        "kept",
        "named",
        "lost",
        "leaving",
        "no room anywhere",
    ],
)
def test_nobody_waits_for_a_volume_that_is_known_or_will_not_come(objects: list[StorageObject]) -> None:
    assert find_awaited(TWO, cluster_with(*objects).snapshot()) == Awaited()


def test_nobody_waits_for_a_volume_that_has_been_chosen() -> None:
    cluster = cluster_with(made(), make_volume("v", storage_class_name="made"))
    cluster.state.volumes.choose(KEY, Choice("v", ""))
    assert find_awaited(TWO, cluster.snapshot()) == Awaited()


@pytest.mark.parametrize(
    "claim",
    [made(), made(node="n1"), make_claim("c", storage_class_name="now")],
    ids=["open", "making", "now"],
)
def test_at_best_every_node_reaches_the_volume(claim: StorageObject) -> None:
    fork = cluster_with(claim).snapshot().fork()
    fork.place(TWO[0], 0)
    assert feasible(fork)[1] is False
    assert feasible(as_if_there(fork, [KEY])) == [True, True]


def test_at_best_a_volume_that_was_asked_for_is_reached_from_everywhere() -> None:
    cluster = cluster_with(made())
    cluster.state.volumes.choose(KEY, Choice("", "n1"))
    assert feasible(cluster.snapshot()) == [True, False]
    assert feasible(as_if_there(cluster.snapshot(), [KEY])) == [True, True]


def test_other_claims_are_as_they_were() -> None:
    snapshot = cluster_with(made(), make_claim("d"), make_volume("v", zone="b")).snapshot()
    there = as_if_there(snapshot, [KEY])
    both = make_pod("r", volumes=mounts("c", "d"))
    assert VolumeBinding().filter(both, there, there.live_rows()).feasible.tolist() == [False, True]


def test_a_volume_that_is_there_is_attached_once_a_node_like_one_to_be_made() -> None:
    drivers = [NodeDriver(MAKER, allocatable=NodeResources(1))]
    objects = [made(), make_claim("d", storage_class_name="made")]
    limited = CSINode(ObjectMeta(name="n1"), CSINodeSpec(drivers))
    fork = cluster_with(*objects, limited).snapshot().fork()
    fork.place(TWO[0], 0)
    row = np.array([0], dtype=np.int32)
    for snapshot in (fork, as_if_there(fork, [KEY]), as_if_there(fork, [KEY, ("default", "d")])):
        for claim, fits in (("c", True), ("d", False)):
            pod = make_pod("r", volumes=mounts(claim))
            assert NodeVolumeLimits().filter(pod, snapshot, row).feasible.tolist() == [fits]


def test_the_fork_keeps_its_pods() -> None:
    fork = cluster_with(made()).snapshot().fork()
    fork.place(TWO[0], 0)
    there = as_if_there(fork, [KEY])
    assert [pod.metadata.name for pod in there.pods_on(0)] == ["p"]
    assert there.requested.tolist() == fork.requested.tolist()


def test_the_words_name_the_claims_and_what_helps() -> None:
    assert name_claims([KEY]) == "claim default/c"
    assert name_claims([KEY, ("x", "d"), ("x", "e")]) == "claim default/c and 2 more"
    said = Awaited(coming=(("x", "d"),), shared=(KEY,)).sentence()
    assert "until there is a volume for claim x/d" in said
    assert "all who share claim default/c on one node" in said
    assert "volumeBindingMode Immediate" in said
