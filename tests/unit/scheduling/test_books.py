"""The books."""

from muster.assembly.profiles import BUILT_IN
from muster.framework.events import Change, ClusterEvent, Rejected
from muster.framework.groups import ObjectKey
from muster.framework.runner import Runner, Weighted
from muster.scheduling.books import Books
from muster.scheduling.members import EntityKey
from muster.scheduling.queue import QueueTimes
from muster.scheduling.sleepers import Refusal
from muster.testing.builders import make_node, make_pod

P = EntityKey("pod", ObjectKey("default", "p"))


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
