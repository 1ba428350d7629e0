"""Exact searches that are out, and what the last ones came to.

In come questions of `search.py` and answers of whoever performs `Search`; a question is a packing problem and
what its axes stand for.  Nothing is decided here.  Next: `seating.py`, which puts an answer on a board.
"""

from typing import NamedTuple

from msgspec import Struct

from muster.base.arrays import Int32
from muster.framework.groups import GroupKey
from muster.framework.ports import Search
from muster.placement.packing import Answer, Problem, Verdict, is_no_easier
from muster.placement.shapes import ShapeKey
from muster.scheduling.members import EntityKey, Member

WAIT_S_MAX = 60.0  # a performer that has not answered by then never will


class Lot(NamedTuple):
    """Members of one shape in one pod group."""

    group: GroupKey
    shape: ShapeKey


class Question(Struct, frozen=True):
    """A packing problem, and its members and nodes.

    Shapes   lots, members [L]; rows, node_names [N].
    `narrows`: no filter, stated or not, lets in whom it refused when others are placed.
    """

    problem: Problem
    lots: tuple[Lot, ...]
    members: tuple[tuple[Member, ...], ...]
    rows: Int32
    node_names: tuple[str, ...]
    narrows: bool = False

    def has_axes_of(self, other: "Question") -> bool:
        """Whether both speak of the same nodes and lots in the same order."""
        return self.lots == other.lots and self.node_names == other.node_names

    def is_no_easier(self, than: "Question") -> bool:
        """Whether every placement of this would be one of the other."""
        return self.has_axes_of(than) and is_no_easier(self.problem, than.problem)

    def is_same(self, other: "Question") -> bool:
        """Whether exactly the same is asked."""
        return self.is_no_easier(other) and other.is_no_easier(self)


class Known(Struct):
    """The last search for an entity, and what came of it (None: it is still out).

    `tries`: searches in a row, this one included, of which the answers before came too late.
    """

    ticket: int
    question: Question
    begun_s: float
    time_ms: int
    tries: int
    answer: Answer | None = None


class Searches:
    """The last search for each entity that waits for a placement."""

    def __init__(self) -> None:
        self._known: dict[EntityKey, Known] = {}
        self._out: dict[int, EntityKey] = {}
        self._tickets = 0

    def __len__(self) -> int:
        """How many are out."""
        return len(self._out)

    def find(self, entity: EntityKey) -> Known | None:
        """The last search for the entity."""
        return self._known.get(entity)

    def begin(
        self, entity: EntityKey, question: Question, now_s: float, *, time_ms: int, tries: int = 1
    ) -> Search:
        """Ask for a search; nobody waits any more for an earlier one for the same entity."""
        self.forget(entity)
        self._tickets += 1
        self._known[entity] = Known(self._tickets, question, now_s, time_ms, tries)
        self._out[self._tickets] = entity
        return Search(self._tickets, entity.key, question.problem, time_ms)

    def finish(self, ticket: int, answer: Answer) -> EntityKey | None:
        """Note an answer; whom it is about, None where nobody waits for it any more."""
        entity = self._out.pop(ticket, None)
        if entity is not None:
            self._known[entity].answer = answer
        return entity

    def give_up(self, entity: EntityKey) -> None:
        """No answer will come."""
        known = self._known[entity]
        self._out.pop(known.ticket, None)
        known.answer = Answer(Verdict.GAVE_UP, effort=f"{WAIT_S_MAX:.0f} s without an answer")

    def forget(self, entity: EntityKey) -> None:
        """The entity is placed, or gone, or asks for something that is not searched for."""
        known = self._known.pop(entity, None)
        if known is not None:
            self._out.pop(known.ticket, None)
