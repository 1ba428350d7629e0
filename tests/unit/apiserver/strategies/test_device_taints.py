"""Rules that taint devices."""

from typing import Any

import pytest
from tests.unit.apiserver.strategies.full_server import FullServer

RULES = "/apis/resource.k8s.io/v1/devicetaintrules"
RULE: dict[str, Any] = {
    "deviceSelector": {"driver": "gpu.example.com", "pool": "n1", "device": "gpu-0"},
    "taint": {"key": "example.com/broken", "effect": "NoSchedule"},
}


def test_a_rule_has_a_generation_and_its_taint_a_time() -> None:
    made = FullServer().create(RULES, "r", spec=RULE, status={"conditions": [{"type": "Mine"}]})
    assert (made["metadata"]["generation"], made.get("status", {})) == (1, {})
    assert made["spec"]["taint"]["timeAdded"]


@pytest.mark.parametrize(
    ("taint", "is_moved"),
    [
        ({"effect": "NoExecute"}, True),
        ({"value": "fan"}, False),
        ({"effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"}, False),
    ],
)
def test_another_effect_begins_when_it_is_written(taint: dict[str, str], is_moved: bool) -> None:
    server = FullServer()
    before = server.create(RULES, "r", spec=RULE)["spec"]["taint"]["timeAdded"]
    server.now_s += 60
    changed = server.change(RULES, "r", spec={"taint": taint})
    kept = taint.get("timeAdded", before)
    assert (changed["spec"]["taint"]["timeAdded"] != kept) == is_moved
    assert changed["metadata"]["generation"] == 2


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"taint": {"key": "", "effect": "NoSchedule"}}, "spec.taint.key"),
        ({"taint": {"key": "k", "effect": "PreferNoSchedule"}}, "spec.taint.effect"),
        ({"taint": {"key": "k"}}, "spec.taint.effect"),
        ({"deviceSelector": {"driver": "no driver"}}, "spec.deviceSelector.driver"),
        ({"deviceSelector": {"pool": "UP"}}, "spec.deviceSelector.pool"),
        ({"deviceSelector": {"device": "a.b"}}, "spec.deviceSelector.device"),
    ],
)
def test_a_bad_rule_is_refused(change: dict[str, Any], fault: str) -> None:
    found = FullServer().create_faults(RULES, spec=RULE | change)
    assert {each.split(":")[0] for each in found} == {fault}
