"""A pod's spec as a whole."""

from typing import Any

import pytest
from tests.unit.apiserver.strategies.full_server import FullServer

from muster.apiserver.strategies.pod_spec import validate_address


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        pytest.param(
            {"restartPolicy": "Sometimes"},
            'restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"',
            id="restart policy",
        ),
        pytest.param(
            {"dnsPolicy": "None"},
            "dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None",
            id="no names at all",
        ),
        pytest.param(
            {"activeDeadlineSeconds": 0},
            "activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive",
            id="deadline",
        ),
        pytest.param(
            {"shareProcessNamespace": True, "hostPID": True},
            "shareProcessNamespace: Invalid value: true: ShareProcessNamespace and HostPID cannot both be "
            "enabled",
            id="two process namespaces",
        ),
        pytest.param(
            {"securityContext": {"runAsUser": -1}},
            "securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive",
            id="user",
        ),
        pytest.param(
            {"os": {"name": "x"}},
            'os: Unsupported value: "x": supported values: "linux", "windows"',
            id="system",
        ),
        pytest.param(
            {"schedulingGroup": {}},
            "schedulingGroup.podGroupName: Invalid value: null: must specify one of: `podGroupName`",
            id="a member of nothing",
        ),
        pytest.param(
            {"nodeName": "n", "schedulingGates": [{"name": "g"}]},
            "nodeName: Forbidden: cannot be set until all schedulingGates have been cleared",
            id="gated on a node",
        ),
        pytest.param(
            {"ephemeralContainers": [{"name": "e", "image": "i"}]},
            "ephemeralContainers: Forbidden: cannot be set on create",
            id="ephemeral from the start",
        ),
    ],
)
def test_a_bad_spec_is_refused(spec: dict[str, Any], fault: str) -> None:
    assert FullServer().pod_faults(**spec) == [f"spec.{fault}"]


def test_faults_of_several_parts_come_in_stock_order() -> None:
    spec = {"tolerations": [{"key": "a", "operator": "X"}], "restartPolicy": "X", "containers": []}
    found = FullServer().pod_faults(schedulingGroup={"podGroupName": "A_b"}, **spec)
    assert [fault.split(":")[0] for fault in found] == [
        "spec.containers",
        "spec.restartPolicy",
        "spec.tolerations[0].operator",
        "spec.schedulingGroup.podGroupName",
    ]


def test_a_claim_has_a_name_and_one_source() -> None:
    claims = [{"name": "a"}, {"name": "a", "resourceClaimName": "x", "resourceClaimTemplateName": "y"}]
    found = FullServer().pod_faults(resourceClaims=claims)
    assert found[1] == 'spec.resourceClaims[1].name: Duplicate value: "a"'
    assert found[0].endswith("must specify one of: `resourceClaimName`, `resourceClaimTemplateName`")
    both = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
    assert found[2].endswith(both)


def test_an_address_is_of_either_family() -> None:
    assert validate_address("a", "10.0.0.1") == validate_address("a", "2001:db8::1") == []
    assert validate_address("a", "x")[0].message.startswith('Invalid value: "x": must be a valid IP address')
