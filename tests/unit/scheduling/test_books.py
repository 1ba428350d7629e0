"""The books, and that they forget gangs that are gone, however many there were."""

from collections.abc import Callable

import pytest
from tests.unit.scheduling.census import count_entries
from tests.unit.scheduling.world import World

from muster.assembly.profiles import BUILT_IN
from muster.cluster import snapshot, state
from muster.framework.events import Change, ClusterEvent, Rejected
from muster.framework.groups import ObjectKey
from muster.framework.runner import Runner, Weighted
from muster.scheduling import members
from muster.scheduling.books import Books
from muster.scheduling.members import EntityKey
from muster.scheduling.queue import QueueTimes
from muster.scheduling.sleepers import Refusal
from muster.testing.builders import make_node, make_pod

P = EntityKey("pod", ObjectKey("default", "p"))
GANGS = 90  # more than `KeyedHeap` leaves standing


def make_books() -> Books:
    runner = Runner([Weighted(make()) for make in BUILT_IN.values()])
    return Books(runner=runner, scheduler_names=frozenset({"muster"}), times=QueueTimes())


def refuse(books: Books, missing: int) -> None:
    pod = make_pod("p", cpu=2)
    refusal = Refusal(
        frozenset({"NodeResourcesFit"}), Rejected(None, None, (pod,)), "Unschedulable", "", missing=missing
    )
    books.queue.refuse(P, refusal, 0.0)


def test_a_touch_that_wakes_is_not_undone_by_one_that_does_not() -> None:
    books = make_books()
    books.touch(P, Change.POD_ADDED)
    books.touch(P)
    assert books.touched == {P: Change.POD_ADDED}


def test_before_everything_is_listed_nobody_is_woken() -> None:
    books = make_books()
    refuse(books, 0)
    event = ClusterEvent(Change.POD_FREED, node=make_node("n1"))
    books.tell(event, 1.0)
    assert not books.queue.has_active
    books.synced = True
    books.tell(event, 1.0)
    assert books.queue.has_active


def test_a_node_counts_with_the_copies_it_has_room_for() -> None:
    books = make_books()
    books.synced = True
    for name, cpu in (("n1", 5), ("n2", 4)):
        books.state.apply_node(make_node(name, cpu=cpu))
    books.state.apply_pod(make_pod("q", cpu=2, node="n2"))
    refuse(books, 3)
    books.tell(ClusterEvent(Change.POD_FREED, node=make_node("n1")), 1.0)  # two copies
    books.tell(ClusterEvent(Change.POD_FREED, node=make_node("gone")), 1.0)  # none
    assert not books.queue.has_active
    books.tell(ClusterEvent(Change.POD_FREED, node=make_node("n2")), 1.0)  # one
    assert books.queue.has_active


def test_a_resource_that_no_node_offers_leaves_no_room() -> None:
    books = make_books()
    books.synced = True
    books.state.apply_node(make_node("n1"))
    pod = make_pod("p", requests={"example.com/none": 1})
    refusal = Refusal(
        frozenset({"NodeResourcesFit"}), Rejected(None, None, (pod,)), "Unschedulable", "", missing=1
    )
    books.queue.refuse(P, refusal, 0.0)
    books.tell(ClusterEvent(Change.POD_FREED, node=make_node("n1")), 1.0)
    assert not books.queue.has_active


def one_that_starts(world: World, name: str) -> None:
    world.group(name, 2).members(name, 0, 1).run(1.0)
    assert {f"{name}-0", f"{name}-1"} <= world.bound


def one_that_never_fits(world: World, name: str) -> None:
    world.group(name, 2).members(name, 0, 1, cpu=9).run(1.0)
    assert world.place(name)


def one_that_is_refused(world: World, name: str) -> None:
    world.pod(f"{name}-alone", cpu=4).group(name, 2).members(name, 0, 1, cpu=3).run(1.0)
    assert world.place(name)


def one_that_is_like_the_old_one(world: World, name: str) -> None:
    world.group(name, 2).members(name, 0, 1, cpu=8).run(1.0)
    assert world.place(name)


def one_that_is_incomplete(world: World, name: str) -> None:
    world.members(name, 0, 1).run(6.0)
    world.group(name, 3).run(6.0)


@pytest.mark.parametrize(
    "play",
    [
        one_that_starts,
        one_that_never_fits,
        one_that_is_refused,
        one_that_is_like_the_old_one,
        one_that_is_incomplete,
    ],
)
def test_what_is_remembered_does_not_grow(
    play: Callable[[World, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "GONE_REMEMBERED", 4)
    monkeypatch.setattr(snapshot, "ASKED_MAX", 4)
    monkeypatch.setattr(members, "CHANGED_MIN", 4)
    world = World().node("n1", cpu=4).node("n2", cpu=4)
    world.group("old", 2).members("old", 0, 1, cpu=8).run(1.0)
    counts = []
    for wave in range(3):
        for number in range(GANGS):
            name = f"g{wave}{number:03}"
            play(world, name)
            world.delete(*[key.name for key in world.pods if key.name.startswith(name)])
            world.delete_group(name).run(1.0)
        world.run(600.0)
        world.forget_effects()
        counts.append(count_entries(world.scheduler))
    grown = {name: (counts[1][name], count) for name, count in counts[2].items() if count > counts[1][name]}
    assert not grown
