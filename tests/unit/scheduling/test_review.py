"""Where an entity belongs after something about it changed."""

from typing import ClassVar

import numpy as np
import pytest
from msgspec.structs import replace
from tests.unit.scheduling.world import START_S, World, key_of

from muster.api.core import Pod
from muster.assembly.profiles import BUILT_IN
from muster.framework.events import HintRule
from muster.framework.groups import Group, Subgroup
from muster.framework.ports import BindPod, GroupSeen, PatchGroupStatus
from muster.framework.runner import Runner, Weighted
from muster.framework.status import Status
from muster.scheduling.scheduler import Scheduler


class Moody:
    """A third party's gate that raises until it is told to stop."""

    name: ClassVar[str] = "Moody"
    raises = True
    status = Status.success()

    def pre_enqueue(
        self,
        group: Group | None,
        *,
        waiting: tuple[Pod, ...],
        placed: int,
        children: tuple[Subgroup, ...] = (),
    ) -> Status:
        if self.raises:
            raise RuntimeError("out of sorts")
        return self.status

    def hint_rules(self) -> tuple[HintRule, ...]:
        return ()


def test_a_gate_that_raises_is_asked_again_with_backoff() -> None:
    moody = Moody()
    plugins = [Weighted(make()) for make in BUILT_IN.values()]
    scheduler = Scheduler(runner=Runner([*plugins, Weighted(moody)]), scheduler_names=("muster",))
    world = World(scheduler).node("n1").group("g", 1).members("g", 0).run(5)
    assert world.place("g") == "backoff"
    assert "plugin 'Moody' raised at pre_enqueue" in scheduler.report().pending[0].message
    moody.raises = False
    world.run(30)
    assert world.bound == {"g-0"}


def test_after_a_restart_who_was_complete_first_is_read_from_the_objects() -> None:
    world = World(synced=False).node("n1", cpu=2)
    world.group("young", 2, created_s=10.0).group("old", 2, created_s=20.0)
    for name, second in (("young-0", 11), ("young-1", 59), ("old-0", 21), ("old-1", 30)):
        world.pod(name, group=name.split("-")[0])
        world.change(
            name,
            lambda pod, at=second: replace(  # type: ignore[misc]
                pod, metadata=replace(pod.metadata, creation_timestamp=f"1970-01-01T00:00:{at}Z")
            ),
        )
    world.restart().run()
    assert world.bound == {"old-0", "old-1"}


def test_a_status_write_of_our_own_causes_no_attempt() -> None:
    world = World().node("n1", cpu=1).group("g", 2).members("g", 0, 1).run()
    assert world.scheduler.report().pending[0].attempts == 1


def test_a_member_that_changes_its_labels_is_tried_again() -> None:
    world = World().node("n1", cpu=1).group("g", 2).members("g", 0, 1).run(400)
    attempts = world.scheduler.report().pending[0].attempts
    world.change(
        "g-0", lambda pod: replace(pod, metadata=replace(pod.metadata, labels={"touched": "1"}))
    ).run()
    assert world.scheduler.report().pending[0].attempts == attempts + 1


def test_a_member_in_the_way_of_others_is_deleted_and_they_go_at_once() -> None:
    world = World().node("n1", cpu=4).group("g", 2)
    world.answers_searches = False  # a search would find the two that fit
    for index, cpu in enumerate((3, 2, 2)):
        world.members("g", index, cpu=cpu)
    world.run(400)
    assert world.bound == set()
    world.delete("g-0").run()
    assert world.bound == {"g-1", "g-2"}


def test_an_older_state_of_a_group_is_not_believed() -> None:
    world = World().node("n1").group("g", 3, version="9").members("g", 0, 1)
    world.tell(GroupSeen(replace(world.groups[key_of("g")], version="8", min_count=2))).run(30)
    assert world.bound == set()


def test_a_group_replaced_under_its_name_takes_a_new_turn() -> None:
    world = World().node("n1", cpu=1).group("g", 2).members("g", 0, 1).run(20)
    world.group("g", 2).run()
    pending = world.scheduler.report().find(key_of("g"))
    assert pending is not None
    assert (pending.queued_s, pending.attempts) == (START_S + 20, 1)


def test_a_gate_that_opens_by_itself_lets_the_group_go_at_its_next_review() -> None:
    moody = Moody()
    moody.raises = False
    moody.status = Status.unresolvable("not yet")
    plugins = [Weighted(make()) for make in BUILT_IN.values()]
    scheduler = Scheduler(runner=Runner([*plugins, Weighted(moody)]), scheduler_names=("muster",))
    world = World(scheduler).node("n1").group("g", 1).members("g", 0).run(5)
    assert world.place("g") == "gated"
    world.members("g", 1, node="n1").run()
    moody.status = Status.success()
    world.end("g-1").run()  # a change that wakes nobody by itself
    assert "g-0" in world.bound


