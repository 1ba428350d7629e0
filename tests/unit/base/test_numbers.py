"""Whole numbers in text of any kind."""

import pytest

from muster.base.numbers import whole_number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        pytest.param("0", 0, id="zero"),
        pytest.param("007", 7, id="leading-zeros"),
        pytest.param("9" * 19, 10**19 - 1, id="as-many-digits-as-may-be"),
        pytest.param("9" * 20, None, id="one-more"),
        pytest.param("9" * 5000, None, id="more-than-python-reads"),
        pytest.param("", None, id="nothing"),
        pytest.param("-1", None, id="sign"),
        pytest.param("1.0", None, id="fraction"),
        pytest.param("٣", None, id="digits-of-another-script"),
        pytest.param("²", None, id="digit-that-is-no-number"),
    ],
)
def test_what_digits_write_is_read_and_nothing_else(text: str, number: int | None) -> None:
    assert whole_number(text) == number
