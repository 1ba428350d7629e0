"""Texts that must be durations, times or patterns."""

import pytest

from muster.apiserver.expressions.literals import LITERALS
from muster.apiserver.expressions.syntax import read_expression


def is_told(function: str, literal: str) -> bool:
    return LITERALS[function](read_expression(literal)[0]) is not None


@pytest.mark.parametrize("text", ["1h30m", "-1.5s", ".5ms", "0", "10µs"])
def test_a_duration_is_taken(text: str) -> None:
    assert not is_told("duration", f"'{text}'")


@pytest.mark.parametrize("text", ["", "1", "1d", "h", "1 h"])
def test_what_is_no_duration_is_told(text: str) -> None:
    assert is_told("duration", f"'{text}'")


def test_times_are_those_of_rfc_3339() -> None:
    assert not is_told("timestamp", "'2026-01-01T00:00:00.5+01:00'")
    assert is_told("timestamp", "'2026-01-01'")


def test_numbers_are_no_texts() -> None:
    assert not is_told("timestamp", "0")


@pytest.mark.parametrize("text", ["[", "(", "a)", "a\\"])
def test_a_pattern_that_is_cut_off_is_told(text: str) -> None:
    assert is_told("matches", f"r'{text}'")


@pytest.mark.parametrize("text", [r"\pL+", "^*", r"\Q(\E", "(?<n>a)", "[[:alpha:]]", "a{,3}"])
def test_what_only_re2_reads_is_taken(text: str) -> None:
    assert not is_told("matches", f"r'{text}'")
