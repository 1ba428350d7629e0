"""Who has come and has not been looked at yet: looked at when its turn to be tried is near.

Of 10,500 gangs that are all there at the start, looking at every one before the first decision took 0.25 s.
Those in line are looked at in the order in which they will be tried; whoever asks what has just been refused
to others (`sleepers.py`) is set aside, to be refused with them when nobody else is to be tried.  In come
newcomers; next: `review.py`, which puts them here and looks at them.
"""

import heapq
from collections import deque
from collections.abc import Hashable
from typing import NamedTuple

from muster.base.heap import Rank
from muster.framework.events import Change
from muster.scheduling.members import EntityKey


class Arrival(NamedTuple):
    """An entity that is whole and has never been in the queue.

    `rank` and `turn` are those that it will have there; `wake`: the change by which it came; `queued_s`: when
    it first could have been tried, by the objects' times after a restart; `since_s`: when it came here.
    """

    rank: Rank
    turn: int
    entity: EntityKey
    wake: Change | None
    queued_s: float
    since_s: float


class Arrivals:
    """Those in line, the first of the queue first, and those set aside, by what they ask."""

    def __init__(self) -> None:
        self._line: list[Arrival] = []
        self._known: dict[EntityKey, Arrival] = {}
        self._ask_of: dict[EntityKey, Hashable] = {}  # of those set aside
        self._alike: dict[Hashable, list[EntityKey]] = {}  # set aside for asking this
        self._aside: deque[EntityKey] = deque()

    def __len__(self) -> int:
        return len(self._known)

    def __contains__(self, entity: EntityKey) -> bool:
        return entity in self._known

    def put(self, arrival: Arrival) -> None:
        """Let it wait in line until it is looked at."""
        self._known[arrival.entity] = arrival
        heapq.heappush(self._line, arrival)

    def take(self, entity: EntityKey) -> Arrival | None:
        """It is looked at now, or gone."""
        self._ask_of.pop(entity, None)
        return self._known.pop(entity, None)

    def first(self) -> Arrival | None:
        """The first in line; None where all are set aside."""
        while self._line:
            arrival = self._line[0]
            if self._known.get(arrival.entity) is arrival and arrival.entity not in self._ask_of:
                return arrival
            heapq.heappop(self._line)
        return None

    def set_aside(self, arrival: Arrival, ask: Hashable) -> None:
        """What it asks has been refused to others."""
        self._ask_of[arrival.entity] = ask
        self._alike.setdefault(ask, []).append(arrival.entity)
        self._aside.append(arrival.entity)

    def first_aside(self) -> Arrival | None:
        """Who was set aside first."""
        while self._aside:
            entity = self._aside[0]
            if entity in self._ask_of:
                return self._known[entity]
            self._aside.popleft()
        self._alike.clear()
        return None

    def reopen(self, ask: Hashable) -> None:
        """Nobody who asks this sleeps on a refusal any more: those set aside for it are in line again."""
        for entity in self._alike.pop(ask, ()):
            if self._ask_of.get(entity) == ask:
                del self._ask_of[entity]
                heapq.heappush(self._line, self._known[entity])
