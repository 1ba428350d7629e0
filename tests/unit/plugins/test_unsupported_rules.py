"""UnsupportedRules: nothing a user wrote is silently ignored."""

from typing import Any

import pytest

from muster.plugins.unsupported_rules import UnsupportedRules
from muster.testing.builders import make_pod
from muster.testing.conformance import check_plugin

TERM = {"topologyKey": "zone"}
DISK = {"name": "disk", "iscsi": {"iqn": "x"}}


def paths(**words: Any) -> list[str]:
    return [field.path for field in UnsupportedRules().unsupported(make_pod(**words))]


def test_it_keeps_the_contract() -> None:
    check_plugin(UnsupportedRules(), pods=[make_pod(volumes=[DISK])])


@pytest.mark.parametrize(
    ("words", "path"),
    [
        (
            {"volumes": [{"name": "a", "emptyDir": {}}, DISK]},
            "spec.volumes[1].iscsi",
        ),
        ({"cpu": "lots"}, "spec.containers[0].resources.requests[cpu]"),
        ({"overhead": {"cpu": "1 Gi"}}, "spec.overhead[cpu]"),
    ],
)
def test_the_field_is_named(words: dict[str, Any], path: str) -> None:
    assert paths(**words) == [path]


def test_every_field_is_named_at_once() -> None:
    assert len(paths(volumes=[DISK], overhead={"cpu": "1 Gi"})) == 2


@pytest.mark.parametrize(
    "words",
    [
        {},
        {"cpu": 1, "host_ports": [80], "node_selector": {"a": "b"}, "tolerations": [{"operator": "Exists"}]},
        {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}}},
        {"topology_spread_constraints": [TERM]},
        {
            "volumes": [
                {"name": n, n: {}}
                for n in ("emptyDir", "configMap", "secret", "projected", "hostPath", "nfs")
            ]
        },
        {"overhead": {"cpu": "1"}, "resources": {"requests": {"cpu": "1"}}},
    ],
)
def test_what_is_honoured_is_not_refused(words: dict[str, Any]) -> None:
    assert paths(**words) == []
