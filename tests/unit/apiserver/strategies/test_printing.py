"""Ages and times in tables."""

import pytest

from muster.apiserver.strategies.printing import column, duration, seconds, since

MINUTE, HOUR, DAY = 60, 3600, 86400


@pytest.mark.parametrize(
    ("length_s", "shown"),
    [
        pytest.param(-5, "<invalid>", id="the future"),
        pytest.param(-1.5, "0s", id="clocks that differ a little"),
        pytest.param(119, "119s", id="seconds"),
        pytest.param(2 * MINUTE, "2m", id="minutes"),
        pytest.param(9 * MINUTE + 5, "9m5s", id="minutes and seconds"),
        pytest.param(179 * MINUTE, "179m", id="many minutes"),
        pytest.param(3 * HOUR + MINUTE, "3h1m", id="hours and minutes"),
        pytest.param(47 * HOUR, "47h", id="many hours"),
        pytest.param(3 * DAY + HOUR, "3d1h", id="days and hours"),
        pytest.param(400 * DAY, "400d", id="many days"),
        pytest.param(800 * DAY, "2y70d", id="years and days"),
        pytest.param(3650 * DAY, "10y", id="years"),
    ],
)
def test_a_duration_has_at_most_two_units(length_s: float, shown: str) -> None:
    assert duration(length_s) == shown


def test_what_is_no_time_is_unknown() -> None:
    assert since(None, 0.0) == since("soon", 0.0) == "<unknown>"


def test_times_are_read_in_any_zone() -> None:
    assert seconds("1970-01-01T01:00:10+01:00") == seconds("1970-01-01T00:00:10Z") == 10.0


def test_the_name_column_has_its_format() -> None:
    assert column("Name") == ("Name", "string", "name", 0)
    assert column("IP", wide=True) == ("IP", "string", "", 1)
