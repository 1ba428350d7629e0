"""Bindings that land and were not decided here: another leader's, late."""

from msgspec.structs import replace
from tests.unit.cluster.volume_objects import mounts
from tests.unit.scheduling.gang_world import owned, released
from tests.unit.scheduling.volume_world import with_claim
from tests.unit.scheduling.world import World

from muster.framework.ports import BindPod, SelectNode

LANDED = ("muster_double_decisions_total", ())


def land(world: World, *names: str, node: str = "n1") -> World:
    for name in names:
        world.change(name, lambda pod: replace(pod, spec=replace(pod.spec, node_name=node)))
    return world


def two_gangs(late_priority: int = 0) -> World:
    """Gang g is on the wire to n1, which it fills; the members of late wait."""
    world = World().node("n1", cpu=2).group("g", 2).group("late", 2, priority=late_priority)
    world.mute = True
    owned(world, "g", 0, 1).run(1)
    for index in range(2):
        owned(world, "late", index)
    return world


def test_a_binding_of_another_leader_is_counted() -> None:
    world = land(two_gangs(), "late-0")
    assert world.scheduler.metrics.counters[LANDED] == 1


def test_of_two_gangs_that_do_not_both_fit_the_one_that_landed_is_released() -> None:
    world = land(two_gangs(), "late-0", "late-1").run(1)
    assert released(world) == ["late-0", "late-1"]


def test_the_less_important_one_is_released() -> None:
    world = two_gangs(late_priority=5)
    for name in ("late-0", "late-1"):
        world.change(name, lambda pod: replace(pod, spec=replace(pod.spec, priority=5)))
    assert released(land(world, "late-0").run(1)) == ["g-0", "g-1"]


def test_where_there_is_room_for_both_nobody_goes() -> None:
    world = World().node("n1", cpu=4).group("g", 2)
    world.mute = True
    owned(world, "g", 0, 1).run(1)
    owned(world.group("late", 2), "late", 0)
    assert released(land(world, "late-0").run(1)) == []


def test_a_member_bound_elsewhere_than_decided_is_counted() -> None:
    world = two_gangs().node("n2")
    land(world, "g-0", node="n2")
    assert world.scheduler.metrics.counters[LANDED] == 1


def test_our_own_bindings_are_none_of_these() -> None:
    world = owned(World().node("n1", cpu=4).group("g", 2), "g", 0, 1).run(10)
    assert LANDED not in world.scheduler.metrics.counters


def test_what_is_bound_when_everything_is_listed_is_none_either() -> None:
    world = owned(World().node("n1", cpu=4).group("g", 2), "g", 0, 1).run(10).restart().run(10)
    assert LANDED not in world.scheduler.metrics.counters


def test_a_gang_that_gives_way_is_held_before_anybody_of_it_is_decided_on_again() -> None:
    world = World().node("n1", cpu=2).group("g", 2).group("late", 2, priority=5)
    world.mute = world.deny_evictions = True
    owned(world, "g", 0, 1, 2).run(1)
    owned(world, "late", 0)
    world.change("late-0", lambda pod: replace(pod, spec=replace(pod.spec, priority=5)))
    land(world, "late-0").node("n2", cpu=4).run(1)
    assert set(released(world)) == {"g-0", "g-1"}
    assert {bind.key.name for bind in world.of(BindPod)} == {"g-0", "g-1"}


def in_preparation() -> World:
    """Gang g waits on n1, which it fills, for its volumes; of late one waits for room."""
    world = World().node("n1", cpu=2).group("g", 2)
    with_claim(world)
    world.pod("g-0", group="g", volumes=mounts("c")).members("g", 1).run(1)
    return owned(world.group("late", 1), "late", 0).run(1)


def test_members_in_preparation_give_way_to_a_binding_that_lands() -> None:
    world = land(in_preparation().node("n2", cpu=2), "late-0").forget_effects().run(30)
    assert released(world) == []
    assert [write.node_name for write in world.of(SelectNode)] == ["", "n1"]  # given back, decided anew
