"""Times as Kubernetes writes them."""

import pytest

from muster.api.times import format_seconds, parse_seconds


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
