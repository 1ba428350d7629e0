"""Kubernetes quantities as exact integers of a base unit.

In comes the text (or number) that a manifest holds; out goes an int64-sized integer: milli-CPU for "cpu",
whole units for everything else, rounded up as Kubernetes does, saturating and never wrapping.
Next: `cluster/requests.py`, which adds quantities up to what a pod takes.
"""

import re
from functools import lru_cache

INT64_MAX = 2**63 - 1

_GRAMMAR = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<part>[0-9]*))?"
    r"(?:[eE](?P<exponent>[+-]?[0-9]+)|(?P<suffix>[KMGTPE]i|[numkMGTPE]|))",
    re.ASCII,
)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_EXPONENT_BOUND = 10_000  # far beyond int64 in either direction, small enough to compute with
_DIGITS_MAX = 100  # the rest of a longer number can only round it up
_MILLI_PER_UNIT = 1000


class QuantityError(ValueError):
    """A text that is not a quantity."""


def parse_quantity(value: str | int | float, *, milli: bool = False) -> int:
    """Give the quantity in whole units, or in thousandths with `milli`.

    Rounded up (away from zero); held within ±(2**63 − 1).
    Raises   QuantityError if the text does not follow the quantity grammar.
    Source   k8s.io/apimachinery resource.Quantity: ParseQuantity, Value and MilliValue.
    """
    return _parse_text(str(value).strip(), milli)


def resource_amount(resource: str, value: str | int | float) -> int:
    """Give the quantity in the base unit of this resource: milli-CPU for "cpu", else whole units."""
    return parse_quantity(value, milli=resource == "cpu")


@lru_cache(maxsize=16_384)
def _parse_text(text: str, milli: bool) -> int:
    match = _GRAMMAR.fullmatch(text)
    if match is None or not (match["whole"] or match["part"]):
        raise QuantityError(f"not a quantity: {text!r}")
    part = match["part"] or ""
    digits = (match["whole"] + part).lstrip("0")
    if not digits:
        return 0
    suffix = match["suffix"] or ""
    ten = -len(part) + (3 if milli else 0) + _DECIMAL.get(suffix, 0) + _exponent_of(match["exponent"])
    if len(digits) > _DIGITS_MAX:
        ten += len(digits) - _DIGITS_MAX
        digits = str(int(digits[:_DIGITS_MAX]) + 1)
    if len(digits) + ten > 19:  # at least 10**19, before a binary suffix makes it larger still
        amount = INT64_MAX
    elif len(digits) + ten < -20:  # below one part in 10**20: even times 1Ei it rounds up to one unit
        amount = 1
    else:
        amount = min(_scale_up(int(digits), ten, _BINARY.get(suffix, 0)), INT64_MAX)
    return -amount if match["sign"] == "-" else amount


def _exponent_of(text: str | None) -> int:
    """Read the exponent, cut to a bound: "1e99999999999" must cost nothing."""
    if text is None:
        return 0
    if len(text) > len(str(_EXPONENT_BOUND)):
        sign = -1 if text.startswith("-") else 1
        return sign * _EXPONENT_BOUND if text.lstrip("+-").lstrip("0") else 0
    return int(text)


def _scale_up(digits: int, ten: int, two: int) -> int:
    """Compute ceil(digits · 10**ten · 2**two) without floats."""
    number = digits << two
    power: int = 10 ** abs(ten)
    return number * power if ten >= 0 else -(-number // power)


def format_amount(resource: str, amount: int) -> str:
    """Write an amount of base units as a person would: 1500 milli-CPU as "1500m", 2**30 bytes as "1Gi"."""
    if resource == "cpu":
        whole, milli = divmod(amount, _MILLI_PER_UNIT)
        return str(whole) if milli == 0 else f"{amount}m"
    if resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-"):
        return _format_bytes(amount)
    return str(amount)


def _format_bytes(amount: int) -> str:
    for suffix, two in reversed(_BINARY.items()):
        if amount and amount % (1 << two) == 0:
            return f"{amount >> two}{suffix}"
    return str(amount)
