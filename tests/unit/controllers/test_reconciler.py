"""The queue of keys: order, coalescing, growing delays."""

from collections.abc import Iterator

from muster.controllers.ports import PODS, Ask, Seen, View, Wake, Write
from muster.controllers.reconciler import KEYS_PER_CALL_MAX, DueKeys, Key, Reconciler


def take_all(keys: DueKeys, now_s: float) -> list[Key]:
    taken = []
    while (key := keys.take(now_s)) is not None:
        taken.append(key)
    return taken


def test_keys_come_in_order_of_time_and_then_of_arrival() -> None:
    keys = DueKeys()
    for name, at_s in (("c", 2.0), ("b", 1.0), ("a", 1.0), ("later", 9.0)):
        keys.add((name,), at_s)
    assert take_all(keys, 2.0) == [("b",), ("a",), ("c",)]
    assert keys.next_due_s() == 9.0


def test_a_key_asked_for_twice_is_looked_at_once_at_the_earlier_time() -> None:
    keys = DueKeys()
    keys.add(("a",), 5.0)
    keys.add(("a",), 1.0)
    keys.add(("a",), 3.0)
    assert keys.next_due_s() == 1.0
    assert take_all(keys, 9.0) == [("a",)]


def test_the_delay_doubles_with_each_failure_and_is_bounded() -> None:
    keys = DueKeys()
    delays = []
    for _ in range(14):
        keys.retry(("a",), 100.0)
        due_s = keys.next_due_s()
        assert due_s is not None
        delays.append(round(due_s - 100.0, 6))
        keys.take(1000.0)
    assert delays[:4] == [0.1, 0.2, 0.4, 0.8]
    assert delays[-1] == 60.0


def test_success_makes_the_delay_small_again() -> None:
    keys = DueKeys()
    for _ in range(3):
        keys.retry(("a",), 0.0)
        keys.take(1000.0)
    keys.forgive(("a",))
    keys.retry(("a",), 0.0)
    assert keys.next_due_s() == 0.1


class Echo(Reconciler):
    """Writes once per look."""

    def keys_of(self, change: Seen, view: View) -> tuple[Key, ...]:
        return ((str(change.object["name"]),),)

    def reconcile(self, key: Key, view: View, now_s: float) -> Iterator[Ask]:
        yield Write("delete", PODS, "default", key[0])


def seen(name: str) -> Seen:
    return Seen(PODS, None, {"name": name})


def test_one_call_looks_at_a_bounded_number_of_keys_and_asks_to_go_on() -> None:
    echo = Echo()
    for number in range(KEYS_PER_CALL_MAX + 1):
        list(echo.seen(seen(f"p{number}"), None, 1.0))  # type: ignore[arg-type]
    asks = list(echo.due(None, 1.0))  # type: ignore[arg-type]
    assert len([ask for ask in asks if isinstance(ask, Write)]) == KEYS_PER_CALL_MAX
    assert asks[-1] == Wake(1.0)


def test_a_refused_write_has_its_key_looked_at_again_later() -> None:
    echo = Echo()
    list(echo.seen(seen("p"), None, 1.0))  # type: ignore[arg-type]
    (write,) = echo.due(None, 1.0)  # type: ignore[arg-type]
    assert isinstance(write, Write)
    assert list(echo.failed(write, 500, "broken", None, 1.0)) == [Wake(1.1)]  # type: ignore[arg-type]
    assert list(echo.due(None, 1.05)) == [Wake(1.1)]  # type: ignore[arg-type]
    assert list(echo.due(None, 1.1)) == [write]  # type: ignore[arg-type]


def test_a_write_to_what_is_gone_is_not_tried_again() -> None:
    echo = Echo()
    list(echo.seen(seen("p"), None, 1.0))  # type: ignore[arg-type]
    (write,) = echo.due(None, 1.0)  # type: ignore[arg-type]
    assert isinstance(write, Write)
    assert list(echo.failed(write, 404, "not found", None, 1.0)) == []  # type: ignore[arg-type]
