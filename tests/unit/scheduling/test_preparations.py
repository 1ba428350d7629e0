"""Who is placed and not bound yet; a gang of those that loses members that it needs holds nothing."""

from collections.abc import Callable

import pytest
from tests.unit.cluster.volume_objects import make_claim, make_volume, mounts
from tests.unit.scheduling.volume_world import make_world, provision, selected_last, with_claim
from tests.unit.scheduling.world import World, key_of

from muster.framework.groups import ObjectKey
from muster.framework.ports import CompositeGone, SelectNode, StorageSeen
from muster.scheduling.conditions import WAITING
from muster.scheduling.members import EntityKey
from muster.scheduling.preparations import UNPREPARED_S_MAX, Preparation, Preparations

ROOT = EntityKey("podgroup", ObjectKey("default", "g"))


def make(name: str, since_s: float = 0.0, *, needs: bool = True) -> Preparation:
    return Preparation(
        key=ObjectKey("default", name),
        uid=f"uid-{name}",
        node_name="n1",
        root=ROOT,
        attempt=1,
        since_s=since_s,
        writes=() if needs else None,
    )


def test_members_that_need_nothing_are_ready_at_once() -> None:
    assert not make("p").status.ok
    assert make("p", needs=False).status.ok


def test_they_are_found_by_uid_and_by_root() -> None:
    book = Preparations()
    for name in ("p", "q"):
        book.add(make(name))
    assert [each.key.name for each in book.of(ROOT)] == ["p", "q"]
    found = book.end("uid-p")
    assert found is not None
    assert book.find("uid-p") is None
    assert book.end("uid-p") is None
    assert len(book) == 1


def test_only_roots_with_somebody_in_preparation_are_looked_at() -> None:
    book = Preparations()
    book.touch(ROOT)
    assert not book.touched
    book.add(make("p"))
    book.touch_all()
    assert list(book.touched) == [ROOT]
    book.end("uid-p")
    assert not book.touched


def test_the_longest_waiting_is_overdue_first() -> None:
    book = Preparations()
    for name, since_s in (("late", 5.0), ("early", 1.0)):
        book.add(make(name, since_s))
    assert book.next_due_s() == 1.0 + UNPREPARED_S_MAX
    assert [each.key.name for each in book.overdue(2.0 + UNPREPARED_S_MAX)] == ["early"]
    assert [each.key.name for each in book.overdue(9.0 + UNPREPARED_S_MAX)] == ["late"]
    assert book.next_due_s() is None


# ── members that go ─────────────────────────────────────────────────────────────────────────────


def preparing() -> World:
    """A gang of two that waits for the volume of its first on two nodes, which it fills."""
    return make_world().run(5)


def is_free(world: World) -> bool:
    """Whether both nodes take others."""
    return world.members("others", 0, 1).group("others", 2).run(1).bound == {"others-0", "others-1"}


def test_the_room_is_kept_while_all_are_there() -> None:
    assert not is_free(preparing())


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda world: world.delete("g-1"), id="a member is deleted"),
        pytest.param(lambda world: world.change_group("g", min_count=3), id="it needs more"),
        pytest.param(lambda world: world.delete_group("g"), id="the group is deleted"),
    ],
)
def test_a_gang_that_lacks_members_gives_its_room_and_its_choices_back(
    change: Callable[[World], World],
) -> None:
    world = preparing().forget_effects()
    change(world)
    assert is_free(world)
    assert [write.node_name for write in world.of(SelectNode)] == [""]


def test_it_says_what_it_waits_for_and_is_decided_anew_with_the_member_that_comes() -> None:
    world = preparing().delete("g-1").run(10)
    waiting = world.condition("g", WAITING)
    assert waiting is not None
    assert (waiting.reason, waiting.message) == ("MembersMissing", "waits for members: 1 of 2 exist")
    world.members("g", 2).run(5)
    provision(world, selected_last(world))
    assert world.run(5).bound == {"g-0", "g-2"}


def test_one_that_waits_already_takes_the_place_of_one_that_is_lost() -> None:
    world = preparing().members("g", 2).run(5).forget_effects().delete("g-1").run(5)
    assert world.of(SelectNode) == []
    world.tell(StorageSeen(make_volume("v", claim="c"))).tell(StorageSeen(make_claim("c", volume="v")))
    assert world.run(5).bound == {"g-0", "g-2"}


# ── trees ────────────────────────────────────────────────────────────────────────────────────────


def preparing_tree() -> World:
    """A composite that needs both of its gangs of one: `a-0` waits for a volume, `b-0` for `a-0`."""
    world = with_claim(World().node("n1", cpu=1).node("n2", cpu=1))
    world.group("tree", 2, is_composite=True, uid="uid-tree")
    for name in "ab":
        world.group(name, 1, parent=key_of("tree"))
    world.pod("a-0", group="a", volumes=mounts("c")).members("b", 0).run(5)
    assert world.bound == set()
    return world


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda world: world.delete("b-0"), id="all of a group are deleted"),
        pytest.param(lambda world: world.delete_group("b"), id="a group is deleted"),
        pytest.param(
            lambda world: world.tell(CompositeGone(key_of("tree"), "uid-tree")), id="the composite is"
        ),
    ],
)
def test_nobody_of_a_tree_that_lacks_a_group_is_bound_or_holds_room(change: Callable[[World], World]) -> None:
    world = preparing_tree()
    change(world).run(1)
    provision(world, selected_last(world))
    assert world.run(5).bound == set()
    assert is_free(world)


def test_a_tree_that_has_started_binds_whom_it_prepares_though_another_group_is_over() -> None:
    world = preparing_tree()
    provision(world, selected_last(world))
    assert world.run(5).bound == {"a-0", "b-0"}
    with_claim(world, "d").node("n3", cpu=1)
    world.pod("a-1", group="a", volumes=mounts("d")).run(5).delete("b-0").delete_group("b").run(5)
    provision(world, selected_last(world), claim="d", volume="w")
    assert world.run(5).bound == {"a-0", "a-1"}


def test_nobody_of_a_tree_is_bound_while_a_group_that_it_needs_has_no_room() -> None:
    world = preparing_tree().delete("b-0").pod("b-1", cpu=9, group="b").run(5)
    provision(world, selected_last(world))
    assert world.run(5).bound == set()
    world.node("big", cpu=9).run(5)
    assert world.bound == {"a-0", "b-1"}


def test_whom_a_started_tree_prepares_gives_its_room_back_when_its_own_group_lacks_members() -> None:
    world = World().node("n1", cpu=4).group("tree", 1, is_composite=True)
    world.group("a", 2, parent=key_of("tree")).members("a", 0, 1).run(5)
    assert world.bound == {"a-0", "a-1"}
    with_claim(world)
    world.delete("a-1").pod("a-2", group="a", volumes=mounts("c")).run(5).delete("a-0").run(5)
    assert [write.node_name for write in world.of(SelectNode)] == ["n1", ""]
