"""When an entity is asked what it waits for."""

import pytest

from muster.framework.groups import ObjectKey
from muster.scheduling.members import EntityKey
from muster.scheduling.speech import BURST_S, QUIET_S, RETRY_S_MAX, WRITES_PER_S, Speech

G = EntityKey("podgroup", ObjectKey("default", "g"))


def test_it_is_asked_once_five_seconds_after_the_first_cause() -> None:
    speech = Speech()
    speech.arm(G, 10.0)
    speech.arm(G, 13.0)
    assert speech.next_due_s() == 10.0 + QUIET_S
    assert list(speech.tick(14.9)) == []
    assert list(speech.tick(15.0)) == [G]
    assert list(speech.tick(100.0)) == []


def test_after_failed_writes_it_is_asked_ever_later() -> None:
    speech = Speech()
    now_s = 0.0
    waits = []
    for _ in range(9):
        speech.retry(G, G, now_s)
        due_s = speech.next_due_s()
        assert due_s is not None
        waits.append(due_s - now_s)
        now_s = due_s
        assert list(speech.tick(now_s)) == [G]
    assert waits[:4] == [5, 10, 20, 40]
    assert waits[-1] == RETRY_S_MAX


def test_writes_that_fail_together_are_one_failure() -> None:
    speech = Speech()
    for now_s in (0.0, 1.0, 2.0, 3.0):
        speech.retry(G, G, now_s)
    assert list(speech.tick(QUIET_S)) == [G]
    speech.retry(G, G, QUIET_S)
    assert speech.next_due_s() == QUIET_S + 2 * QUIET_S


def test_a_failure_after_a_success_is_the_first_again() -> None:
    speech = Speech()
    for now_s in (0.0, 100.0, 200.0):
        speech.retry(G, G, now_s)
        assert list(speech.tick(now_s + RETRY_S_MAX)) == [G]
    speech.end_rest(G)
    speech.retry(G, G, 300.0)
    assert speech.next_due_s() == 300.0 + QUIET_S


def test_what_is_refused_on_one_group_of_a_tree_keeps_nobody_from_speaking_of_another() -> None:
    speech = Speech()
    tree, bad, good = (EntityKey("podgroup", ObjectKey("default", name)) for name in ("tree", "bad", "good"))
    for now_s in (0.0, 5.0, 15.0):
        speech.retry(tree, bad, now_s)
    speech.arm(tree, 20.0)
    assert list(speech.tick(25.0)) == [tree]
    assert (speech.rests(tree, bad, 25.0), speech.rests(tree, good, 25.0)) == (True, False)
    speech.end_rest(good)
    assert list(speech.tick(34.9)) == []
    assert list(speech.tick(35.0)) == [tree]
    assert not speech.rests(tree, bad, 35.0)


def test_one_that_is_gone_is_not_asked() -> None:
    speech = Speech()
    speech.arm(G, 0.0)
    speech.forget(G)
    assert speech.next_due_s() is None


def test_a_flood_of_words_is_spread_over_time() -> None:
    speech = Speech()
    entities = [EntityKey("podgroup", ObjectKey("default", f"g-{number}")) for number in range(500)]
    for entity in entities:
        speech.arm(entity, 0.0)
    said: list[tuple[float, EntityKey]] = []
    while (due_s := speech.next_due_s()) is not None:
        for entity in speech.tick(due_s):
            said.append((due_s, entity))
            speech.spend(2, due_s)
    assert [entity for _, entity in said] == entities
    assert sum(at_s == QUIET_S for at_s, _ in said) == pytest.approx(BURST_S * WRITES_PER_S / 2, abs=1)
    assert said[-1][0] == pytest.approx(QUIET_S + 1000 / WRITES_PER_S - BURST_S, abs=0.1)


def test_who_has_nothing_new_to_say_holds_up_nobody() -> None:
    speech = Speech()
    for number in range(500):
        speech.arm(EntityKey("podgroup", ObjectKey("default", f"g-{number}")), 0.0)
    assert len(list(speech.tick(QUIET_S))) == 500
