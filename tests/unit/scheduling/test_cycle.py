"""One cycle: what it writes and where it leaves the entity."""

import pytest
from tests.unit.scheduling.world import World

from muster.assembly.config import Config
from muster.assembly.profiles import build
from muster.framework.ports import PatchPodStatus


def test_every_refused_member_gets_the_condition_and_ten_the_event() -> None:
    world = World().node("n1", cpu=3).group("g", 30).members("g", *range(30)).run()
    assert len({patch.key.name for patch in world.of(PatchPodStatus)}) == 30
    notes = world.notes("FailedScheduling")
    assert len(notes) == 10
    assert notes[0] == (
        "g-3",
        "0/1 nodes are available: 1 Insufficient cpu. For example (with 3 other members placed) "
        "n1: 1 cpu asked, 0 of 3 free.",
    )  # who was tried in vain comes first


def test_the_member_tried_in_vain_has_its_own_text_and_the_others_the_groups() -> None:
    world = World().node("n1", cpu=2).group("g", 3).members("g", 0, 1, 2).run()
    texts = [world.pod_condition(f"g-{index}").message for index in range(3)]  # type: ignore[union-attr]
    assert texts[0] == texts[1] == world.condition("g").message  # type: ignore[union-attr]
    assert texts[2].startswith("0/1 nodes are available: 1 Insufficient cpu. For example ")  # type: ignore[union-attr]


def test_while_the_reasons_stay_the_examples_stay_and_nobody_is_told_again() -> None:
    world = World().node("n1", cpu=3).pod("x", node="n1", cpu=1).pod("p", cpu=3).run(6)
    first = world.pod_condition("p").message  # type: ignore[union-attr]
    world.forget_effects().pod("y", node="n1", cpu=1).delete("x").run(60)
    assert first == world.pod_condition("p").message  # type: ignore[union-attr]
    assert world.of(PatchPodStatus) == []
    world.node("n2", cpu=1).run(400)
    assert "0/2 nodes" in world.pod_condition("p").message  # type: ignore[union-attr,operator]


def test_a_member_left_over_is_tried_again_at_once_when_the_company_it_wants_was_placed_with_it() -> None:
    """As seed 30322 of the differential scenarios: it slept beside room until its own time."""
    term = {"labelSelector": {"matchLabels": {"app": "b"}}, "topologyKey": "zone"}
    near = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    world = World().node("n1", cpu=2, labels={"zone": "z"}).group("g", 1)
    world.members("g", 0, affinity=near).members("g", 1, labels={"app": "b"}).run()
    assert world.bound == {"g-0", "g-1"}


def test_a_group_left_behind_does_not_stop_what_comes_after_it() -> None:
    world = World().node("n1", cpu=2).group("g", 4, priority=100).members("g", *range(4), priority=100)
    world.pod("p").run()
    assert world.bound == {"p"}


@pytest.mark.parametrize(
    ("cpu", "kind", "result"),
    [
        pytest.param(4, "group", "scheduled", id="group-scheduled"),
        pytest.param(1, "group", "unschedulable", id="group-unschedulable"),
        pytest.param(4, "pod", "scheduled", id="pod-scheduled"),
    ],
)
def test_attempts_are_counted_by_result(cpu: int, kind: str, result: str) -> None:
    world = World().node("n1", cpu=cpu)
    if kind == "group":
        world.group("g", 2).members("g", 0, 1)
    else:
        world.pod("p")
    world.run()
    name = {
        "group": "scheduler_podgroup_schedule_attempts_total",
        "pod": "scheduler_schedule_attempts_total",
    }[kind]
    attempts = {key: count for key, count in world.scheduler.metrics.counters.items() if key[0] == name}
    assert attempts == {(name, (("profile", "muster"), ("result", result))): 1}


def test_a_contradiction_is_counted_as_an_error() -> None:
    world = World().node("n1").group("g", 1).members("g", 0, priority=5).run()
    assert [labels for _, labels in world.scheduler.metrics.counters] == [
        (("profile", "muster"), ("result", "error"))
    ]


def test_durations_are_read_from_the_stopwatch_given() -> None:
    ticks = iter(range(100))
    scheduler = build(
        Config(scheduler_names=("muster",)), stopwatch=lambda: float(next(ticks)), third_party={}
    )
    world = World(scheduler).node("n1").group("g", 1).members("g", 0).run()
    attempt = world.scheduler.metrics.histograms[
        (
            "scheduler_podgroup_scheduling_attempt_duration_seconds",
            (("profile", "muster"), ("result", "scheduled")),
        )
    ]
    assert (attempt.count, attempt.total) == (1, 2.0)


def test_two_names_of_ours_in_one_group_are_a_contradiction() -> None:
    scheduler = build(Config(scheduler_names=("muster", "other")), third_party={})
    world = World(scheduler).node("n1").group("g", 2).members("g", 0).members("g", 1, scheduler="other").run()
    condition = world.condition("g")
    assert condition is not None
    assert condition.reason == "SchedulerError"
    assert condition.message is not None
    assert condition.message.endswith('got: "muster" and "other"')


def test_a_contradicting_member_that_is_replaced_lets_the_group_go_at_once() -> None:
    world = World().node("n1").group("g", 2).members("g", 0).members("g", 1, priority=5).run(8.5)
    world.delete("g-1").members("g", 2).run()
    assert world.bound == {"g-0", "g-2"}
