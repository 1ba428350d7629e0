"""Virtual time: one clock, one heap of things to do, one seed.

A `Simulation` drives a world (anything with `advance`) and the actions posted to it, in order of time and,
at the same instant, in the order they were posted.  Equal seed and equal scenario give an equal run; the
number of a step is what a violation is replayed by.  Next: `world.py`, the world of the whole product.
"""

import heapq
import itertools
from collections.abc import Callable, Iterable
from typing import Protocol

from muster.base.errors import InvariantViolated

Action = Callable[[], None]


class World(Protocol):
    """What the loop drives."""

    def advance(self, now_s: float) -> float | None:
        """Do everything due up to and including `now_s`; give the next time something is due, if any."""
        ...


class Checker(Protocol):
    """What must hold after every step."""

    name: str

    def check(self, now_s: float) -> Iterable[str]:
        """Give what does not hold, one sentence each."""
        ...


class Noting:
    """A checker that notes complaints as things happen, and gives them at the next check."""

    def __init__(self) -> None:
        self._complaints: list[str] = []

    def check(self, now_s: float) -> Iterable[str]:
        """Complaints since the last check."""
        complaints, self._complaints = self._complaints, []
        return complaints


class Violation(InvariantViolated):
    """A promise broken in simulation, with the step it happened at."""

    def __init__(self, checker: str, complaint: str, *, step: int, now_s: float) -> None:
        super().__init__(f"{checker}: {complaint}")
        self.step = step
        self.now_s = now_s


class Simulation:
    """One run of a world on virtual time, judged after every step."""

    def __init__(self, world: World, *, start_s: float, checkers: Iterable[Checker] = ()) -> None:
        self.now_s = start_s
        self.steps = 0
        self._world = world
        self._checkers = tuple(checkers)
        self._due: list[tuple[float, int, Action]] = []
        self._sequence = itertools.count()
        self._world_due_s: float | None = start_s

    def post(self, action: Action, *, delay_s: float = 0.0) -> None:
        """Have `action` done `delay_s` from now."""
        heapq.heappush(self._due, (self.now_s + max(delay_s, 0.0), next(self._sequence), action))

    def next_due_s(self) -> float | None:
        """When the next step is due, None when nothing ever is."""
        if not self._due:
            return self._world_due_s
        action_s = self._due[0][0]
        return action_s if self._world_due_s is None else min(action_s, self._world_due_s)

    def step(self) -> bool:
        """Do the next action, or let the world do what is due; then check.  False when nothing is due."""
        due_s = self.next_due_s()
        if due_s is None:
            return False
        self._step(due_s)
        return True

    def _step(self, due_s: float) -> None:
        self.now_s = max(self.now_s, due_s)
        self.steps += 1
        if self._due and self._due[0][0] <= self.now_s:
            heapq.heappop(self._due)[2]()
        self._world_due_s = self._world.advance(self.now_s)
        self.judge(self._checkers)

    def run_until(self, time_s: float, *, step_max: int | None = None) -> None:
        """Take every step due up to `time_s` (at most up to step number `step_max`) and arrive there."""
        while step_max is None or self.steps < step_max:
            due_s = self.next_due_s()
            if due_s is None or due_s > time_s:
                self.now_s = max(self.now_s, time_s)
                return
            self._step(due_s)

    def judge(self, checkers: Iterable[Checker]) -> None:
        """Ask these checkers now; raises Violation at the first complaint."""
        for checker in checkers:
            for complaint in checker.check(self.now_s):
                raise Violation(checker.name, complaint, step=self.steps, now_s=self.now_s)
