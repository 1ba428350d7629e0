"""Evictions that should not be are found out."""

import pytest
from msgspec.structs import replace

from muster.api.core import Pod
from muster.api.meta import Condition
from muster.framework.groups import ObjectKey
from muster.framework.ports import (
    BindFailed,
    BindPod,
    Effect,
    EvictDone,
    EvictFailed,
    EvictPod,
    GroupSeen,
    NodeSeen,
    PatchPodStatus,
    PodSeen,
    TimeReached,
    WriteFailed,
)
from muster.sim.evictions import SoundEvictions
from muster.sim.told import Told
from muster.testing.builders import make_group, make_node, make_pod

LOW, HIGH = ObjectKey("default", "low"), ObjectKey("default", "h")


class Scene:
    """A node of two cpu with two weak pods, and a strong pod that waits for one of the two places."""

    def __init__(self) -> None:
        self.told = Told()
        self.checker = SoundEvictions(self.told)
        self.tell(NodeSeen(make_node("n1", cpu=2)))
        for name in ("low", "low2"):
            self.see(make_pod(name, cpu=1, node="n1", priority=1))
        self.see(make_pod("h", cpu=1, priority=10))

    def see(self, pod: Pod, group: str | None = None) -> None:
        self.tell(PodSeen(pod, ObjectKey("default", group) if group else None))

    def tell(self, event: object, *effects: Effect) -> list[str]:
        for observer in (self.told, self.checker):
            observer.observe(event, effects, 0.0)  # type: ignore[arg-type]
        return list(self.checker.check(0.0))

    def decide(self, *victims: str, seat: str = "n1") -> list[str]:
        seats = [PatchPodStatus(HIGH, "uid-h", nominated_node_name=seat)] if seat else []
        return self.tell(TimeReached(), *seats, *(evict(name) for name in victims))


def evict(name: str) -> EvictPod:
    condition = Condition("DisruptionTarget", "True")
    return EvictPod(ObjectKey("default", name), f"uid-{name}", condition, "pod", HIGH)


def nominated_to(node_name: str) -> Pod:
    pod = make_pod("h", cpu=1, priority=10)
    return replace(pod, status=replace(pod.status, nominated_node_name=node_name))


def test_one_victim_for_one_seat_is_sound() -> None:
    scene = Scene()
    assert scene.decide("low") == []
    assert scene.checker.count == 1


@pytest.mark.parametrize(
    ("victims", "seat", "complaint"),
    [
        (("low",), "", "does not fit then"),
        (("low",), "nowhere", "does not fit then"),
        (("low", "low2"), "n1", "without need"),
        (("gone",), "n1", "runs nowhere"),
    ],
)
def test_needless_or_useless_victims_are_found_out(
    victims: tuple[str, ...], seat: str, complaint: str
) -> None:
    assert any(complaint in said for said in Scene().decide(*victims, seat=seat))


def test_a_victim_that_is_not_weaker_is_found_out() -> None:
    scene = Scene()
    scene.see(make_pod("low", cpu=1, node="n1", priority=10))
    assert any("not weaker" in said for said in scene.decide("low"))


def test_a_second_wave_is_found_out() -> None:
    scene = Scene()
    scene.decide("low")
    assert any("a second time" in said for said in scene.decide("low2"))


def test_a_group_torn_in_two_is_found_out() -> None:
    scene = Scene()
    scene.tell(GroupSeen(make_group("v", 2, priority=1, disruption_mode="all")))
    for name in ("low", "low2"):
        scene.see(make_pod(name, cpu=1, node="n1", priority=1), "v")
    assert any("in part" in said for said in scene.decide("low"))


def test_another_scheduler_is_not_held_to_what_the_first_asked() -> None:
    scene = Scene()
    scene.decide("low")
    low = make_pod("low", cpu=1, node="n1", priority=1)
    scene.checker.reset()
    scene.see(replace(low, metadata=replace(low.metadata, deletion_timestamp="2026-01-01T00:00:30Z")))
    assert not any("a second time" in said for said in scene.decide("low2"))


def test_a_seat_that_an_earlier_scheduler_moved_is_where_it_moved_it() -> None:
    scene = Scene()
    for seat in ("nowhere", "n1"):
        scene.see(nominated_to(seat))
    assert scene.decide("low", seat="") == []


@pytest.mark.parametrize(("node", "phase"), [("n1", "Succeeded"), ("", "Failed"), ("", "Pending")])
def test_what_is_done_or_no_longer_nominated_has_no_seat(node: str, phase: str) -> None:
    scene = Scene()
    scene.tell(GroupSeen(make_group("h", 1, priority=10)))
    scene.see(make_pod("h", cpu=1, priority=10), "h")
    other = make_pod("other", cpu=2, priority=10)
    scene.see(replace(other, status=replace(other.status, nominated_node_name="n1")), "h")
    now = make_pod("other", cpu=2, priority=10, node=node)
    scene.see(replace(now, status=replace(now.status, phase=phase)), "h")
    scene.see(nominated_to("n1"), "h")
    assert scene.tell(TimeReached(), replace(evict("low"), preemptor_kind="podgroup")) == []


