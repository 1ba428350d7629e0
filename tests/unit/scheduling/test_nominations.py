"""Promises of room: ours before the object shows them, others' as it shows them, and how each ends."""

from msgspec.structs import replace

from muster.api.core import Pod
from muster.framework.ports import PatchPodStatus
from muster.scheduling.nominations import Nominations
from muster.testing.builders import make_pod

POD = make_pod("p")


def shown(node_name: str) -> Pod:
    return replace(POD, status=replace(POD.status, nominated_node_name=node_name))


def nodes(nominations: Nominations) -> list[str]:
    return [promised.node_name for promised in nominations.promises()]


def test_a_promise_counts_before_the_object_shows_it() -> None:
    nominations = Nominations()
    assert nominations.nominate(POD, "n1") == PatchPodStatus(
        nominations.promises()[0].key, POD.metadata.uid, nominated_node_name="n1"
    )
    assert nominations.see_pod(POD, is_waiting=True) == ""
    assert nodes(nominations) == ["n1"]


def test_the_same_promise_is_written_once() -> None:
    nominations = Nominations()
    nominations.nominate(POD, "n1")
    assert nominations.nominate(POD, "n1") is None


def test_a_promise_of_others_is_taken_as_the_object_shows_it() -> None:
    nominations = Nominations()
    nominations.see_pod(shown("n2"), is_waiting=True)
    assert nodes(nominations) == ["n2"]
    assert nominations.see_pod(shown("n3"), is_waiting=True) == "n2"
    assert nodes(nominations) == ["n3"]
    assert nominations.see_pod(POD, is_waiting=True) == "n3"
    assert nodes(nominations) == []


def test_a_placed_pod_needs_no_promise() -> None:
    nominations = Nominations()
    nominations.nominate(POD, "n1")
    assert nominations.see_pod(shown("n1"), is_waiting=False) == "n1"
    assert len(nominations) == 0


def test_ours_is_taken_back_and_an_old_sight_of_it_does_not_bring_it_back() -> None:
    nominations = Nominations()
    nominations.nominate(POD, "n1")
    nominations.see_pod(shown("n1"), is_waiting=True)
    taken_back = nominations.withdraw(shown("n1"))
    assert taken_back is not None
    assert taken_back.nominated_node_name == ""
    nominations.see_pod(shown("n1"), is_waiting=True)
    assert nodes(nominations) == []
    nominations.see_pod(POD, is_waiting=True)
    assert len(nominations) == 0


def test_that_of_others_stays_on_the_object_and_counts_no_more() -> None:
    nominations = Nominations()
    nominations.see_pod(shown("n2"), is_waiting=True)
    assert nominations.withdraw(shown("n2")) is None
    nominations.see_pod(shown("n2"), is_waiting=True)
    assert nodes(nominations) == []
    assert nominations.nominate(shown("n2"), "n2") is None
    assert nodes(nominations) == ["n2"]


def test_a_write_that_was_given_up_is_made_again_with_the_next_decision() -> None:
    nominations = Nominations()
    patch = nominations.nominate(POD, "n1")
    assert patch is not None
    nominations.unwrite(patch)
    assert nodes(nominations) == ["n1"]
    assert nominations.nominate(POD, "n1") == patch


def test_promises_come_in_the_order_in_which_they_were_made() -> None:
    nominations = Nominations()
    for name, node in (("b", "n2"), ("a", "n1")):
        nominations.nominate(make_pod(name), node)
    assert nodes(nominations) == ["n2", "n1"]
