"""When an entity is asked what it waits for."""

from muster.framework.groups import ObjectKey
from muster.scheduling.members import EntityKey
from muster.scheduling.speech import QUIET_S, RETRY_S_MAX, Speech

G = EntityKey("podgroup", ObjectKey("default", "g"))


def test_it_is_asked_once_five_seconds_after_the_first_cause() -> None:
    speech = Speech()
    speech.arm(G, 10.0)
    speech.arm(G, 13.0)
    assert speech.next_due_s() == 10.0 + QUIET_S
    assert speech.tick(14.9) == []
    assert speech.tick(15.0) == [G]
    assert speech.tick(100.0) == []


def test_after_failed_writes_it_is_asked_ever_later() -> None:
    speech = Speech()
    now_s = 0.0
    waits = []
    for _ in range(9):
        speech.retry(G, now_s)
        due_s = speech.next_due_s()
        assert due_s is not None
        waits.append(due_s - now_s)
        now_s = due_s
        speech.tick(now_s)
    assert waits[:4] == [5, 10, 20, 40]
    assert waits[-1] == RETRY_S_MAX


def test_one_that_is_gone_is_not_asked() -> None:
    speech = Speech()
    speech.arm(G, 0.0)
    speech.forget(G)
    assert speech.next_due_s() is None
