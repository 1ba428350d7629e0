"""Groups that ask alike are refused together: one is tried, all are told, and all that fit are placed."""

import numpy as np
import pytest
from tests.unit.scheduling.world import World

from muster.framework.ports import PatchGroupStatus, PatchPodStatus


def count_trials(world: World) -> list[str]:
    """The names of those really tried from now on, in order."""
    tried: list[str] = []
    judge = world.scheduler._books.runner
    plain = judge.placement_feasible

    def noted(group, **words):  # type: ignore[no-untyped-def]
        if not tried or tried[-1] != group.key.name:
            tried.append(group.key.name)
        return plain(group, **words)

    judge.placement_feasible = noted  # type: ignore[method-assign]
    return tried


def gangs(world: World, *names: str, cpu: int = 1, **words: int) -> World:
    for name in names:
        world.group(name, 2, **words).members(name, 0, 1, cpu=cpu, **words)
    return world


def test_one_is_tried_for_all_and_each_is_told_once() -> None:
    world = World().node("n1", cpu=3)
    tried = count_trials(world)
    gangs(world, *"abcd", cpu=2).run(0.5)
    assert tried == ["a"]
    assert [patch.key.name for patch in world.of(PatchGroupStatus)] == list("abcd")
    assert len(world.of(PatchPodStatus)) == 8
    texts = {world.condition(name).message for name in "abcd"}  # type: ignore[union-attr]
    assert len(texts) == 1
    assert len(world.notes("FailedScheduling")) == 8


def test_those_who_follow_are_told_the_same_member_by_member() -> None:
    world = gangs(World().node("n1", cpu=3), "a", "b", cpu=2).run(0.5)
    for index in range(2):
        first, second = (world.pod_condition(f"{name}-{index}").message for name in "ab")  # type: ignore[union-attr]
        assert first == second
    assert world.pod_condition("b-0").message != world.pod_condition("b-1").message  # type: ignore[union-attr]


def test_who_has_room_does_not_wait_until_the_others_are_told() -> None:
    world = World().node("n1", cpu=4)
    gangs(world, *"abcd", cpu=5)
    gangs(world, "small")
    world.run()
    order = [type(effect).__name__ for effect in world.effects]
    assert (
        order.index("BindPod") < [index for index, name in enumerate(order) if name == "PatchGroupStatus"][1]
    )
    assert {"small-0", "small-1"} == world.bound


def test_a_freed_place_causes_no_try_but_of_one_it_could_help() -> None:
    world = World().node("n1", cpu=2).node("n2", cpu=1).pod("x", node="n1", cpu=2).pod("y", node="n2", cpu=1)
    gangs(world, *"abc", cpu=1)
    gangs(world, *"def", cpu=2)
    world.run(0.5)
    tried = count_trials(world)
    world.delete("x").run(0.3)
    assert world.bound == {"a-0", "a-1", "y"}
    assert tried == ["a"]


def test_lone_pods_that_ask_alike_are_refused_together() -> None:
    world = World().node("n1", cpu=1)
    for name in ("p", "q", "r"):
        world.pod(name, cpu=2)
    world.run(0.5)
    texts = [world.pod_condition(name).message for name in ("p", "q", "r")]  # type: ignore[union-attr]
    assert len(set(texts)) == 1
    counters = world.scheduler.metrics.counters
    assert sum(count for (name, _), count in counters.items() if name.startswith("scheduler_schedule_")) == 3


def test_a_group_that_may_drive_out_somebody_is_tried_itself() -> None:
    world = World().node("n1", cpu=2).pod("weak", node="n1", cpu=1)
    tried = count_trials(world)
    gangs(world, "a", "b", cpu=2, priority=5).run(0.5)
    assert {"a", "b"} <= set(tried)


def test_a_refusal_is_found_anew_when_it_is_old() -> None:
    world = gangs(World().node("n1", cpu=1), "a").run(60)
    tried = count_trials(world)
    gangs(world, "b").run(0.1)
    assert tried == ["b"]


def test_when_words_have_been_erased_they_are_said_again() -> None:
    world = gangs(World().node("n1", cpu=1), "a", "b").run(0.5)
    said = world.condition("b")
    world.change_group("b", conditions=()).run(20)
    assert said is not None
    assert world.condition("b").message == said.message  # type: ignore[union-attr]


@pytest.mark.parametrize("seed", range(40))
def test_the_same_gangs_run_as_if_each_were_tried_by_itself(seed: int) -> None:
    """The slow twin asks alike of nobody: each gang sleeps alone, is woken alone and tried alone."""
    fast, slow = World(), World()
    books = slow.scheduler._books
    books.ask_of = lambda entity: None  # type: ignore[method-assign,assignment]
    books.queue._ask_of = books.ask_of
    rng = np.random.default_rng(seed)
    for number in range(4):
        cpu = int(rng.integers(1, 5))
        for world in (fast, slow):
            world.node(f"n{number}", cpu=cpu)
    for step in range(30):
        what, cpu, size = rng.integers(0, 4), int(rng.integers(1, 4)), int(rng.integers(1, 4))
        bound = sorted(slow.bound)
        gone = bound[int(rng.integers(len(bound)))].rsplit("-", 1)[0] if bound else ""
        wait_s = float(rng.choice([0.0, 0.2, 1.0, 15.0]))
        for world in (fast, slow):
            if what < 2:
                world.group(f"g{step}", size).members(f"g{step}", *range(size), cpu=cpu)
            elif what == 2 and gone:
                world.delete(*(name for name in sorted(world.bound) if name.rsplit("-", 1)[0] == gone))
            else:
                world.node(f"m{step}", cpu=cpu - 1)
            world.run(wait_s)
        assert fast.bound == slow.bound, f"step {step}"
