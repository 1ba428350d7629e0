"""A gang from decided to started or released, and what becomes of it afterwards, told as stories."""

import pytest
from msgspec.structs import replace
from tests.unit.scheduling.gang_world import (
    REFUSED,
    half_bound,
    owned,
    refill,
    released,
    start,
    whole,
    words,
)
from tests.unit.scheduling.world import World, key_of

from muster.framework.groups import Terms
from muster.framework.ports import BindPod, EvictPod, PatchGroupStatus


def started(count: int = 3, behind_s: float = 0.0, **terms: object) -> World:
    world = World().node("n1", cpu=count + 1).group("g", count, terms=Terms(**terms))  # type: ignore[arg-type]
    world.behind_s = behind_s
    return owned(world, "g", *range(count)).run(1)


# ── under way ────────────────────────────────────────────────────────────────────────────────────


def test_a_gang_that_is_not_whole_in_time_is_released_whole() -> None:
    world = half_bound().run(298)
    assert released(world) == []
    world.run(2)
    assert released(world) == ["g-0", "g-1"]
    assert world.bound == set()


def test_whoever_is_released_is_told_why_and_deleted_by_uid() -> None:
    world = half_bound()
    uids = {world.pods[key_of(name)].metadata.uid for name in ("g-0", "g-1")}
    world.run(300)
    evictions: list[EvictPod] = world.of(EvictPod)
    assert {eviction.uid for eviction in evictions} == uids
    condition = evictions[0].condition
    assert (condition.type, condition.status, condition.reason) == (
        "DisruptionTarget",
        "True",
        "ReleasedByScheduler",
    )
    assert "it was not whole within 300 s: 2 of 3 members were bound" in (condition.message or "")
    assert [name for name, _ in world.notes("GangReleased")] == ["g"]


def test_the_time_is_the_groups_own() -> None:
    world = half_bound(bind_timeout_s=30.0).run(28)
    assert released(world) == []
    assert released(world.run(2)) == ["g-0", "g-1"]


def test_a_gang_that_becomes_whole_in_time_is_left_alone() -> None:
    world = half_bound().run(200)
    world.refused = {}
    world.run(1000)
    assert world.bound == {"g-0", "g-1", "g-2"}
    assert released(world) == []
    assert whole(world) == ("True", "Bound")


def test_bindings_without_an_answer_are_given_up_with_the_others() -> None:
    world = World().node("n1", cpu=4).group("g", 3, terms=Terms(bind_timeout_s=60.0))
    world.mute = True
    owned(world, "g", 0, 1, 2).run(59)
    assert released(world) == []
    assert released(world.run(1)) == ["g-0", "g-1", "g-2"]


def test_a_released_gang_waits_ever_longer_and_never_more_than_ten_minutes() -> None:
    world = half_bound(bind_timeout_s=10.0)
    tries: list[float] = []
    for _ in range(9):
        world.run(10)
        assert "g-0" not in world.bound
        released_at_s = world.now_s
        refill(world, "g", 3)
        while "g-0" not in world.bound:
            world.run(1)
        tries.append(world.now_s - released_at_s)
    assert tries[:3] == [pytest.approx(wait, abs=1) for wait in (10, 20, 40)]
    assert max(tries) == pytest.approx(600, abs=1)


def test_a_gang_that_ran_for_long_after_its_release_begins_at_ten_seconds_again() -> None:
    world = half_bound(bind_timeout_s=10.0, on_member_loss="release").run(10)
    world.refused = {}
    refill(world, "g", 3).run(1200)
    assert whole(world) == ("True", "Bound")
    world.delete("g-0").run()
    refill(world, "g", 3).run(9)
    assert world.bound == set()
    assert world.run(2).bound == {"g-0", "g-1", "g-2"}


def test_while_it_waits_after_a_release_its_condition_says_until_when() -> None:
    world = refill(half_bound().run(300), "g", 3).run(5)
    assert whole(world) == ("False", "Released")
    assert (
        "releases in a row: 1, not tried again before 2027-01-15T08:05:10Z; "
        "the last because it was not whole within 300 s"
    ) in words(world)
    assert world.place("g") == "gated"


