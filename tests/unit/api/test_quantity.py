"""Quantities: exact, rounded up, saturating."""

from fractions import Fraction

import pytest
from hypothesis import given

from muster.api.quantity import INT64_MAX, QuantityError, format_amount, parse_quantity, resource_amount
from muster.testing.strategies import quantities

_FACTORS = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "k": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
    "P": 10**15,
    "E": 10**18,
} | {f"{letter}i": 1024**power for power, letter in enumerate("KMGTPE", start=1)}


def obvious(text: str, *, milli: bool) -> int:
    """The slow twin: exact fractions, suffix by suffix."""
    number, factor = text, Fraction(1)
    for suffix in sorted(_FACTORS, key=len, reverse=True):
        if text.endswith(suffix):
            number, factor = text.removesuffix(suffix), Fraction(_FACTORS[suffix])
            break
    value = Fraction(number) * factor * (1000 if milli else 1)
    return min(-(-value.numerator // value.denominator), INT64_MAX)


@given(text=quantities())
def test_the_fast_parser_equals_exact_fractions(text: str) -> None:
    assert parse_quantity(text) == obvious(text, milli=False)
    assert parse_quantity(text, milli=True) == obvious(text, milli=True)


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        pytest.param("1", 1, id="plain"),
        pytest.param("1.5Gi", 3 * 2**29, id="binary-with-part"),
        pytest.param("100m", 1, id="below-one-rounds-up"),
        pytest.param("1e3", 1000, id="exponent"),
        pytest.param("1E", 10**18, id="exa-is-no-exponent"),
        pytest.param("1E3", 1000, id="capital-exponent"),
        pytest.param(".5", 1, id="no-whole-part"),
        pytest.param("5.", 5, id="no-part-after-the-point"),
        pytest.param(" 7 ", 7, id="space-around"),
        pytest.param("-1.5", -2, id="negative-away-from-zero"),
        pytest.param("0e99999999999999", 0, id="zero-stays-zero"),
        pytest.param("1e-0000000000001", 1, id="long-exponent-text"),
    ],
)
def test_texts_of_the_grammar_are_read(text: str, amount: int) -> None:
    assert parse_quantity(text) == amount


@pytest.mark.parametrize("text", ["9Ei", "1e99999999999999999999", "1" * 5000, f"0.{'0' * 9}1e30", "99E"])
def test_absurd_amounts_stop_at_int64(text: str) -> None:
    assert parse_quantity(text) == INT64_MAX


@pytest.mark.parametrize("text", ["1e-99999999999", f"0.{'0' * 5000}1", "1n"])
def test_the_smallest_amount_is_one(text: str) -> None:
    assert parse_quantity(text) == 1


@pytest.mark.parametrize(
    "text", ["", ".", "1 Gi", "1.1.M", "1+1.0M", "0.1mi", "aoeu", ".5i", "1i", "-3.01e-", "٣"]
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(QuantityError, match="not a quantity"):
        parse_quantity(text)


def test_numbers_of_json_are_read_like_their_text() -> None:
    assert (parse_quantity(2), parse_quantity(0.5), parse_quantity(1e30)) == (2, 1, INT64_MAX)


def test_only_cpu_is_counted_in_thousandths() -> None:
    assert (resource_amount("cpu", "1500m"), resource_amount("memory", "1500m")) == (1500, 2)


@pytest.mark.parametrize(
    ("resource", "amount", "text"),
    [
        ("cpu", 2000, "2"),
        ("cpu", 1500, "1500m"),
        ("memory", 3 * 2**29, "1536Mi"),
        ("memory", 1000, "1000"),
        ("memory", 0, "0"),
        ("hugepages-2Mi", 2**21, "2Mi"),
        ("nvidia.com/gpu", 8, "8"),
    ],
)
def test_amounts_are_written_as_a_person_would(resource: str, amount: int, text: str) -> None:
    assert format_amount(resource, amount) == text
