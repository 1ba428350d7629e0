"""What volumes there are for whom, and from where."""

from typing import Any

import pytest
from msgspec.structs import replace
from tests.unit.cluster.volume_objects import make_claim, make_class, make_volume, mounts

from muster.api.core import LabelSelector
from muster.api.meta import ObjectMeta, OwnerReference
from muster.api.storage import (
    ClaimReference,
    ClaimStatus,
    CSIDriver,
    CSIDriverSpec,
    CSIStorageCapacity,
    StorageObject,
    TopologyExpression,
    TopologyTerm,
    VolumeStatus,
)
from muster.cluster.volumes import Choice, VolumeBook, Volumes
from muster.placement.volume_offers import VolumeOffers, find_needs, reaches, suits
from muster.testing.builders import make_cluster, make_node, make_pod

KEY = ("default", "c")
ZONE, OLD_ZONE = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"


def volumes_with(*objects: StorageObject) -> Volumes:
    book = VolumeBook()
    for each in objects:
        book.apply(each)
    return book.freeze()


def offers_with(*objects: StorageObject) -> VolumeOffers:
    """Two nodes, n1 in zone a and n2 in zone b."""
    cluster = make_cluster().node(labels={"zone": "a"}).node(labels={"zone": "b"})
    for each in objects:
        cluster.state.volumes.apply(each)
    return VolumeOffers(cluster.snapshot())


@pytest.mark.parametrize(
    ("objects", "refusal"),
    [
        ([], 'persistentvolumeclaim "c" not found'),
        ([make_class(waits=False), make_claim("c")], "pod has unbound immediate PersistentVolumeClaims: c"),
        ([make_claim("c")], 'storageclass.storage.k8s.io "wait" not found, asked for by claim "c"'),
        (
            [replace(make_claim("c", volume="v"), status=ClaimStatus("Lost"))],
            'persistentvolumeclaim "c" bound to non-existent persistentvolume "v"',
        ),
        (
            [make_claim("c", volume="v")],
            'persistentvolumeclaim "c" is bound to persistentvolume "v", which does not exist',
        ),
        (
            [replace(make_claim("c"), metadata=ObjectMeta("c", "default", deletion_timestamp="x"))],
            'persistentvolumeclaim "c" is being deleted',
        ),
    ],
)
def test_a_claim_that_leads_nowhere_is_named(objects: list[StorageObject], refusal: str) -> None:
    assert find_needs(make_pod(volumes=mounts("c")), volumes_with(*objects)).refusal == refusal


@pytest.mark.parametrize(
    ("claim", "cure"),
    [
        ({"volume_name": "none"}, "claim c names volume none, which does not exist: create it, or make"),
        ({"volume_name": "other"}, "claim c names volume other, which is for claim default/x: make it anew"),
        ({"volume_name": "small"}, "claim c names volume small, which is not of its class, mode, access and"),
        ({"storage_class_name": ""}, "claim c has no class: create a volume without one that suits it, or"),
        ({"storage_class_name": "static"}, "nobody makes volumes of class static: create one that suits"),
        ({"storage_class_name": "made"}, "their volumes come before any pod does: the events of the claims"),
    ],
)
def test_why_a_volume_did_not_come_before_its_pod_is_said_with_the_cure(
    claim: dict[str, Any], cure: str
) -> None:
    volumes = volumes_with(
        make_class("wait", waits=False, provisioner="a/b"),
        make_class("static", waits=False),
        make_class("made", waits=False, provisioner="a/b"),
        make_volume("other", claim="x"),
        make_volume("small", size="1Mi"),
        make_claim("c", **claim),
    )
    needs = find_needs(make_pod(volumes=mounts("c")), volumes)
    assert needs.refusal == "pod has unbound immediate PersistentVolumeClaims: c"
    assert needs.cure.startswith(cure)


def test_needs_tell_bound_chosen_and_open_claims_apart() -> None:
    book = VolumeBook()
    objects = (make_class(), make_claim("bound", volume="v"), make_claim("made"), make_claim("c"))
    for each in (*objects, make_volume("v", claim="bound")):
        book.apply(each)
    book.choose(("default", "made"), Choice("", "n1"))
    needs = find_needs(make_pod(volumes=mounts("bound", "made", "c")), book.freeze())
    assert (needs.volume_names, needs.made_on, needs.open_claims) == (("v",), ("n1",), (KEY,))
    assert needs.unfinished


