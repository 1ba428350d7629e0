"""Whose bindings the server keeps waiting: they get places of their own, and so hold up nobody else.

A webhook that hangs holds each binding of its gang for as long as a request may take, and a gang of a hundred
would fill all places there are.  So a binding without an answer after a second gives its place up, and its
gang counts as slow: its other bindings share places of their own with all slow gangs, until one of them is
answered in time.  Only the counting; the places are `runtime/executor.py`'s.
"""

from collections.abc import Callable

from muster.framework.groups import ObjectKey
from muster.framework.ports import BindPod

SLOW_S = 1.0
SLOW_CALLS_MAX = 64  # where all are slow, as many are on the wire as where none is
REMEMBERED_S = 60.0  # longer than a gang waits before it asks for the same binding again


class Turn:
    """One binding on the wire, for this gang (or, of a lone pod, this namespace).

    `is_slow`: it holds no usual place.  `is_late`: it has waited for too long.
    """

    __slots__ = ("is_late", "is_slow", "whose")

    def __init__(self, whose: ObjectKey, *, is_slow: bool) -> None:
        self.whose = whose
        self.is_slow = is_slow
        self.is_late = False


class Patience:
    """Who is slow, and how many of their bindings are on the wire (`calls`)."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self.calls = 0
        self._now_s = now_s
        self._slow_until_s: dict[ObjectKey, float] = {}

    @property
    def has_place(self) -> bool:
        """Whether another binding of a slow gang may go out."""
        return self.calls < SLOW_CALLS_MAX

    def is_slow(self, effect: BindPod) -> bool:
        """Whether it must go with those of the slow gangs."""
        known = self._slow_until_s
        return bool(known) and known.get(_whose(effect), 0.0) > self._now_s()

    def begin(self, effect: BindPod) -> Turn:
        """A binding goes out."""
        turn = Turn(_whose(effect), is_slow=self.is_slow(effect))
        self.calls += turn.is_slow
        return turn

    def lose(self, turn: Turn) -> None:
        """It has no answer after a second: its place is free, and its gang is slow."""
        now_s = self._now_s()
        self._slow_until_s = {whose: end for whose, end in self._slow_until_s.items() if end > now_s}
        self._slow_until_s[turn.whose] = now_s + REMEMBERED_S
        self.calls += not turn.is_slow
        turn.is_slow = turn.is_late = True

    def end(self, turn: Turn) -> None:
        """It is over; one that was answered in time speaks for its gang."""
        self.calls -= turn.is_slow
        if not turn.is_late:
            self._slow_until_s.pop(turn.whose, None)


def _whose(effect: BindPod) -> ObjectKey:
    return effect.group or ObjectKey(effect.key.namespace, "")
