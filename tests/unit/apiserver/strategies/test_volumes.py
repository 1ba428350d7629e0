"""Volumes and claims for them."""

from typing import Any

import pytest
from tests.unit.apiserver.strategies.full_server import FullServer

VOLUMES, CLAIMS = "/api/v1/persistentvolumes", "/api/v1/namespaces/default/persistentvolumeclaims"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
VOLUME: dict[str, Any] = {
    "capacity": {"storage": "1Gi"},
    "accessModes": ["ReadWriteOnce"],
    "hostPath": {"path": "/mnt/x"},
}
CLAIM: dict[str, Any] = {
    "accessModes": ["ReadWriteOnce"],
    "resources": {"requests": {"storage": "1Gi"}},
}


def test_a_new_volume_is_pending_kept_and_protected() -> None:
    made = FullServer().create(VOLUMES, "v", spec=VOLUME, status={"phase": "Bound"})
    assert made["status"]["phase"] == "Pending"
    assert made["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
    assert made["metadata"]["finalizers"] == ["kubernetes.io/pv-protection"]


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"hostPath": None}, "spec: Required value: must specify a volume type"),
        (
            {"nfs": {"server": "s", "path": "/"}},
            "spec.nfs: Forbidden: may not specify more than 1 volume type",
        ),
        (
            {"nodeAffinity": {}},
            "spec.nodeAffinity.required: Required value: must specify required node constraints",
        ),
        (
            {"accessModes": ["ReadWriteOncePod", "ReadWriteOnce"]},
            "spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes",
        ),
        (
            {"capacity": {"storage": "0"}},
            'spec.capacity[storage]: Invalid value: "0": must be greater than zero',
        ),
    ],
)
def test_a_bad_volume_is_refused(change: dict[str, Any], fault: str) -> None:
    assert FullServer().create_faults(VOLUMES, spec=VOLUME | change) == [fault]


def test_a_phase_tells_when_it_began() -> None:
    server = FullServer()
    server.create(VOLUMES, "v", spec=VOLUME)
    changed = server.change(VOLUMES, "v/status", status={"phase": "Available"})
    assert changed["status"]["lastPhaseTransitionTime"]


def test_a_claim_that_names_no_class_gets_the_default() -> None:
    server = FullServer()
    server.create(
        CLASSES,
        "fast",
        provisioner="a/b",
        metadata={"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
    )
    assert server.create(CLAIMS, "c", spec=CLAIM)["spec"]["storageClassName"] == "fast"
    assert server.create(CLAIMS, "d", spec=CLAIM | {"storageClassName": ""})["spec"]["storageClassName"] == ""


def test_a_claim_s_volume_is_chosen_once() -> None:
    server = FullServer()
    server.create(CLAIMS, "c", spec=CLAIM)
    assert server.change(CLAIMS, "c", spec={"volumeName": "v"})["spec"]["volumeName"] == "v"
    assert server.change_faults(CLAIMS, "c", spec={"volumeName": "w"})[0].startswith("spec: Forbidden: ")


def test_a_claim_asks_for_some_room() -> None:
    found = FullServer().create_faults(CLAIMS, spec=CLAIM | {"resources": {}})
    assert found == ["spec.resources[storage]: Required value"]
