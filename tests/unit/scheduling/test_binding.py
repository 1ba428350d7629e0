"""From a decision to bound pods, told as stories."""

from typing import Any

import pytest
from msgspec.structs import replace
from tests.unit.scheduling.world import START_S, World, key_of

from muster.framework.ports import OVERDUE, BindDone, BindFailed, BindPod, PatchGroupStatus, PodSeen
from muster.scheduling.binding import cause_of


def make_world(cpu: int = 4) -> World:
    return World().node("n1", cpu=cpu).group("g", 3).members("g", 0, 1, 2)


def bind_of(world: World, name: str) -> BindPod:
    return next(bind for bind in reversed(world.of(BindPod)) if bind.key.name == name)


def answer(world: World, name: str, code: int | None = None, retry_after_s: float | None = None) -> None:
    bind = bind_of(world, name)
    if code is None:
        world.tell(BindDone(bind.key, bind.uid, bind.node_name))
    else:
        world.tell(BindFailed(bind.key, bind.uid, bind.node_name, code, "", "not today", retry_after_s))


def show(world: World, name: str, node: str = "n1") -> None:
    """The watch shows the pod bound."""
    world.change(name, lambda pod: replace(pod, spec=replace(pod.spec, node_name=node)))


def test_a_binding_names_the_very_pod_and_its_scheduler() -> None:
    world = make_world().run()
    bind = bind_of(world, "g-1")
    assert (bind.uid, bind.node_name) == (world.pods[key_of("g-1")].metadata.uid, "n1")
    assert (bind.scheduler_name, bind.group) == ("muster", key_of("g"))


def test_every_bound_member_gets_its_event_after_the_binding() -> None:
    world = make_world()
    world.mute = True
    world.run()
    assert world.notes("Scheduled") == []
    answer(world, "g-1")
    assert world.notes("Scheduled") == [("g-1", "Successfully assigned default/g-1 to n1")]


def test_the_group_is_scheduled_when_its_minimum_is_accepted_and_not_before() -> None:
    world = make_world()
    world.mute = True
    world.run()
    answer(world, "g-0")
    answer(world, "g-2")
    assert world.condition("g") is None
    answer(world, "g-1")
    assert world.condition("g").status == "True"  # type: ignore[union-attr]


def test_a_refused_member_is_tried_again_and_the_others_stay() -> None:
    world = make_world()
    world.refused = {"g-1": (403, "denied request: not today")}
    world.run(20)
    assert world.bound == {"g-0", "g-2"}
    condition, pod = world.condition("g"), world.pod_condition("g-1")
    assert condition is not None
    assert (condition.status, condition.reason) == ("False", "SchedulerError")
    assert pod is not None
    assert (pod.reason, pod.message) == (
        "SchedulerError",
        "binding to node n1 was refused: denied request: not today",
    )
    assert world.notes("FailedScheduling") == [("g-1", pod.message)]
    world.refused = {}
    world.run(20)
    assert world.bound == {"g-0", "g-1", "g-2"}
    assert world.condition("g").status == "True"  # type: ignore[union-attr]


def test_refused_bindings_are_retried_ever_later() -> None:
    world = make_world()
    world.refused = {"g-1": (500, "internal")}
    world.run(60)
    tries = [bind for bind in world.of(BindPod) if bind.key.name == "g-1"]
    assert len(tries) == 9  # 0, 1, 3, 7, 15, then every ten seconds


def test_many_refusals_of_one_decision_are_one_failure() -> None:
    world = make_world()
    world.refused = {f"g-{index}": (500, "internal") for index in range(3)}
    world.run(1.5)
    assert len([bind for bind in world.of(BindPod) if bind.key.name == "g-0"]) == 2


def test_the_room_of_a_refused_binding_is_free_for_others() -> None:
    world = World().node("n1", cpu=1).pod("a").pod("b")
    world.refused = {"a": (500, "internal")}
    world.run(0.5)
    assert world.bound == {"b"}


def test_a_server_that_asks_for_patience_gets_it() -> None:
    world = make_world()
    world.mute = True
    world.run()
    for name in ("g-0", "g-1"):
        answer(world, name)
    answer(world, "g-2", code=429, retry_after_s=8.0)
    world.run(7.5)
    assert len([bind for bind in world.of(BindPod) if bind.key.name == "g-2"]) == 1
    world.run(1)
    assert len([bind for bind in world.of(BindPod) if bind.key.name == "g-2"]) == 2


