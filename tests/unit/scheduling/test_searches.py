"""What is remembered of searches."""

import numpy as np
from tests.unit.placement.packing_problems import problem_of
from tests.unit.scheduling.world import START_S, key_of

from muster.placement.packing import Answer, Verdict
from muster.scheduling.members import group_entity
from muster.scheduling.searches import Lot, Question, Searches

GROUP, OTHER = group_entity(key_of("g")), group_entity(key_of("other"))


def question(room: int = 4, shapes: tuple[bytes, ...] = (b"a", b"b")) -> Question:
    problem = problem_of([[3], [1]], [[room]], [1, 2])
    lots = tuple(Lot(key_of("g"), shape) for shape in shapes)
    return Question(problem, lots, ((), ()), np.array([0], dtype=np.int32), ("n1",))


def test_an_answer_finds_the_entity_that_waits_for_it() -> None:
    searches = Searches()
    one = searches.begin(GROUP, question(), START_S, time_ms=250)
    other = searches.begin(OTHER, question(), START_S, time_ms=250)
    assert len(searches) == 2
    assert searches.finish(other.ticket, Answer(Verdict.IMPOSSIBLE)) == OTHER
    assert searches.finish(one.ticket, Answer(Verdict.FOUND)) == GROUP
    known = searches.find(OTHER)
    assert known is not None
    assert known.answer == Answer(Verdict.IMPOSSIBLE)
    assert len(searches) == 0


def test_nobody_waits_for_the_answer_to_an_earlier_search() -> None:
    searches = Searches()
    earlier = searches.begin(GROUP, question(), START_S, time_ms=250)
    later = searches.begin(GROUP, question(5), START_S, time_ms=250)
    assert searches.finish(earlier.ticket, Answer(Verdict.IMPOSSIBLE)) is None
    assert searches.finish(later.ticket, Answer(Verdict.FOUND)) == GROUP


def test_nobody_waits_for_the_answer_of_a_forgotten_search() -> None:
    searches = Searches()
    search = searches.begin(GROUP, question(), START_S, time_ms=250)
    searches.forget(GROUP)
    assert searches.find(GROUP) is None
    assert searches.finish(search.ticket, Answer(Verdict.FOUND)) is None


def test_a_search_that_is_given_up_says_so_and_its_answer_comes_too_late() -> None:
    searches = Searches()
    search = searches.begin(GROUP, question(), START_S, time_ms=250)
    searches.give_up(GROUP)
    known = searches.find(GROUP)
    assert known is not None
    assert known.answer is not None
    assert known.answer.verdict is Verdict.GAVE_UP
    assert searches.finish(search.ticket, Answer(Verdict.FOUND)) is None


def test_questions_are_compared_by_room_and_axes() -> None:
    assert question().is_same(question())
    assert question(3).is_no_easier(question(4))
    assert not question(4).is_no_easier(question(3))
    assert not question(3).is_same(question(4))
    assert not question(shapes=(b"a", b"c")).is_no_easier(question())
