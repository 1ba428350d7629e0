"""GpuPacking."""

from typing import Any

import numpy as np
import pytest

from muster.assembly.config import Config, PluginChoice
from muster.assembly.profiles import build, choose_plugins
from muster.base.errors import ConfigError
from muster.cluster.gpu_annotations import GPU_MILLI
from muster.plugins.gpu_packing import GpuPacking
from muster.testing.builders import make_cluster, make_pod
from muster.testing.conformance import check_plugin

HALF = {"share": 60, "cpu": 1, "gpuMilli": 500}
WHOLE = {"share": 40, "cpu": "4", "gpus": 1}


def part(milli: int, name: str = "p", **fields: Any) -> Any:
    return make_pod(name, gpu=1, annotations={GPU_MILLI: str(milli)}, **fields)


def test_it_keeps_the_contract() -> None:
    cluster = make_cluster().nodes(3, gpu=2)
    cluster.state.apply_pod(part(500, "there", node="n1"))
    pods = [part(300), part(500), make_pod(gpu=1)]
    check_plugin(GpuPacking(shapes=[HALF, WHOLE]), pods=pods, snapshots=[cluster.snapshot()])


def test_a_half_goes_to_the_other_half_and_not_to_a_device_that_whole_ones_need() -> None:
    cluster = make_cluster().node("a", cpu=16, gpu=1).node("b", cpu=16, gpu=1)
    cluster.state.apply_pod(part(500, "there", node="b"))
    snapshot = cluster.snapshot()
    score = GpuPacking(shapes=[WHOLE]).score(part(500, cpu=1), snapshot, snapshot.live_rows())
    assert score[1] > score[0]


def test_a_pod_without_gpus_goes_where_cpu_is_not_what_gpus_lack() -> None:
    snapshot = make_cluster().node("a", cpu=8, gpu=2).node("b", cpu=64, gpu=2).snapshot()
    score = GpuPacking(shapes=[WHOLE]).score(make_pod(cpu=4), snapshot, snapshot.live_rows())
    assert score[1] > score[0]


def test_shapes_for_certain_nodes_count_only_there() -> None:
    cluster = (
        make_cluster().node("a", gpu=1, labels={"model": "T4"}).node("b", gpu=1, labels={"model": "H100"})
    )
    snapshot = cluster.snapshot()
    only_t4 = {**WHOLE, "nodeLabels": {"model": ["T4"]}}
    score = GpuPacking(shapes=[only_t4]).score(part(500), snapshot, snapshot.live_rows())
    assert score[1] > score[0]  # nobody wants the other one anyway


def test_what_is_remembered_of_rows_is_what_it_would_say_anew() -> None:
    rng = np.random.default_rng(1)
    cluster = make_cluster().nodes(4, cpu=16, gpu=2)
    cluster.state.apply_pod(part(100, "first", node="n1"))
    fork = cluster.snapshot().fork()
    remembering = GpuPacking(shapes=[HALF, WHOLE])
    for number in range(12):
        rows = np.sort(rng.choice(4, size=int(rng.integers(1, 5)), replace=False)).astype(np.int32)
        pod = part(int(rng.integers(1, 9)) * 100, f"p{number}", cpu=1)
        found = remembering.score(pod, fork, rows)
        assert found.tolist() == GpuPacking(shapes=[HALF, WHOLE]).score(pod, fork, rows).tolist()
        fork.place(pod, int(rows[0]))


@pytest.mark.parametrize(
    ("shapes", "path"),
    [
        ([], "shapes: give at least one"),
        (["x"], "shapes[0]: give a mapping"),
        ([{}], "shapes[0].share"),
        ([HALF, {**HALF, "share": 0}], "shapes[1].share"),
        ([{**HALF, "cpu": "four"}], "shapes[0].cpu"),
        ([{**HALF, "gpus": 2}], "shapes[0].gpuMilli"),
        ([{**HALF, "gpuMilli": 1001}], "shapes[0].gpuMilli"),
        ([{**HALF, "gpus": 0}], "shapes[0].gpus"),
        ([{**HALF, "memory": "1Gi"}], "shapes[0].memory"),
        ([{**HALF, "nodeLabels": {"model": "T4"}}], "shapes[0].nodeLabels"),
    ],
)
def test_a_bad_shape_is_named_with_its_field(shapes: Any, path: str) -> None:
    with pytest.raises(ValueError, match=path.replace("[", r"\[")):
        GpuPacking(shapes=shapes)


def test_it_is_in_no_profile_that_does_not_ask_for_it_and_refused_without_shapes() -> None:
    assert "GpuPacking" not in {choice.name for _, choice in choose_plugins(Config())}
    with pytest.raises(ConfigError, match="shapes"):
        build(Config(add_plugins=(PluginChoice("GpuPacking"),)), third_party={})
