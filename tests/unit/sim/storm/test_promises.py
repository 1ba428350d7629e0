"""Each promise is found broken where it is, and only there."""

from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.sim.storm.stage import Stage, with_denied_gang

from muster.apiserver.exchange import Request
from muster.assembly.requests import JSON
from muster.controllers.objects import uid_of
from muster.sim.loop import Checker, Violation
from muster.sim.storm.promises import (
    SAID_AGAIN_S,
    BeginsWithAll,
    BindsAsDecided,
    SoundDecisions,
    Starts,
    TrueIsTrue,
    bind_timeout_s,
    is_exempt,
)
from muster.sim.storm.replica import Replica


def judge(stage: Stage, checker: Checker) -> list[str]:
    return list(checker.check(stage.world.now_s()))


def bind(stage: Stage, pod: str, *, user: str) -> None:
    body = {"metadata": {"name": pod, "namespace": "default"}, "target": {"kind": "Node", "name": "n0"}}
    path = f"/api/v1/namespaces/default/pods/{pod}/binding"
    stage.world.serve(Request("POST", path, headers={"content-type": JSON}, body=body, user=user))


def led() -> tuple[Stage, Replica, BindsAsDecided]:
    """A world of one node with a leader, and pods that nobody schedules."""
    stage = Stage(nodes=1)
    checker = BindsAsDecided(stage.world)
    stage.run(10.0)
    leader = stage.world.deciding
    assert leader is not None
    for number in range(9):
        stage.pod(f"p{number}", scheduler="nobody")
    stage.run(1.0)
    return stage, leader, checker


def decide(stage: Stage, leader: Replica, pod: str) -> None:
    leader.decided[stage.object(pod)["metadata"]["uid"]] = {"n0"}


def test_a_binding_that_nobody_decided_is_found() -> None:
    stage, leader, checker = led()
    bind(stage, "p0", user=leader.identity)
    assert judge(stage, checker) == [f"pod p0 was bound to n0, which {leader.identity} did not decide"]


def test_a_binding_of_a_leader_that_is_none_any_more_is_found() -> None:
    stage, leader, checker = led()
    decide(stage, leader, "p0")
    stage.world.next_term()
    bind(stage, "p0", user=leader.identity)
    assert judge(stage, checker) == [f"pod p0 was bound by {leader.identity}, leader 1 of 2"]


def test_a_rival_may_bind_what_it_likes() -> None:
    stage, _, checker = led()
    bind(stage, "p0", user="rival")
    assert judge(stage, checker) == []


def test_a_node_that_holds_more_of_ours_than_it_has_is_found() -> None:
    stage, leader, checker = led()
    for number in range(9):
        assert judge(stage, checker) == []
        decide(stage, leader, f"p{number}")
        bind(stage, f"p{number}", user=leader.identity)
        stage.run(0.1)
    assert judge(stage, checker) == ["node n0 holds more cpu of ours than it has"]


def test_a_leader_that_begins_without_knowing_of_a_binding_is_found() -> None:
    stage, leader, _ = led()
    decide(stage, leader, "p0")
    bind(stage, "p0", user=leader.identity)
    stage.run(1.0)
    assert judge(stage, BeginsWithAll(stage.world)) == []
    leader.told.pods = {key: pod for key, pod in leader.told.pods.items() if key.name != "p0"}
    assert judge(stage, BeginsWithAll(stage.world)) == [
        f"{leader.identity} begins and does not know that p0 is on n0"
    ]


def test_what_a_process_should_not_have_done_is_told_with_its_name() -> None:
    stage = Stage()
    stage.run(10.0)
    leader = stage.world.deciding
    assert leader is not None
    checker = SoundDecisions(stage.world)
    assert judge(stage, checker) == []
    leader.line.impatience.append("too early")
    assert judge(stage, checker) == ["Retry-After: too early"]


# ── gangs ──


@pytest.fixture
def stage() -> Stage:
    return with_denied_gang()


