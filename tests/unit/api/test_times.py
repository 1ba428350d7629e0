"""Times as Kubernetes writes them."""

from datetime import UTC, datetime

import pytest

from muster.api.times import format_moment, format_seconds, is_duration, parse_seconds


def test_a_time_survives_the_way_there_and_back() -> None:
    assert parse_seconds(format_seconds(1_800_000_000.0)) == 1_800_000_000.0


def test_fractions_are_cut_as_metav1_time_cuts_them() -> None:
    assert format_seconds(0.999) == "1970-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-1e12, "1970-01-01T00:00:00Z"), (1e12, "9999-12-31T23:59:59Z")],
    ids=["before", "after"],
)
def test_a_time_beyond_the_calendar_is_the_first_or_last_there_is(seconds: float, text: str) -> None:
    assert format_seconds(seconds) == text


@pytest.mark.parametrize(
    "text",
    [pytest.param(None, id="absent"), pytest.param("", id="empty"), pytest.param("soon", id="garbage")],
)
def test_what_is_no_time_counts_as_the_epoch(text: str | None) -> None:
    assert parse_seconds(text) == 0.0


def test_offsets_and_fractions_are_understood() -> None:
    assert parse_seconds("1970-01-01T01:00:00.5+01:00") == 0.5


def test_a_year_below_1000_keeps_its_four_digits() -> None:
    moment = datetime(999, 5, 4, 3, 2, 1, 7, tzinfo=UTC)
    assert format_moment(moment, "seconds") == "0999-05-04T03:02:01Z"
    assert format_moment(moment, "microseconds") == "0999-05-04T03:02:01.000007Z"


def test_the_first_moment_of_all_is_no_time() -> None:
    assert format_moment(datetime(1, 1, 1, tzinfo=UTC), "seconds") is None


@pytest.mark.parametrize("text", ["0", "1h30m", "-1.5s", ".5ms", "+2us"])
def test_a_duration_has_a_unit_after_every_number(text: str) -> None:
    assert is_duration(text)


@pytest.mark.parametrize("text", ["", "1", "s", "1d", "1h30", "1 s", "--1s"])
def test_anything_else_is_no_duration(text: str) -> None:
    assert not is_duration(text)
