"""What goes wrong between scheduler and API: refused and lost writes; late, reordered, doubled events.

A `FaultyLink` stands in the scheduler's place: it takes the events meant for it and gives the effects that
come back, so neither side knows of it.  Each kind of object has its own channel, in which order is kept, as
in a watch; between channels there is none.  A fault is a chance drawn from the seed, and so is its rate.
Another fault is one more row of `Faults` and one more question in `_arrive` or `_answer`.
"""

from collections import deque
from collections.abc import Callable, Iterable
from typing import Protocol

import numpy as np
from msgspec import Struct

from muster.framework.groups import PodKey
from muster.framework.ports import (
    BindDone,
    BindFailed,
    BindPod,
    Effect,
    Event,
    GroupGone,
    GroupSeen,
    NamespaceGone,
    NamespaceSeen,
    NodeGone,
    NodeSeen,
    PatchGroupStatus,
    PatchPodStatus,
    PodGone,
    PodSeen,
    Synced,
    TimeReached,
    WakeAt,
    WriteFailed,
)

_CHANNELS: dict[type, str] = {
    PodSeen: "pods",
    PodGone: "pods",
    NamespaceSeen: "namespaces",
    NamespaceGone: "namespaces",
    NodeSeen: "nodes",
    NodeGone: "nodes",
    GroupSeen: "groups",
    GroupGone: "groups",
}
_OUTCOMES = "outcomes"


class Reactor(Protocol):
    """The scheduler as the simulator needs it."""

    def handle(self, event: Event, now_s: float) -> Iterable[Effect]:
        """Take one event, give the effects."""
        ...


class Faults(Struct, frozen=True):
    """Chances between 0 and 1, and the longest delay of one channel against the others."""

    bind_refused: float = 0.0  # answered 500, and the API never saw it
    bind_unanswered: float = 0.0  # the API did it, the answer was lost
    write_refused: float = 0.0  # a status patch answered 409
    event_late: float = 0.0
    event_late_s_max: float = 0.0
    event_doubled: float = 0.0

    @property
    def breaks_binds(self) -> bool:
        """Whether a binding that was decided may come to nothing."""
        return self.bind_refused > 0 or self.bind_unanswered > 0

    @classmethod
    def draw(cls, generator: np.random.Generator) -> "Faults":
        """Rates for one run: each kind of fault is there in about half of them."""

        def rate(most: float) -> float:
            return float(generator.uniform(0, most)) if generator.random() < 0.5 else 0.0

        return cls(
            bind_refused=rate(0.2),
            bind_unanswered=rate(0.1),
            write_refused=rate(0.3),
            event_late=rate(0.5),
            event_late_s_max=float(generator.choice([0.05, 0.5, 3.0])),
            event_doubled=rate(0.1),
        )


NO_FAULTS = Faults()


class Observer(Protocol):
    """Told of everything the scheduler is given and says."""

    def observe(self, event: Event, effects: tuple[Effect, ...], now_s: float) -> None:
        """`effects` is what the scheduler answered to `event`, before any fault."""
        ...

    def reset(self) -> None:
        """Another scheduler takes over and will be told everything anew."""
        ...


