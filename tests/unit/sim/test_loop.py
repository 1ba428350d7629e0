"""The loop keeps time, order and count, and stops at the first broken promise."""

from collections.abc import Iterable

import pytest

from muster.sim.loop import Simulation, Violation


class Bell:
    """A world that is due every `every_s` seconds until `last_s`, and notes when it was asked."""

    def __init__(self, every_s: float, last_s: float) -> None:
        self.every_s, self.last_s = every_s, last_s
        self.rung_s: list[float] = []

    def advance(self, now_s: float) -> float | None:
        self.rung_s.append(now_s)
        next_s = now_s + self.every_s
        return next_s if next_s <= self.last_s else None


class Idle:
    def advance(self, now_s: float) -> float | None:
        return None


class Refuses:
    name = "refuses"

    def __init__(self, from_s: float) -> None:
        self.from_s = from_s

    def check(self, now_s: float) -> Iterable[str]:
        return ["too late"] if now_s >= self.from_s else []


def test_actions_of_one_instant_run_in_the_order_they_were_posted() -> None:
    simulation = Simulation(Idle(), start_s=0.0)
    done: list[str] = []
    for name in ("b", "a", "c"):
        simulation.post(lambda name=name: done.append(name), delay_s=1.0)  # type: ignore[misc]
    simulation.post(lambda: done.append("first"), delay_s=0.5)
    simulation.run_until(2.0)
    assert done == ["first", "b", "a", "c"]


def test_time_jumps_from_one_due_moment_to_the_next() -> None:
    bell = Bell(every_s=2.0, last_s=6.0)
    simulation = Simulation(bell, start_s=0.0)
    simulation.run_until(100.0)
    assert bell.rung_s == [0.0, 2.0, 4.0, 6.0]
    assert simulation.now_s == 100.0


def test_an_action_may_post_another_for_the_same_instant() -> None:
    simulation = Simulation(Idle(), start_s=5.0)
    times_s: list[float] = []
    simulation.post(lambda: simulation.post(lambda: times_s.append(simulation.now_s)))
    simulation.run_until(5.0)
    assert times_s == [5.0]


def test_a_violation_names_its_step_and_stops_the_run() -> None:
    bell = Bell(every_s=1.0, last_s=50.0)
    simulation = Simulation(bell, start_s=0.0, checkers=[Refuses(from_s=3.0)])
    with pytest.raises(Violation, match="refuses: too late") as caught:
        simulation.run_until(10.0)
    assert caught.value.step == 4
    assert bell.rung_s[-1] == 3.0


def test_a_run_stops_at_the_step_it_is_told() -> None:
    simulation = Simulation(Bell(every_s=1.0, last_s=50.0), start_s=0.0)
    simulation.run_until(10.0, step_max=3)
    assert (simulation.steps, simulation.now_s) == (3, 2.0)