def test_an_unknown_outcome_keeps_the_room_and_asks_for_the_same_binding_again() -> None:
    world = World().node("n1", cpu=1).node("n2", cpu=1).pod("a")
    world.mute = True
    world.run()
    answer(world, "a", code=0)
    world.pod("b").run(0.5)
    first, other = bind_of(world, "a"), bind_of(world, "b")
    assert first.node_name != other.node_name
    assert len(world.of(BindPod)) == 2
    world.run(1)
    assert world.of(BindPod)[2] == first


def test_an_unknown_outcome_that_the_watch_shows_bound_is_done() -> None:
    world = World().node("n1", cpu=1).pod("a")
    world.mute = True
    world.run()
    answer(world, "a", code=0)
    show(world, "a")
    world.run(600)
    assert len(world.of(BindPod)) == 1
    assert world.notes("Scheduled") == [("a", "Successfully assigned default/a to n1")]


def test_the_watch_may_tell_before_the_answer_does_and_the_event_comes_once() -> None:
    world = World().node("n1", cpu=1).pod("a")
    world.mute = True
    world.run()
    show(world, "a")
    answer(world, "a")
    assert len(world.notes("Scheduled")) == 1


def test_after_the_answer_an_older_sight_of_the_pod_changes_nothing() -> None:
    world = World().node("n1", cpu=1).pod("a")
    world.mute = True
    world.run()
    answer(world, "a")
    world.tell(PodSeen(world.pods[key_of("a")])).run(60)
    assert len(world.of(BindPod)) == 1
    assert world.place("a") == ""


def test_a_binding_unconfirmed_for_five_minutes_frees_its_room() -> None:
    world = World().node("n1", cpu=1).pod("a")
    world.mute = True
    world.run(299)
    assert world.scheduler.state.node_of(key_of("a")) == "n1"
    world.run(1)
    assert world.scheduler.state.node_of(key_of("a")) is None
    condition = world.pod_condition("a")
    assert condition is not None
    assert condition.message == "binding to node n1 was not confirmed within 300 s"
    world.run(5)
    assert len(world.of(BindPod)) == 2


def test_a_binding_says_until_when_it_may_land() -> None:
    world = World().node("n1", cpu=4).pod("p").run(1)
    (bind,) = world.of(BindPod)
    assert bind.until_s == START_S + 300.0


def test_an_answer_about_another_node_says_nothing_of_the_binding_on_the_wire() -> None:
    world = World().node("n1", cpu=4).node("n2", cpu=4)
    world.mute = True
    (bind,) = world.pod("p").run(1).of(BindPod)
    other = "n2" if bind.node_name == "n1" else "n1"
    world.tell(BindFailed(bind.key, bind.uid, other, 409, "Conflict", "not there"))
    world.tell(BindDone(bind.key, bind.uid, other)).run(1)
    assert (len(world.of(BindPod)), world.notes("Scheduled")) == (1, [])


def test_a_binding_that_was_not_sent_any_more_is_given_up_by_the_clock_and_not_before() -> None:
    world = World().node("n1", cpu=1)
    world.mute = True
    (bind,) = world.pod("p").run(1).of(BindPod)
    world.tell(BindFailed(bind.key, bind.uid, "n1", 503, OVERDUE, "too late")).run(290)
    assert len(world.of(BindPod)) == 1
    world.run(30)
    assert len(world.of(BindPod)) == 2


def test_a_binding_to_a_node_that_is_gone_is_not_asked_for_again() -> None:
    world = World().node("n1", cpu=1).pod("a")
    world.mute = True
    world.run()
    answer(world, "a", code=0)
    world.delete_node("n1").node("n2", cpu=1).run(5)
    assert bind_of(world, "a").node_name == "n2"


def test_a_pod_that_turns_out_to_be_elsewhere_is_there() -> None:
    world = World().node("n1", cpu=1).node("n2", cpu=1).pod("a")
    world.mute = True
    world.run()
    show(world, "a", node="n2")
    answer(world, "a", code=409)
    world.run(60)
    assert world.scheduler.state.node_of(key_of("a")) == "n2"
    assert len(world.of(BindPod)) == 1
    assert world.notes("Scheduled") == []


