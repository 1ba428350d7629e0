"""The scheduler as a whole, by events and effects; each test is one story."""

import pytest
from msgspec.structs import replace
from tests.unit.scheduling.world import START_S, World, key_of

from muster.api.core import Pod
from muster.framework.ports import (
    BindDone,
    BindFailed,
    BindPod,
    GroupSeen,
    NodeSeen,
    PodSeen,
    TimeReached,
    WakeAt,
)


def with_labels(pod: Pod, **labels: str) -> Pod:
    return replace(pod, metadata=replace(pod.metadata, labels=labels))


def without_gates(pod: Pod) -> Pod:
    return replace(pod, spec=replace(pod.spec, scheduling_gates=None))


# ── landing whole ────────────────────────────────────────────────────────────────────────────────


def test_a_gang_lands_whole() -> None:
    world = World().node("n1", cpu=4).group("g", 3).members("g", 0, 1, 2).run()
    assert world.bound == {"g-0", "g-1", "g-2"}
    condition = world.condition("g")
    assert condition is not None
    assert (condition.status, condition.reason, condition.message) == ("True", "Scheduled", "")


def test_a_gang_without_room_holds_nothing() -> None:
    world = World().node("n1", cpu=2).group("g", 3).members("g", 0, 1, 2).run(60)
    assert world.bound == set()
    assert world.of(BindPod) == []
    condition = world.condition("g")
    assert condition is not None
    assert (condition.status, condition.reason) == ("False", "Unschedulable")


def test_of_two_gangs_that_both_fit_alone_one_lands_whole() -> None:
    world = World().node("n1", cpu=4).group("a", 3).group("b", 3)
    for index in range(3):
        world.members("a", index).members("b", index)
    world.run(60)
    assert world.bound == {"a-0", "a-1", "a-2"}


def test_when_the_first_gang_ends_the_second_gets_its_room_at_once() -> None:
    world = World().node("n1", cpu=4).group("a", 3).group("b", 3)
    world.members("a", 0, 1, 2).members("b", 0, 1, 2).run(45.5)
    world.end("a-0", "a-1", "a-2").run()
    assert {"b-0", "b-1", "b-2"} <= world.bound


def test_more_members_than_the_minimum_are_bound_as_far_as_they_fit() -> None:
    world = World().node("n1", cpu=2).node("n2", cpu=2).group("g", 3).members("g", 0, 1, 2, 3, 4).run()
    assert world.bound == {"g-0", "g-1", "g-2", "g-3"}
    left = world.pod_condition("g-4")
    assert left is not None
    assert (left.message or "").startswith("0/2 nodes are available: 2 Insufficient cpu.")
    assert world.condition("g").status == "True"  # type: ignore[union-attr]


def test_the_left_over_member_is_bound_when_room_appears() -> None:
    world = World().node("n1", cpu=3).group("g", 3).members("g", 0, 1, 2, 3).run(0.5)
    world.node("n2", cpu=1).run()
    assert world.node_of("g-3") == "n2"


def test_a_basic_group_takes_what_fits() -> None:
    world = World().node("n1", cpu=2).group("g").members("g", 0, 1, 2).run()
    assert world.bound == {"g-0", "g-1"}
    assert world.condition("g").status == "True"  # type: ignore[union-attr]


def test_a_lone_pod_goes_the_same_way() -> None:
    world = World().node("n1", cpu=1).pod("p").pod("q").run()
    assert world.bound == {"p"}
    refused = world.pod_condition("q")
    assert refused is not None
    assert refused.reason == "Unschedulable"


def test_pods_of_another_scheduler_take_room_and_are_left_alone() -> None:
    world = World().node("n1", cpu=2).pod("other", scheduler="else").pod("there", scheduler="else", node="n1")
    world.group("g", 2).members("g", 0, 1).run(30)
    assert world.bound == {"there"}
    assert world.pod_condition("other") is None


