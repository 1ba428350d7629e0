"""Containers and volumes of a pod."""

from typing import Any

import pytest
from tests.unit.apiserver.strategies.full_server import CONTAINER, FullServer


def faults(**container: Any) -> list[str]:
    return FullServer().pod_faults(containers=[{**CONTAINER, **container}])


@pytest.mark.parametrize(
    ("container", "fault"),
    [
        pytest.param({"image": ""}, "image: Required value", id="no image"),
        pytest.param(
            {"image": " x"},
            'image: Invalid value: " x": must not have leading or trailing whitespace',
            id="an image with a space",
        ),
        pytest.param(
            {"imagePullPolicy": "X"},
            'imagePullPolicy: Unsupported value: "X": supported values: "Always", "IfNotPresent", "Never"',
            id="pull policy",
        ),
        pytest.param(
            {"ports": [{"containerPort": 0}]}, "ports[0].containerPort: Required value", id="port 0"
        ),
        pytest.param(
            {"ports": [{"containerPort": 70000}]},
            "ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive",
            id="a port too high",
        ),
        pytest.param(
            {"ports": [{"containerPort": 80, "hostPort": 9}, {"containerPort": 81, "hostPort": 9}]},
            'ports[1].hostPort: Duplicate value: "TCP//9"',
            id="a host port twice",
        ),
        pytest.param({"env": [{"name": ""}]}, "env[0].name: Required value", id="a variable without name"),
        pytest.param(
            {"env": [{"name": "a", "valueFrom": {}}]},
            'env[0].valueFrom: Invalid value: "": must specify one of: `fieldRef`, `resourceFieldRef`, '
            "`configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
            id="a variable from nowhere",
        ),
        pytest.param(
            {"volumeMounts": [{"name": "v", "mountPath": "/a"}]},
            'volumeMounts[0].name: Not found: "v"',
            id="a volume that is not there",
        ),
        pytest.param(
            {"livenessProbe": {}}, "livenessProbe: Required value: must specify a handler type", id="probe"
        ),
        pytest.param(
            {"restartPolicy": "X"},
            'restartPolicy: Unsupported value: "X": supported values: "Always", "Never", "OnFailure"',
            id="restart policy",
        ),
    ],
)
def test_a_bad_container_is_refused(container: dict[str, Any], fault: str) -> None:
    assert faults(**container) == [f"spec.containers[0].{fault}"]


def test_a_pod_has_containers_and_their_names_differ() -> None:
    server = FullServer()
    assert server.pod_faults(containers=[]) == ["spec.containers: Required value"]
    assert server.pod_faults(containers=[CONTAINER, CONTAINER]) == [
        'spec.containers[1].name: Duplicate value: "c"'
    ]
    assert server.pod_faults(initContainers=[CONTAINER]) == [
        'spec.initContainers[0].name: Duplicate value: "c"'
    ]


def test_only_a_sidecar_among_init_containers_is_probed() -> None:
    probe = {"exec": {"command": ["x"]}}
    init = {"name": "s", "image": "i", "readinessProbe": probe}
    assert FullServer().pod_faults(initContainers=[init]) == [
        "spec.initContainers[0].readinessProbe: Forbidden: may not be set for init containers without "
        "restartPolicy=Always"
    ]
    FullServer().pod("p", initContainers=[{**init, "restartPolicy": "Always"}])


def test_a_volume_has_one_source_and_a_name_of_its_own() -> None:
    volumes = [{"name": "b", "emptyDir": {}, "hostPath": {"path": "/x"}}, {"name": "a"}, {"name": "a"}]
    assert FullServer().pod_faults(volumes=volumes) == [
        "spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type",
        'spec.volumes[2].name: Duplicate value: "a"',
    ]


def test_a_port_name_is_a_service_name() -> None:
    found = faults(ports=[{"containerPort": 1, "name": "-a"}, {"containerPort": 2, "name": "123"}])
    assert [fault.rsplit(": ", 1)[1] for fault in found] == [
        "must not begin or end with a hyphen",
        "must contain at least one letter (a-z)",
    ]