def test_the_released_are_waited_for_before_anybody_is_placed_anew() -> None:
    world = half_bound(bind_timeout_s=10.0)
    world.grace_s = 100.0
    world.run(10)
    world.refused = {}
    owned(world, "g", 3, 4, 5).run(50)
    assert world.bound == {"g-0", "g-1"}
    assert whole(world) == ("False", "Releasing")
    world.delete("g-0", "g-1").run(20)
    assert world.bound >= {"g-3", "g-4", "g-5"} - {"g-5"}
    assert whole(world) == ("True", "Bound")


def test_a_gang_torn_by_a_preemption_is_held_before_anything_is_seen_of_its_release() -> None:
    world = half_bound().delete("g-2").members("g", 2, cpu=4).run(30)
    assert world.place("g") == "unschedulable"
    world.refused = {}
    world.deny_evictions = True
    world.pod("big", cpu=3, priority=9).run(0.5)
    assert "g-0" in released(world)
    world.node("n2", cpu=8).run(1)
    assert "g-2" not in world.bound


def test_a_member_that_could_not_be_deleted_is_asked_again() -> None:
    world = half_bound()
    world.deny_evictions = True
    world.run(300)
    world.deny_evictions = False
    world.run(6)
    assert world.bound == set()


def test_whoever_was_refused_a_deletion_waits_whatever_becomes_of_the_others() -> None:
    world = half_bound()
    world.deny_evictions = True
    world.run(300)
    world.deny_evictions = False
    world.forget_effects().delete("g-0").run(2)
    assert released(world) == []
    assert released(world.run(4)) == ["g-1"]


def test_whoever_leaves_after_a_refusal_is_not_asked_any_more() -> None:
    world = half_bound()
    world.deny_evictions = True
    world.run(300)
    for name in ("g-0", "g-1"):
        pod = world.pods[key_of(name)]
        world.put(replace(pod, metadata=replace(pod.metadata, deletion_timestamp="2026-01-01T01:00:00Z")))
    world.forget_effects().run(30)
    assert released(world) == []


# ── pods that nobody would make again ────────────────────────────────────────────────────────────


def half_bound_bare(**terms: object) -> World:
    world = World().node("n1", cpu=4).group("g", 3, terms=Terms(**terms))  # type: ignore[arg-type]
    world.refused = {"g-2": REFUSED}
    return world.members("g", 0, 1, 2).run(1)


def test_pods_without_a_controller_stay_and_the_condition_names_the_cure() -> None:
    world = half_bound_bare().run(3000)
    assert released(world) == []
    assert whole(world) == ("False", "HalfHeld")
    assert 'set the annotation muster.dev/release-bare-pods: "true"' in words(world)
    assert len(world.notes("GangHalfHeld")) == 1


def test_a_half_held_gang_may_still_become_whole() -> None:
    world = half_bound_bare().run(400)
    world.refused = {}
    world.run(100)
    assert whole(world) == ("True", "Bound")


@pytest.mark.parametrize("policy", ["restart", "release"])
def test_after_the_start_they_stay_as_well_and_are_told_of_once_with_the_cure(policy: str) -> None:
    world = World().node("n1", cpu=4).group("g", 3, terms=Terms(on_member_loss=policy))
    start(world.members("g", 0, 1, 2).run(5), "g-0", "g-1", "g-2").delete("g-0").run(30)
    for _ in range(3):
        world.pod("g-9", group="g", gates=("wait",)).run(10).delete("g-9").run(40)
    assert (released(world), len(world.notes("GangHalfHeld"))) == ([], 1)
    assert whole(world) == ("False", "MembersLost")
    assert f"on-member-loss is {policy}; pods without a controller are not deleted" in words(world)
    world.members("g", 0).run(60)
    assert "without a controller" not in words(world)