def test_an_ephemeral_claim_must_be_the_pod_s_own() -> None:
    pod = make_pod("p", volumes=[{"name": "c", "ephemeral": {}}])
    assert find_needs(pod, volumes_with()).refusal.startswith("waiting for ephemeral volume controller")
    claim = make_claim("p-c")
    assert "pod is not owner" in find_needs(pod, volumes_with(make_class(), claim)).refusal
    owner = OwnerReference(uid=pod.metadata.uid)
    owned = replace(claim, metadata=replace(claim.metadata, owner_references=[owner]))
    assert find_needs(pod, volumes_with(make_class(), owned)).open_claims == (("default", "p-c"),)


def test_a_volume_is_reached_by_affinity_and_by_the_zones_on_its_labels() -> None:
    here = make_node(labels={"zone": "a", ZONE: "eu-1"})
    assert reaches(here, make_volume("v", zone="a"))
    assert not reaches(here, make_volume("v", zone="b"))
    assert reaches(here, make_volume("v", labels={ZONE: "eu-1__eu-2"}))
    assert not reaches(here, make_volume("v", labels={ZONE: "eu-2"}))


@pytest.mark.parametrize(
    ("node", "volume", "reached"),
    [
        pytest.param({}, {ZONE: "eu-1"}, True, id="a-node-without-zones-is-in-all"),
        pytest.param({ZONE: "eu-1"}, {OLD_ZONE: "eu-1"}, True, id="an-old-label-means-the-new-one"),
        pytest.param({ZONE: "eu-2"}, {OLD_ZONE: "eu-1"}, False, id="and-not-another-zone"),
        pytest.param({OLD_ZONE: "eu-1", ZONE: "eu-2"}, {OLD_ZONE: "eu-1"}, True, id="old-with-old-first"),
        pytest.param({OLD_ZONE: "eu-1"}, {ZONE: "eu-1"}, False, id="a-new-label-needs-a-new-one"),
        pytest.param({REGION: "eu"}, {ZONE: "eu-1"}, False, id="a-region-says-nothing-of-a-zone"),
        pytest.param({ZONE: "eu-1", REGION: "eu"}, {ZONE: "eu-1", REGION: "us"}, False, id="both-must-agree"),
    ],
)
def test_zones_and_regions_on_labels_old_and_new(
    node: dict[str, str], volume: dict[str, str], reached: bool
) -> None:
    assert reaches(make_node(labels=node), make_volume("v", labels=volume)) is reached


def test_a_claim_that_names_its_volume_waits_for_whoever_binds_it() -> None:
    claim = replace(make_claim("c"), spec=replace(make_claim("c").spec, volume_name="v"))
    known = volumes_with(make_class(), claim, make_volume("v"))
    refusal = "pod has unbound immediate PersistentVolumeClaims: c"
    assert find_needs(make_pod(volumes=mounts("c")), known).refusal == refusal


@pytest.mark.parametrize("uid", ["", "uid-c"])
def test_a_volume_that_is_kept_for_a_claim_is_its_volume(uid: str) -> None:
    kept = make_volume("v", claim="c")
    kept = replace(kept, spec=replace(kept.spec, claim_ref=ClaimReference("default", "c", uid)))
    needs = find_needs(make_pod(volumes=mounts("c")), volumes_with(make_class(), make_claim("c"), kept))
    assert (needs.volume_names, needs.open_claims, needs.unfinished) == (("v",), (), True)


def test_a_volume_that_is_kept_for_a_former_claim_of_the_name_is_nobody_s() -> None:
    kept = make_volume("v", claim="c")
    kept = replace(kept, spec=replace(kept.spec, claim_ref=ClaimReference("default", "c", "another")))
    needs = find_needs(make_pod(volumes=mounts("c")), volumes_with(make_class(), make_claim("c"), kept))
    assert (needs.volume_names, needs.open_claims) == ((), (KEY,))