def test_a_member_deleted_while_its_binding_is_on_the_wire_is_not_remembered() -> None:
    world = World().node("n1", cpu=4).group("g", 2).members("g", 0, 1)
    world.mute = True
    world.run().begin_deletion("g-0").delete("g-0")
    answer(world, "g-0", code=404)
    answer(world, "g-1", code=500)
    world.run(30)
    assert world.place("g") == "gated"  # one member of two is left


def test_a_pod_that_is_gone_is_told_nothing() -> None:
    world = World().node("n1", cpu=4).pod("a")
    world.mute = True
    world.run()
    bind = bind_of(world, "a")
    world.tell(BindFailed(bind.key, bind.uid, bind.node_name, 404, "NotFound", "not found"))
    assert world.notes("FailedScheduling") == []


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
def test_the_order_of_answers_does_not_matter(order: tuple[int, ...]) -> None:
    world = make_world()
    world.mute = True
    world.run()
    for index in order:
        answer(world, f"g-{index}")
    assert world.condition("g").status == "True"  # type: ignore[union-attr]


def test_true_is_never_taken_back() -> None:
    world = make_world().run()
    world.forget_effects().delete("g-0", "g-1", "g-2").members("g", 3).run(60)
    assert world.place("g") == "gated"
    world.members("g", 4, 5, cpu=9).run(60)
    said = [condition.type for patch in world.of(PatchGroupStatus) for condition in patch.set_conditions]
    assert set(said) == {"muster.dev/Whole"}
    assert world.condition("g").status == "True"  # type: ignore[union-attr]


def test_room_given_back_wakes_whoever_waited_for_it() -> None:
    world = World().node("n1", cpu=1).pod("a").pod("b")
    world.mute = True
    world.run(0.25)
    assert [bind.key.name for bind in world.of(BindPod)] == ["a"]
    answer(world, "a", code=500)
    world.run(0.25)
    assert [bind.key.name for bind in world.of(BindPod)] == ["a", "b"]


def test_after_a_binding_that_went_well_the_next_refusal_waits_least_again() -> None:
    world = World().node("n1", cpu=4).group("g", 1).members("g", 0)
    world.refused = {"g-0": (500, "internal")}
    world.run(8)
    world.refused = {}
    world.run(20)
    assert world.bound == {"g-0"}
    world.forget_effects().members("g", 1)
    world.refused = {"g-1": (500, "internal")}
    world.run(1.5)
    assert len(world.of(BindPod)) == 2


def test_a_group_that_contradicts_itself_is_not_called_scheduled_by_what_others_bound() -> None:
    world = World().node("n1").group("g", 1, priority=100).members("g", 0, node="n1", priority=0)
    world.members("g", 1, priority=100).run(30)
    condition = world.condition("g")
    assert condition is not None
    assert (condition.status, condition.reason) == ("False", "SchedulerError")


# ── causes ───────────────────────────────────────────────────────────────────────────────────────

CHANGED = (
    'Operation cannot be fulfilled on pods "g-1": StorageError: invalid object, Code: 4, Key: /registry/pods/'
    "default/g-1, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: ResourceVersion in "
    "precondition: 3, ResourceVersion in object meta: 4"
)


@pytest.mark.parametrize(
    ("code", "message", "cause"),
    [
        pytest.param(0, "no answer in time", "unknown", id="lost"),
        pytest.param(403, 'admission webhook "w" denied the request: no', "refused", id="webhook"),
        pytest.param(403, 'pods "p" is forbidden: User "m" cannot create', "forbidden", id="rights"),
        pytest.param(404, "not found", "gone", id="gone"),
        pytest.param(409, 'pod p is already assigned to node "n2"', "conflict", id="bound"),
        pytest.param(409, CHANGED, "stale", id="changed"),
        pytest.param(422, "Invalid value", "refused", id="invalid"),
        pytest.param(429, "too many requests", "throttled", id="throttled"),
        pytest.param(503, "unavailable", "server", id="server"),
    ],
)
def test_failures_are_told_apart_by_cause(code: int, message: str, cause: str) -> None:
    assert cause_of(BindFailed(key_of("p"), "u", "n1", code, "", message)) == cause


def test_failures_are_counted_by_cause() -> None:
    world = make_world()
    world.refused = {"g-1": (429, "busy")}
    world.run(0.5)
    assert (
        world.scheduler.metrics.counters["muster_bind_failures_by_cause_total", (("cause", "throttled"),)]
        == 1
    )


