"""Free memory goes back every minute, less often where that takes long."""

import asyncio

import pytest
from tests.unit.runtime.in_process import ManualClock

from muster.runtime.memory import REST_FACTOR, REST_S, find_trim, keep_trimmed


async def rests(takes_s: float, times: int) -> list[float]:
    """How long it rested before each of so many times."""
    clock, done = ManualClock(), 0

    def trim() -> None:
        nonlocal done
        clock.value_s += takes_s
        done += 1
        if done == times:
            raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await keep_trimmed(trim, now_s=clock.now_s, pause=clock.pause)
    return clock.pauses


async def test_it_is_done_every_minute() -> None:
    assert await rests(0.001, 3) == [REST_S] * 3


async def test_what_takes_long_is_done_seldom() -> None:
    assert await rests(0.5, 2) == [REST_S, pytest.approx(REST_FACTOR * 0.5)]


def test_what_the_c_library_has_can_be_called() -> None:
    trim = find_trim()
    if trim is not None:
        trim()


def test_a_c_library_without_it_is_done_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctypes.CDLL", lambda name: object())
    assert find_trim() is None