def test_what_it_said_counts_until_the_object_says_so_and_then_what_the_object_says() -> None:
    scene = Scene()
    scene.tell(TimeReached(), PatchPodStatus(HIGH, "uid-h", nominated_node_name="n1"))
    scene.see(nominated_to("nowhere"))
    assert scene.decide("low", seat="") == []
    scene.tell(EvictFailed(LOW, "uid-low", code=500, message=""))
    scene.see(nominated_to("n1"))
    scene.see(nominated_to("nowhere"))
    assert any("does not fit then" in said for said in scene.decide("low", seat=""))


def test_pods_of_a_gang_that_is_released_go_for_nobody() -> None:
    scene = Scene()
    released = replace(evict("low"), preemptor_kind="", preemptor=ObjectKey("", ""))
    assert scene.tell(TimeReached(), released) == []


def test_those_who_were_asked_to_leave_before_do_not_stay() -> None:
    scene = Scene()
    scene.tell(GroupSeen(make_group("v", 1, priority=1, disruption_mode="all")))
    scene.see(make_pod("low", cpu=1, node="n1", priority=1), "v")
    assert scene.decide("low") == []
    scene.see(make_pod("low2", cpu=1, node="n1", priority=1), "v")
    scene.see(make_pod("late", cpu=2, priority=20))
    late = ObjectKey("default", "late")
    seat = PatchPodStatus(late, "uid-late", nominated_node_name="n1")
    rest = EvictPod(
        ObjectKey("default", "low2"), "uid-low2", Condition("DisruptionTarget", "True"), "pod", late
    )
    assert scene.tell(TimeReached(), seat, rest) == []


def test_room_of_a_victim_as_important_as_the_preemptor_is_not_counted_on() -> None:
    scene = Scene()
    scene.tell(NodeSeen(make_node("n2", cpu=4)))
    scene.see(make_pod("equal", cpu=2, node="n2", priority=10))
    for name in ("low3", "low4"):
        scene.see(make_pod(name, cpu=1, node="n2", priority=1))
    scene.see(make_pod("top", cpu=1, priority=1000))
    top = ObjectKey("default", "top")
    seat = PatchPodStatus(top, "uid-top", nominated_node_name="n2")
    assert scene.tell(TimeReached(), seat, replace(evict("equal"), preemptor=top)) == []
    assert scene.decide("low3", seat="n2") == []


@pytest.mark.parametrize(
    ("min_count", "is_released", "is_found"), [(3, False, True), (3, True, False), (2, False, False)]
)
def test_a_gang_that_has_not_started_goes_whole(min_count: int, is_released: bool, is_found: bool) -> None:
    scene = Scene()
    scene.tell(GroupSeen(make_group("v", min_count, priority=1)))
    for name in ("low", "low2"):
        scene.see(make_pod(name, cpu=1, node="n1", priority=1), "v")
    seat = PatchPodStatus(HIGH, "uid-h", nominated_node_name="n1")
    released = replace(evict("low2"), preemptor_kind="", preemptor=ObjectKey("", ""))
    said = scene.tell(TimeReached(), seat, evict("low"), *((released,) if is_released else ()))
    assert any("in part" in each for each in said) is is_found


def test_a_gang_that_has_started_may_go_in_part_whatever_its_minimum_is_now() -> None:
    scene = Scene()
    for name in ("low", "low2"):
        scene.see(make_pod(name, cpu=1, node="n1", priority=1), "v")
    scene.tell(GroupSeen(make_group("v", 2, priority=1)))
    scene.tell(GroupSeen(make_group("v", 3, priority=1)))
    assert scene.decide("low") == []


@pytest.mark.parametrize("is_gone", [True, False])
def test_room_of_a_victim_that_was_gone_already_is_free_before_the_watch_shows_it(is_gone: bool) -> None:
    scene = Scene()
    assert scene.decide("low") == []
    key, uid = LOW, "uid-low"
    scene.tell(EvictDone(key, uid, is_gone=True) if is_gone else EvictFailed(key, uid, code=500, message=""))
    scene.see(make_pod("h2", cpu=2, priority=20))
    seat = PatchPodStatus(ObjectKey("default", "h2"), "uid-h2", nominated_node_name="n1")
    said = scene.tell(TimeReached(), seat, replace(evict("low2"), preemptor=ObjectKey("default", "h2")))
    assert said == ([] if is_gone else ["pod default/h2 evicts 1 pods and does not fit then"])


