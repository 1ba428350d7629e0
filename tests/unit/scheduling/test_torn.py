"""A gang under way goes whole or not at all when somebody more important needs the room of some of it."""

from msgspec.structs import replace
from tests.unit.scheduling.world import World, key_of

from muster.framework.ports import EvictPod

COMPANY = {
    "podAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": {"app": "b"}}, "topologyKey": "kubernetes.io/hostname"}
        ]
    }
}


def evicted(world: World) -> list[str]:
    return sorted({effect.key.name for effect in world.of(EvictPod)})


def beside() -> World:
    """A gang whose bindings have no answer yet, and a more important one that wants to be where it is.

    It would fit if one of the three made room, and the other two stayed.
    """
    world = World().node("n1", cpu=4)
    world.mute = True
    world.group("g", 3).members("g", 0, 1, 2, labels={"app": "b"}).run(0.5)
    return world.group("x", 2, priority=9).members("x", 0, 1, priority=9, affinity=COMPANY).run(0.5)


def test_nobody_is_driven_out_for_one_whose_company_would_leave_with_the_victim() -> None:
    world = beside().run(60)
    assert evicted(world) == []
    assert "a gang that is under way goes whole or not at all" in str(world.condition("x"))


def test_it_is_tried_again_soon_and_takes_one_once_the_gang_has_started() -> None:
    world = beside().run(60)
    world.mute = False
    for number in range(3):
        world.change(f"g-{number}", lambda pod: replace(pod, spec=replace(pod.spec, node_name="n1")))
    world.run(20)
    assert len(evicted(world)) == 1
    assert world.bound >= {"x-0", "x-1"}


def test_nobody_is_driven_out_of_a_tree_under_way_for_the_company_of_the_others() -> None:
    world = World().node("n1", cpu=4).group("tree", 2, is_composite=True)
    world.mute = True
    for name in ("a", "b"):
        world.group(name, 1, parent=key_of("tree"))
    world.members("a", 0, labels={"app": "b"}).members("b", 0, 1, labels={"app": "b"}).run(0.5)
    world.group("x", 2, priority=9).members("x", 0, 1, priority=9, affinity=COMPANY).run(60)
    assert evicted(world) == []


def test_who_needs_no_company_drives_the_gang_out_whole() -> None:
    world = beside()
    world.pod("big", cpu=2, priority=99).run(0.5)
    assert evicted(world) == ["g-0", "g-1", "g-2"]