# ── waiting to be whole ──────────────────────────────────────────────────────────────────────────


def test_a_gang_waits_for_its_minimum_without_an_attempt() -> None:
    world = World().node("n1", cpu=4).group("g", 3).members("g", 0, 1).run(60)
    assert world.bound == set()
    assert world.condition("g") is None
    assert world.notes("FailedScheduling") == []
    assert world.place("g") == "gated"
    world.members("g", 2).run()
    assert world.bound == {"g-0", "g-1", "g-2"}


def test_members_wait_for_their_group_object() -> None:
    world = World().node("n1", cpu=4).members("g", 0, 1).run(60)
    assert world.place("g") == "incomplete"
    world.group("g", 2).run()
    assert world.bound == {"g-0", "g-1"}


def test_one_gated_member_holds_the_whole_group() -> None:
    world = World().node("n1", cpu=4).group("g", 2).members("g", 0, 1).members("g", 2, gates=["hold"]).run(30)
    assert world.bound == set()
    world.change("g-2", without_gates).run()
    assert world.bound == {"g-0", "g-1", "g-2"}


def test_the_gated_member_that_held_the_group_is_deleted() -> None:
    world = World().node("n1", cpu=4).group("g", 2).members("g", 2, gates=["hold"]).members("g", 0, 1).run(3)
    world.delete("g-2").run()
    assert world.bound == {"g-0", "g-1"}


def test_a_gated_pod_that_joins_an_unschedulable_gang_holds_it() -> None:
    world = World().node("n1", cpu=1).group("g", 2).members("g", 0, 1).run()
    world.members("g", 2, gates=["hold"]).run(1)
    world.node("n2", cpu=4).run(60)
    assert world.bound == set()
    world.change("g-2", without_gates).run()
    assert len(world.bound) == 3


def test_a_dying_waiting_member_does_not_count_and_is_not_placed() -> None:
    world = World().node("n1", cpu=8).group("g", 3).members("g", 0, 1).begin_deletion("g-0")
    world.members("g", 2).run(10)
    assert world.bound == set()
    assert world.condition("g") is None
    world.members("g", 3).run()
    assert world.bound == {"g-1", "g-2", "g-3"}


def test_a_member_deleted_before_the_retry_gates_the_gang_again() -> None:
    world = World().node("n1", cpu=2).group("g", 3).members("g", 0, 1, 2).run()
    before = world.condition("g")
    world.delete("g-1").node("n2", cpu=4).run(30)
    assert world.place("g") == "gated"
    assert world.condition("g") == before
    world.members("g", 3).run()
    assert world.bound == {"g-0", "g-2", "g-3"}


def test_a_group_whose_members_are_all_deleted_leaves_the_queue() -> None:
    world = World().node("n1", cpu=2).group("g", 3).members("g", 0, 1, 2).run()
    world.delete("g-0", "g-1", "g-2").run(60)
    assert world.scheduler.report().pending == ()


# ── minCount ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("cpu", [pytest.param(4, id="gated"), pytest.param(2, id="unschedulable")])
def test_a_lowered_min_count_lets_the_gang_start_at_once(cpu: int) -> None:
    members = (0, 1) if cpu == 4 else (0, 1, 2, 3)
    world = World().node("n1", cpu=cpu).group("g", 3 if cpu == 4 else 4).members("g", *members).run(7.5)
    assert world.bound == set()
    world.change_group("g", min_count=2).run()
    assert world.bound == {"g-0", "g-1"}


def test_a_raised_min_count_asks_for_more_of_the_late_members() -> None:
    world = World().node("n1", cpu=8).group("g", 2).members("g", 0, 1).run()
    world.change_group("g", min_count=4).members("g", 2).run(30)
    assert world.bound == {"g-0", "g-1"}
    assert world.condition("g").status == "True"  # type: ignore[union-attr]
    world.members("g", 3).run()
    assert len(world.bound) == 4


