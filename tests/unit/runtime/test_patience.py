"""Who is slow, since when, how many of their bindings are on the wire, and what the executor makes of it."""

import asyncio

import pytest
from tests.unit.runtime.executor_bench import Bench
from tests.unit.runtime.in_process import ManualClock

from muster.framework.groups import ObjectKey
from muster.framework.ports import BindDone, BindPod
from muster.runtime import patience as module
from muster.runtime.executor import LATE_FACTOR_MAX
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


# ── in the executor ──────────────────────────────────────────────────────────────────────────────


async def turns(count: int = 20) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Whoever has no answer at once is slow; for a test to change."""
    monkeypatch.setattr(module, "SLOW_S", 0.0)
    return monkeypatch


@pytest.fixture
async def slow_gang(impatient: pytest.MonkeyPatch) -> Bench:
    """Three usual places and one for slow gangs, of which g is one: its binding g-0 waits at the gate."""
    impatient.setattr(module, "SLOW_CALLS_MAX", 1)
    bench = Bench(calls_max=3)
    bench.api.gate.clear()
    bench.executor.perform(bind("g-0", "g"))
    await turns()
    return bench


async def opened(bench: Bench) -> Bench:
    """What waits at the gate goes on, and everything has been done."""
    bench.api.gate.set()
    await bench.executor._idle.wait()
    return bench


@pytest.mark.usefixtures("impatient")
async def test_a_server_that_answers_nobody_is_not_asked_ever_more() -> None:
    bench = Bench(calls_max=2)
    bench.api.unanswered = "/binding"
    for number in range(50):
        bench.executor.perform(bind(f"g-{number}", f"g{number}"))
    await turns(200)
    assert bench.api.in_flight == 2 * LATE_FACTOR_MAX
    bench.executor.stop()
    await turns()


async def test_a_gang_whose_bindings_are_never_answered_holds_up_nobody(
    impatient: pytest.MonkeyPatch,
) -> None:
    impatient.setattr(module, "SLOW_CALLS_MAX", 2)
    bench = Bench(calls_max=3)
    bench.api.unanswered = "/bad-"
    for number in range(10):
        bench.executor.perform(bind(f"bad-{number}", "bad"))
    bench.executor.perform(bind("good-0", "good"))
    await turns(200)
    assert bench.events == [BindDone(ObjectKey("default", "good-0"), "uid-good-0", "n1")]
    assert bench.api.in_flight <= 3 + 2, "those that went out before their gang was slow, and some"
    bench.executor.stop()
    await turns()


async def test_a_slow_gang_is_one_like_others_once_it_is_answered_in_time(
    slow_gang: Bench, impatient: pytest.MonkeyPatch
) -> None:
    impatient.setattr(module, "SLOW_S", 60.0)
    await (await opened(slow_gang)).perform(bind("g-1", "g"))
    slow_gang.api.gate.clear()
    for number in range(2, 9):
        slow_gang.executor.perform(bind(f"g-{number}", "g"))
    await turns()
    assert slow_gang.api.in_flight == 3
    assert len((await opened(slow_gang)).events) == 9


async def test_who_was_slow_a_moment_ago_has_no_usual_places_from_the_start(slow_gang: Bench) -> None:
    await opened(slow_gang)
    slow_gang.api.gate.clear()
    for number in range(1, 9):
        slow_gang.executor.perform(bind(f"g-{number}", "g"))
    await turns()
    assert slow_gang.api.in_flight == 1
    assert len((await opened(slow_gang)).events) == 9
