"""What a pending group says it waits for."""

from msgspec.structs import replace
from tests.unit.scheduling.gang_world import owned
from tests.unit.scheduling.world import World, key_of

from muster.api.meta import Condition
from muster.framework.ports import PatchGroupStatus, PatchPodStatus, RecordEvent
from muster.scheduling.conditions import WAITING
from muster.scheduling.speech import RETRY_S_MAX
from muster.scheduling.waiting import WAVE_BINDINGS


def told_members(world: World) -> set[str]:
    return {patch.key.name for patch in world.of(PatchPodStatus)}


def waiting(world: World, group: str = "g") -> Condition | None:
    return world.condition(group, WAITING)


def test_after_five_seconds_an_incomplete_gang_says_how_many_members_exist() -> None:
    world = World().node("n1").group("g", 3).members("g", 0, 1).run(4.9)
    assert waiting(world) is None
    world.run(0.1)
    condition = waiting(world)
    assert condition is not None
    assert (condition.status, condition.reason) == ("True", "MembersMissing")
    assert condition.message == "waits for members: 2 of 3 exist"
    assert world.condition("g") is None


def test_five_of_eight_exist_and_the_group_says_who_knows_why_the_rest_does_not() -> None:
    world = owned(World().node("n1").group("g", 8), "g", *range(5)).run(6)
    condition = waiting(world)
    assert condition is not None
    assert condition.message == (
        "waits for members: 5 of 8 exist; "
        "if the other 3 are refused, by a quota or a webhook, the events of Job j say so"
    )
    assert world.bound == set()


def test_a_gang_placed_sooner_says_nothing() -> None:
    world = World().node("n1").group("g", 2).members("g", 0).run(4).members("g", 1).run(60)
    patches = world.of(PatchGroupStatus)
    assert [condition.type for patch in patches for condition in patch.set_conditions] == [
        "PodGroupInitiallyScheduled",
        "muster.dev/Whole",
    ]


def test_a_failed_attempt_says_so_in_one_patch_and_at_once() -> None:
    world = World().node("n1", cpu=1).group("g", 2).members("g", 0, 1).run()
    patches = world.of(PatchGroupStatus)
    assert len(patches) == 1
    assert {condition.type for condition in patches[0].set_conditions} == {
        "PodGroupInitiallyScheduled",
        WAITING,
    }
    assert waiting(world).reason == "Unschedulable"  # type: ignore[union-attr]


def test_the_patch_that_says_scheduled_removes_the_waiting() -> None:
    world = World().node("n1", cpu=1).group("g", 2).members("g", 0, 1).run()
    world.forget_effects().node("n2", cpu=1).run()
    (patch,) = world.of(PatchGroupStatus)
    assert patch.set_conditions[0].status == "True"
    assert patch.remove_conditions == (WAITING,)
    assert waiting(world) is None


def test_the_same_wait_is_written_once() -> None:
    world = World().node("n1", cpu=1).group("g", 2).members("g", 0, 1).run().forget_effects().run(900)
    assert world.of(PatchGroupStatus) == []
    assert world.of(PatchPodStatus) == []
    assert world.of(RecordEvent) == []


def test_members_that_come_one_by_one_do_not_each_cause_a_write() -> None:
    world = World().node("n1").group("g", 100)
    for index in range(40):
        world.members("g", index).run(0.25)
    assert len(world.of(PatchGroupStatus)) <= 2


def test_another_wait_is_told_five_seconds_after_it_changed() -> None:
    world = World().node("n1").group("g", 3).members("g", 0).run(6).members("g", 1).run(4)
    assert waiting(world).message == "waits for members: 1 of 3 exist"  # type: ignore[union-attr]
    world.run(1)
    assert waiting(world).message == "waits for members: 2 of 3 exist"  # type: ignore[union-attr]


def test_at_most_ten_gated_members_are_told() -> None:
    world = World().node("n1", cpu=99).group("g", 30).members("g", *range(25)).run(60)
    assert told_members(world) == {f"g-{index}" for index in range(10)}
    condition = world.pod_condition("g-0")
    assert condition is not None
    assert (condition.status, condition.reason) == ("False", "NotReadyForScheduling")
    assert condition.message == "pod group default/g waits for members: 25 of 30 exist"
    assert world.of(RecordEvent) == []


def test_a_member_with_scheduling_gates_keeps_what_the_api_server_said() -> None:
    world = World().node("n1").group("g", 2).members("g", 0, gates=["hold"]).members("g", 1).run(60)
    assert told_members(world) == {"g-1"}
    assert waiting(world).reason == "SchedulingGated"  # type: ignore[union-attr]


