"""The ledger finds each broken promise in a stream of watch events, and none where there is none."""

from typing import Any

from tests.conformance.manifests import pod_manifest
from tests.reliability.ledger import Ledger

Object = dict[str, Any]


def member(number: int, *, node: str = "", cores: int = 1) -> Object:
    pod = pod_manifest(f"g-{number}", {"group": "g", "cpu": cores, "node": node}, scheduler="muster")
    pod["metadata"]["uid"] = str(number)
    return pod


def ledger_of(size: int = 2, cores: int = 4) -> Ledger:
    return Ledger({"n1": cores, "n2": cores}, {"g": size})


def test_a_gang_bound_at_once_is_whole_and_nothing_is_broken() -> None:
    ledger = ledger_of()
    for number in (1, 2):
        ledger.see("ADDED", member(number), 0.0)
        ledger.see("MODIFIED", member(number, node="n1"), 1.0)
    assert ledger.was_whole("g")
    assert (ledger.there("g"), ledger.bound("g"), ledger.broken) == (2, 2, [])


def test_a_node_with_more_than_it_has_is_told() -> None:
    ledger = ledger_of(cores=3)
    for number in (1, 2):
        ledger.see("ADDED", member(number, node="n1", cores=2), 0.0)
    assert ledger.broken == ["n1 has 3 cores and pods for 4 are bound to it"]


def test_what_is_deleted_gives_its_room_back() -> None:
    ledger = ledger_of(cores=3)
    ledger.see("ADDED", member(1, node="n1", cores=2), 0.0)
    ledger.see("DELETED", member(1, node="n1", cores=2), 1.0)
    ledger.see("ADDED", member(2, node="n1", cores=2), 2.0)
    assert ledger.broken == []


def test_a_pod_on_two_nodes_is_told() -> None:
    ledger = ledger_of()
    ledger.see("ADDED", member(1, node="n1"), 0.0)
    ledger.see("MODIFIED", member(1, node="n2"), 1.0)
    assert ledger.broken == ["a pod of g was bound to n1, then to n2"]


def test_the_time_that_a_gang_holds_a_part_is_counted_until_it_is_whole() -> None:
    ledger = ledger_of()
    ledger.see("ADDED", member(1, node="n1"), 10.0)
    assert ledger.is_half("g")
    assert ledger.longest_half_s(13.0) == 3.0
    ledger.see("ADDED", member(2, node="n1"), 15.0)
    assert not ledger.is_half("g")
    assert ledger.longest_half_s(99.0) == 5.0


def test_the_time_that_a_gang_holds_a_part_is_counted_until_it_holds_nothing() -> None:
    ledger = ledger_of()
    ledger.see("ADDED", member(1, node="n1"), 10.0)
    ledger.see("DELETED", member(1, node="n1"), 17.0)
    assert ledger.longest_half_s(99.0) == 7.0


def test_members_that_go_after_the_gang_was_whole_do_not_make_it_half() -> None:
    ledger = ledger_of()
    for number in (1, 2):
        ledger.see("ADDED", member(number, node="n1"), 0.0)
    ledger.see("DELETED", member(1, node="n1"), 1.0)
    assert not ledger.is_half("g")


def test_a_gang_waits_from_its_last_member_to_its_last_binding() -> None:
    ledger = ledger_of()
    for number, at_s in ((1, 1.0), (2, 3.0)):
        ledger.see("ADDED", member(number), at_s)
    for number, at_s in ((1, 4.0), (2, 8.0)):
        ledger.see("MODIFIED", member(number, node="n1"), at_s)
    assert ledger.wait_s("g") == 5.0


def test_a_gang_is_held_in_part_from_its_first_binding_until_it_is_whole() -> None:
    ledger = ledger_of()
    ledger.see("ADDED", member(1, node="n1"), 10.0)
    assert ledger.held_for_s("g", 14.0) == 4.0
    ledger.see("ADDED", member(2, node="n1"), 15.0)
    assert ledger.held_for_s("g", 16.0) == 0.0


def test_gangs_that_hold_a_part_are_named() -> None:
    ledger = ledger_of()
    ledger.see("ADDED", member(1, node="n1"), 10.0)
    assert ledger.halves == ["g"]


def test_the_longest_silence_counts_the_edges() -> None:
    ledger = ledger_of(size=3)
    for number, at_s in ((1, 2.0), (2, 9.0), (3, 10.0)):
        ledger.see("ADDED", member(number, node="n1"), at_s)
    assert ledger.longest_silence_s(1.0, 12.0) == 7.0
    assert ledger.longest_silence_s(10.0, 15.0) == 5.0
