"""Who sleeps on which refusal, and who is woken: of those who ask alike the first, and then the next."""

from typing import Any

import pytest

from muster.framework.events import Change, ClusterEvent, HintRule, Rejected
from muster.framework.groups import ObjectKey
from muster.scheduling.members import EntityKey
from muster.scheduling.sleepers import FRESH_S, Refusal, Sleep, Sleepers
from muster.testing.builders import make_node, make_pod

RULES = {
    "Room": (HintRule(Change.POD_FREED), HintRule(Change.NODE_ADDED)),
    "Near": (HintRule(Change.POD_FREED), HintRule(Change.POD_ASSIGNED)),
}


class Room:
    """Copies that fit on each node, and how often that was asked."""

    def __init__(self, **copies: int) -> None:
        self.copies = copies
        self.asked = 0
        self.sleepers = Sleepers(rules_of=lambda name: RULES.get(name, ()), copies_on=self._count)

    def _count(self, pod: object, node_name: str, takes_below: float) -> int:
        self.asked += 1
        return self.copies.get(node_name, 0)

    def put(self, *names: str, now_s: float = 0.0, **words: Any) -> Sleep:
        sleep = self.sleepers.begin(refusal(**words), now_s)
        for index, name in enumerate(names):
            self.sleepers.put(sleep, entity(name), (float(index),))
        return sleep

    def free(self, node: str = "n1", change: Change = Change.POD_FREED) -> list[str]:
        woken = self.sleepers.tell(ClusterEvent(change, node=make_node(node)))
        return [key.key.name for key in woken]

    def leave(self, sleep: Sleep, name: str) -> None:
        self.sleepers.leave(sleep, entity(name))

    def settle(self, sleep: Sleep, name: str) -> str | None:
        key = self.sleepers.settle(sleep, entity(name))
        return None if key is None else key.key.name


def entity(name: str) -> EntityKey:
    return EntityKey("podgroup", ObjectKey("default", name))


def refusal(plugin: str = "Room", **words: Any) -> Refusal:
    fields = {"reason": "Unschedulable", "message": "", "ask": "alike", "missing": 1, **words}
    return Refusal(rejectors=frozenset({plugin}), rejected=Rejected(None, None, (make_pod(),)), **fields)


def test_of_those_who_ask_alike_the_first_is_woken_and_the_hint_is_asked_once() -> None:
    room = Room(n1=1)
    room.put("b", "c", "d")
    assert room.free() == ["b"]
    assert room.asked == 1


def test_while_one_is_tried_for_all_no_event_wakes_another() -> None:
    room = Room(n1=1)
    sleep = room.put("a", "b")
    room.free()
    room.leave(sleep, "a")
    assert room.free() == []
    assert room.sleepers.find("alike", 0.0) is None


def test_the_next_is_woken_if_there_may_be_room_for_it_when_the_first_has_found_some() -> None:
    room = Room(n1=2)
    sleep = room.put("a", "b", "c")
    room.free()
    room.leave(sleep, "a")
    room.copies["n1"] = 1
    assert room.settle(sleep, "a") == "b"
    room.leave(sleep, "b")
    room.copies["n1"] = 0
    assert room.settle(sleep, "b") is None
    assert room.sleepers.find("alike", 0.0) is sleep
    room.copies["n1"] = 1
    assert room.free() == ["c"]


def test_where_room_cannot_be_counted_the_next_is_always_woken() -> None:
    room = Room()
    sleep = room.put("a", "b", plugin="Near")
    assert room.free() == ["a"]
    room.leave(sleep, "a")
    assert room.settle(sleep, "a") == "b"


def test_one_that_finds_room_though_nothing_happened_wakes_the_next() -> None:
    room = Room()
    sleep = room.put("a", "b", "c")
    room.sleepers.doubt(sleep, entity("b"))
    room.leave(sleep, "b")
    assert room.settle(sleep, "b") == "a"
    room.leave(sleep, "a")
    assert room.settle(sleep, "a") == "c"


def test_a_doubt_ends_with_the_try_that_it_was_about() -> None:
    room = Room(n1=1)
    sleep = room.put("a", "b")
    room.sleepers.doubt(sleep, entity("a"))
    room.leave(sleep, "a")
    room.put("a")
    assert room.free() == ["a"]
    room.leave(sleep, "a")
    room.copies["n1"] = 0
    assert room.settle(sleep, "a") is None


def test_when_the_one_woken_is_refused_the_others_sleep_on() -> None:
    room = Room(n1=1)
    sleep = room.put("a", "b")
    room.free()
    room.leave(sleep, "a")
    assert room.put("a") is sleep
    assert room.settle(sleep, "a") is None
    assert room.free() == ["a"]


@pytest.mark.parametrize(
    ("words", "age_s", "is_known"),
    [
        pytest.param({}, 0.0, True, id="fresh"),
        pytest.param({}, FRESH_S, False, id="old"),
        pytest.param({"error": True}, 0.0, False, id="an-error-is-its-own"),
        pytest.param({"ask": None}, 0.0, False, id="like-no-other"),
        pytest.param({"ask": "another"}, 0.0, False, id="another-question"),
    ],
)
def test_a_refusal_stands_for_all_who_ask_it_while_it_is_fresh(
    words: dict[str, Any], age_s: float, is_known: bool
) -> None:
    room = Room()
    room.put("a", **words)
    assert (room.sleepers.find("alike", age_s) is not None) == is_known


def test_nothing_stands_on_which_nobody_sleeps() -> None:
    room = Room(n1=1)
    sleep = room.put("a")
    room.leave(sleep, "a")
    assert room.sleepers.find("alike", 0.0) is None
    assert not room.sleepers.knows_asks
    assert room.free() == []


def test_what_the_cluster_could_not_take_even_if_it_were_empty_waits_for_nodes_only() -> None:
    room = Room(n1=1)
    room.put("a", never=True)
    assert room.free() == []
    assert room.free(change=Change.NODE_ADDED) == ["a"]


def test_room_on_several_nodes_adds_up_until_the_next_try() -> None:
    room = Room(n1=1, n2=1)
    room.put("a", missing=2)
    assert room.free("n1") == []
    room.put("a", missing=2)
    assert room.free("n2") == []
    assert room.free("n1") == ["a"]
