"""Slices of devices."""

from typing import Any

import pytest
from tests.unit.apiserver.strategies.full_server import FullServer

SLICES = "/apis/resource.k8s.io/v1/resourceslices"
SLICE: dict[str, Any] = {
    "driver": "gpu.example.com",
    "nodeName": "n1",
    "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
}


def test_a_slice_counts_its_changes() -> None:
    server = FullServer()
    assert server.create(SLICES, "s", spec=SLICE)["metadata"]["generation"] == 1
    assert server.change(SLICES, "s", spec={"devices": [{"name": "a"}]})["metadata"]["generation"] == 2


def test_a_taint_knows_since_when() -> None:
    device = {"name": "a", "taints": [{"key": "broken", "effect": "NoSchedule"}]}
    made = FullServer().create(SLICES, "s", spec=SLICE | {"devices": [device]})
    assert made["spec"]["devices"][0]["taints"][0]["timeAdded"]


def test_what_alpha_gates_allow_is_left_out_as_on_stock() -> None:
    counters = {"counterSet": "c", "counters": {"m": {"value": "1"}}, "compatibilityGroups": ["a"]}
    device = {
        "name": "a",
        "attributes": {"x": {"int": 1, "ints": [1, 2]}},
        "consumesCounters": [counters],
        "nodeAllocatableResources": {"memory": {}},
    }
    spec = SLICE | {"devices": [device], "skipNodeOperations": ["x"], "partitionTypeAttribute": "e.org/p"}
    made = FullServer().create(SLICES, "s", spec=spec)["spec"]
    assert made.keys() == SLICE.keys() | {"devices"}
    (found,) = made["devices"]
    assert found.keys() == {"name", "attributes", "consumesCounters"}
    assert found["attributes"] == {"x": {"int": 1}}
    assert found["consumesCounters"] == [{"counterSet": "c", "counters": {"m": {"value": "1"}}}]


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"nodeName": None}, "exactly one of `nodeName`, `nodeSelector`, `allNodes`"),
        ({"allNodes": True}, "but multiple fields are set"),
        ({"pool": {"name": "p", "resourceSliceCount": 0}}, "must be greater than zero"),
        ({"devices": [{"name": "a", "attributes": {"x": {}}}]}, "must specify one of"),
        ({"devices": [{"name": "a", "attributes": {"x": {"ints": [1]}}}]}, "must specify one of"),
        (
            {"devices": [{"name": "a", "attributes": {"x": {"int": 1, "string": "y"}}}]},
            'Invalid value: "{int, string}": must specify exactly one of',
        ),
        ({"devices": [{"name": "a", "attributes": {"v": {"version": "1"}}}]}, "semver.org spec 2.0.0"),
        ({"devices": [{"name": "a", "allNodes": True}]}, "can only be set if `perDeviceNodeSelection`"),
        (
            {
                "devices": [{"name": "a"}],
                "sharedCounters": [{"name": "c", "counters": {"memory": {"value": "1Gi"}}}],
            },
            "only one of `sharedCounters` or `devices` is allowed",
        ),
    ],
)
def test_a_bad_slice_is_refused(change: dict[str, Any], fault: str) -> None:
    found = FullServer().create_faults(SLICES, spec=SLICE | change)
    assert len(found) == 1
    assert fault in found[0]


def test_a_slice_stays_with_its_driver_pool_and_node() -> None:
    server = FullServer()
    server.create(SLICES, "s", spec=SLICE)
    changed = {"driver": "b.c", "nodeName": "n2", "pool": {"name": "q"}}
    assert [fault.split(":")[0] for fault in server.change_faults(SLICES, "s", spec=changed)] == [
        "spec.pool.name",
        "spec.driver",
        "spec.nodeName",
    ]
