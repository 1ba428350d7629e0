"""Bursts before timers, one timer at a time, and watches that wait while the inbox is full."""

import asyncio

import pytest
from tests.unit.runtime.in_process import ManualClock

from muster.framework.groups import ObjectKey
from muster.framework.ports import Effect, Event, NodeGone, PatchPodStatus, TimeReached, WakeAt
from muster.runtime import loop as loop_module
from muster.runtime.loop import SchedulerLoop


class Recorder:
    """A scheduler that notes what it hears and answers from a table."""

    def __init__(self, clock: ManualClock, cost_s: float = 0.0) -> None:
        self.heard: list[str] = []
        self.answers: dict[str, list[Effect]] = {}
        self._clock = clock
        self._cost_s = cost_s

    def handle(self, event: Event, now_s: float) -> list[Effect]:
        name = event.name if isinstance(event, NodeGone) else type(event).__name__
        self.heard.append(name)
        self._clock.value_s += self._cost_s
        return self.answers.pop(name, [])


def make_loop(cost_s: float = 0.0) -> tuple[SchedulerLoop, Recorder, ManualClock, list[Effect]]:
    clock = ManualClock()
    scheduler = Recorder(clock, cost_s)
    performed: list[Effect] = []
    return SchedulerLoop(scheduler, perform=performed.append, now_s=clock.now_s), scheduler, clock, performed


def test_events_are_handled_in_the_order_posted() -> None:
    loop, scheduler, _, _ = make_loop()
    for name in ("a", "b", "c"):
        loop.post(NodeGone(name))
    assert loop.step() is None
    assert scheduler.heard == ["a", "b", "c"]


def test_a_due_timer_waits_for_the_events_that_have_come() -> None:
    loop, scheduler, clock, _ = make_loop()
    scheduler.answers["a"] = [WakeAt(clock.value_s)]
    for name in ("a", "b", "c"):
        loop.post(NodeGone(name))
    loop.step()
    assert scheduler.heard == ["a", "b", "c", TimeReached.__name__]


def test_a_flood_of_events_does_not_hold_up_a_due_timer_for_ever() -> None:
    loop, scheduler, clock, _ = make_loop()
    scheduler.answers["0"] = [WakeAt(clock.value_s)]
    for number in range(2 * loop_module.DRAIN_EVENTS_MAX):
        loop.post(NodeGone(str(number)))
    assert loop.step() == 0.0
    assert scheduler.heard[-1] == TimeReached.__name__
    assert len(scheduler.heard) == loop_module.DRAIN_EVENTS_MAX + 1


def test_slow_events_leave_the_step_after_twenty_milliseconds() -> None:
    loop, scheduler, _, _ = make_loop(cost_s=0.015)
    for number in range(10):
        loop.post(NodeGone(str(number)))
    assert loop.step() == 0.0
    assert scheduler.heard == ["0", "1"]


def test_a_later_wake_replaces_an_earlier_one() -> None:
    loop, scheduler, clock, _ = make_loop()
    scheduler.answers["a"] = [WakeAt(clock.value_s + 1), WakeAt(clock.value_s + 5)]
    loop.post(NodeGone("a"))
    assert loop.step() == 5.0
    clock.value_s += 1.5
    assert loop.step() == 3.5
    clock.value_s += 3.5
    loop.step()
    assert scheduler.heard == ["a", TimeReached.__name__]


def test_a_timer_fires_once() -> None:
    loop, scheduler, clock, _ = make_loop()
    scheduler.answers["a"] = [WakeAt(clock.value_s)]
    loop.post(NodeGone("a"))
    loop.step()
    assert loop.step() is None
    assert scheduler.heard.count(TimeReached.__name__) == 1


def test_a_look_in_vain_is_not_repeated_at_once() -> None:
    loop, scheduler, clock, _ = make_loop(cost_s=0.001)
    for name in ("a", "b"):
        scheduler.answers[name] = [WakeAt(clock.value_s)]
    loop.post(NodeGone("a"))
    loop.step()
    loop.post(NodeGone("b"))
    assert loop.step() == pytest.approx(0.003)  # four times its length, less what the event took
    assert scheduler.heard == ["a", TimeReached.__name__, "b"]
    clock.value_s += 0.003
    assert loop.step() is None
    assert scheduler.heard[-1] == TimeReached.__name__


@pytest.mark.parametrize("answer", [WakeAt(0.0), PatchPodStatus(ObjectKey("default", "p"), "u")])
def test_where_something_came_of_it_or_there_is_more_to_do_the_next_look_is_at_once(answer: Effect) -> None:
    loop, scheduler, clock, _ = make_loop(cost_s=0.001)
    scheduler.answers["a"] = [WakeAt(clock.value_s)]
    scheduler.answers[TimeReached.__name__] = [answer]
    loop.post(NodeGone("a"))
    loop.step()
    scheduler.answers["b"] = [WakeAt(clock.value_s)]
    loop.post(NodeGone("b"))
    loop.step()
    assert scheduler.heard == ["a", TimeReached.__name__, "b", TimeReached.__name__]


def test_other_effects_go_to_the_performer() -> None:
    loop, scheduler, _, performed = make_loop()
    patch = PatchPodStatus(ObjectKey("default", "p"), "u")
    scheduler.answers["a"] = [patch]
    loop.post(NodeGone("a"))
    loop.step()
    assert performed == [patch]


async def test_watches_wait_while_the_inbox_is_full_and_go_on_when_it_is_drained() -> None:
    loop, _, _, _ = make_loop()
    for number in range(loop_module.ROOM_EVENTS):
        loop.post(NodeGone(str(number)))
    waiting = asyncio.create_task(loop.has_room())
    await asyncio.sleep(0)
    assert not waiting.done()
    loop.step()
    await waiting


async def test_the_task_wakes_up_for_a_timer_though_no_event_comes() -> None:
    loop, scheduler, clock, performed = make_loop()
    done = asyncio.Event()
    scheduler.answers["a"] = [WakeAt(clock.value_s + 0.001)]
    scheduler.answers[TimeReached.__name__] = [PatchPodStatus(ObjectKey("default", "p"), "u")]
    loop._perform = lambda effect: (performed.append(effect), done.set())[0]  # type: ignore[assignment,func-returns-value]
    loop.post(NodeGone("a"))
    task = asyncio.create_task(loop.run())
    await asyncio.sleep(0)
    clock.value_s += 1.0
    await done.wait()
    task.cancel()
    assert scheduler.heard == ["a", TimeReached.__name__]


async def test_the_task_wakes_up_for_an_event_that_comes_while_it_waits() -> None:
    loop, scheduler, _, performed = make_loop()
    done = asyncio.Event()
    scheduler.answers["late"] = [PatchPodStatus(ObjectKey("default", "p"), "u")]
    loop._perform = lambda effect: (performed.append(effect), done.set())[0]  # type: ignore[assignment,func-returns-value]
    task = asyncio.create_task(loop.run())
    await asyncio.sleep(0)
    loop.post(NodeGone("late"))
    await done.wait()
    task.cancel()
    assert scheduler.heard == ["late"]
