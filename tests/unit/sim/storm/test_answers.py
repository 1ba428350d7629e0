"""A binding whose answer got lost is asked for again."""

import pytest

from muster.framework.groups import ObjectKey
from muster.framework.ports import BindDone, BindFailed, BindPod, Event, PodSeen, TimeReached
from muster.sim.storm.answers import ASKED_WITHIN_S, LostIsAskedFor
from muster.sim.told import Told
from muster.testing.builders import make_pod

KEY = ObjectKey("default", "a")


def lost() -> tuple[Told, LostIsAskedFor]:
    """A process that has been told at second 2 that nobody knows what became of a binding."""
    told = Told()
    checker = LostIsAskedFor(told)
    for event, effects, now_s in (
        (PodSeen(make_pod("a", cpu=1, uid="uid-a"), None), (), 0.0),
        (TimeReached(), (BindPod(KEY, "uid-a", "n1", "muster"),), 1.0),
        (BindFailed(KEY, "uid-a", "n1", 0, "", "no answer"), (), 2.0),
    ):
        told.observe(event, effects, now_s)
        checker.observe(event, effects, now_s)
    return told, checker


def test_one_that_nobody_asks_about_is_found_at_the_first_wake_after_its_time() -> None:
    _, checker = lost()
    checker.observe(TimeReached(), (), 2.0 + ASKED_WITHIN_S)
    assert list(checker.check(0.0)) == []
    checker.observe(PodSeen(make_pod("b"), None), (), 3.0 + ASKED_WITHIN_S)
    assert list(checker.check(0.0)) == []
    checker.observe(TimeReached(), (), 3.0 + ASKED_WITHIN_S)
    assert list(checker.check(0.0)) == ["the binding of default/a is without an answer since 2"]


@pytest.mark.parametrize(
    "event",
    [TimeReached(), BindDone(KEY, "uid-a", "n1"), BindFailed(KEY, "uid-a", "n1", 409, "Conflict", "no")],
)
def test_one_that_is_asked_about_or_answered_is_in_order(event: Event) -> None:
    told, checker = lost()
    again = (BindPod(KEY, "uid-a", "n1", "muster"),) if isinstance(event, TimeReached) else ()
    told.observe(event, again, 60.0)
    checker.observe(event, again, 60.0)
    checker.observe(TimeReached(), (), 3.0 + ASKED_WITHIN_S)
    assert list(checker.check(0.0)) == []
