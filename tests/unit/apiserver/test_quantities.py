"""Quantities in Kubernetes' canonical text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.api.quantity import parse_quantity
from muster.apiserver.quantities import BAD_SUFFIX, NOT_A_QUANTITY, canonical_quantity


@pytest.mark.parametrize(
    ("given_text", "printed"),
    [
        pytest.param("1000m", "1", id="whole again"),
        pytest.param("0.5", "500m", id="a fraction is in thousandths"),
        pytest.param("1024Mi", "1Gi", id="largest binary suffix"),
        pytest.param("1.5Gi", "1536Mi", id="binary without fraction"),
        pytest.param("0.5Ki", "512", id="below 1024 binary turns decimal"),
        pytest.param("1e3", "1e3", id="an exponent stays one"),
        pytest.param("1e1", "10", id="an exponent that is no multiple of three"),
        pytest.param("0.0000000001", "1n", id="never nothing"),
        pytest.param("99999999999999999999", "9223372036854775807", id="saturates"),
        pytest.param("-5", "-5", id="sign"),
        pytest.param("0Gi", "0", id="nothing has no suffix"),
        pytest.param("2000k", "2M", id="largest decimal suffix"),
    ],
)
def test_a_quantity_has_one_text(given_text: str, printed: str) -> None:
    assert canonical_quantity(given_text) == printed


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("lots", NOT_A_QUANTITY, id="a word"),
        pytest.param("", NOT_A_QUANTITY, id="nothing"),
        pytest.param("5ki", BAD_SUFFIX, id="a suffix in the wrong case"),
    ],
)
def test_what_is_no_quantity_is_refused_in_the_stock_words(text: str, why: str) -> None:
    with pytest.raises(ValueError, match="^" + why.replace("^", r"\^").split("(")[0]):
        canonical_quantity(text)


@given(st.integers(0, 10**12), st.sampled_from(["", "m", "k", "Ki", "Mi", "M", "u"]))
def test_the_canonical_text_is_worth_the_same_and_stays(amount: int, suffix: str) -> None:
    text = canonical_quantity(f"{amount}{suffix}")
    assert parse_quantity(text, milli=True) == parse_quantity(f"{amount}{suffix}", milli=True)
    assert canonical_quantity(text) == text