@pytest.mark.parametrize(
    "offered",
    [
        {"size": "1Mi"},
        {"volume_mode": "Block"},
        {"access_modes": ["ReadOnlyMany"]},
        {"volume_attributes_class_name": "gold"},
    ],
)
def test_a_volume_that_names_a_claim_and_is_not_what_it_asks_for_is_nobody_s(offered: dict[str, Any]) -> None:
    known = volumes_with(make_class(), make_claim("c"), make_volume("v", claim="c", **offered))
    needs = find_needs(make_pod(volumes=mounts("c")), known)
    assert (needs.volume_names, needs.open_claims) == ((), (KEY,))


def test_a_volume_that_names_a_claim_and_is_going_is_nobody_s() -> None:
    going = make_volume("v", claim="c")
    going = replace(going, metadata=replace(going.metadata, deletion_timestamp="2026-01-01T00:00:30Z"))
    needs = find_needs(make_pod(volumes=mounts("c")), volumes_with(make_class(), make_claim("c"), going))
    assert (needs.volume_names, needs.open_claims) == ((), (KEY,))


def test_a_volume_that_is_not_available_is_not_given_away() -> None:
    failed = replace(make_volume("v"), status=VolumeStatus("Failed"))
    found = offers_with(make_class(), make_claim("c"), failed)
    assert found.volumes_for(KEY, frozenset({0})) == []


@pytest.mark.parametrize(
    ("asked", "will_do"),
    [
        ({}, True),
        ({"size": "2Gi"}, False),
        ({"storage_class_name": "other"}, False),
        ({"volume_mode": "Block"}, False),
        ({"access_modes": ["ReadWriteMany"]}, False),
        ({"selector": LabelSelector({"tier": "gold"})}, False),
        ({"volume_attributes_class_name": "fast"}, False),
    ],
)
def test_a_volume_must_be_what_is_asked_for(asked: dict[str, Any], will_do: bool) -> None:
    assert suits(make_volume("v"), make_claim("c", **asked)) is will_do


def test_the_smallest_free_volume_comes_first() -> None:
    claims = (make_class(), make_claim("c"))
    found = offers_with(
        *claims, make_volume("large", size="9Gi"), make_volume("right"), make_volume("taken", claim="x")
    )
    assert found.volumes_for(KEY, frozenset({0, 1})) == ["right", "large"]


def test_a_volume_that_some_node_does_not_reach_is_none_for_both() -> None:
    found = offers_with(make_class(), make_claim("c"), make_volume("v", zone="a"))
    assert found.volumes_for(KEY, frozenset({0})) == ["v"]
    assert found.volumes_for(KEY, frozenset({0, 1})) == []
    assert found.signature(0) != found.signature(1)


def test_volumes_are_made_where_the_class_allows() -> None:
    terms = [TopologyTerm([TopologyExpression("zone", ["b"])])]
    found = offers_with(make_class(provisioner="a/b", allowed_topologies=terms), make_claim("c"))
    assert [found.can_make(KEY, frozenset({row})) for row in (0, 1)] == [False, True]
    assert not found.can_make(KEY, frozenset({0, 1}))


def test_a_provisioner_at_work_is_not_moved() -> None:
    found = offers_with(make_class(provisioner="a/b"), make_claim("c", node="n2"))
    assert [found.can_make(KEY, frozenset({row})) for row in (0, 1)] == [False, True]


def test_a_driver_that_counts_its_room_must_have_some() -> None:
    driver = CSIDriver(ObjectMeta("a/b"), CSIDriverSpec(storage_capacity=True))
    claims = (driver, make_class(provisioner="a/b"), make_claim("c"))
    assert not offers_with(*claims).can_make(KEY, frozenset({0}))

    def left(amount: str) -> CSIStorageCapacity:
        where = LabelSelector({"zone": "a"})
        return CSIStorageCapacity(ObjectMeta("x", "kube-system"), "wait", amount, node_topology=where)

    assert offers_with(*claims, left("1Gi")).can_make(KEY, frozenset({0}))
    assert not offers_with(*claims, left("1Gi")).can_make(KEY, frozenset({1}))
    assert not offers_with(*claims, left("1Mi")).can_make(KEY, frozenset({0}))
