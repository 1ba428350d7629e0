"""Scheduling gates."""

from muster.plugins.scheduling_gates import SchedulingGates
from muster.testing.builders import make_group, make_pod
from muster.testing.conformance import check_plugin


def test_it_keeps_the_contract() -> None:
    check_plugin(SchedulingGates())


def test_one_gated_member_holds_its_group_and_is_named_with_its_gates() -> None:
    waiting = (make_pod("g-0"), make_pod("g-1", gates=["a", "b"]))
    status = SchedulingGates().pre_enqueue(make_group("g"), waiting=waiting, placed=0)
    assert status.message == "waits for the scheduling gates of pod g-1: a, b"


def test_more_gated_members_are_counted() -> None:
    waiting = tuple(make_pod(f"g-{i}", gates=["a"]) for i in range(3))
    status = SchedulingGates().pre_enqueue(make_group("g"), waiting=waiting, placed=0)
    assert status.message.endswith("a and 2 more members have gates")


def test_a_lone_pod_without_gates_may_go() -> None:
    assert SchedulingGates().pre_enqueue(None, waiting=(make_pod("p"),), placed=0).ok
