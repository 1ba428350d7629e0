"""Amounts of resources."""

import re
from typing import Any

import pytest

from muster.apiserver.kinds import Object
from muster.apiserver.strategies import resources


def faults(**amounts: Any) -> list[str]:
    return [f"{c.field}: {c.message}" for c in resources.validate_resources("r", amounts)]


@pytest.mark.parametrize(
    ("amounts", "fault"),
    [
        pytest.param(
            {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}},
            'r.requests: Invalid value: "2": must be less than or equal to cpu limit of 1',
            id="a request above its limit",
        ),
        pytest.param(
            {"requests": {"nvidia.com/gpu": "1"}},
            "r.limits: Required value: Limit must be set for non overcommitable resources",
            id="a device without limit",
        ),
        pytest.param(
            {"requests": {"nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "2"}},
            'r.requests: Invalid value: "1": must be equal to nvidia.com/gpu limit of 2',
            id="devices are not overcommitted",
        ),
        pytest.param(
            {"limits": {"nvidia.com/gpu": "1500m"}},
            'r.limits[nvidia.com/gpu]: Invalid value: "1500m": must be an integer',
            id="half a device",
        ),
        pytest.param(
            {"requests": {"cpu": "-1"}},
            'r.requests[cpu]: Invalid value: "-1": must be greater than or equal to 0',
            id="negative",
        ),
        pytest.param(
            {"limits": {"hugepages-2Mi": "3Mi", "cpu": "1"}, "requests": {"hugepages-2Mi": "3Mi"}},
            'r.pages: Invalid value: "3Mi": 3Mi is not positive integer multiple of hugepages-2Mi',
            id="half a page",
        ),
        pytest.param(
            {"limits": {"hugepages-2Mi": "4Mi"}},
            "r: Forbidden: HugePages require cpu or memory",
            id="pages alone",
        ),
        pytest.param(
            {"claims": [{"name": "x"}]},
            'r.claims[0]: Not found: "x": must be one of the names in pod.spec.resourceClaims which is empty',
            id="a claim the pod does not have",
        ),
    ],
)
def test_bad_amounts_are_refused(amounts: dict[str, Any], fault: str) -> None:
    found = faults(**amounts)
    assert {re.sub(r"(limits|requests)\[hugepages-2Mi\]", "pages", text) for text in found} == {fault}


def test_a_name_without_prefix_must_be_known() -> None:
    assert faults(limits={"foo": "1"}) == [
        'r.limits[foo]: Invalid value: "foo": must be a standard resource type or fully qualified',
        'r.limits[foo]: Invalid value: "foo": must be a standard resource for containers',
    ]


def test_an_absurd_amount_is_compared_without_wrapping() -> None:
    huge = "99999999999999999999999"
    assert faults(requests={"cpu": huge}, limits={"cpu": "1"})[0].endswith("limit of 1")
    assert faults(requests={"memory": huge}, limits={"memory": huge}) == []


def test_nothing_finer_than_a_thousandth_is_kept() -> None:
    amounts: Object = {"cpu": "1n", "memory": "1500000u", "pods": "5"}
    resources.round_up(amounts)
    assert amounts == {"cpu": "1m", "memory": "1500m", "pods": "5"}


def test_limits_are_requests_where_none_are_said() -> None:
    part: Object = {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}}
    resources.default_requests(part)
    assert part["requests"] == {"cpu": "1", "memory": "1Gi"}


BOTH = {"cpu": "1", "memory": "1"}


def container(**amounts: Any) -> Object:
    return {"name": "c", "resources": amounts}


@pytest.mark.parametrize(
    ("spec", "quality"),
    [
        pytest.param({"containers": [container()]}, "BestEffort", id="nothing asked"),
        pytest.param(
            {"containers": [container(limits={"nvidia.com/gpu": "1"})]},
            "BestEffort",
            id="devices do not count",
        ),
        pytest.param({"containers": [container(requests={"cpu": "1"})]}, "Burstable", id="something asked"),
        pytest.param(
            {
                "containers": [
                    container(limits={"cpu": "1", "memory": "1"}, requests={"cpu": "1", "memory": "1"})
                ]
            },
            "Guaranteed",
            id="all of it",
        ),
        pytest.param(
            {"resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}, "containers": [container()]},
            "Burstable",
            id="the pod's own amounts decide",
        ),
    ],
)
def test_quality_of_service_follows_cpu_and_memory(spec: Object, quality: str) -> None:
    assert resources.quality_of_service(spec) == quality


def test_a_pod_asks_for_its_worst_moment() -> None:
    sidecar = {**container(requests={"cpu": "1"}), "restartPolicy": "Always"}
    init = container(requests={"cpu": "5"})
    spec = {"initContainers": [sidecar, init], "containers": [container(requests={"cpu": "2"})]}
    assert resources.container_sums(spec) == {"cpu": 6000}


def test_a_pods_request_covers_its_containers() -> None:
    spec = {"resources": {"requests": {"cpu": "100m"}}, "containers": [container(requests={"cpu": "500m"})]}
    assert [c.message for c in resources.validate_pod_resources("r", spec)] == [
        'Invalid value: "100m": must be greater than or equal to aggregate container requests of 500m'
    ]


def test_a_pods_limit_is_filled_from_what_its_containers_ask() -> None:
    spec: Object = {
        "resources": {"limits": {"cpu": "1"}},
        "containers": [container(requests={"cpu": "500m"})],
    }
    resources.default_pod_requests(spec)
    assert spec["resources"]["requests"] == {"cpu": "500m"}


def test_bytes_stay_readable_when_they_are_added_up() -> None:
    asking = container(requests={"memory": "512Mi"})
    spec: Object = {"resources": {"limits": {"memory": "2Gi"}}, "containers": [asking, asking]}
    resources.default_pod_requests(spec)
    assert spec["resources"]["requests"] == {"memory": "1Gi"}


def test_a_node_offers_whole_devices() -> None:
    found = resources.validate_node_amounts("c", {"x.y/z": "1500m", "cpu": "-1", "memory": "0"})
    assert [c.field for c in found] == ["c.cpu", "c.x.y/z"]
