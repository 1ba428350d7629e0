"""The one place that reads the time.

`Clock` gives Unix seconds that never go back: the wall time of its start plus a monotonic clock.  Everything
else in `runtime/` is handed a clock; the core is told `now_s` by `runtime/loop.py`.
"""

import time
from collections.abc import Callable


class Clock:
    """Unix seconds on a clock that never goes back; its sources can be given by a test."""

    def __init__(
        self,
        wall_s: Callable[[], float] = time.time,  # noqa: TID251  this module is the exception
        monotonic_s: Callable[[], float] = time.monotonic,  # noqa: TID251
        boot_s: Callable[[], float] = lambda: time.clock_gettime(time.CLOCK_BOOTTIME),
    ) -> None:
        self._monotonic_s = monotonic_s
        self._boot_s = boot_s
        self._offset_s = wall_s() - monotonic_s()

    def now_s(self) -> float:
        """Seconds since the Unix epoch, as far as the wall clock was right when this clock was made."""
        return self._offset_s + self._monotonic_s()

    def boot_s(self) -> float:
        """Seconds since the machine was started; unlike `now_s` they go on while it sleeps."""
        return self._boot_s()
