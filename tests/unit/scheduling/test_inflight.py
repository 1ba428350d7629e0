"""Bindings on the wire."""

from muster.framework.groups import ObjectKey
from muster.scheduling.inflight import UNCONFIRMED_S_MAX, Binding, InFlight


def make_binding(uid: str = "u", since_s: float = 0.0) -> Binding:
    return Binding(
        key=ObjectKey("default", uid),
        uid=uid,
        node_name="n1",
        scheduler_name="muster",
        group=None,
        attempt=1,
        since_s=since_s,
    )


def test_a_binding_ends_once() -> None:
    inflight = InFlight()
    binding = make_binding()
    inflight.add(binding)
    assert inflight.find("u") is binding
    assert inflight.end("u") is binding
    assert inflight.end("u") is None
    assert inflight.next_due_s() is None
    assert len(inflight) == 0


def test_one_unconfirmed_for_five_minutes_is_given_up() -> None:
    inflight = InFlight()
    binding = make_binding(since_s=100.0)
    inflight.add(binding)
    assert inflight.tick(100.0 + UNCONFIRMED_S_MAX - 1) == ([], [])
    assert inflight.tick(100.0 + UNCONFIRMED_S_MAX) == ([], [binding])
    assert list(inflight) == []


def test_one_without_an_answer_is_asked_for_again_ever_later() -> None:
    inflight = InFlight()
    binding = make_binding()
    inflight.add(binding)
    now_s = 0.0
    waits = []
    for _ in range(7):
        inflight.lose_answer(binding, now_s)
        due_s = inflight.next_due_s()
        assert due_s is not None
        waits.append(due_s - now_s)
        now_s = due_s
        assert inflight.tick(now_s) == ([binding], [])
    assert waits == [1, 2, 4, 8, 16, 30, 30]


def test_asking_again_does_not_lengthen_the_five_minutes() -> None:
    inflight = InFlight()
    binding = make_binding()
    inflight.add(binding)
    inflight.lose_answer(binding, UNCONFIRMED_S_MAX - 0.5)
    assert inflight.next_due_s() == UNCONFIRMED_S_MAX
    assert inflight.tick(UNCONFIRMED_S_MAX) == ([], [binding])
