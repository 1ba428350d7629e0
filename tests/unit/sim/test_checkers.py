"""Each checker complains of what it is for, and of nothing else."""

import pytest
from tests.unit.sim.scene import Scene

from muster.framework.groups import ObjectKey
from muster.sim.checkers import (
    NodeRoom,
    NoTornGangs,
    RoomIsUsed,
    SaysWhy,
    ScheduledIsSaid,
    TrueStaysTrue,
)

GANG = ObjectKey("default", "g")


def test_a_pod_put_where_there_is_no_room_is_seen() -> None:
    scene = Scene()
    scene.node("n1", 2)
    scene.pod("a", cpu="2", node="n1")
    checker = NodeRoom(scene.look)
    assert list(checker.check(0.0)) == []
    scene.pod("b", cpu="500m", node="n1")
    assert list(checker.check(1.0)) == ["node n1 is over by 0.5 cpu with 2 pods"]


def test_a_node_that_shrinks_under_its_pods_is_no_fault_of_ours() -> None:
    scene = Scene()
    scene.node("n1", 2)
    scene.pod("a", cpu="2", node="n1")
    checker = NodeRoom(scene.look)
    list(checker.check(0.0))
    scene.node("n1", 1)
    assert list(checker.check(1.0)) == []


def test_a_pod_that_a_kubelet_refused_for_lack_of_room_is_seen() -> None:
    scene = Scene()
    scene.node("n1", 2)
    scene.pod("a", cpu="3", node="n1", phase="Failed")
    scene.pods["a"]["status"]["reason"] = "OutOfcpu"
    assert list(NodeRoom(scene.look).check(0.0)) == ["pod a was refused by node n1: OutOfcpu"]


def test_a_pod_that_has_ended_takes_no_room() -> None:
    scene = Scene()
    scene.node("n1", 2)
    scene.pod("a", cpu="2", node="n1", phase="Succeeded")
    scene.pod("b", cpu="2", node="n1")
    assert list(NodeRoom(scene.look).check(0.0)) == []


def test_a_gang_that_holds_a_part_is_torn() -> None:
    scene = Scene()
    scene.group("g", 2)
    quiet = NoTornGangs(scene.look, is_quiet=lambda: True, ever_whole=set())
    busy = NoTornGangs(scene.look, is_quiet=lambda: False, ever_whole=set())
    assert list(quiet.check(0.0)) == list(busy.check(0.0)) == []
    scene.pod("a", node="n1", group="g")
    scene.pod("b", group="g")
    assert list(quiet.check(1.0)) == ["g holds 1 of 2"]
    assert list(busy.check(1.0)) == []


def test_a_group_made_again_over_bound_members_is_not_torn() -> None:
    scene = Scene()
    scene.group("g", 2)
    scene.pod("a", node="n1", group="g")
    assert list(NoTornGangs(scene.look, is_quiet=lambda: True, ever_whole=set()).check(0.0)) == []


def test_a_gang_that_a_decision_made_whole_is_not_torn_by_a_loss() -> None:
    scene = Scene()
    scene.group("g", 2)
    checker = NoTornGangs(scene.look, is_quiet=lambda: True, ever_whole={"uid-g"})
    assert list(checker.check(0.0)) == []
    scene.pod("a", node="n1", group="g")
    assert list(checker.check(1.0)) == []


def test_a_gang_whose_member_failed_after_all_were_bound_is_not_torn() -> None:
    scene = Scene()
    scene.group("g", 2)
    checker = NoTornGangs(scene.look, is_quiet=lambda: True, ever_whole=set())
    assert list(checker.check(0.0)) == []
    scene.pod("a", node="n1", group="g")
    scene.pod("b", node="n1", group="g", phase="Failed")
    assert list(checker.check(1.0)) == []


def test_the_condition_may_not_be_true_before_enough_are_bound() -> None:
    scene = Scene()
    scene.group("g", 2, status="True")
    scene.pod("a", node="n1", group="g")
    assert list(TrueStaysTrue(scene.look, least_needed={}).check(0.0)) == [
        "group g is True with 1 of 2 bound"
    ]


def test_a_minimum_raised_since_is_not_held_against_the_condition() -> None:
    scene = Scene()
    scene.group("g", 3, status="True")
    scene.pod("a", node="n1", group="g")
    assert list(TrueStaysTrue(scene.look, least_needed={"uid-g": 1}).check(0.0)) == []


def test_a_member_bound_and_gone_between_two_looks_counts_if_it_was_told() -> None:
    scene = Scene()
    scene.group("g", 1, status="True")
    told = {"uid-g": {"uid-a"}}
    assert list(TrueStaysTrue(scene.look, least_needed={}, ever_bound=told).check(0.0)) == []


