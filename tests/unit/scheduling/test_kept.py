"""Room of a gang under way is kept against everybody else."""

from tests.unit.scheduling.gang_world import owned, released, whole
from tests.unit.scheduling.world import World

from muster.framework.groups import Terms
from muster.framework.ports import BindPod, EvictPod

REFUSED = (500, "internal")


def half_bound(cpu: int = 3) -> World:
    """Two of three members are bound, and the node is full when the third is."""
    world = World().node("n1", cpu=cpu).group("g", 3, terms=Terms(bind_timeout_s=60.0))
    world.refused = {"g-2": REFUSED}
    return owned(world, "g", 0, 1, 2).run(0.5)


def test_nobody_takes_the_room_of_a_refused_member_while_its_gang_is_under_way() -> None:
    world = half_bound().pod("late").run(0.4)
    assert "late" not in world.bound
    world.refused = {}
    world.run(10)
    assert world.bound == {"g-0", "g-1", "g-2"}


def test_the_gang_itself_may_use_it_or_go_elsewhere() -> None:
    world = half_bound().node("n2", cpu=1)
    world.refused = {}
    world.run(10)
    assert whole(world.run(20)) == ("True", "Bound")


def test_room_is_nobodys_when_the_gang_is_released() -> None:
    world = half_bound().pod("late").run(61)
    assert released(world) == ["g-0", "g-1"]
    assert "late" in world.run(5).bound


def test_room_is_nobodys_when_the_pod_is_gone() -> None:
    world = half_bound().pod("late").run(0.1)
    world.delete("g-2").run(5)
    assert "late" in world.bound


def test_room_is_nobodys_when_the_group_is_gone() -> None:
    world = half_bound().pod("late").run(0.1)
    assert "late" not in world.bound
    assert "late" in world.delete_group("g").run(5).bound


def test_room_is_nobodys_when_another_group_has_the_name() -> None:
    world = half_bound().pod("late").run(0.1)
    assert "late" in world.group("g", 9).run(5).bound


def test_a_gang_that_is_whole_keeps_nothing() -> None:
    world = half_bound(cpu=4)
    world.refused = {}
    world.run(10).pod("late").run(5)
    assert "late" in world.bound


def test_who_is_more_important_takes_a_gang_under_way_whole_or_not_at_all() -> None:
    world = half_bound()
    world.pod("big", priority=100, cpu=1).run(5)
    evicted = {effect.key.name for effect in world.of(EvictPod)}
    assert evicted == {"g-0", "g-1"}
    assert world.scheduler.metrics.counters["muster_gangs_released_total", (("cause", "preemption"),)] == 1
    assert "big" in world.run(5).bound
    assert not [bind for bind in world.of(BindPod) if bind.key.name == "g-2"][5:]


def test_of_a_gang_that_has_started_one_member_may_go_alone() -> None:
    world = half_bound()
    world.refused = {}
    world.run(30)
    world.pod("big", priority=100, cpu=1).run(5)
    assert len(world.of(EvictPod)) == 1


def test_a_member_that_waits_for_another_reason_keeps_nothing() -> None:
    world = World().node("n1", cpu=2).pod("lone")
    world.refused = {"lone": REFUSED}
    world.run(0.5).pod("a").pod("b").run(0.4)
    assert world.bound == {"a", "b"}


def test_a_kept_room_on_a_node_that_is_gone_is_none() -> None:
    world = half_bound().node("n2", cpu=1)
    world.delete_node("n1").pod("late").run(5)
    assert world.node_of("late") == "n2"
