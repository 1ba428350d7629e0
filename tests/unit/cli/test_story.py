"""The story of `examples/story/` on virtual time: what it says comes true, and what does not is noticed."""

from typing import Any

import numpy as np
import pytest
from tests.unit.runtime.test_stage import VirtualTime

from muster.assembly.cluster_plan import ClusterPlan
from muster.assembly.config import Config
from muster.cli.story import ACTS, NODES, Act, Scene, manifests
from muster.runtime.stage import Stage


def stage_of(scheduler: Config | None = Config()) -> Stage:  # noqa: B008
    time = VirtualTime()
    plan = ClusterPlan(manifests(NODES), scheduler=scheduler)
    return Stage(plan, rng=np.random.default_rng(7), now_s=time.now_s, pause=time.pause)


@pytest.fixture(scope="module")
def played() -> list[tuple[Act, list[Scene]]]:
    stage = stage_of()
    return [(act, list(act.scenes(stage))) for act in ACTS]


def test_everything_happens_as_the_story_says(played: list[tuple[Act, list[Scene]]]) -> None:
    claims = [claim for _, scenes in played for scene in scenes for claim in scene.claims]
    assert len(claims) >= 12
    assert [claim.text for claim in claims if not claim.holds] == []


def test_the_deadlock_is_told_with_who_holds_what(played: list[tuple[Act, list[Scene]]]) -> None:
    (message,) = played[0][1][0].messages
    assert "default/job-a holds 6 nvidia.com/gpu and needs 2 nvidia.com/gpu more" in message
    assert "default/job-b holds 6 nvidia.com/gpu and needs 2 nvidia.com/gpu more" in message
    assert "free: 0 of 12 nvidia.com/gpu" in message


def test_without_a_scheduler_the_claims_are_found_untrue() -> None:
    scene = next(ACTS[0].scenes(stage_of(scheduler=None)))
    assert not any(claim.holds for claim in scene.claims if "6 of its 8" in claim.text)


def test_with_room_for_both_there_is_no_deadlock_to_show() -> None:
    stage = stage_of()
    for number in range(4):
        body: dict[str, Any] = manifests(NODES)[0] | {"metadata": {"name": f"more-{number}"}}
        stage.call("POST", "/api/v1/nodes", body)
    scene = next(ACTS[0].scenes(stage))
    assert any(not claim.holds for claim in scene.claims if "deadlock" in claim.text)


def test_the_manifests_are_objects_that_kubectl_could_apply() -> None:
    for name in (NODES, "act-1-pod-at-a-time.yaml", "act-2-gangs.yaml", "act-3-another-gang.yaml"):
        assert all({"apiVersion", "kind", "metadata"} <= set(entry) for entry in manifests(name))
