"""Each checker complains of what it is for, and of nothing else."""

import pytest
from tests.unit.sim.scene import Scene

from muster.api.core import Pod, PodSpec, PodStatus
from muster.api.meta import ObjectMeta
from muster.framework.groups import Group, ObjectKey
from muster.framework.ports import BindFailed, BindPod, GroupSeen, PodGone, PodSeen, TimeReached
from muster.sim.checkers import GangWhole, NodeRoom, NoTornGangs, RoomIsUsed, SaysWhy, TrueStaysTrue

GANG = ObjectKey("default", "g")


def seen_pod(name: str, *, node: str = "", phase: str = "Pending") -> PodSeen:
    metadata = ObjectMeta(name=name, namespace="default", uid=f"uid-{name}")
    return PodSeen(Pod(metadata, PodSpec(node_name=node), PodStatus(phase=phase)), GANG)


def bind(name: str) -> BindPod:
    return BindPod(ObjectKey("default", name), f"uid-{name}", "n1", "muster", GANG)


def watch_gang(min_count: int, *pods: PodSeen) -> GangWhole:
    checker = GangWhole()
    checker.observe(GroupSeen(Group(GANG, "uid-g", min_count=min_count)), (), 0.0)
    for pod in pods:
        checker.observe(pod, (), 0.0)
    return checker


def test_binding_fewer_than_the_minimum_is_a_torn_decision() -> None:
    checker = watch_gang(3, seen_pod("a"), seen_pod("b"), seen_pod("c"))
    checker.observe(TimeReached(), (bind("a"), bind("b")), 1.0)
    assert list(checker.check(1.0)) == ["gang default/g of 3 had 2 placed after binding 2 at 1.000"]
    assert list(checker.check(1.0)) == []


@pytest.mark.parametrize(
    "placed",
    [
        pytest.param(seen_pod("c", node="n1"), id="bound"),
        pytest.param(seen_pod("c", phase="Succeeded"), id="succeeded"),
    ],
)
def test_members_already_placed_count_toward_the_minimum(placed: PodSeen) -> None:
    checker = watch_gang(3, seen_pod("a"), seen_pod("b"), placed)
    checker.observe(TimeReached(), (bind("a"), bind("b")), 1.0)
    assert list(checker.check(1.0)) == []


def test_a_failed_member_does_not_count() -> None:
    checker = watch_gang(2, seen_pod("a"), seen_pod("b", node="n1", phase="Failed"))
    checker.observe(TimeReached(), (bind("a"),), 1.0)
    assert len(list(checker.check(1.0))) == 1


def test_a_refused_member_may_be_bound_again_while_the_others_stay() -> None:
    checker = watch_gang(2, seen_pod("a"), seen_pod("b"))
    checker.observe(TimeReached(), (bind("a"), bind("b")), 1.0)
    refusal = BindFailed(ObjectKey("default", "b"), "uid-b", "n1", 500, "", "")
    checker.observe(refusal, (bind("b"),), 2.0)
    assert list(checker.check(2.0)) == []


def test_after_a_refusal_the_rest_of_the_gang_is_needed() -> None:
    checker = watch_gang(2, seen_pod("a"), seen_pod("b"))
    checker.observe(TimeReached(), (bind("a"), bind("b")), 1.0)
    checker.observe(BindFailed(ObjectKey("default", "b"), "uid-b", "n1", 500, "", ""), (), 2.0)
    checker.observe(PodGone(ObjectKey("default", "a"), "uid-a"), (bind("b"),), 3.0)
    assert len(list(checker.check(3.0))) == 1


def test_a_pod_put_where_there_is_no_room_is_seen() -> None:
    scene = Scene()
    scene.node("n1", 2)
    scene.pod("a", cpu="2", node="n1")
    checker = NodeRoom(scene.look, is_prompt=True)
    assert list(checker.check(0.0)) == []
    scene.pod("b", cpu="500m", node="n1")
    assert list(checker.check(1.0)) == ["node n1 is over by 0.5 cpu with 2 pods"]


def test_a_node_that_shrinks_under_its_pods_is_no_fault_of_ours() -> None:
    scene = Scene()
    scene.node("n1", 2)
    scene.pod("a", cpu="2", node="n1")
    checker = NodeRoom(scene.look, is_prompt=True)
    list(checker.check(0.0))
    scene.node("n1", 1)
    assert list(checker.check(1.0)) == []


