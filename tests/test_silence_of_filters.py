"""Where a filter is silent about a pod, no other changes a row: the slow way asks about each."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.api.core import Pod
from muster.assembly.profiles import BUILT_IN
from muster.framework.points import ANY_ROW, Filter, Silence
from muster.framework.registry import Registry
from muster.testing.builders import make_cluster, make_pod

SELECTOR = {"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": "zone"}
KINDS: list[dict[str, Any]] = [
    {},
    {"labels": {"app": "a"}},
    {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [SELECTOR]}}},
    {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [SELECTOR]}}},
    {"topology_spread_constraints": [{**SELECTOR, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}]},
    {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "shared"}}]},
    {"resource_claims": [{"name": "d", "resourceClaimName": "shared"}]},
    {"host_ports": [80]},
    {"gpu": 1, "annotations": {"muster.dev/gpu-milli": "500"}},
]
REGISTRY = Registry(BUILT_IN, third_party={})
MADE = [REGISTRY.make(name, {}, path="") for name in BUILT_IN]
SILENT = [each.name for each in MADE if isinstance(each, Filter) and isinstance(each, Silence)]


def of_kind(kind: int, name: str, node: str = "") -> Pod:
    labels = {"app": "a", **KINDS[kind].get("labels", {})}
    return make_pod(name, node=node, **{**KINDS[kind], "labels": labels if kind else {}})


@pytest.mark.parametrize("name", SILENT)
@given(st.lists(st.integers(0, len(KINDS) - 1), max_size=4), st.integers(0, len(KINDS) - 1))
def test_who_is_silent_about_a_pod_has_no_row_that_changes(name: str, running: list[int], kind: int) -> None:
    cluster = make_cluster().node("n1", gpu=2, labels={"zone": "z1"})
    cluster.node("n2", gpu=2, labels={"zone": "z2"})
    for index, placed in enumerate(running):
        cluster.state.apply_pod(of_kind(placed, f"r{index}", f"n{index % 2 + 1}"))
    snapshot, pod = cluster.snapshot(), of_kind(kind, "p")
    plugin = REGISTRY.make(name, {}, path="")
    fork = snapshot.fork()
    others = [(other, row) for row in (0, 1) for other in snapshot.pods_on(row)]
    for other, row in others:
        fork.remove(other, row)
    for here in (snapshot, fork):
        changed = [plugin.rows_changed(other, ANY_ROW, pod, here) for other, _ in others]
        matters = any(rows is None or rows.size for rows in changed)
        assert not plugin.is_silent(pod, here) or not matters


def test_every_filter_that_reads_pods_one_by_one_says_when_none_matters() -> None:
    assert SILENT == [
        "NodePorts",
        "VolumeRestrictions",
        "NodeVolumeLimits",
        "VolumeBinding",
        "DynamicResources",
        "GpuDevices",
        "PodTopologySpread",
        "InterPodAffinity",
    ]