def test_pods_without_a_controller_that_are_never_ready_are_told_of_once() -> None:
    world = (
        World().node("n1", cpu=4).group("g", 1, terms=Terms(ready_timeout_s=10.0, on_member_loss="release"))
    )
    start(world.members("g", 0).run(5), "g-0").run(100)
    assert (released(world), len(world.notes("GangHalfHeld"))) == ([], 1)
    assert "pods without a controller are not deleted" in words(world)


def test_the_owner_may_allow_it_at_any_time() -> None:
    world = half_bound_bare().run(400)
    world.change_group("g", terms=Terms(releases_bare_pods=True)).run(1)
    assert released(world) == ["g-0", "g-1"]


def test_of_a_mixed_gang_only_what_is_made_again_goes() -> None:
    world = World().node("n1", cpu=4).group("g", 3)
    world.refused = {"g-2": REFUSED}
    owned(world.members("g", 0), "g", 1, 2).run(400)
    assert released(world) == ["g-1"]
    assert world.bound == {"g-0"}
    assert whole(world) == ("False", "HalfHeld")


def test_a_gang_whose_start_may_not_be_written_is_not_released_for_that() -> None:
    world = World().node("n1", cpu=4).group("g", 3)
    world.deny_status = True
    owned(world, "g", 0, 1, 2).run(3600)
    assert (world.bound, released(world)) == ({"g-0", "g-1", "g-2"}, [])
    world.delete("g-0").run(3600)
    assert released(world) == []


# ── accepted, but void ───────────────────────────────────────────────────────────────────────────


def test_a_binding_to_a_node_that_is_gone_does_not_start_a_gang() -> None:
    world = World().node("n1", cpu=2).node("n2", cpu=1).group("g", 3)
    world.mute = True
    owned(world, "g", 0, 1, 2).run(1)
    world.delete_node("n2")
    for bind in world.of(BindPod):
        world.change(bind.key.name, lambda pod, node=bind.node_name: _bound(pod, node))
    world.run(30)
    assert world.condition("g") is None or world.condition("g").status != "True"  # type: ignore[union-attr]
    assert whole(world) == ("False", "UnderWay")
    assert words(world).startswith("3 created, 2 bound")


def test_a_member_that_its_kubelet_turned_away_is_replaced_beside_the_others() -> None:
    world = started()
    world.change(
        "g-1", lambda pod: replace(pod, status=replace(pod.status, phase="Failed", reason="OutOfcpu"))
    )
    world.run(1)
    assert whole(world) == ("False", "MembersLost")
    refill(world, "g", 3).run(1)
    assert world.bound == {"g-0", "g-1", "g-2"}
    assert whole(world.run(30)) == ("True", "Bound")


# ── after the start ──────────────────────────────────────────────────────────────────────────────


def lose_one(world: World) -> World:
    return world.delete("g-0").run(1)


def test_lost_members_are_replaced_and_the_survivors_count() -> None:
    world = lose_one(started())
    assert (whole(world), released(world)) == (("False", "MembersLost"), [])
    refill(world, "g", 3).run(1)
    assert len([bind for bind in world.of(BindPod) if bind.key.name == "g-1"]) == 1
    assert world.bound == {"g-0", "g-1", "g-2"}


def test_succeeded_members_count_too() -> None:
    world = started().end("g-1")
    lose_one(world)
    refill(world, "g", 3).run(1)
    assert world.bound == {"g-0", "g-1", "g-2"}


def test_replacements_go_before_more_important_newcomers() -> None:
    world = started()
    world.change_group("g", priority=0)
    lose_one(world)
    world.group("late", 1, priority=0)
    owned(world, "late", 0)
    refill(world, "g", 3)
    world.forget_effects().run(1)
    assert world.of(BindPod)[0].key.name == "g-0"


def test_hold_places_nobody_until_its_owner_says_otherwise() -> None:
    world = lose_one(started(on_member_loss="hold"))
    refill(world, "g", 3).run(600)
    assert world.bound == {"g-1", "g-2"}
    assert world.place("g") == "gated"
    assert "muster.dev/on-member-loss is hold" in world.scheduler.report().pending[0].message
    world.change_group("g", terms=Terms()).run(1)
    assert world.bound == {"g-0", "g-1", "g-2"}