def test_pods_of_another_scheduler_are_not_told() -> None:
    world = World().node("n1").group("g", 3).members("g", 0).members("g", 1, scheduler="other").run(60)
    assert told_members(world) == {"g-0"}


def test_members_without_their_group_are_told_that_it_does_not_exist() -> None:
    world = World().node("n1").members("g", 0).run(60)
    condition = world.pod_condition("g-0")
    assert condition is not None
    assert condition.message == "waits for pod group default/g, which does not exist"


def test_when_nobody_waits_any_more_the_waiting_is_taken_back() -> None:
    world = World().node("n1").group("g", 3).members("g", 0).run(6)
    world.delete("g-0").run(6)
    assert waiting(world) is None


def test_a_group_without_members_of_ours_says_nothing() -> None:
    world = World().node("n1").group("g", 3).members("g", 0, 1, scheduler="other").run(60)
    assert world.of(PatchGroupStatus) == []


def test_a_group_that_was_scheduled_once_never_waits_again() -> None:
    world = World().node("n1", cpu=2).group("g", 2).members("g", 0, 1).run().forget_effects()
    world.members("g", 2).run(60)
    said = [condition.type for patch in world.of(PatchGroupStatus) for condition in patch.set_conditions]
    assert set(said) == {"muster.dev/Whole"}  # one member more is created
    assert world.pod_condition("g-2").reason == "Unschedulable"  # type: ignore[union-attr]


def test_however_long_writes_are_refused_a_minute_later_it_is_said() -> None:
    world = World().node("n1").group("g", 2).members("g", 0, 1)
    world.deny_status = True
    world.run(1000)
    assert world.condition("g") is None
    world.deny_status = False
    world.run(60)
    assert world.condition("g").status == "True"  # type: ignore[union-attr]


def test_a_write_that_lands_shortens_the_wait_after_the_next_refusal() -> None:
    world = World().node("n1").group("g", 3).members("g", 0)
    world.deny_status = True
    world.run(200)
    world.deny_status = False
    world.run(60)
    assert waiting(world).message == "waits for members: 1 of 3 exist"  # type: ignore[union-attr]
    world.deny_status = True
    world.members("g", 1).run(6)
    world.deny_status = False
    world.run(5)
    assert waiting(world).message == "waits for members: 2 of 3 exist"  # type: ignore[union-attr]


def test_a_refused_write_of_true_is_tried_again_later() -> None:
    world = World().node("n1").group("g", 2).members("g", 0, 1)
    world.deny_status = True
    world.run(3)
    assert world.bound == {"g-0", "g-1"}
    assert world.condition("g") is None
    world.deny_status = False
    world.run(10)
    assert world.condition("g").status == "True"  # type: ignore[union-attr]


def test_writes_refused_for_ever_are_tried_ever_more_seldom() -> None:
    world = World().node("n1").group("g", 2).members("g", 0, 1)
    world.deny_status = True
    world.run(3600)
    assert len(world.of(PatchGroupStatus)) < 70  # once a minute at last


def test_a_false_condition_taken_away_by_hand_comes_back() -> None:
    world = World().node("n1", cpu=1).group("g", 2).members("g", 0, 1).run(400)
    world.change_group("g", conditions=()).run()
    assert world.condition("g").status == "False"  # type: ignore[union-attr]


def test_conditions_of_others_are_left_alone() -> None:
    mine = Condition(type="example.com/Mine", status="True")
    world = World().node("n1", cpu=1).group("g", 2, conditions=(mine,)).members("g", 0, 1).run()
    world.node("n2", cpu=1).run()
    assert world.groups[key_of("g")].conditions[0] == mine


def test_the_message_says_what_is_short_and_the_nearest_fit() -> None:
    world = World()
    for index in range(12):
        world.node(f"n{index + 1}", gpu=1)
    world.group("job-a", 8).members("job-a", *range(8), gpu=1).run()
    world.group("job-b", 8).members("job-b", *range(8), gpu=1).run()
    message = world.condition("job-b").message  # type: ignore[union-attr]
    assert message is not None
    assert message.startswith("minCount (8) cannot be satisfied: 4 scheduled, 3 remaining; ")
    assert message.endswith(
        "needs 8 × 1 nvidia.com/gpu, 4 free; would fit when default/job-a ends, or with 4 more nodes "
        "like n1; 0/12 nodes are available: 12 Insufficient nvidia.com/gpu. "
        "For example (with 4 other members placed) n1: 1 nvidia.com/gpu asked, 0 of 1 free."
    )


APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
        ]
    }
}


def test_ends_that_are_told_are_enough_by_rules_about_other_pods_too() -> None:
    world = World().node("n1", cpu=2).node("n2", cpu=2).pod("x", node="n1", cpu=2)
    world.group("g", 2).members("g", 0, 1, labels={"app": "web"}, affinity=APART).run(6)
    told = world.condition("g").message or ""  # type: ignore[union-attr]
    assert (
        "needs 2 × 1 cpu, room for 1; would fit when pod default/x ends, or with 1 more node like n1" in told
    )
    assert "reckoned" not in told


def test_where_a_rule_looks_beyond_single_nodes_the_end_of_others_is_tried() -> None:
    near = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
    rule = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [near]}}
    world = World().node("n1", cpu=2).node("n2", cpu=1).pod("y", node="n2", cpu=1)
    world.pod("x", node="n1", cpu=1).pod("web", node="n1", cpu=1, labels={"app": "web"})
    world.group("g", 1).members("g", 0, affinity=rule).run(6)
    told = world.condition("g").message or ""  # type: ignore[union-attr]
    assert "would fit when pod default/x ends; 0/2 nodes" in told  # not when web ends, which is needed there


def test_ends_that_would_not_be_enough_by_those_rules_are_not_told() -> None:
    world = World().node("n1", cpu=2).node("n2", cpu=2)
    world.pod("x", node="n1", cpu=2).pod("web", node="n2", cpu=1, labels={"app": "web"})
    world.group("g", 2).members("g", 0, 1, labels={"app": "web"}, affinity=APART).run(6)
    told = world.condition("g").message  # type: ignore[union-attr]
    assert told is not None
    assert "ends" not in told
    assert "even if everything" not in told
    assert (
        "with 1 more node like n1; rules about other pods, and claims, are not reckoned with in this" in told
    )


def test_the_nearest_fit_is_told_anew_when_somebody_else_holds_the_room() -> None:
    world = World().node("n1", cpu=4).group("a", 4).members("a", 0, 1, 2, 3).run()
    world.group("b", 4).members("b", 0, 1, 2, 3).run()
    assert "when default/a ends" in world.condition("b").message  # type: ignore[union-attr,operator]
    world.group("c", 4, priority=9).members("c", 0, 1, 2, 3, priority=9)
    world.delete("a-0", "a-1", "a-2", "a-3").run(60)
    assert "when default/c ends" in world.condition("b").message  # type: ignore[union-attr,operator]


def test_lone_pods_are_told_by_their_filters_only() -> None:
    world = World().node("n1", cpu=1).pod("p", cpu=2).run(60)
    pod = replace(world.pods[key_of("p")])
    conditions = pod.status.conditions or []
    assert [condition.message for condition in conditions] == [
        "0/1 nodes are available: 1 Insufficient cpu. For example n1: 2 cpu asked, the whole node has 1."
    ]


def test_a_gang_whose_few_bindings_hang_says_so() -> None:
    world = World().node("n1", cpu=400, pods=400).group("g", 2)
    world.mute = True
    world.members("g", 0, 1, cpu=1).run(5)
    condition = waiting(world)
    assert condition is not None
    assert condition.reason == "Binding"


def test_in_a_wave_of_bindings_nobody_is_told_that_it_waits_for_them() -> None:
    world = World().node("n1", cpu=400, pods=400).group("g", WAVE_BINDINGS + 1)
    world.mute = True
    world.members("g", *range(WAVE_BINDINGS + 1), cpu=1).run(20)
    assert world.of(PatchGroupStatus) == []


def erase_what_was_said(world: World, group: str, *pods: str) -> None:
    world.change_group(group, conditions=())
    for name in pods:
        world.change(name, lambda pod: replace(pod, status=replace(pod.status, conditions=None)))


def test_a_gated_gang_whose_conditions_were_erased_says_them_again() -> None:
    world = World().node("n1").group("g", 3).members("g", 0, 1).run(10)
    assert waiting(world) is not None
    erase_what_was_said(world, "g", "g-0", "g-1")
    world.run(10)
    condition = waiting(world)
    assert condition is not None
    assert condition.message == "waits for members: 2 of 3 exist"
    assert world.pod_condition("g-0") is not None
    assert world.pod_condition("g-1") is not None