def test_a_raised_min_count_alone_causes_no_attempt() -> None:
    world = World().node("n1", cpu=2).group("g", 3).members("g", 0, 1, 2, 3).run(400)
    attempts = world.scheduler.report().find(key_of("g")).attempts  # type: ignore[union-attr]
    world.change_group("g", min_count=4).run()
    assert world.scheduler.report().find(key_of("g")).attempts == attempts  # type: ignore[union-attr]


def test_succeeded_members_count_and_failed_ones_do_not() -> None:
    world = World().node("n1", cpu=8).group("g", 3).members("g", 0, 1, 2).run()
    world.end("g-0").end("g-1", phase="Failed").members("g", 3).run(30)
    assert "g-3" in world.bound  # one runs, one succeeded, one is new
    world.end("g-2", phase="Failed").members("g", 4).run(30)
    assert "g-4" in world.bound
    world.end("g-3", "g-4", phase="Failed").members("g", 5).run(30)
    assert "g-5" not in world.bound  # one succeeded, one new, of three


def test_bound_members_that_are_dying_count_until_they_are_gone() -> None:
    world = World().node("n1", cpu=8).group("g", 3).members("g", 0, 1, 2).run()
    world.begin_deletion("g-0", "g-1").members("g", 3).run()
    assert "g-3" in world.bound


def test_succeeded_pods_of_an_earlier_group_of_the_same_name_do_not_count() -> None:
    world = World().node("n1", cpu=8).group("g", 2).members("g", 0, 1).run().end("g-0", "g-1")
    for name in ("g-0", "g-1"):
        world.change(name, lambda p: replace(p, status=replace(p.status, start_time="2026-01-01T00:00:00Z")))
    world.delete_group("g").group("g", 2, created_s=START_S).members("g", 2).run(30)
    assert "g-2" not in world.bound


# ── waking ───────────────────────────────────────────────────────────────────────────────────────


def test_room_wakes_the_gang_at_once_and_not_at_the_end_of_its_backoff() -> None:
    world = World().node("n1", cpu=2).group("g", 3).members("g", 0, 1, 2).run(16.0)
    world.node("n2", cpu=1).run()
    assert world.bound == {"g-0", "g-1", "g-2"}


def test_an_event_that_cannot_help_causes_no_attempt() -> None:
    world = World().node("n1", cpu=2).node("n2", cpu=1, labels={"disk": "none"})
    world.group("g", 2).members("g", 0, 1, node_selector={"disk": "ssd"}).run(400)
    attempts = world.scheduler.report().find(key_of("g")).attempts  # type: ignore[union-attr]
    world.node("n2", cpu=1, labels={"disk": "none"}, version="7").node("n3", cpu=9)
    world.pod("p", node="n1").delete("p").run()
    assert world.scheduler.report().find(key_of("g")).attempts == attempts  # type: ignore[union-attr]


def test_a_gang_is_tried_when_as_many_places_as_it_misses_have_appeared_and_not_before() -> None:
    world = World().node("n1", cpu=1).group("g", 4).members("g", 0, 1, 2, 3).run(400)
    attempts = world.scheduler.report().find(key_of("g")).attempts  # type: ignore[union-attr]
    for name in ("n2", "n3"):
        world.node(name, cpu=1).run()
        assert world.scheduler.report().find(key_of("g")).attempts == attempts  # type: ignore[union-attr]
    world.node("n4", cpu=1).run()
    assert len(world.bound) == 4


def test_room_given_back_by_the_end_of_a_stranger_is_counted_by_node() -> None:
    world = World().node("n1", cpu=3).pod("x", node="n1").pod("y", node="n1").pod("z", node="n1")
    world.group("g", 3).members("g", 0, 1, 2).run(400)
    world.delete("x").run()
    world.delete("y").run()
    assert not world.bound & {"g-0", "g-1", "g-2"}
    world.delete("z").run()
    assert {"g-0", "g-1", "g-2"} <= world.bound


