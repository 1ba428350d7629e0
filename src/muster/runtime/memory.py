"""Memory that was given up goes back to the system: by itself the C library keeps what lies between blocks.

Buffers of connections, lists and long lines leave holes, and a process that lives for months would keep the
most it ever had.  Nothing here knows what is in the memory.  Next: `runtime/process.py`, which has it done.
"""

import ctypes
from collections.abc import Awaitable, Callable

REST_S = 60.0
REST_FACTOR = 1000.0  # at most one part in a thousand of the time


def find_trim() -> Callable[[], None] | None:
    """What gives free memory back; None where the C library has nothing of the kind."""
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError):
        return None
    return lambda: trim(0)


async def keep_trimmed(
    trim: Callable[[], None], *, now_s: Callable[[], float], pause: Callable[[float], Awaitable[None]]
) -> None:
    """Give it back every minute until cancelled, and less often where that takes long."""
    rest_s = REST_S
    while True:
        await pause(rest_s)
        began_s = now_s()
        trim()
        rest_s = max(REST_S, REST_FACTOR * (now_s() - began_s))