def test_a_refused_gang_whose_conditions_were_erased_says_them_again() -> None:
    world = World().node("n1", cpu=1).group("g", 2).members("g", 0, 1).run(200)
    erase_what_was_said(world, "g", "g-0", "g-1")
    world.run(10)
    assert waiting(world) is not None
    assert world.condition("g") is not None
    assert world.pod_condition("g-0") is not None
    assert world.pod_condition("g-1") is not None


def test_a_lone_pod_whose_condition_was_erased_is_told_again() -> None:
    world = World().node("n1", cpu=1).pod("p", cpu=2).run(200)
    world.change("p", lambda pod: replace(pod, status=replace(pod.status, conditions=None))).run(10)
    assert world.pod_condition("p") is not None


def test_only_the_waiting_condition_erased_is_said_again() -> None:
    world = World().node("n1", cpu=1).group("g", 2).members("g", 0, 1).run(200)
    kept = tuple(c for c in world.groups[key_of("g")].conditions if c.type != WAITING)
    world.change_group("g", conditions=kept).run(10)
    assert waiting(world) is not None


def test_a_group_whose_true_is_taken_back_by_a_late_write_says_it_again() -> None:
    world = World().node("n1").group("g", 2).members("g", 0, 1).run(10)
    scheduled = world.condition("g")
    assert scheduled is not None
    assert scheduled.status == "True"
    taken_back = replace(scheduled, status="False", reason="Unschedulable", message="late")
    world.change_group("g", conditions=(taken_back,)).run(1)
    said_again = world.condition("g")
    assert said_again is not None
    assert (said_again.status, said_again.reason) == ("True", "Scheduled")


def test_what_a_gang_waited_for_earlier_is_replaced_when_a_late_write_says_it_again() -> None:
    world = World().node("n1").group("g", 3).members("g", 0).run(10)
    older = world.groups[key_of("g")].conditions
    world.members("g", 1).run(10).change_group("g", conditions=older).run(5)
    assert waiting(world).message == "waits for members: 2 of 3 exist"  # type: ignore[union-attr]


def test_a_late_write_that_says_a_gang_waits_is_taken_back_though_a_member_more_does() -> None:
    world = World().node("n1", cpu=1).group("g", 2).members("g", 0, 1).run()
    older = waiting(world)
    world.node("n2", cpu=1).run(1).members("g", 2).run(60)
    assert older is not None
    assert waiting(world) is None
    world.change_group("g", conditions=(*world.groups[key_of("g")].conditions, older)).run(5)
    assert waiting(world) is None


def test_why_a_gang_and_its_members_were_refused_is_said_anew_after_a_late_write() -> None:
    world = World().node("n1", cpu=1).group("g", 2).members("g", 0, 1).run(200)
    refused, told = world.condition("g"), world.pod_condition("g-0")
    assert refused is not None
    assert told is not None
    late = replace(refused, message="late")
    world.change_group("g", conditions=(late, waiting(world)))
    late = replace(told, message="late")
    world.change("g-0", lambda pod: replace(pod, status=replace(pod.status, conditions=[late]))).run(10)
    assert world.condition("g").message == refused.message  # type: ignore[union-attr]
    assert world.pod_condition("g-0").message == told.message  # type: ignore[union-attr]


def test_a_lone_pod_whose_condition_a_late_write_replaced_is_told_again() -> None:
    world = World().node("n1", cpu=1).pod("p", cpu=2).run(200)
    told = world.pod_condition("p")
    assert told is not None
    late = replace(told, message="late")
    world.change("p", lambda pod: replace(pod, status=replace(pod.status, conditions=[late]))).run(10)
    assert world.pod_condition("p").message == told.message  # type: ignore[union-attr]


def half_denied_tree() -> World:
    """A tree that waits for members, of which one group may not be written on."""
    world = World().node("n1").group("tree", 2, is_composite=True)
    world.group("bad", 2, parent=key_of("tree")).group("good", 2, parent=key_of("tree"))
    world.denied_groups = {"bad"}
    return world.members("bad", 0).members("good", 0)


def test_what_is_said_on_one_group_of_a_tree_does_not_hurry_what_is_refused_on_another() -> None:
    world = half_denied_tree().run(60).forget_effects()
    for _ in range(30):
        world.change_group("good", conditions=()).run(10)
    denied = [patch for patch in world.of(PatchGroupStatus) if patch.key.name == "bad"]
    assert len(denied) <= 300 / RETRY_S_MAX + 2


def test_what_is_refused_on_one_group_of_a_tree_keeps_nobody_silent_on_another() -> None:
    world = half_denied_tree().run(100)
    world.change_group("good", conditions=()).run(6)
    assert waiting(world, "good") is not None