def test_backoff_grows_and_then_the_gang_rests_until_the_flush() -> None:
    world = World().node("n1", cpu=3).pod("x", node="n1").group("g", 3).members("g", 0, 1, 2).run()
    attempts = [0.0]
    made = 1
    for _ in range(700):
        world.run(1)
        pending = world.scheduler.report().find(key_of("g"))
        assert pending is not None
        if pending.attempts != made:
            made = pending.attempts
            attempts.append(world.now_s - START_S)
    assert attempts[:6] == [0.0, 1.0, 3.0, 7.0, 15.0, 31.0]
    assert attempts[6:] == [360.0, 660.0]  # five minutes of rest, then the next flush of every 30 s


def test_a_higher_priority_goes_first_over_pods_and_groups_alike() -> None:
    world = World(synced=False).node("n1", cpu=3).pod("p", priority=5).group("g", 3).members("g", 0, 1, 2)
    world.restart().run()
    assert world.bound == {"p"}


def test_of_one_priority_the_one_complete_first_goes_first() -> None:
    world = World().node("n1", cpu=3).group("a", 3).group("b", 3)
    world.members("a", 0).members("b", 0, 1).members("a", 1).members("b", 2).members("a", 2).run()
    assert world.bound == {"b-0", "b-1", "b-2"}


def test_a_gang_that_ran_before_goes_before_younger_pods_with_its_replacement() -> None:
    world = World().node("n1", cpu=1).node("n2", cpu=1).group("g", 2).members("g", 0, 1).run()
    second = next(node for node in ("n1", "n2") if world.node_of("g-1") == node)
    world.run(5).delete("g-1").node(second, cpu=1, unschedulable=True).run()
    world.pod("filler").members("g", 1).run(5)
    world.node(second, cpu=1).run()
    assert world.node_of("g-1") == second


# ── time ─────────────────────────────────────────────────────────────────────────────────────────


def test_a_thousand_pods_lead_to_one_wake_up_and_one_cycle() -> None:
    world = World().node("n1", cpu=2000, pods=2000).group("g", 1000)
    world.forget_effects().members("g", *range(1000))
    assert len(world.of(WakeAt)) <= 1
    world.run()
    assert len(world.bound) == 1000
    assert world.scheduler.metrics.counters == {
        (
            "scheduler_podgroup_schedule_attempts_total",
            (("profile", "muster"), ("result", "scheduled")),
        ): 1,
        ("muster_gangs_started_total", ()): 1,
    }


def test_before_everything_is_listed_nothing_is_decided() -> None:
    world = World(synced=False).node("n1", cpu=4).group("g", 1).members("g", 0)
    world.tell(TimeReached())
    assert world.effects == []


def test_one_time_reached_runs_one_cycle() -> None:
    world = World().node("n1", cpu=9).group("a", 1).group("b", 1).members("a", 0).members("b", 0)
    effects = world.scheduler.handle(TimeReached(), world.now_s)
    assert [effect.key.name for effect in effects if isinstance(effect, BindPod)] == ["a-0"]
    assert WakeAt(world.now_s) in effects


def test_equal_events_give_equal_effects() -> None:
    def play() -> list[object]:
        world = World().node("n1", cpu=3, gpu=2).node("n2", cpu=3, gpu=2)
        world.group("a", 2).group("b", 3).members("b", 0, 1, 2, gpu=1).members("a", 0, 1, gpu=1)
        world.run(10).end("b-0").run(30)
        return list(world.effects)

    assert play() == play()


# ── restart, lost and doubled events ─────────────────────────────────────────────────────────────


def test_a_restarted_scheduler_binds_the_third_of_a_gang() -> None:
    world = World(synced=False).node("n1", cpu=4).group("g", 3)
    world.members("g", 0, 1, node="n1").members("g", 2).restart().run()
    assert world.node_of("g-2") == "n1"
    assert world.condition("g").status == "True"  # type: ignore[union-attr]