def test_restart_gives_up_the_survivors_and_starts_whole_at_once() -> None:
    world = lose_one(started(on_member_loss="restart"))
    assert released(world) == ["g-1", "g-2"]
    assert whole(world) == ("False", "Restarting")
    refill(world, "g", 3).run(1)
    assert world.bound == {"g-0", "g-1", "g-2"}
    assert whole(world) == ("True", "Bound")


def test_a_restarted_gang_is_under_way_again() -> None:
    world = lose_one(started(on_member_loss="restart"))
    world.refused = {"g-2": REFUSED}
    refill(world, "g", 3).run(290)
    assert world.bound == {"g-0", "g-1"}
    assert world.run(20).bound == set()


def test_who_waits_after_a_release_is_tried_again_though_the_gang_needs_less_and_counts_as_started() -> None:
    """As seed 254 of the storm: the look at it was forgotten, and the member waited for ever."""
    world = World().node("n1", cpu=4).group("g", 3, terms=Terms(on_member_loss="release"))
    owned(world, "g", 0, 1, 2).run(1)
    world.grace_s = 30.0
    world.delete("g-0").run(1)
    assert released(world) == ["g-1", "g-2"]
    world.end("g-1", "g-2").run(1)
    world.change_group("g", min_count=1)
    owned(world, "g", 0).run(5)
    assert world.node_of("g-0") == ""
    assert world.run(10).node_of("g-0") == "n1"


def test_release_gives_up_the_survivors_and_waits_a_while() -> None:
    world = lose_one(started(on_member_loss="release"))
    assert released(world) == ["g-1", "g-2"]
    refill(world, "g", 3).run(8)
    assert world.bound == set()
    assert world.run(3).bound == {"g-0", "g-1", "g-2"}


def test_a_raised_min_count_is_no_loss() -> None:
    world = started(on_member_loss="restart").change_group("g", min_count=4, generation=2).run(10)
    assert released(world) == []
    assert whole(world.run(60)) == ("False", "MinCountRaised")


def test_a_gang_of_which_nothing_is_left_begins_anew() -> None:
    world = started().delete("g-0", "g-1", "g-2").run(1)
    world.refused = {"g-2": REFUSED}
    refill(world, "g", 3).run(290)
    assert world.bound == {"g-0", "g-1"}
    assert world.run(20).bound == set()


def test_a_loss_is_counted_once_and_told_of() -> None:
    world = lose_one(started())
    world.delete("g-1").run(1)
    assert world.scheduler.metrics.counters["muster_member_losses_total", (("policy", "replace"),)] == 1
    assert world.notes("GangMembersLost") == [("g", "gang default/g: 2 of 3 members are left")]


# ── readiness ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("policy", ["restart", "release"])
def test_a_gang_that_is_never_ready_is_given_up_and_waits_ever_longer(policy: str) -> None:
    world = started(on_member_loss=policy, ready_timeout_s=60.0)
    start(world, "g-0", "g-1", is_ready=True).run(58)
    assert released(world) == []
    assert released(world.run(2)) == ["g-0", "g-1", "g-2"]
    for wait_s in (10, 20):
        while world.bound:
            world.run(1)
        refill(world, "g", 3).run(wait_s - 3)
        assert (whole(world), world.bound) == (("False", "Released"), set())
        assert world.run(4).bound == {"g-0", "g-1", "g-2"}


@pytest.mark.parametrize("behind_s", [0.0, 3600.0])  # the server's clock
def test_replace_takes_only_those_that_are_not_ready(behind_s: float) -> None:
    world = started(behind_s=behind_s, ready_timeout_s=60.0)
    assert released(start(world, "g-0", "g-1", is_ready=True).run(58)) == []
    assert released(world.run(2)) == ["g-2"]


def test_hold_deletes_nobody_that_is_not_ready() -> None:
    assert released(started(on_member_loss="hold", ready_timeout_s=60.0).run(600)) == []