class FaultyLink:
    """A scheduler behind a bad line."""

    def __init__(
        self,
        scheduler: Reactor,
        faults: Callable[[], Faults],
        generator: np.random.Generator,
        observers: Iterable[Observer] = (),
        count: Callable[[str], None] = lambda name: None,
    ) -> None:
        self.scheduler = scheduler
        self._faults = faults
        self._generator = generator
        self._observers = tuple(observers)
        self._count = count
        self._synced = False
        self._wake_s: float | None = None
        self._channels: dict[str, deque[tuple[float, Event]]] = {
            name: deque() for name in (*dict.fromkeys(_CHANNELS.values()), _OUTCOMES)
        }
        self._unanswered: set[tuple[PodKey, str]] = set()

    def handle(self, event: Event, now_s: float) -> list[Effect]:
        """Let the event in, soon or late, and hand on what comes out."""
        effects: list[Effect] = []
        if not self._synced or isinstance(event, Synced):
            # a first list comes whole: what can be late is only the watch after it
            self._synced = self._synced or isinstance(event, Synced)
            self._deliver(event, now_s, effects)
        elif not isinstance(event, TimeReached):
            self._arrive(event, now_s)
        self._deliver_due(now_s, effects)
        due_s = self._next_due_s()
        return effects if due_s is None else [*effects, WakeAt(due_s)]

    @property
    def is_carrying(self) -> bool:
        """Whether events are on their way to the scheduler."""
        return any(self._channels.values())

    def _arrive(self, event: Event, now_s: float) -> None:
        faults = self._faults()
        if isinstance(event, BindDone) and (event.key, event.uid) in self._unanswered:
            self._unanswered.discard((event.key, event.uid))
            message = "the answer was lost"
            event = BindFailed(event.key, event.uid, event.node_name, 0, "", message)
        name = _CHANNELS.get(type(event), _OUTCOMES)
        delay_s = 0.0
        if self._strikes(faults.event_late):
            self._count("event late")
            delay_s = float(self._generator.uniform(0, faults.event_late_s_max))
        self._enqueue(name, event, now_s + delay_s)
        if name != _OUTCOMES and self._strikes(faults.event_doubled):
            self._count("event doubled")
            self._enqueue(name, event, now_s + delay_s)

    def _enqueue(self, name: str, event: Event, arrival_s: float) -> None:
        """Put it behind what is on its way in this channel already."""
        channel = self._channels[name]
        channel.append((max(arrival_s, channel[-1][0]) if channel else arrival_s, event))

    def _deliver_due(self, now_s: float, effects: list[Effect]) -> None:
        while True:
            due = [(channel[0][0], name) for name, channel in self._channels.items() if channel]
            arrival_s, name = min(due, default=(np.inf, ""))
            if arrival_s <= now_s:
                self._deliver(self._channels[name].popleft()[1], now_s, effects)
            elif self._wake_s is not None and self._wake_s <= now_s:
                self._wake_s = None
                self._deliver(TimeReached(), now_s, effects)
            else:
                return

    def _deliver(self, event: Event, now_s: float, effects: list[Effect]) -> None:
        answered = tuple(self.scheduler.handle(event, now_s))
        for observer in self._observers:
            observer.observe(event, answered, now_s)
        for effect in answered:
            if isinstance(effect, WakeAt):
                self._wake_s = effect.at_s
            elif isinstance(effect, BindPod):
                effects.extend(self._answer(effect, now_s))
            elif isinstance(effect, PatchPodStatus | PatchGroupStatus) and self._refuses_write():
                self._enqueue(_OUTCOMES, WriteFailed(effect, 409, "the object has been modified"), now_s)
            else:
                effects.append(effect)

    def _answer(self, bind: BindPod, now_s: float) -> list[Effect]:
        """Hand a bind on, or refuse it in the API's place."""
        faults = self._faults()
        if self._strikes(faults.bind_refused):
            self._count("bind refused")
            refusal = BindFailed(bind.key, bind.uid, bind.node_name, 500, "InternalError", "not today")
            self._enqueue(_OUTCOMES, refusal, now_s)
            return []
        if self._strikes(faults.bind_unanswered):
            self._count("bind unanswered")
            self._unanswered.add((bind.key, bind.uid))
        return [bind]

    def _refuses_write(self) -> bool:
        refuses = self._strikes(self._faults().write_refused)
        if refuses:
            self._count("status write refused")
        return refuses

    def _strikes(self, chance: float) -> bool:
        return chance > 0 and bool(self._generator.random() < chance)

    def _next_due_s(self) -> float | None:
        times = [channel[0][0] for channel in self._channels.values() if channel]
        if self._wake_s is not None:
            times.append(self._wake_s)
        return min(times, default=None)
