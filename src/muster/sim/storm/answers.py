"""A binding without an answer is asked for again, or given up: nobody forgets it.

`LostIsAskedFor` listens to one process behind `Told`.
"""

from muster.framework.groups import ObjectKey
from muster.framework.ports import BindPod, Effect, Event, TimeReached
from muster.sim.loop import Noting
from muster.sim.told import Told

ASKED_WITHIN_S = (
    120.0  # five tries of one request and their pauses; between two questions half a minute passes
)


class LostIsAskedFor(Noting):
    """Complains of a binding whose answer got lost and about which nobody asks for two minutes."""

    name = "lost is asked for"

    def __init__(self, told: Told) -> None:
        super().__init__()
        self._told = told
        self._since_s: dict[ObjectKey, float] = {}

    def observe(self, event: Event, effects: tuple[Effect, ...], now_s: float) -> None:
        """Note what is without an answer, and since when; judge where it has had the time to act."""
        unanswered = self._told.unanswered
        for effect in effects:
            if isinstance(effect, BindPod):
                self._since_s.pop(effect.key, None)
        for key in [key for key in self._since_s if key not in unanswered]:
            del self._since_s[key]
        for key in unanswered:
            since_s = self._since_s.setdefault(key, now_s)
            if isinstance(event, TimeReached) and now_s - since_s > ASKED_WITHIN_S:
                self._complaints.append(f"the binding of {key} is without an answer since {since_s:.0f}")
