"""The kit finds PostFilter plugins out that break their promises."""

import pytest
from msgspec.structs import replace

from muster.framework.points import Preemptor, Rescue
from muster.framework.status import Status
from muster.placement.eviction import Eviction, choose_eviction
from muster.placement.victims import Cost
from muster.testing.preemptors import broken_promises, make_preemptor


class Plugin:
    name = "Plugin"

    def __init__(self, breaks: str) -> None:
        self.breaks = breaks

    def post_filter(self, preemptor: Preemptor) -> Rescue:
        eviction = Eviction(((preemptor.snapshot.pods_on(0)[0], 0),), (), Cost())
        if self.breaks == "answer":
            return None  # type: ignore[return-value]
        if self.breaks == "empty":
            return Rescue(Status.success())
        if self.breaks == "seat":
            return Rescue(Status.success(), replace(eviction, seats=()))
        if self.breaks == "eager":
            return Rescue(Status.success(), eviction)
        return Rescue(Status.unschedulable("no"))


@pytest.mark.parametrize(
    ("breaks", "promise"),
    [
        ("answer", "answers with a Rescue"),
        ("empty", "gives an eviction on success and only then"),
        ("seat", "evicts nobody without a seat for it"),
        ("eager", "evicts nobody for one that never preempts, or whose victims are leaving"),
    ],
)
def test_a_broken_promise_is_named(breaks: str, promise: str) -> None:
    assert promise in broken_promises(Plugin(breaks))


def test_a_plugin_that_never_helps_breaks_nothing() -> None:
    assert broken_promises(Plugin("")) == []


def test_strangers_as_victims_are_found_out() -> None:
    stranger = replace(make_preemptor().units[0], name="stranger")

    class Stranger(Plugin):
        def post_filter(self, preemptor: Preemptor) -> Rescue:
            seats = ((preemptor.snapshot.pods_on(0)[0], 0),)
            return Rescue(Status.success(), Eviction(seats, (stranger,), Cost()))

    assert "evicts only units it was given" in broken_promises(Stranger(""))


def test_the_small_preemptor_can_be_helped() -> None:
    asked = make_preemptor()
    found = choose_eviction(asked.units, asked.budgets, asked.snapshot, asked.judge, asked.trial)
    assert isinstance(found, Eviction)
    assert [unit.name for unit in found.victims] == ["default/low"]
