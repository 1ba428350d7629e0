"""Who is slow, since when, and how many of their bindings are on the wire."""

from tests.unit.runtime.in_process import ManualClock

from muster.framework.groups import ObjectKey
from muster.framework.ports import BindPod
from muster.runtime.patience import REMEMBERED_S, SLOW_CALLS_MAX, Patience


def bind(name: str, gang: str | None = None) -> BindPod:
    group = None if gang is None else ObjectKey("default", gang)
    return BindPod(ObjectKey("default", name), f"uid-{name}", "n1", "muster", group)


def test_a_binding_that_waits_too_long_makes_its_gang_slow_and_no_other() -> None:
    patience = Patience(ManualClock().now_s)
    turn = patience.begin(bind("a", "g"))
    assert patience.calls == 0
    patience.lose(turn)
    assert patience.calls == 1
    assert patience.is_slow(bind("b", "g"))
    assert not patience.is_slow(bind("b", "h"))
    patience.end(turn)
    assert patience.calls == 0
    assert patience.is_slow(bind("b", "g"))


def test_lone_pods_are_slow_by_namespace() -> None:
    patience = Patience(ManualClock().now_s)
    patience.lose(patience.begin(bind("a")))
    assert patience.is_slow(bind("b"))
    assert not patience.is_slow(bind("b", "g"))


def test_one_that_is_answered_in_time_speaks_for_its_gang() -> None:
    patience = Patience(ManualClock().now_s)
    late = patience.begin(bind("a", "g"))
    patience.lose(late)
    patience.end(patience.begin(bind("b", "g")))
    assert not patience.is_slow(bind("c", "g"))
    patience.end(late)
    assert patience.calls == 0


def test_slow_gangs_share_some_places() -> None:
    patience = Patience(ManualClock().now_s)
    patience.lose(patience.begin(bind("a", "g")))
    while patience.has_place:
        patience.begin(bind("b", "g"))
    assert patience.calls == SLOW_CALLS_MAX


def test_who_was_slow_is_forgotten_after_a_while() -> None:
    clock = ManualClock()
    patience = Patience(clock.now_s)
    patience.lose(patience.begin(bind("a", "g")))
    clock.value_s += REMEMBERED_S
    assert not patience.is_slow(bind("b", "g"))
    patience.lose(patience.begin(bind("a", "h")))
    assert len(patience._slow_until_s) == 1