def test_the_condition_may_not_turn_back() -> None:
    scene = Scene()
    scene.group("g", 1, status="True")
    scene.pod("a", node="n1", group="g")
    checker = TrueStaysTrue(scene.look, least_needed={})
    assert list(checker.check(0.0)) == []
    scene.group("g", 1, status="False")
    assert list(checker.check(1.0)) == ["group g was True and is False"]


def at_rest(scene: Scene) -> RoomIsUsed:
    return RoomIsUsed(scene.look, is_settled=lambda: True, patience_s=0.0)


def test_what_fits_may_wait_for_a_moment_only() -> None:
    scene = Scene()
    scene.node("n1", 2)
    scene.pod("p")
    checker = RoomIsUsed(scene.look, is_settled=lambda: True, patience_s=1.5)
    assert [*checker.check(10.0), *checker.check(11.0)] == []
    assert list(checker.check(12.0)) == ["pod p fits, since 10.000"]


def test_room_that_a_waiting_gang_could_take_is_unused() -> None:
    scene = Scene()
    scene.node("n1", 2)
    scene.node("n2", 1)
    scene.group("g", 3)
    for name in ("a", "b", "c"):
        scene.pod(name, group="g")
    assert list(at_rest(scene).check(0.0)) == ["group g needs 3 more and 3 fit, since 0.000"]


@pytest.mark.parametrize("reason", ["no room", "cordoned", "short of members", "lone pod placed"])
def test_room_that_nobody_can_take_is_no_fault(reason: str) -> None:
    scene = Scene()
    scene.node("n1", 3 if reason != "no room" else 1, unschedulable=reason == "cordoned")
    scene.group("g", 2)
    scene.pod("a", group="g")
    if reason in ("no room", "cordoned"):
        scene.pod("b", group="g")
    scene.pod("lone", node="n1")
    assert list(at_rest(scene).check(0.0)) == []


def test_a_lone_pod_that_fits_is_seen() -> None:
    scene = Scene()
    scene.node("n1", 2)
    scene.pod("p", cpu="2")
    assert list(at_rest(scene).check(0.0)) == ["pod p fits, since 0.000"]


def judge_silence(scene: Scene, *, started_s: float = 0.0) -> SaysWhy:
    return SaysWhy(scene.look, is_settled=lambda: True, started_s=lambda: started_s)


def test_a_group_may_wait_in_silence_for_a_few_seconds_only() -> None:
    scene = Scene()
    scene.group("g", 2)
    scene.pod("a", group="g")
    checker = judge_silence(scene)
    assert list(checker.check(10.0)) == []
    assert list(checker.check(15.0)) == []
    assert list(checker.check(17.0)) == ["group g waits since 10.000 and nobody says why"]


def test_a_new_scheduler_has_its_own_few_seconds() -> None:
    scene = Scene()
    scene.group("g", 2)
    scene.pod("a", group="g")
    checker = judge_silence(scene, started_s=14.0)
    assert list(checker.check(10.0)) == []
    assert list(checker.check(17.0)) == []


def test_a_group_that_says_what_it_waits_for_is_not_silent() -> None:
    scene = Scene()
    scene.group("g", 2)
    scene.groups["g"]["status"]["conditions"] = [{"type": "muster.dev/Waiting", "status": "True"}]
    scene.pod("a", group="g")
    checker = judge_silence(scene)
    assert [*checker.check(10.0), *checker.check(60.0)] == []


def test_a_scheduled_group_may_not_say_that_it_waits() -> None:
    scene = Scene()
    scene.group("g", 1, status="True")
    scene.groups["g"]["status"]["conditions"].append({"type": "muster.dev/Waiting", "status": "True"})
    assert list(judge_silence(scene).check(0.0)) == ["group g is scheduled and says that it waits"]


def test_a_lone_pod_and_a_member_of_no_group_must_be_told() -> None:
    scene = Scene()
    scene.pod("lone")
    scene.pod("orphan", group="missing")
    checker = judge_silence(scene)
    assert list(checker.check(0.0)) == []
    assert [complaint.split(" waits")[0] for complaint in checker.check(7.0)] == ["pod lone", "pod orphan"]


def test_a_placed_group_that_does_not_say_so_is_seen() -> None:
    scene = Scene()
    scene.group("g", 1)
    scene.group("true", 1, status="True")
    scene.group("short", 2)
    for name in ("g", "true", "short"):
        scene.pod(name, group=name, node="n1")
    assert list(ScheduledIsSaid(scene.look).check(0.0)) == ["group g has 1 of 1 placed and does not say so"]
