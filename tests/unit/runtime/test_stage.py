"""Tests of runtime/stage.py: time passes only when the player lets it, and no longer than needed."""

from typing import Any

import numpy as np
import pytest

from muster.assembly.cluster_plan import ClusterPlan
from muster.assembly.node_manifests import nodes_from_shape
from muster.base.errors import ApiError
from muster.runtime.stage import Stage

PODS = "/api/v1/namespaces/default/pods"


class VirtualTime:
    """A clock that jumps."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def now_s(self) -> float:
        return self.now

    def pause(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def stage() -> Stage:
    time = VirtualTime()
    plan = ClusterPlan(nodes_from_shape(1, "cpu=1,memory=1Gi"))
    return Stage(plan, rng=np.random.default_rng(7), now_s=time.now_s, pause=time.pause)


def pod(run_seconds: str) -> dict[str, Any]:
    return {
        "metadata": {"name": "p", "annotations": {"muster.dev/run-seconds": run_seconds}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }


def phase(stage: Stage) -> str:
    return str(stage.call("GET", f"{PODS}/p")["status"]["phase"])


def test_nothing_happens_before_time_passes(stage: Stage) -> None:
    stage.call("POST", PODS, pod("10"))
    assert phase(stage) == "Pending"
    assert stage.elapsed_s == 0


def test_time_passes_until_it_has_come_true(stage: Stage) -> None:
    stage.call("POST", PODS, pod("10"))
    assert stage.pass_time(lambda: phase(stage) == "Succeeded", 60)
    assert 10 <= stage.elapsed_s < 15


def test_patience_ends(stage: Stage) -> None:
    assert not stage.pass_time(lambda: False, 3)
    assert stage.elapsed_s == pytest.approx(3)


def test_a_refusal_is_an_error_with_the_words_of_the_server(stage: Stage) -> None:
    with pytest.raises(ApiError, match='pods "nobody" not found') as caught:
        stage.call("GET", f"{PODS}/nobody")
    assert (caught.value.code, caught.value.reason) == (404, "NotFound")
