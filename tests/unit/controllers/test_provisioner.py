"""The simulated provisioner."""

import pytest
from tests.unit.controllers.small_cluster import SmallCluster
from tests.unit.controllers.volume_manifests import add_claim, add_class

from muster.controllers.ports import NODES, STORAGE_CLASSES, VOLUME_CLAIMS, VOLUMES
from muster.controllers.provisioner import SIMULATED, SimulatedProvisioner
from muster.controllers.volume_binding import VolumeBinding
from muster.controllers.volume_readings import SELECTED_NODE, phase_of

WAITS = "WaitForFirstConsumer"


@pytest.fixture
def cluster() -> SmallCluster:
    cluster = SmallCluster(VolumeBinding(), SimulatedProvisioner())
    cluster.create(NODES, "n1", namespace="", meta={"labels": {"zone": "a", "kubernetes.io/hostname": "n1"}})
    return cluster


def choose_node(cluster: SmallCluster, name: str = "c") -> None:
    cluster.patch(VOLUME_CLAIMS, name, {"metadata": {"annotations": {SELECTED_NODE: "n1"}}})


def test_a_volume_comes_after_the_delay_of_its_class(cluster: SmallCluster) -> None:
    add_class(cluster, provisioner=SIMULATED, parameters={"delaySeconds": "5"})
    add_claim(cluster, "c")
    cluster.run(4)
    assert phase_of(cluster.get(VOLUME_CLAIMS, "c")) == "Pending"
    cluster.run(2)
    assert phase_of(cluster.get(VOLUME_CLAIMS, "c")) == "Bound"


@pytest.mark.parametrize(
    ("parameters", "expression"),
    [
        ({}, {"key": "kubernetes.io/hostname", "operator": "In", "values": ["n1"]}),
        ({"topologyKey": "zone"}, {"key": "zone", "operator": "In", "values": ["a"]}),
    ],
)
def test_a_volume_is_where_its_first_pod_is(
    cluster: SmallCluster, parameters: dict[str, str], expression: object
) -> None:
    add_class(cluster, provisioner=SIMULATED, volumeBindingMode=WAITS, parameters=parameters)
    add_claim(cluster, "c")
    cluster.run(10)
    assert phase_of(cluster.get(VOLUME_CLAIMS, "c")) == "Pending"
    choose_node(cluster)
    cluster.run(2)
    name = cluster.get(VOLUME_CLAIMS, "c")["spec"]["volumeName"]
    (volume,) = [found for found in cluster.all(VOLUMES) if found["metadata"]["name"] == name]
    assert volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"] == [
        {"matchExpressions": [expression]}
    ]


def test_a_try_that_fails_gives_the_node_back_and_says_so(cluster: SmallCluster) -> None:
    add_class(cluster, provisioner=SIMULATED, volumeBindingMode=WAITS, parameters={"failures": "1"})
    add_claim(cluster, "c")
    choose_node(cluster)
    cluster.run(2)
    assert SELECTED_NODE not in cluster.get(VOLUME_CLAIMS, "c")["metadata"]["annotations"]
    assert "ProvisioningFailed" in [reason for _, reason, _ in cluster.events()]
    choose_node(cluster)
    cluster.run(2)
    assert phase_of(cluster.get(VOLUME_CLAIMS, "c")) == "Bound"


def test_a_try_that_fails_for_no_pod_is_followed_by_another(cluster: SmallCluster) -> None:
    add_class(cluster, provisioner=SIMULATED, parameters={"failures": "2", "delaySeconds": "5"})
    add_claim(cluster, "c")
    cluster.run(14)
    assert [reason for _, reason, _ in cluster.events()].count("ProvisioningFailed") == 2
    assert phase_of(cluster.get(VOLUME_CLAIMS, "c")) == "Pending"
    cluster.run(2)
    assert phase_of(cluster.get(VOLUME_CLAIMS, "c")) == "Bound"


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"delaySeconds": "soon"}, 'parameters.delaySeconds: must be a number, 0 or more, got "soon"'),
        ({"failures": "-1"}, 'parameters.failures: must be a number, 0 or more, got "-1"'),
        ({"delay": "3"}, "parameters.delay: not known; there are delaySeconds, failures and topologyKey"),
        ({"topologyKey": "rack"}, "parameters.topologyKey: node n1 has no label rack; name one that nodes"),
    ],
)
def test_parameters_that_cannot_be_read_make_no_volume_and_are_named(
    cluster: SmallCluster, parameters: dict[str, str], said: str
) -> None:
    add_class(cluster, provisioner=SIMULATED, volumeBindingMode=WAITS, parameters=parameters)
    add_claim(cluster, "c")
    choose_node(cluster)
    cluster.run(20)
    assert phase_of(cluster.get(VOLUME_CLAIMS, "c")) == "Pending"
    assert SELECTED_NODE not in cluster.get(VOLUME_CLAIMS, "c")["metadata"]["annotations"]
    (text,) = [text for _, reason, text in cluster.events() if reason == "ProvisioningFailed"]
    assert said in text


def test_a_class_that_was_gone_for_a_while_is_obeyed_when_it_is_back(cluster: SmallCluster) -> None:
    add_class(cluster, provisioner=SIMULATED, volumeBindingMode=WAITS, parameters={"delaySeconds": "5"})
    add_claim(cluster, "c")
    choose_node(cluster)
    cluster.delete(STORAGE_CLASSES, "fast", namespace="")
    cluster.run(10)
    assert phase_of(cluster.get(VOLUME_CLAIMS, "c")) == "Pending"
    add_class(cluster, provisioner=SIMULATED, volumeBindingMode=WAITS)
    cluster.run(3)
    assert phase_of(cluster.get(VOLUME_CLAIMS, "c")) == "Bound"


def test_parameters_of_every_driver_are_let_be(cluster: SmallCluster) -> None:
    add_class(cluster, provisioner=SIMULATED, parameters={"csi.storage.k8s.io/fstype": "ext4"})
    add_claim(cluster, "c")
    cluster.run(2)
    assert phase_of(cluster.get(VOLUME_CLAIMS, "c")) == "Bound"


def test_what_it_made_goes_with_the_claim(cluster: SmallCluster) -> None:
    add_class(cluster, provisioner=SIMULATED, reclaimPolicy="Delete")
    add_claim(cluster, "c")
    cluster.run(2)
    cluster.patch(VOLUME_CLAIMS, "c", {"metadata": {"finalizers": None}})
    cluster.delete(VOLUME_CLAIMS, "c")
    assert cluster.all(VOLUMES) == []
