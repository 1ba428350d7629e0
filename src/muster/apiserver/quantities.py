"""Quantities in the one text that Kubernetes prints for each: `1000m` is `1`, `1024Mi` is `1Gi`.

The decoder (`codec.py`) passes every quantity through here.  What a quantity amounts to for the
scheduler is `api/quantity.py`; here nothing is rounded but what Kubernetes itself cannot hold.
"""

import re
from fractions import Fraction
from functools import lru_cache

_PARTS = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)", re.ASCII)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_DECIMAL_NAME = {power: name for name, power in _DECIMAL.items()}
_BINARY_NAME = {0: "", **{power: name for name, power in _BINARY.items()}}
_MOST = 2**63 - 1
_FARTHEST_EXPONENT = 1000
_DIGITS_MOST = 1000  # on each side of the point: far more than decides anything

NOT_A_QUANTITY = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
BAD_SUFFIX = "unable to parse quantity's suffix"


@lru_cache(maxsize=16_384)
def canonical_quantity(text: str) -> str:
    """The canonical text of a quantity.

    Raises   ValueError with Kubernetes' words when the text is none.
    Source   k8s.io/apimachinery resource.Quantity: ParseQuantity, CanonicalizeBytes.
    """
    match = _PARTS.fullmatch(text)
    if match is None or not (match[2] or match[3]):
        raise ValueError(NOT_A_QUANTITY)
    power, form = _power_of(match[4])
    whole, part = match[2].lstrip("0")[:_DIGITS_MOST], (match[3] or "")[:_DIGITS_MOST]
    digits = int(whole + part or "0")
    if digits == 0:
        return "0"
    amount = Fraction(digits, 10 ** len(part)) * power
    nano = -(-amount * 10**9 // 1)  # rounded up: what is asked for is never lost
    amount = min(Fraction(nano, 10**9), Fraction(_MOST))
    sign = "-" if match[1] == "-" else ""
    if form == "binary" and amount >= 1024:
        return sign + _binary_text(-(-amount // 1))
    return sign + _decimal_text(amount, exponent=form == "exponent")


def _power_of(suffix: str) -> tuple[Fraction, str]:
    if suffix in _DECIMAL:
        return Fraction(10) ** _DECIMAL[suffix], "decimal"
    if suffix in _BINARY:
        return Fraction(1024) ** _BINARY[suffix], "binary"
    if len(suffix) > 1 and suffix[0] in "eE":
        try:
            exponent = int(suffix[1:])
        except ValueError:
            raise ValueError(BAD_SUFFIX) from None
        bounded = max(-_FARTHEST_EXPONENT, min(_FARTHEST_EXPONENT, exponent))
        return Fraction(10) ** bounded, "exponent"
    raise ValueError(BAD_SUFFIX)


def _binary_text(whole: int) -> str:
    power = 0
    while power < 6 and whole % 1024 == 0:
        whole //= 1024
        power += 1
    return f"{whole}{_BINARY_NAME[power]}"


def _decimal_text(amount: Fraction, *, exponent: bool) -> str:
    mantissa, power = int(amount * 10**9), -9
    while power < 18 and mantissa % 1000 == 0:
        mantissa //= 1000
        power += 3
    if exponent:
        return f"{mantissa}e{power}" if power else str(mantissa)
    return f"{mantissa}{_DECIMAL_NAME[power]}"
