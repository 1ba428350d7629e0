"""Storage classes, drivers, what nodes attach, what is left to provision."""

from typing import Any

import pytest
from tests.unit.apiserver.strategies.full_server import FullServer

STORAGE = "/apis/storage.k8s.io/v1/"
CLASSES, NODES, DRIVERS = STORAGE + "storageclasses", STORAGE + "csinodes", STORAGE + "csidrivers"
ATTACHMENTS = STORAGE + "volumeattachments"
ATTACHED: dict[str, Any] = {"attacher": "d.io", "nodeName": "n1", "source": {"persistentVolumeName": "v"}}
CAPACITIES = STORAGE + "namespaces/default/csistoragecapacities"


def test_a_class_binds_at_once_and_deletes_unless_it_says_otherwise() -> None:
    made = FullServer().create(CLASSES, "fast", provisioner="example.com/disk")
    assert (made["volumeBindingMode"], made["reclaimPolicy"]) == ("Immediate", "Delete")


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"provisioner": ""}, "provisioner: Required value"),
        (
            {"provisioner": "a/b", "volumeBindingMode": "Later"},
            'volumeBindingMode: Unsupported value: "Later": supported values: "Immediate", '
            '"WaitForFirstConsumer"',
        ),
        (
            {"provisioner": "a/b", "parameters": {"": "x"}},
            'parameters: Invalid value: "": field can not be empty.',
        ),
    ],
)
def test_a_bad_class_is_refused(fields: dict[str, Any], fault: str) -> None:
    assert FullServer().create_faults(CLASSES, **fields) == [fault]


def test_what_a_class_makes_cannot_be_changed() -> None:
    server = FullServer()
    server.create(CLASSES, "fast", provisioner="example.com/disk")
    assert server.change_faults(CLASSES, "fast", provisioner="a/b") == [
        "provisioner: Invalid value: null: field is immutable"
    ]


def test_a_node_names_each_driver_once() -> None:
    driver = {"name": "a.b", "nodeID": "x"}
    found = FullServer().create_faults(NODES, spec={"drivers": [driver, driver]})
    assert found == ['spec.drivers[1].name: Duplicate value: "a.b"']


def test_only_the_limit_of_a_node_s_driver_may_change() -> None:
    server = FullServer()
    server.create(NODES, "n", spec={"drivers": [{"name": "a.b", "nodeID": "x"}]})
    server.change(NODES, "n", spec={"drivers": [{"name": "a.b", "nodeID": "x", "allocatable": {"count": 2}}]})
    found = server.change_faults(NODES, "n", spec={"drivers": [{"name": "a.b", "nodeID": "y"}]})
    assert found[0].startswith("spec.drivers: Invalid value: ")


def test_a_driver_is_attached_unless_it_says_otherwise() -> None:
    spec = FullServer().create(DRIVERS, "a.b", spec={})["spec"]
    assert (spec["attachRequired"], spec["storageCapacity"], spec["volumeLifecycleModes"]) == (
        True,
        False,
        ["Persistent"],
    )


def test_a_capacity_stays_of_its_class() -> None:
    server = FullServer()
    server.create(CAPACITIES, "c", storageClassName="fast", capacity="1Gi")
    assert server.change_faults(CAPACITIES, "c", storageClassName="slow") == [
        'storageClassName: Invalid value: "slow": field is immutable'
    ]


def test_an_attachment_begins_without_a_status_and_stays_what_it_is() -> None:
    server = FullServer()
    made = server.create(ATTACHMENTS, "a", spec=ATTACHED, status={"attached": True})
    assert not (made.get("status") or {}).get("attached")
    server.change(ATTACHMENTS, "a/status", status={"attached": True})
    assert server.table(ATTACHMENTS)[0][:5] == ["a", "d.io", "v", "n1", True]
    (fault,) = server.change_faults(ATTACHMENTS, "a", spec={"nodeName": "n2"})
    assert fault.startswith("spec: Invalid value")


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"attacher": ""}, "spec.attacher"),
        ({"nodeName": "N"}, "spec.nodeName"),
        ({"source": {}}, "spec.source"),
        ({"source": {"persistentVolumeName": "A"}}, "spec.source.persistentVolumeName"),
        ({"source": {"persistentVolumeName": "a", "inlineVolumeSpec": {}}}, "spec.source"),
    ],
)
def test_a_bad_attachment_is_refused(change: dict[str, Any], fault: str) -> None:
    (found,) = FullServer().create_faults(ATTACHMENTS, spec=ATTACHED | change)
    assert found.split(":")[0] == fault
