"""What keeps volumes and claims, and claims of ephemeral volumes."""

from tests.unit.controllers.small_cluster import SmallCluster
from tests.unit.controllers.volume_manifests import add_claim, add_volume

from muster.controllers.ports import PODS, VOLUME_CLAIMS, VOLUMES, Object
from muster.controllers.volume_binding import VolumeBinding
from muster.controllers.volume_protection import EphemeralVolumes, VolumeProtection

MOUNTS: Object = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}


def test_a_claim_stays_while_a_running_pod_uses_it() -> None:
    cluster = SmallCluster(VolumeProtection())
    add_claim(cluster, "c")
    cluster.create(PODS, "p", spec={**MOUNTS, "nodeName": "n1"})
    cluster.delete(VOLUME_CLAIMS, "c")
    assert cluster.find(VOLUME_CLAIMS, "c") is not None
    cluster.run(5)
    assert cluster.find(VOLUME_CLAIMS, "c") is not None
    cluster.delete(PODS, "p")
    assert cluster.find(VOLUME_CLAIMS, "c") is None


def test_a_pod_that_waits_does_not_hold_it() -> None:
    cluster = SmallCluster(VolumeProtection())
    add_claim(cluster, "c")
    cluster.create(PODS, "p", spec=MOUNTS)
    cluster.delete(VOLUME_CLAIMS, "c")
    cluster.run(5)
    assert cluster.find(VOLUME_CLAIMS, "c") is None


def test_a_volume_stays_while_a_claim_has_it() -> None:
    cluster = SmallCluster(VolumeBinding(), VolumeProtection())
    add_volume(cluster, "v")
    add_claim(cluster, "c")
    cluster.delete(VOLUMES, "v", namespace="")
    assert cluster.find(VOLUMES, "v", namespace="") is not None
    cluster.delete(VOLUME_CLAIMS, "c")
    cluster.run(5)
    assert cluster.find(VOLUMES, "v", namespace="") is None


def test_a_pod_gets_a_claim_for_its_ephemeral_volume() -> None:
    cluster = SmallCluster(EphemeralVolumes())
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"storageClassName": "fast"}}
    pod = cluster.create(
        PODS, "p", spec={"volumes": [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}]}
    )
    claim = cluster.get(VOLUME_CLAIMS, "p-scratch")
    assert claim["spec"] == {"storageClassName": "fast"}
    assert claim["metadata"]["labels"] == {"a": "b"}
    assert claim["metadata"]["ownerReferences"][0]["uid"] == pod["metadata"]["uid"]


def test_somebody_else_s_claim_of_that_name_is_told_of() -> None:
    cluster = SmallCluster(EphemeralVolumes())
    ephemeral = {"volumeClaimTemplate": {"spec": {}}}
    cluster.create(PODS, "q", spec={"volumes": [{"name": "scratch", "ephemeral": ephemeral}]})
    assert cluster.events() == []
    add_claim(cluster, "r-scratch")
    cluster.create(PODS, "r", spec={"volumes": [{"name": "scratch", "ephemeral": ephemeral}]})
    assert [reason for _, reason, _ in cluster.events()] == ["FailedBinding"]
