"""Newcomers wait in line, are set aside, and come back."""

from muster.framework.events import Change
from muster.framework.groups import ObjectKey
from muster.scheduling.arrivals import Arrival, Arrivals
from muster.scheduling.members import EntityKey, group_entity


def entity(name: str) -> EntityKey:
    return group_entity(ObjectKey("default", name))


def put(line: Arrivals, *names: str) -> None:
    for turn, name in enumerate(names, start=1):
        line.put(Arrival((True, 0, turn), turn, entity(name), Change.POD_ADDED, 0.0, 0.0))


def names_in_line(line: Arrivals) -> list[str]:
    names = []
    while (first := line.first()) is not None:
        names.append(first.entity.key.name)
        line.take(first.entity)
    return names


def test_they_come_out_by_rank_whatever_the_order_in_which_they_came() -> None:
    line = Arrivals()
    for turn, (name, priority) in enumerate((("low", 0), ("high", 5), ("low-too", 0)), start=1):
        line.put(Arrival((True, -priority, turn), turn, entity(name), None, 0.0, 0.0))
    assert names_in_line(line) == ["high", "low", "low-too"]
    assert not line


def test_who_is_set_aside_is_not_in_line_until_its_ask_is_reopened() -> None:
    line = Arrivals()
    put(line, *"abc")
    for ask in ("x", "y"):
        first = line.first()
        assert first is not None
        line.set_aside(first, ask)
    line.reopen("y")
    first_aside = line.first_aside()
    assert first_aside is not None
    assert first_aside.entity == entity("a")
    assert len(line) == 3
    assert names_in_line(line) == ["b", "c"]


def test_who_is_taken_is_neither_in_line_nor_aside() -> None:
    line = Arrivals()
    put(line, "a", "b")
    first = line.first()
    assert first is not None
    line.set_aside(first, "x")
    line.take(entity("a"))
    line.take(entity("b"))
    line.reopen("x")
    assert (line.first(), line.first_aside(), len(line)) == (None, None, 0)
