"""How bad a run is: the chance of every fault, drawn from the seed, rates too.

`Weather` holds the chances of single requests, events and effects going wrong.  What befalls the cluster as a
whole (outages, a restored backup, lost nodes) is planned by `outages.py`.  `CALM` is no fault at all.
"""

import numpy as np
from msgspec import Struct


class Weather(Struct, frozen=True):
    """Chances between 0 and 1, each per request, event, binding or effect."""

    # a request of a scheduler, whatever it asks for
    unsent: float = 0.0  # the connection was refused
    reset_before: float = 0.0  # the connection broke, and the server had not got it
    reset_after: float = 0.0  # the connection broke, and it was done
    answer_lost: float = 0.0  # done, and no answer within the time-out
    request_late: float = 0.0  # done only after the time-out
    answer_late: float = 0.0  # takes up to the time-out
    doubled: float = 0.0  # arrives twice
    error_500: float = 0.0  # answered 500, not done
    error_500_done: float = 0.0  # answered 500, done
    throttled: float = 0.0  # 429 with Retry-After

    # a binding that arrives
    bind_denied: float = 0.0  # 403 from an admission webhook
    bind_conflict: float = 0.0  # 409
    bind_missing: float = 0.0  # 404
    bind_throttled: float = 0.0  # 429 with Retry-After
    made_anew: float = 0.0  # another pod of this name is there by then
    node_gone: float = 0.0  # accepted, though the node is gone
    node_dies: float = 0.0  # accepted, and the node falls silent before the pod starts
    out_of_cpu: float = 0.0  # accepted, and the kubelet refuses
    unexpected_admission: float = 0.0  # the same for want of a device

    # what a scheduler writes on a claim before the binding
    claim_denied: float = 0.0  # 403 from an admission webhook
    claim_conflict: float = 0.0  # 409
    choice_denied: float = 0.0  # of a node for a volume: 403
    rival_first: float = 0.0  # by then a rival's claim has the device

    # an event on its way to a scheduler
    event_late: float = 0.0
    event_late_s_max: float = 0.0
    event_doubled: float = 0.0
    watch_expired: float = 0.0  # 410: list again
    watch_broken: float = 0.0  # resume where it stopped
    resume_expired: float = 0.0  # 410 once it is there again: what happened meanwhile is not told
    broken_long: float = 0.0  # it takes up to twenty seconds to connect again

    # an effect of a scheduler
    crash_before: float = 0.0
    crash_after: float = 0.0
    crash_untold: float = 0.0  # once it is answered, before the core hears of it

    @classmethod
    def draw(cls, generator: np.random.Generator) -> "Weather":
        """Rates for one run: each kind of fault is there in about two thirds of them."""

        def rate(most: float) -> float:
            return float(generator.uniform(0.2, 1.0)) * most if generator.random() < 0.65 else 0.0

        return cls(
            unsent=rate(0.02),
            reset_before=rate(0.03),
            reset_after=rate(0.03),
            answer_lost=rate(0.03),
            request_late=rate(0.02),
            answer_late=rate(0.05),
            doubled=rate(0.03),
            error_500=rate(0.03),
            error_500_done=rate(0.03),
            throttled=rate(0.03),
            bind_denied=rate(0.05),
            bind_conflict=rate(0.04),
            bind_missing=rate(0.03),
            bind_throttled=rate(0.05),
            made_anew=rate(0.02),
            node_gone=rate(0.01),
            node_dies=rate(0.01),
            out_of_cpu=rate(0.03),
            unexpected_admission=rate(0.03),
            event_late=rate(0.3),
            event_late_s_max=float(generator.choice([0.1, 1.0, 5.0])),
            event_doubled=rate(0.05),
            watch_expired=rate(0.005),
            watch_broken=rate(0.01),
            crash_before=rate(0.004),
            crash_after=rate(0.004),
            crash_untold=rate(0.004),
            resume_expired=rate(0.5),
            broken_long=rate(0.3),
            claim_denied=rate(0.05),
            claim_conflict=rate(0.05),
            choice_denied=rate(0.05),
            rival_first=rate(0.05),
        )


CALM = Weather()
_DRAWN_AT_ONCE = 1000


class Sky:
    """The weather as it is now, and the dice."""

    def __init__(self, weather: Weather, generator: np.random.Generator) -> None:
        self.weather = weather
        self._generator = generator
        self._drawn: list[float] = []  # the next numbers of the generator, last first

    def clear(self) -> None:
        """From now on nothing goes wrong."""
        self.weather = CALM

    def strikes(self, chance: float) -> bool:
        """Whether it happens this time; draws nothing where it cannot."""
        return chance > 0 and self._draw() < chance

    def pick(self, chances: tuple[tuple[str, float], ...]) -> str:
        """At most one of several faults that exclude each other; "" for none."""
        if not any(chance for _, chance in chances):
            return ""
        left = self._draw()
        for name, chance in chances:
            if left < chance:
                return name
            left -= chance
        return ""

    def between(self, low: float, high: float) -> float:
        """A number between these two."""
        return low + (high - low) * self._draw()

    def _draw(self) -> float:
        """The next number between 0 and 1; drawn by the thousand, for one at a time is slow."""
        if not self._drawn:
            self._drawn = self._generator.random(_DRAWN_AT_ONCE).tolist()[::-1]
        return self._drawn.pop()
