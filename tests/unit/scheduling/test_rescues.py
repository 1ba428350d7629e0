"""Searches for victims that take longer than a cycle may."""

from msgspec.structs import replace
from tests.unit.scheduling.world import World, key_of

from muster.framework.ports import BindPod, EvictPod, TimeReached
from muster.placement.eviction import TRY_WORK, Eviction, EvictionSearch
from muster.placement.victims import Unit
from muster.scheduling.members import EntityKey
from muster.scheduling.rescues import WORK_PER_CYCLE, Rescues
from muster.testing.preemptors import make_preemptor

APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": {"team": "h"}}, "topologyKey": "kubernetes.io/hostname"}
        ]
    }
}
MEMBERS = 30


def search_of(work: int) -> EvictionSearch:
    """A search that takes several steps, each of so much work."""
    facts = make_preemptor()
    (low,) = facts.units
    units = (Unit("high", 5, low.pods), Unit("gone", 1, ((low.pods[0][0], -1),)))
    trial = replace(facts.trial, work=work)
    return EvictionSearch(units, (), facts.snapshot, facts.judge, trial)


def entity(name: str) -> EntityKey:
    return EntityKey("podgroup", key_of(name))


def test_a_search_is_gone_on_with_until_it_is_finished_and_its_answer_is_given_once() -> None:
    rescues = Rescues()
    rescues.put_off(entity("a"), search_of(WORK_PER_CYCLE))
    steps = 0
    while rescues.is_out(entity("a")):
        rescues.advance(entity("a"))
        steps += 1
    assert steps > 1
    assert isinstance(rescues.take_answer(entity("a")), Eviction)
    assert rescues.take_answer(entity("a")) is None


def test_each_search_has_its_turn() -> None:
    rescues = Rescues()
    for name in "ab":
        rescues.put_off(entity(name), search_of(WORK_PER_CYCLE))
    assert rescues.first() == entity("a")
    assert not rescues.advance(entity("a"))
    assert rescues.first() == entity("b")
    rescues.forget(entity("b"))
    assert rescues.first() == entity("a")
    assert len(rescues) == 1


def test_the_first_way_is_known_after_the_first_step() -> None:
    search = search_of(TRY_WORK)
    search.advance(1)
    assert isinstance(search.answer, Eviction)


def crowded_world() -> World:
    """Nodes full of pods of many priorities, and a gang that cannot be counted wants most of them."""
    world = World()
    for number in range(MEMBERS + 10):
        world.node(f"n{number}", cpu=2, labels={"kubernetes.io/hostname": f"n{number}"})
        world.pod(f"low-{number}", node=f"n{number}", priority=1 + number % 9, cpu=1)
    world.group("h", MEMBERS, priority=100)
    words = {"priority": 100, "cpu": 2, "labels": {"team": "h"}, "affinity": APART}
    world.members("h", *range(MEMBERS), **words)
    return world


def test_others_are_placed_while_it_is_being_chosen_whom_to_drive_out() -> None:
    world = crowded_world()
    world.node("spare", cpu=1, labels={"spare": "yes"})
    world.pod("small", cpu=1, priority=0, node_selector={"spare": "yes"})
    world.run(0.5)
    kinds = [type(effect) for effect in world.effects if isinstance(effect, BindPod | EvictPod)]
    assert kinds.count(EvictPod) == MEMBERS
    assert kinds.index(EvictPod) > kinds.index(BindPod)
    assert "small" in world.bound


def test_what_is_chosen_over_several_cycles_is_the_least_important_all_the_same() -> None:
    world = crowded_world().run(0.5)
    gone = sorted(1 + int(name.split("-")[1]) % 9 for name in world.evicted)
    everybody = sorted(1 + number % 9 for number in range(MEMBERS + 10))
    assert gone == everybody[:MEMBERS]
    assert world.run(20).bound >= {f"h-{number}" for number in range(MEMBERS)}


def test_a_gang_that_is_gone_before_it_is_chosen_drives_nobody_out() -> None:
    world = crowded_world()
    world._wake_s = None
    world.tell(TimeReached())
    assert len(world.scheduler._books.rescues) == 1
    world.delete(*(f"h-{number}" for number in range(MEMBERS)))
    world.run(30)
    assert world.evicted == []
    assert not world.scheduler._books.rescues
