"""Who is placed and not bound yet."""

from muster.framework.groups import ObjectKey
from muster.scheduling.members import EntityKey
from muster.scheduling.preparations import UNPREPARED_S_MAX, Preparation, Preparations

ROOT = EntityKey("podgroup", ObjectKey("default", "g"))


def make(name: str, since_s: float = 0.0, *, needs: bool = True) -> Preparation:
    return Preparation(
        key=ObjectKey("default", name),
        uid=f"uid-{name}",
        node_name="n1",
        root=ROOT,
        attempt=1,
        since_s=since_s,
        writes=() if needs else None,
    )


def test_members_that_need_nothing_are_ready_at_once() -> None:
    assert not make("p").status.ok
    assert make("p", needs=False).status.ok


def test_they_are_found_by_uid_and_by_root() -> None:
    book = Preparations()
    for name in ("p", "q"):
        book.add(make(name))
    assert [each.key.name for each in book.of(ROOT)] == ["p", "q"]
    found = book.end("uid-p")
    assert found is not None
    assert book.find("uid-p") is None
    assert book.end("uid-p") is None
    assert len(book) == 1


def test_only_roots_with_somebody_in_preparation_are_looked_at() -> None:
    book = Preparations()
    book.touch(ROOT)
    assert not book.touched
    book.add(make("p"))
    book.touch_all()
    assert list(book.touched) == [ROOT]
    book.end("uid-p")
    assert not book.touched


def test_the_longest_waiting_is_overdue_first() -> None:
    book = Preparations()
    for name, since_s in (("late", 5.0), ("early", 1.0)):
        book.add(make(name, since_s))
    assert book.next_due_s() == 1.0 + UNPREPARED_S_MAX
    assert [each.key.name for each in book.overdue(2.0 + UNPREPARED_S_MAX)] == ["early"]
    assert [each.key.name for each in book.overdue(9.0 + UNPREPARED_S_MAX)] == ["late"]
    assert book.next_due_s() is None
