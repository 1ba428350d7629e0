"""Volumes and claims as they are read."""

import pytest

from muster.api.codec import decode_object
from muster.api.storage import PersistentVolume, PersistentVolumeClaim, StorageClass


def test_a_claim_is_bound_when_its_controller_says_so() -> None:
    annotations = {"pv.kubernetes.io/bind-completed": "yes", "volume.kubernetes.io/selected-node": "n1"}
    raw = {"metadata": {"name": "c", "annotations": annotations}, "spec": {"volumeName": "v"}}
    claim = decode_object(raw, PersistentVolumeClaim)
    assert (claim.is_bound, claim.selected_node) == (True, "n1")
    promised = decode_object({"metadata": {"name": "c"}, "spec": {"volumeName": "v"}}, PersistentVolumeClaim)
    assert not promised.is_bound


def test_the_old_annotation_names_the_class() -> None:
    raw = {"metadata": {"annotations": {"volume.beta.kubernetes.io/storage-class": "old"}}, "spec": {}}
    assert decode_object(raw, PersistentVolumeClaim).class_name == "old"
    assert decode_object(raw, PersistentVolume).class_name == "old"


@pytest.mark.parametrize(
    ("raw", "waits", "makes"),
    [
        ({"provisioner": "a/b"}, False, True),
        ({"provisioner": "a/b", "volumeBindingMode": "WaitForFirstConsumer"}, True, True),
        ({"provisioner": "kubernetes.io/no-provisioner"}, False, False),
    ],
)
def test_a_class_says_when_and_whether_volumes_are_made(
    raw: dict[str, str], waits: bool, makes: bool
) -> None:
    found = decode_object({"metadata": {"name": "x"}, **raw}, StorageClass)
    assert (found.waits, found.can_provision) == (waits, makes)