class Pair(Scene):
    """A group `h` of two pods, one for each of two nodes of one cpu, full of one weak pod each.

    What is nominated before was nominated by an earlier scheduler.
    """

    def __init__(self) -> None:
        self.told = Told()
        self.checker = SoundEvictions(self.told)
        self.tell(GroupSeen(make_group("h", 1, priority=10)))
        for name in ("1", "2"):
            self.tell(NodeSeen(make_node(f"n{name}", cpu=1)))
            self.see(make_pod(f"low{name}", cpu=1, node=f"n{name}", priority=1))
            self.show(f"h{name}", "")

    def show(self, name: str, node_name: str) -> None:
        pod = make_pod(name, cpu=1, priority=10)
        self.see(replace(pod, status=replace(pod.status, nominated_node_name=node_name)), "h")

    def decide(self, *victims: str, seat: str = "n1") -> list[str]:
        seats = [nominate("h1", seat)] if seat else []
        evictions = [replace(evict(name), preemptor_kind="podgroup") for name in victims]
        return self.tell(TimeReached(), *seats, *evictions)


def nominate(name: str, node_name: str) -> PatchPodStatus:
    return PatchPodStatus(ObjectKey("default", name), f"uid-{name}", nominated_node_name=node_name)


def test_of_seats_found_on_the_objects_some_may_be_kept_and_others_not() -> None:
    scene = Pair()
    scene.show("h2", "n2")
    scene.show("h3", "n1")  # not meant any more: no room beside h1
    assert scene.decide("low1", "low2") == []


def test_of_equal_seats_found_on_one_node_either_may_be_meant() -> None:
    scene = Pair()
    scene.show("h1", "n1")
    scene.show("h2", "n1")
    assert scene.decide("low1", seat="") == []


def test_of_unequal_seats_found_on_one_node_any_may_be_meant() -> None:
    scene = Scene()
    scene.tell(GroupSeen(make_group("h", 1, priority=10)))
    for name, cpu in (("small", 1), ("large", 2)):
        pod = make_pod(name, cpu=cpu, priority=10)
        scene.see(replace(pod, status=replace(pod.status, nominated_node_name="n1")), "h")
    evictions = [replace(evict(name), preemptor_kind="podgroup") for name in ("low", "low2")]
    assert scene.tell(TimeReached(), *evictions) == []


def test_a_victim_that_no_choice_among_seats_found_on_the_objects_needs_is_found_out() -> None:
    scene = Pair()
    scene.show("h2", "n1")
    scene.show("h3", "n1")
    assert scene.decide("low1", "low2", seat="") == ["podgroup default/h evicts low2 without need"]


def test_seats_that_it_said_itself_and_did_not_take_back_are_all_meant() -> None:
    scene = Pair()
    scene.tell(TimeReached(), nominate("h2", "n1"))
    scene.show("h2", "n1")
    assert scene.decide("low1") == ["podgroup default/h evicts 1 pods and does not fit then"]


def test_what_it_said_and_somebody_else_moved_may_be_dropped() -> None:
    scene = Pair()
    scene.tell(TimeReached(), nominate("h2", "n2"))
    for node_name in ("n2", "n1"):
        scene.show("h2", node_name)
    assert scene.decide("low1") == []


@pytest.mark.parametrize("is_given_up", [True, False])
def test_a_seat_taken_back_is_there_again_if_that_write_was_given_up(is_given_up: bool) -> None:
    scene = Pair()
    scene.show("h2", "n2")
    scene.tell(TimeReached(), nominate("h2", ""))
    if is_given_up:
        scene.tell(WriteFailed(nominate("h2", ""), code=500, message=""))
    scene.show("h2", "n2")
    said = scene.decide("low1", "low2")
    assert said == ([] if is_given_up else ["podgroup default/h evicts low2 without need"])


def test_a_seat_stands_though_its_write_was_given_up() -> None:
    scene = Pair()
    scene.tell(TimeReached(), nominate("h2", "n2"))
    scene.tell(WriteFailed(nominate("h2", "n2"), code=500, message=""))
    scene.show("h2", "")
    assert scene.decide("low1", "low2") == []


def test_a_write_given_up_after_another_was_said_takes_nothing_back() -> None:
    scene = Pair()
    for node_name in ("", "n2"):
        scene.tell(TimeReached(), nominate("h2", node_name))
    scene.tell(WriteFailed(nominate("h2", ""), code=500, message=""))
    assert scene.decide("low1", "low2") == []


def test_one_whose_binding_failed_has_the_seat_that_its_object_shows() -> None:
    scene = Pair()
    scene.show("h2", "n1")
    scene.tell(TimeReached(), nominate("h2", "n2"))
    key = ObjectKey("default", "h2")
    scene.tell(TimeReached(), BindPod(key, "uid-h2", "n2", "muster", ObjectKey("default", "h")))
    scene.tell(BindFailed(key, "uid-h2", "n2", code=403, reason="Forbidden", message=""))
    assert scene.decide("low1", "low2") == ["podgroup default/h evicts low2 without need"]


def test_what_is_leaving_unplaced_has_no_seat() -> None:
    scene = Pair()
    scene.tell(TimeReached(), nominate("h2", "n1"))
    pod = make_pod("h2", cpu=1, priority=10)
    scene.see(replace(pod, metadata=replace(pod.metadata, deletion_timestamp="2026-01-01T00:00:30Z")), "h")
    assert scene.decide("low1") == []