def test_a_pod_that_a_kubelet_refused_for_lack_of_room_is_seen_unless_the_line_is_slow() -> None:
    scene = Scene()
    scene.node("n1", 2)
    scene.pod("a", cpu="3", node="n1", phase="Failed")
    scene.pods["a"]["status"]["reason"] = "OutOfcpu"
    assert list(NodeRoom(scene.look, is_prompt=True).check(0.0)) == ["pod a was refused by node n1: OutOfcpu"]
    assert list(NodeRoom(scene.look, is_prompt=False).check(0.0)) == []


def test_a_pod_that_has_ended_takes_no_room() -> None:
    scene = Scene()
    scene.node("n1", 2)
    scene.pod("a", cpu="2", node="n1", phase="Succeeded")
    scene.pod("b", cpu="2", node="n1")
    assert list(NodeRoom(scene.look, is_prompt=True).check(0.0)) == []


def test_a_gang_that_holds_a_part_is_torn() -> None:
    scene = Scene()
    scene.group("g", 2)
    quiet = NoTornGangs(scene.look, is_quiet=lambda: True)
    busy = NoTornGangs(scene.look, is_quiet=lambda: False)
    assert list(quiet.check(0.0)) == list(busy.check(0.0)) == []
    scene.pod("a", node="n1", group="g")
    scene.pod("b", group="g")
    assert list(quiet.check(1.0)) == ["g holds 1 of 2"]
    assert list(busy.check(1.0)) == []


def test_a_group_made_again_over_bound_members_is_not_torn() -> None:
    scene = Scene()
    scene.group("g", 2)
    scene.pod("a", node="n1", group="g")
    assert list(NoTornGangs(scene.look, is_quiet=lambda: True).check(0.0)) == []


def test_a_gang_that_was_whole_once_is_not_torn_by_a_loss() -> None:
    scene = Scene()
    scene.group("g", 2)
    scene.pod("a", node="n1", group="g")
    scene.pod("b", node="n1", group="g")
    checker = NoTornGangs(scene.look, is_quiet=lambda: True)
    assert list(checker.check(0.0)) == []
    scene.pods.pop("b")
    assert list(checker.check(1.0)) == []


def test_a_gang_whose_member_failed_after_all_were_bound_is_not_torn() -> None:
    scene = Scene()
    scene.group("g", 2)
    checker = NoTornGangs(scene.look, is_quiet=lambda: True)
    assert list(checker.check(0.0)) == []
    scene.pod("a", node="n1", group="g")
    scene.pod("b", node="n1", group="g", phase="Failed")
    assert list(checker.check(1.0)) == []


def test_the_condition_may_not_be_true_before_enough_are_bound() -> None:
    scene = Scene()
    scene.group("g", 2, status="True")
    scene.pod("a", node="n1", group="g")
    assert list(TrueStaysTrue(scene.look).check(0.0)) == ["group g is True with 1 of 2 bound"]


def test_the_condition_may_not_turn_back() -> None:
    scene = Scene()
    scene.group("g", 1, status="True")
    scene.pod("a", node="n1", group="g")
    checker = TrueStaysTrue(scene.look)
    assert list(checker.check(0.0)) == []
    scene.group("g", 1, status="False")
    assert list(checker.check(1.0)) == ["group g was True and is False"]


def test_room_that_a_waiting_gang_could_take_is_unused() -> None:
    scene = Scene()
    scene.node("n1", 2)
    scene.node("n2", 1)
    scene.group("g", 3)
    for name in ("a", "b", "c"):
        scene.pod(name, group="g")
    assert list(RoomIsUsed(scene.look).check(0.0)) == ["group g needs 3 more and 3 fit"]


@pytest.mark.parametrize("reason", ["no room", "cordoned", "short of members", "lone pod placed"])
def test_room_that_nobody_can_take_is_no_fault(reason: str) -> None:
    scene = Scene()
    scene.node("n1", 3 if reason != "no room" else 1, unschedulable=reason == "cordoned")
    scene.group("g", 2)
    scene.pod("a", group="g")
    if reason in ("no room", "cordoned"):
        scene.pod("b", group="g")
    scene.pod("lone", node="n1")
    assert list(RoomIsUsed(scene.look).check(0.0)) == []


def test_a_lone_pod_that_fits_is_seen() -> None:
    scene = Scene()
    scene.node("n1", 2)
    scene.pod("p", cpu="2")
    assert list(RoomIsUsed(scene.look).check(0.0)) == ["pod p fits"]


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
