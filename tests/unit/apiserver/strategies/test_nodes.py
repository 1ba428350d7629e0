"""Nodes."""

from typing import Any

import pytest
from tests.unit.apiserver.strategies.full_server import NODES, FullServer


def test_a_node_comes_with_its_status_and_offers_its_capacity() -> None:
    node = FullServer().create(NODES, "n", status={"capacity": {"cpu": "4000m", "nvidia.com/gpu": "8"}})
    assert node["status"]["allocatable"] == {"cpu": "4", "nvidia.com/gpu": "8"}
    assert node["status"]["nodeInfo"]["kubeletVersion"] == ""


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        pytest.param(
            {"spec": {"taints": [{"key": "a", "effect": "Maybe"}]}},
            'metadata.taints[0].effect: Unsupported value: "Maybe": supported values: "NoSchedule", '
            '"PreferNoSchedule", "NoExecute"',
            id="a taint without meaning",
        ),
        pytest.param(
            {"spec": {"podCIDR": "x"}},
            'spec.podCIDRs[0]: Invalid value: "x": must be a valid CIDR value, (e.g. 10.9.8.0/24 or '
            "2001:db8::/64)",
            id="network",
        ),
        pytest.param(
            {"status": {"capacity": {"nvidia.com/gpu": "1.5"}, "allocatable": {"cpu": "1"}}},
            'status.capacity.nvidia.com/gpu: Invalid value: "1500m": must be an integer',
            id="half a device",
        ),
    ],
)
def test_a_bad_node_is_refused(body: dict[str, Any], fault: str) -> None:
    assert FullServer().create_faults(NODES, **body) == [fault]


def test_a_node_has_one_network_of_each_family() -> None:
    server = FullServer()
    server.create(NODES, "n", spec={"podCIDRs": ["10.0.0.0/24", "2001:db8::/64"]})
    twice = server.create_faults(NODES, spec={"podCIDRs": ["10.0.0.0/24", "10.0.1.0/24"]})
    assert twice[0].endswith("may specify no more than one CIDR for each IP family")
    inside = server.create_faults(NODES, spec={"podCIDRs": ["10.0.0.5/24"]})
    assert inside[0].endswith("must not have bits set beyond the prefix length")


def test_a_taint_is_there_once_for_each_effect() -> None:
    taints = [{"key": "a", "effect": "NoSchedule"}, {"key": "a", "effect": "NoExecute"}]
    server = FullServer()
    server.create(NODES, "n", spec={"taints": taints})
    found = server.create_faults(NODES, spec={"taints": [*taints, taints[0]]})
    assert found[0].endswith("taints must be unique by key and effect pair")


def test_what_identifies_a_machine_is_fixed() -> None:
    server = FullServer()
    server.create(NODES, "n", spec={"podCIDR": "10.0.0.0/24", "providerID": "x"})
    change = {"podCIDR": "10.1.0.0/24", "providerID": "y"}
    assert server.change_faults(NODES, "n", spec=change) == [
        'spec.podCIDRs: Forbidden: node updates may not change podCIDR except from "" to valid',
        "spec.providerID: Invalid value: null: field cannot be modified once set",
    ]


def test_the_two_sides_of_a_node_are_written_apart() -> None:
    server = FullServer()
    server.create(NODES, "n", status={"capacity": {"cpu": "4"}})
    cordoned = server.change(NODES, "n", spec={"unschedulable": True}, status={"capacity": {"cpu": "5"}})
    assert (cordoned["spec"], cordoned["status"]["capacity"]) == ({"unschedulable": True}, {"cpu": "4"})
    grown = server.change(NODES, "n/status", spec={"unschedulable": False}, status={"capacity": {"cpu": "5"}})
    assert (grown["spec"], grown["status"]["capacity"]) == ({"unschedulable": True}, {"cpu": "5"})


def test_the_table_says_how_a_node_is() -> None:
    server = FullServer()
    status = {
        "conditions": [{"type": "Ready", "status": "True"}],
        "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
        "nodeInfo": {"kubeletVersion": "v1.37.2", "kernelVersion": "6.1", "architecture": "amd64"},
    }
    server.create(NODES, "a", metadata={"labels": {"node-role.kubernetes.io/worker": ""}}, status=status)
    server.create(NODES, "b", spec={"unschedulable": True})
    none, unknown = "<none>", "<unknown>"
    assert server.table(NODES) == [
        ["a", "Ready", "worker", "0s", "v1.37.2", "10.0.0.1", none, unknown, "6.1 (amd64)", unknown],
        ["b", "Unknown,SchedulingDisabled", none, "0s", "", none, none, unknown, unknown, unknown],
    ]