def test_a_gang_that_was_ready_once_may_be_unready_for_as_long_as_it_likes() -> None:
    world = start(started(ready_timeout_s=60.0), "g-0", "g-1", "g-2", is_ready=True).run(10)
    assert whole(world) == ("True", "Ready")
    start(world, "g-0", "g-1", "g-2").run(600)
    assert released(world) == []


def test_without_the_annotation_nobody_asks_for_readiness() -> None:
    assert released(started().run(10_000)) == []


# ── another scheduler ────────────────────────────────────────────────────────────────────────────


def bound_since(world: World) -> World:
    """The API says on the bound pods when they were bound."""
    for name in sorted(world.bound):
        start(world, name)
    return world


def test_a_new_scheduler_finishes_what_was_under_way() -> None:
    world = bound_since(half_bound()).run(30)
    world.refused = {}
    world.restart().run(1)
    assert world.bound == {"g-0", "g-1", "g-2"}
    assert whole(world)[0] == "True"


def test_a_new_scheduler_knows_since_when_it_is_under_way() -> None:
    world = bound_since(half_bound()).run(200)
    world.restart().run(90)
    assert released(world) == []
    assert released(world.run(10)) == ["g-0", "g-1"]


def test_a_new_scheduler_goes_on_releasing() -> None:
    world = bound_since(half_bound())
    world.deny_evictions = True
    world.run(300).forget_effects()
    world.deny_evictions = False
    assert released(world.restart().run(1)) == ["g-0", "g-1"]


def test_a_new_scheduler_does_not_try_at_once_what_was_just_released() -> None:
    world = refill(half_bound().run(300), "g", 3)
    world.refused = {}
    world.restart().run(8)
    assert world.bound == set()
    assert world.run(2).bound == {"g-0", "g-1", "g-2"}


def test_a_new_scheduler_goes_on_with_a_restart() -> None:
    world = started(on_member_loss="restart")
    world.deny_evictions = True
    lose_one(world).forget_effects()
    world.deny_evictions = False
    assert released(world.restart().run(1)) == ["g-1", "g-2"]


def test_a_group_made_again_over_running_pods_is_not_released_at_once() -> None:
    world = bound_since(half_bound()).run(200)
    world.delete_group("g").group("g", 3, created_s=world.now_s).run(299)
    assert released(world) == []
    assert released(world.run(1)) == ["g-0", "g-1"]


def test_a_gang_of_another_scheduler_is_left_alone() -> None:
    world = World().node("n1").group("g", 3).members("g", 0, 1, scheduler="other", node="n1").run(1000)
    assert (released(world), world.of(PatchGroupStatus)) == ([], [])


def _bound(pod, node):  # type: ignore[no-untyped-def]
    return replace(pod, spec=replace(pod.spec, node_name=node))


# ── another release of Muster ────────────────────────────────────────────────────────────────────


def left_by_another_release(world: World) -> World:
    """The objects as a release would leave them that knows nothing of `muster.dev/Whole`."""
    kept = [c for c in world.groups[key_of("g")].conditions if c.type == "PodGroupInitiallyScheduled"]
    world.scheduler.handle = lambda event, now_s: []  # type: ignore[method-assign]
    return bound_since(world).change_group("g", conditions=tuple(kept))


def test_what_another_release_left_half_bound_is_finished() -> None:
    world = left_by_another_release(half_bound().run(20))
    world.refused = {}
    world.restart().run(1)
    assert world.bound == {"g-0", "g-1", "g-2"}
    assert world.condition("g").status == "True"  # type: ignore[union-attr]


def test_what_another_release_left_half_bound_is_released_if_it_cannot_be_finished() -> None:
    world = left_by_another_release(half_bound().run(20)).restart().run(301)
    assert released(world) == ["g-0", "g-1"]


def test_what_another_release_has_started_counts_as_started() -> None:
    world = left_by_another_release(started().run(60))
    world.restart().run(1)
    world.delete("g-0").run(400)
    assert (released(world), whole(world)) == ([], ("False", "MembersLost"))