def impossible(world: World, count: int, **words: int) -> World:
    for number in range(count):
        world.group(f"big-{number}", 2, **words).members(f"big-{number}", 0, 1, cpu=9, **words)
    return world


def test_gangs_behind_those_that_can_be_tried_are_not_looked_at_first() -> None:
    world = World(synced=False).node("n1", cpu=4)
    for name in ("a", "b", "c"):
        world.group(name, 1).members(name, 0)
    world.restart()
    world.wake()
    assert [world.place(name) for name in "bc"] == ["arriving", "arriving"]
    assert world.scheduler.report().find(key_of("c")).message == "waits for its turn to be tried"  # type: ignore[union-attr]
    assert world.run(1).bound == {"a-0", "b-0", "c-0"}


def test_a_gang_of_higher_priority_goes_first_though_it_came_last() -> None:
    world = World(synced=False).node("n1", cpu=1)
    for number in range(5):
        world.group(f"low-{number}", 1).members(f"low-{number}", 0)
    world.group("high", 1, priority=5).members("high", 0, priority=5)
    assert world.restart().run().bound == {"high-0"}


def test_those_who_ask_what_was_refused_do_not_keep_waiting_who_has_room() -> None:
    world = World(synced=False).node("n1", cpu=4)
    impossible(world, 20).group("small", 1).members("small", 0)
    world.restart().run()
    order = [effect for effect in world.effects if isinstance(effect, BindPod | PatchGroupStatus)]
    assert [type(effect).__name__ for effect in order[:2]] == ["PatchGroupStatus", "BindPod"]
    told = [effect.key.name for effect in order if isinstance(effect, PatchGroupStatus)]
    assert sorted(set(told)) == sorted([*(f"big-{number}" for number in range(20)), "small"])
    assert {world.place(f"big-{number}") for number in range(20)} == {"unschedulable"}


def test_who_was_set_aside_is_told_after_a_second_though_others_are_still_decided_on() -> None:
    world = impossible(World(synced=False), 2)
    for number in range(100):
        world.node(f"n{number}", cpu=1)
        world.group(f"g-{number}", 1).members(f"g-{number}", 0, cpu=1)
    world.restart()
    told_at = None
    for step in range(200):
        world.now_s += 0.05
        world.wake()
        if told_at is None and world.condition("big-1") is not None:
            told_at = step * 0.05
    assert told_at is not None
    assert 0.9 < told_at < 1.5


def test_one_that_was_set_aside_has_its_turn_when_nobody_sleeps_on_the_refusal_any_more() -> None:
    world = World(synced=False).node("n1", cpu=4).group("big", 1).members("big", 0, cpu=9)
    world.group("too", 1).members("too", 0, cpu=9).restart()
    world.wake()
    world.delete("big-0").node("n2", cpu=9)
    assert world.run(0.5).bound == {"too-0"}


@pytest.mark.parametrize("seed", range(30))
def test_newcomers_fare_as_if_all_were_looked_at_at_once(seed: int) -> None:
    """The slow twin believes to know everybody, so that nobody is a newcomer."""
    fast, slow = World(synced=False), World(synced=False)
    rng = np.random.default_rng(seed)
    for number in range(3):
        cpu = int(rng.integers(2, 9))
        for world in (fast, slow):
            world.node(f"n{number}", cpu=cpu)
    for number in range(40):
        cpu, size, priority = int(rng.integers(1, 7)), int(rng.integers(1, 4)), int(rng.integers(0, 2))
        for world in (fast, slow):
            world.group(f"g{number}", size, priority=priority)
            world.members(f"g{number}", *range(size), cpu=cpu, priority=priority)
    for world in (fast, slow):
        world.restart()
    slow.scheduler._books.queue.remembers = lambda key: True  # type: ignore[method-assign]
    for step in range(12):
        name, wait_s = f"m{step}", float(rng.choice([0.0, 0.3, 2.0, 15.0]))
        cpu = int(rng.integers(1, 5))
        for world in (fast, slow):
            world.node(name, cpu=cpu) if step % 3 else world.group(name, 1).members(name, 0, cpu=cpu)
            world.run(wait_s)
        assert {key: pod.spec.node_name for key, pod in fast.pods.items()} == {
            key: pod.spec.node_name for key, pod in slow.pods.items()
        }, f"step {step}"
    told = [[world.condition(f"g{number}") for number in range(40)] for world in (fast, slow)]
    assert [said and said.reason for said in told[0]] == [said and said.reason for said in told[1]]