def test_a_refusal_by_a_webhook_is_not_retried_like_a_passing_failure() -> None:
    world = make_world()
    world.refused = {"g-1": (403, 'admission webhook "w" denied the request: no')}
    world.run(60)
    tries = [bind for bind in world.of(BindPod) if bind.key.name == "g-1"]
    assert len(tries) == 4  # 0, 5, 15, 35


def stale(cpu: int = 4) -> World:
    """The API knows a later version of g-1 than the one that was decided on."""
    world = (
        World().node("n1", cpu=cpu).group("g", 2).members("g", 0, version="3").members("g", 1, version="3")
    )
    world.mute = True
    world.run()
    answer(world, "g-0")
    bind = bind_of(world, "g-1")
    world.tell(BindFailed(bind.key, bind.uid, bind.node_name, 409, "Conflict", CHANGED))
    return world


def test_a_binding_names_the_version_that_was_decided_on() -> None:
    assert bind_of(stale(), "g-1").version == "3"


def make_later(world: World, name: str, **fields: Any) -> World:
    """The pod is seen in a later version, with these fields of its spec changed."""
    return world.change(
        name,
        lambda pod: replace(
            pod,
            metadata=replace(pod.metadata, resource_version="4"),
            spec=replace(pod.spec, **fields),
        ),
    )


def test_a_binding_refused_for_a_later_version_waits_for_it_and_keeps_its_room() -> None:
    world = stale(cpu=2).pod("other")
    make_later(world, "g-1").run()
    assert [(bind.node_name, bind.version) for bind in world.of(BindPod) if bind.key.name == "g-1"] == [
        ("n1", "3"),
        ("n1", "4"),
    ]
    assert not [bind for bind in world.of(BindPod) if bind.key.name == "other"]


def test_a_pod_that_asks_for_something_else_by_now_is_decided_on_anew() -> None:
    world = stale(cpu=2).node("n2", cpu=4, labels={"disk": "ssd"})
    make_later(world, "g-1", node_selector={"disk": "ssd"}).run(5)
    assert bind_of(world, "g-1").node_name == "n2"


def test_a_node_that_has_shrunk_meanwhile_is_not_asked_again() -> None:
    world = stale(cpu=2).node("n2", cpu=4).node("n1", cpu=1)
    make_later(world, "g-1").run(5)
    assert bind_of(world, "g-1").node_name == "n2"


def test_a_version_that_is_never_seen_does_not_hold_a_gang_up_for_ever() -> None:
    world = stale().run(5)
    assert len([bind for bind in world.of(BindPod) if bind.key.name == "g-1"]) > 1


def seen_before_refused(**fields: Any) -> World:
    """g-1 is seen changed while its binding is on the wire; only then the API refuses that for the change."""
    world = World().node("n1", cpu=4).group("g", 2).members("g", 0, version="3").members("g", 1, version="3")
    world.mute = True
    world.run()
    answer(world, "g-0")
    bind = bind_of(world, "g-1")
    make_later(world, "g-1", **fields)
    return world.tell(BindFailed(bind.key, bind.uid, bind.node_name, 409, "Conflict", CHANGED))


def test_a_change_that_was_seen_before_the_refusal_costs_no_wait() -> None:
    world = seen_before_refused().run(0)
    assert [bind.version for bind in world.of(BindPod) if bind.key.name == "g-1"] == ["3", "4"]


def test_a_change_that_was_seen_before_the_refusal_and_asks_for_another_node_is_decided_on_anew() -> None:
    world = seen_before_refused(node_selector={"disk": "ssd"}).run(5)
    assert [bind.version for bind in world.of(BindPod) if bind.key.name == "g-1"] == ["3"]
    world.node("n2", cpu=4, labels={"disk": "ssd"}).run(5)
    assert bind_of(world, "g-1").node_name == "n2"


def test_a_lost_answer_is_asked_for_with_the_version_that_was_decided_on_if_the_pod_asks_anew() -> None:
    world = World().node("n1", cpu=4).pod("p", version="3")
    world.mute = True
    world.run()
    bind = bind_of(world, "p")
    world.tell(BindFailed(bind.key, bind.uid, bind.node_name, 0, "", "time-out"))
    make_later(world, "p", node_selector={"disk": "ssd"}).run(2)
    assert [bind.version for bind in world.of(BindPod)] == ["3", "3"]
