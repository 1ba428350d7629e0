"""Searches for victims that take longer than one cycle may: gone on with between other decisions.

In come searches that a plugin has not finished; out come their answers, which the next attempt of their
entity is told.  A search looks at the cluster as it was when it began: what it finds is tried anew before
anything is done about it.  Next: `preemption.py`.
"""

from muster.placement.eviction import Eviction, EvictionSearch, Trial
from muster.scheduling.members import EntityKey

WORK_PER_CYCLE = 100_000  # rows judged: some 30 ms


class Rescues:
    """Unfinished searches, the oldest first, and answers nobody has asked for yet."""

    def __init__(self) -> None:
        self._out: dict[EntityKey, EvictionSearch] = {}
        self._answers: dict[EntityKey, Eviction | Trial] = {}

    def __len__(self) -> int:
        """How many are not finished."""
        return len(self._out)

    def put_off(self, entity: EntityKey, search: EvictionSearch) -> None:
        """Go on with it later."""
        self._out[entity] = search

    def is_out(self, entity: EntityKey) -> bool:
        """Whether a search for this entity is not finished."""
        return entity in self._out

    def take_answer(self, entity: EntityKey) -> Eviction | Trial | None:
        """What the search for it has found, once."""
        return self._answers.pop(entity, None)

    def first(self) -> EntityKey | None:
        """Whose search is gone on with next."""
        return next(iter(self._out), None)

    def advance(self, entity: EntityKey) -> bool:
        """Go on with a search; whether it is finished now."""
        search = self._out.pop(entity)
        if search.advance(WORK_PER_CYCLE):
            self._answers[entity] = search.answer
            return True
        self._out[entity] = search  # the others have their turn first
        return False

    def forget(self, entity: EntityKey) -> None:
        """The entity is placed, or gone."""
        self._out.pop(entity, None)
        self._answers.pop(entity, None)
