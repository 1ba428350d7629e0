"""What a pod is given."""

from typing import Any

import pytest

from muster.apiserver.kinds import Object
from muster.apiserver.strategies.pod_defaults import default_pod, default_pod_spec, pull_policy


def defaulted(**spec: Any) -> Object:
    whole: Object = {"containers": [{"name": "c", "image": "i", "resources": {}}], **spec}
    default_pod_spec(whole)
    return whole


def test_a_spec_gets_its_policies() -> None:
    spec = defaulted()
    spec.pop("containers")
    assert spec == {
        "restartPolicy": "Always",
        "dnsPolicy": "ClusterFirst",
        "terminationGracePeriodSeconds": 30,
        "securityContext": {},
        "schedulerName": "default-scheduler",
    }


def test_a_container_gets_its_own() -> None:
    assert defaulted()["containers"] == [
        {
            "name": "c",
            "image": "i",
            "resources": {},
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File",
            "imagePullPolicy": "Always",
        }
    ]


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("i", "Always"),
        ("i:latest", "Always"),
        ("i:1", "IfNotPresent"),
        ("registry:5000/i", "Always"),
        ("registry:5000/i:1", "IfNotPresent"),
        ("i@sha256:" + "0" * 64, "IfNotPresent"),
        ("UPPER", "IfNotPresent"),
    ],
)
def test_an_image_that_moves_is_always_pulled(image: str, policy: str) -> None:
    assert pull_policy(image) == policy


def test_ports_of_the_host_network_are_the_hosts() -> None:
    container = {"name": "c", "image": "i", "ports": [{"containerPort": 80}]}
    spec = defaulted(hostNetwork=True, containers=[container])
    assert spec["containers"][0]["ports"] == [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}]


def test_a_probe_gets_its_times() -> None:
    container = {"name": "c", "image": "i", "livenessProbe": {"httpGet": {"port": 80}, "timeoutSeconds": 5}}
    assert defaulted(containers=[container])["containers"][0]["livenessProbe"] == {
        "httpGet": {"port": 80, "path": "/", "scheme": "HTTP"},
        "timeoutSeconds": 5,
        "periodSeconds": 10,
        "successThreshold": 1,
        "failureThreshold": 3,
    }


def test_a_volume_without_source_is_empty_and_files_have_a_mode() -> None:
    volumes = [
        {"name": "a"},
        {"name": "b", "configMap": {"name": "x"}},
        {"name": "c", "hostPath": {"path": "/"}},
    ]
    assert defaulted(volumes=volumes)["volumes"] == [
        {"name": "a", "emptyDir": {}},
        {"name": "b", "configMap": {"name": "x", "defaultMode": 420}},
        {"name": "c", "hostPath": {"path": "/", "type": ""}},
    ]


def test_the_service_account_has_two_names() -> None:
    assert defaulted(serviceAccount="a")["serviceAccountName"] == "a"


def test_requests_come_from_limits_in_a_pod_and_not_in_a_template() -> None:
    limits = {"name": "c", "image": "i", "resources": {"limits": {"cpu": "1"}}}
    spec = defaulted(containers=[limits])
    assert "requests" not in spec["containers"][0]["resources"]
    default_pod(spec)
    assert spec["containers"][0]["resources"]["requests"] == {"cpu": "1"}
    assert spec["enableServiceLinks"] is True