def test_a_member_that_vanishes_as_the_last_is_bound_is_a_loss_after_the_start(stage: Stage) -> None:
    starts = Starts(stage.world.ledger)
    stage.run(1.0)
    group = stage.world.ledger.groups["g"]
    starts.ever_bound[uid_of(group)] = {"gone", "here"}
    assert not starts.is_over(group)
    said = {"type": "PodGroupInitiallyScheduled", "status": "True"}
    assert starts.is_over({**group, "status": {"conditions": [said]}})
    starts.ever_bound[uid_of(group)] = {"here"}
    assert not starts.is_over({**group, "status": {"conditions": [said]}})


@pytest.mark.parametrize(
    ("text", "seconds"), [(None, 300.0), ("30", 30.0), ("60s", 60.0), ("2m", 120.0), ("1h", 3600.0)]
)
def test_a_bind_time_out_is_read(text: str | None, seconds: float) -> None:
    annotations = {} if text is None else {"muster.dev/bind-timeout": text}
    assert bind_timeout_s({"metadata": {"annotations": annotations}}) == seconds


def test_bare_pods_may_be_released_where_their_group_says_so() -> None:
    bare = {"metadata": {}}
    assert is_exempt({"metadata": {}}, [bare])
    assert not is_exempt({"metadata": {"annotations": {"muster.dev/release-bare-pods": "true"}}}, [bare])


def group(status: str) -> dict[str, Any]:
    return {
        "metadata": {"name": "g", "uid": "u"},
        "status": {"conditions": [{"type": "PodGroupInitiallyScheduled", "status": status}]},
    }


@pytest.mark.parametrize(
    ("before", "after", "bound", "complaint"),
    [
        pytest.param("False", "True", 2, "", id="true in time"),
        pytest.param("False", "True", 1, "group g is True with 1 of 2 ever bound", id="true too early"),
        pytest.param("True", "False", 2, "group g was True and is not since 0", id="taken back"),
    ],
)
def test_true_is_said_in_time_and_stays(before: str, after: str, bound: int, complaint: str) -> None:
    starts = SimpleNamespace(
        ever_bound={"u": {str(number) for number in range(bound)}}, least_needed={"u": 2}, started=set()
    )
    checker = TrueIsTrue(starts)  # type: ignore[arg-type]
    checker.see("podgroups.scheduling.k8s.io", group(before), group(after), 0.0)
    assert list(checker.check(SAID_AGAIN_S + 1)) == ([complaint] if complaint else [])


def test_what_was_taken_back_may_be_said_again() -> None:
    starts = SimpleNamespace(ever_bound={"u": {"1", "2"}}, least_needed={"u": 2}, started={"u"})
    checker = TrueIsTrue(starts)  # type: ignore[arg-type]
    for before, after in (("True", "False"), ("False", "True")):
        checker.see("podgroups.scheduling.k8s.io", group(before), group(after), 0.0)
    assert list(checker.check(SAID_AGAIN_S + 1)) == []


def test_a_complaint_stops_the_run() -> None:
    stage, leader, checker = led()
    bind(stage, "p0", user=leader.identity)
    with pytest.raises(Violation, match="did not decide"):
        stage.simulation.judge([checker])


def test_who_does_not_know_of_a_restored_backup_is_believed(stage: Stage) -> None:
    stage.run(1.0)
    said = {"type": "PodGroupInitiallyScheduled", "status": "True"}
    group = {**stage.world.ledger.groups["g"], "status": {"conditions": [said]}}
    for outdated, started in ((False, set()), (True, {uid_of(group)})):
        starts = Starts(stage.world.ledger, lambda written, outdated=outdated: outdated)  # type: ignore[misc]
        starts.see("podgroups.scheduling.k8s.io", None, group, 0.0)
        assert starts.started == started


def test_a_write_of_a_process_that_has_seen_what_a_backup_takes_back_is_known() -> None:
    stage = Stage()
    stage.run(10.0)
    backup = stage.world.store.backup()
    stage.gang("g", 2)
    stage.run(5.0)
    written = stage.world.ledger.groups["g"]
    writers = dict(stage.world.door.writers)
    assert not stage.world.is_by_outdated(written)
    stage.world.restore(backup)
    stage.world.door.writers.update(writers)
    assert stage.world.is_by_outdated(written)
