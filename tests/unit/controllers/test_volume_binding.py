"""Which volume a claim gets, and when."""

import pytest
from tests.unit.controllers.small_cluster import SmallCluster
from tests.unit.controllers.volume_manifests import add_claim, add_class, add_volume

from muster.controllers.ports import VOLUME_CLAIMS, VOLUMES
from muster.controllers.volume_binding import VolumeBinding
from muster.controllers.volume_readings import PROVISIONER, SELECTED_NODE, phase_of, spec_of


@pytest.fixture
def cluster() -> SmallCluster:
    return SmallCluster(VolumeBinding())


def test_a_volume_nobody_has_is_available(cluster: SmallCluster) -> None:
    add_volume(cluster, "v")
    assert phase_of(cluster.get(VOLUMES, "v", namespace="")) == "Available"


def test_a_claim_gets_the_smallest_volume_that_will_do(cluster: SmallCluster) -> None:
    for name, size in (("large", "5Gi"), ("right", "1Gi"), ("small", "1Mi")):
        add_volume(cluster, name, size)
    add_claim(cluster, "c")
    claim = cluster.get(VOLUME_CLAIMS, "c")
    assert (claim["spec"]["volumeName"], phase_of(claim)) == ("right", "Bound")
    assert claim["status"]["capacity"] == {"storage": "1Gi"}
    volume = cluster.get(VOLUMES, "right", namespace="")
    assert phase_of(volume) == "Bound"
    assert volume["spec"]["claimRef"]["uid"] == claim["metadata"]["uid"]


def test_a_claim_waits_for_a_volume_that_comes_later(cluster: SmallCluster) -> None:
    add_claim(cluster, "c")
    assert phase_of(cluster.get(VOLUME_CLAIMS, "c")) == "Pending"
    add_volume(cluster, "v")
    assert phase_of(cluster.get(VOLUME_CLAIMS, "c")) == "Bound"


def test_a_class_that_waits_leaves_the_choice_to_the_scheduler(cluster: SmallCluster) -> None:
    add_class(cluster, volumeBindingMode="WaitForFirstConsumer", provisioner="a/b")
    add_volume(cluster, "v")
    add_claim(cluster, "c")
    assert phase_of(cluster.get(VOLUME_CLAIMS, "c")) == "Pending"
    assert PROVISIONER not in (cluster.get(VOLUME_CLAIMS, "c")["metadata"].get("annotations") or {})


def test_a_volume_promised_by_name_is_bound_whatever_the_class(cluster: SmallCluster) -> None:
    add_class(cluster, volumeBindingMode="WaitForFirstConsumer", provisioner="a/b")
    add_claim(cluster, "c")
    add_volume(cluster, "v", claimRef={"namespace": "default", "name": "c"})
    assert phase_of(cluster.get(VOLUME_CLAIMS, "c")) == "Bound"


def test_a_volume_promised_by_name_is_not_bound_if_it_is_too_small_or_of_another_kind(
    cluster: SmallCluster,
) -> None:
    for name, size, fields in (
        ("small", "1Mi", {}),
        ("block", "1Gi", {"volumeMode": "Block"}),
        ("reader", "1Gi", {"accessModes": ["ReadOnlyMany"]}),
        ("gold", "1Gi", {"volumeAttributesClassName": "gold"}),
    ):
        add_volume(cluster, name, size, claimRef={"namespace": "default", "name": name}, **fields)
        add_claim(cluster, name)
        assert phase_of(cluster.get(VOLUME_CLAIMS, name)) == "Pending"
    add_volume(cluster, "right", claimRef={"namespace": "default", "name": "small"})
    assert spec_of(cluster.get(VOLUME_CLAIMS, "small"))["volumeName"] == "right"


def test_a_volume_that_a_claim_names_is_not_bound_if_it_is_too_small(cluster: SmallCluster) -> None:
    add_volume(cluster, "small", "1Mi")
    add_claim(cluster, "c", volumeName="small")
    assert phase_of(cluster.get(VOLUME_CLAIMS, "c")) == "Pending"
    assert phase_of(cluster.get(VOLUMES, "small", namespace="")) == "Available"
    add_volume(cluster, "right")
    add_claim(cluster, "d", volumeName="right", selector={"matchLabels": {"a": "b"}})
    assert phase_of(cluster.get(VOLUME_CLAIMS, "d")) == "Bound"


def test_the_provisioner_is_asked_once_a_node_was_chosen(cluster: SmallCluster) -> None:
    add_class(cluster, volumeBindingMode="WaitForFirstConsumer", provisioner="a/b")
    add_claim(cluster, "c")
    cluster.patch(VOLUME_CLAIMS, "c", {"metadata": {"annotations": {SELECTED_NODE: "n1"}}})
    assert cluster.get(VOLUME_CLAIMS, "c")["metadata"]["annotations"][PROVISIONER] == "a/b"


def test_a_volume_whose_claim_is_gone_is_released_and_kept(cluster: SmallCluster) -> None:
    add_volume(cluster, "v")
    add_claim(cluster, "c")
    cluster.patch(VOLUME_CLAIMS, "c", {"metadata": {"finalizers": None}})
    cluster.delete(VOLUME_CLAIMS, "c")
    assert phase_of(cluster.get(VOLUMES, "v", namespace="")) == "Released"


def test_a_claim_whose_volume_is_gone_is_lost(cluster: SmallCluster) -> None:
    add_volume(cluster, "v")
    add_claim(cluster, "c")
    cluster.patch(VOLUMES, "v", {"metadata": {"finalizers": None}}, namespace="")
    cluster.delete(VOLUMES, "v", namespace="")
    assert phase_of(cluster.get(VOLUME_CLAIMS, "c")) == "Lost"
