"""The clock goes on although the wall clock is set back."""

from muster.runtime.clock import Clock


def test_the_clock_starts_at_wall_time_and_follows_the_monotonic_clock() -> None:
    wall_s, monotonic_s = [1_000.0], [5.0]
    clock = Clock(lambda: wall_s[0], lambda: monotonic_s[0])
    assert clock.now_s() == 1_000.0
    wall_s[0], monotonic_s[0] = 400.0, 7.5
    assert clock.now_s() == 1_002.5


def test_the_clock_since_boot_is_another_one() -> None:
    assert Clock(lambda: 1_000.0, lambda: 5.0, lambda: 77.0).boot_s() == 77.0
