"""Where a filter says that no pod matters, none changes a row: the slow way asks about each."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.api.core import Pod
from muster.assembly.profiles import BUILT_IN
from muster.framework.points import ANY_ROW, MindsPods
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
]
REGISTRY = Registry(BUILT_IN, third_party={})
MINDING = [name for name in BUILT_IN if isinstance(REGISTRY.make(name, {}, path=""), MindsPods)]


def of_kind(kind: int, name: str, node: str = "") -> Pod:
    labels = {"app": "a", **KINDS[kind].get("labels", {})}
    return make_pod(name, node=node, **{**KINDS[kind], "labels": labels if kind else {}})


@pytest.mark.parametrize("name", MINDING)
@given(st.lists(st.integers(0, len(KINDS) - 1), max_size=4), st.integers(0, len(KINDS) - 1))
def test_who_minds_no_pod_has_no_row_that_changes(name: str, running: list[int], kind: int) -> None:
    cluster = make_cluster().node("n1", labels={"zone": "z1"}).node("n2", labels={"zone": "z2"})
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
        assert plugin.minds_pods(pod, here) or not matters


def test_every_filter_that_reads_pods_one_by_one_says_whether_they_matter() -> None:
    assert MINDING == [
        "VolumeRestrictions",
        "NodeVolumeLimits",
        "VolumeBinding",
        "DynamicResources",
        "PodTopologySpread",
        "InterPodAffinity",
    ]