def test_a_half_bound_gang_without_room_waits_and_takes_nothing_more() -> None:
    world = World(synced=False).node("n1", cpu=3).group("g", 4)
    world.members("g", 0, 1, node="n1").members("g", 2, 3).restart().run(60)
    assert world.bound == {"g-0", "g-1"}
    condition = world.condition("g")
    assert condition is not None
    assert condition.status == "False"


def test_a_restart_beside_a_bound_gang_writes_nothing() -> None:
    world = World().node("n1", cpu=4).group("g", 3).members("g", 0, 1, 2).run(30)
    world.forget_effects().restart().run(60)
    assert [effect for effect in world.effects if not isinstance(effect, WakeAt)] == []


def test_a_crash_between_bindings_and_condition_is_made_good() -> None:
    world = World(synced=False).node("n1", cpu=4).group("g", 2).members("g", 0, 1, node="n1").restart().run()
    assert world.condition("g").status == "True"  # type: ignore[union-attr]


def test_doubled_and_stale_events_change_nothing() -> None:
    world = (
        World()
        .node("n1", cpu=4, version="5")
        .group("g", 2, version="8")
        .members("g", 0, 1, version="3")
        .run(30)
    )
    world.forget_effects()
    for name in ("g-0", "g-1"):
        stale = world.pods[key_of(name)]
        old = replace(
            stale,
            metadata=replace(stale.metadata, resource_version="2"),
            spec=replace(stale.spec, node_name=""),
        )
        world.tell(PodSeen(old, key_of("g"))).tell(PodSeen(stale, key_of("g")))
        world.tell(BindDone(key_of(name), stale.metadata.uid, "n1"))
        world.tell(BindFailed(key_of(name), stale.metadata.uid, "n1", 500, "", "late"))
    world.tell(GroupSeen(replace(world.groups[key_of("g")], version="7", min_count=9)))
    world.tell(NodeSeen(world.nodes["n1"])).run(60)
    assert [effect for effect in world.effects if not isinstance(effect, WakeAt)] == []


def test_a_group_made_again_under_its_name_is_judged_anew() -> None:
    world = World().node("n1", cpu=2).group("g", 3).members("g", 0, 1, 2).run(1)
    world.delete_group("g").run(1)
    assert world.place("g") == "incomplete"
    world.group("g").run()
    assert world.bound == {"g-0", "g-1"}
    assert world.condition("g").status == "True"  # type: ignore[union-attr]


def test_a_pod_replaced_under_its_name_is_another_pod() -> None:
    world = World().node("n1", cpu=4).group("g", 3).members("g", 0, 1, 2).run()
    world.members("g", 1)  # the deletion of the first g-1 was never seen
    world.run()
    assert world.bound == {"g-0", "g-1", "g-2"}
    assert len(world.of(BindPod)) == 4


def test_a_nominated_node_is_taken_though_another_is_better() -> None:
    world = World().node("n1", cpu=4).node("n2", cpu=4).node("n3", cpu=4).group("g", 2)
    for index in (0, 1):
        world.members("g", index, gates=["hold"])
        world.change(
            f"g-{index}",
            lambda pod: replace(without_gates(pod), status=replace(pod.status, nominated_node_name="n3")),
        )
    world.run()
    assert {world.node_of("g-0"), world.node_of("g-1")} == {"n3"}


def test_a_rule_not_built_holds_the_pod_and_names_the_field() -> None:
    disk = [{"name": "disk", "iscsi": {"iqn": "x"}}]
    world = World().node("n1", cpu=4).pod("p", volumes=disk).run(60)
    assert world.bound == set()
    condition = world.pod_condition("p")
    assert condition is not None
    assert condition.reason == "Unschedulable"
    assert "spec.volumes[0].iscsi" in (condition.message or "")
