"""CEL selectors of devices: does this device meet this expression?  And what does it say of the device?

The language is a kept library's (common-expression-language, the Rust interpreter); the functions that
Kubernetes adds for quantities and versions are here.  An expression is compiled once, and answered once for
all devices that are alike in what it reads.  In come an expression and a device; out goes yes, no, or an
error in words.  Source: KEP-4381; k8s.io/dynamic-resource-allocation cel.
"""

import re
from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import Any

from muster.api.devices import Device, DeviceAttribute
from muster.api.quantity import QuantityError, parse_quantity
from muster.api.versions import Version, VersionError, is_version, parse_version
from muster.placement.device_strings import TEXT_FUNCTIONS, without_bindings

EXPRESSION_BYTES_MAX = 10 * 1024
LOOPS_MAX = 2  # macros inside macros
GROWTH_MAX = 10_000  # so many times what it reads may be made by an expression
_FEW = 64  # a device has no more attributes, and an attribute no more characters
_MILLI = 1000
_QUANTITY, _VERSION = "quantity", "version"
_DOMAIN = re.compile(r"""\[\s*["']([^"']+)["']\s*\]""")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LOOP = re.compile(r"\.\s*(?:all|exists|exists_one|map|filter)\s*\(\s*([A-Za-z_]\w*)?")
_BIND = re.compile(r"\bcel\s*\.\s*bind\s*\(\s*([A-Za-z_]\w*)?")
_LITERAL = re.compile(r""""[^"]*"|'[^']*'""")
# Every way to read one thing of a device by its name; whatever else is done with `device` may read all.
_NAME = r"""(?:\.\s*[A-Za-z_]\w*\b(?!\s*\()|\[\s*(?:"\w+"|'\w+')\s*\])"""
_DOMAIN_OF = r"""\bdevice\.(?:attributes|capacity)\s*\[\s*(?:"[^"]+"|'[^']+')\s*\]"""
_BY_NAME = re.compile(
    rf"""{_DOMAIN_OF}\s*{_NAME}|(?:^|[(&|,?:])\s*(?:"\w+"|'\w+')\s+in\s+{_DOMAIN_OF}(?!\s*[.\[])"""
    r"|\bdevice\.(?:driver|allowMultipleAllocations)\b"
)


class SelectorError(ValueError):
    """An expression that cannot be read, or that fails on a device; the text says which and how."""


class Failure(str):
    """Why an expression fails on a device."""


class Selector:
    """One compiled expression.  Raises   SelectorError if it cannot be read or could take too long."""

    def __init__(self, expression: str) -> None:
        self.expression = expression
        if len(expression.encode()) > EXPRESSION_BYTES_MAX:
            raise SelectorError(f"CEL expression is longer than {EXPRESSION_BYTES_MAX} bytes")
        if len(_LOOP.findall(expression)) > LOOPS_MAX:
            raise SelectorError(f"CEL expression has more than {LOOPS_MAX} macros, which could take too long")
        if _growth(expression) > GROWTH_MAX:
            raise SelectorError(
                f"CEL expression could make more than {GROWTH_MAX} times what it reads:"
                " use what cel.bind and macros name less often, and shorter lists"
            )
        import cel  # 0.2 s, only for those whose cluster has devices

        try:
            self._program = cel.compile(without_bindings(expression))
        except ValueError as error:
            raise SelectorError(f"CEL compile error: {_first_line(error)}") from error
        self._words = frozenset(_WORD.findall(expression))
        self._domains = frozenset(_DOMAIN.findall(expression))
        self._reads_all = "device" in _WORD.findall(_BY_NAME.sub(" ", expression))
        self._known: dict[object, Any] = {}

    def meets(self, driver: str, device: Device) -> bool:
        """Whether the device meets the expression.  Raises   SelectorError where it fails on the device."""
        answer = self._answer(driver, device)
        if not isinstance(answer, bool):
            raise SelectorError(f"CEL expression gives {type(answer).__name__}, not a bool")
        return answer

    def value(self, driver: str, device: Device) -> Hashable:
        """What it says of the device, as constraints compare it.  Raises   SelectorError."""
        answer = self._answer(driver, device)
        if isinstance(answer, dict) and _VERSION in answer:
            return (_VERSION, _read(answer))
        for kind, type_ in (("bool", bool), ("int", int), ("string", str)):
            if isinstance(answer, type_):
                return (kind, answer)
        raise SelectorError(
            f"CEL expression gives {type(answer).__name__}, not a bool, int, string or version"
        )

    def _answer(self, driver: str, device: Device) -> Any:
        facts = _facts_of(driver, device)
        read = (item for item in facts if self._reads_all or item[1] in self._words or item[0] == "many")
        key = (driver, *read)
        if key not in self._known:
            self._known[key] = self._evaluate(driver, device)
        answer = self._known[key]
        if isinstance(answer, Failure):
            raise SelectorError(answer)
        return answer

    def _evaluate(self, driver: str, device: Device) -> Any:
        import cel

        context = cel.Context()
        for name, function in _FUNCTIONS.items():
            context.add_function(name, function)
        context.add_variable("device", _variable(driver, device, self._domains))
        try:
            return self._program.execute(context)
        except KeyError as error:
            return Failure(f"CEL runtime error: no such key: {str(error).strip(chr(39))}")
        except (ValueError, TypeError, RuntimeError, ArithmeticError) as error:
            return Failure(f"CEL runtime error: {_first_line(error)}")


@lru_cache(maxsize=4096)
def selector_of(expression: str) -> Selector:
    """The compiled expression, kept for the next who asks.  Raises   SelectorError."""
    return Selector(expression)


def value_of(attribute: DeviceAttribute) -> Hashable:
    """What an attribute says, as constraints compare it: its kind and its value."""
    if attribute.version is not None:
        return (_VERSION, parse_version(attribute.version)) if is_version(attribute.version) else None
    plain = {"bool": attribute.bool_value, "int": attribute.int_value, "string": attribute.string}
    return next(((kind, value) for kind, value in plain.items() if value is not None), None)


def find_attribute(driver: str, device: Device, name: str) -> DeviceAttribute | None:
    """The attribute of this full name; one without a domain is of the driver's own."""
    attributes = device.attributes or {}
    if name in attributes:
        return attributes[name]
    domain, _, short = name.rpartition("/")
    return attributes.get(short) if domain == driver else None


def _growth(expression: str) -> int:
    """How many times what it reads an expression can make at most: by loops, and by naming results again."""
    words = _WORD.findall(expression)
    longest = max(map(len, _LITERAL.findall(expression)), default=0) if "split" in words else 0
    elements = max(_FEW, expression.count(",") + 1, longest)
    growth = 1
    for names, least in ((_LOOP.findall(expression), elements), (_BIND.findall(expression), 1)):
        for name in names:
            growth *= max(least, words.count(name) - 1)
    return growth


def _facts_of(driver: str, device: Device) -> tuple[tuple[str, str, object], ...]:
    """Everything an expression can read of a device, by the last word of its name."""
    facts: list[tuple[str, str, object]] = [("many", "", bool(device.allow_multiple_allocations))]
    for name, attribute in sorted((device.attributes or {}).items()):
        facts.append((name, name.rpartition("/")[2], repr(attribute)))
    for name, capacity in sorted((device.capacity or {}).items()):
        facts.append((name, name.rpartition("/")[2], str(capacity.value)))
    return tuple(facts)


def _variable(driver: str, device: Device, domains: frozenset[str]) -> dict[str, Any]:
    """`device` as expressions see it; a domain that a device does not have is an empty one."""
    attributes: dict[str, dict[str, Any]] = {domain: {} for domain in domains}
    capacity: dict[str, dict[str, Any]] = {domain: {} for domain in domains}
    for name, attribute in (device.attributes or {}).items():
        domain, _, short = name.rpartition("/")
        attributes.setdefault(domain or driver, {})[short] = _cel_value(attribute)
    for name, amount in (device.capacity or {}).items():
        domain, _, short = name.rpartition("/")
        capacity.setdefault(domain or driver, {})[short] = _quantity(str(amount.value))
    return {
        "driver": driver,
        "attributes": attributes,
        "capacity": capacity,
        "allowMultipleAllocations": bool(device.allow_multiple_allocations),
    }


def _cel_value(attribute: DeviceAttribute) -> Any:
    for many in (attribute.bools, attribute.ints, attribute.strings):
        if many is not None:
            return list(many)
    if attribute.versions is not None:
        return [_version(text) for text in attribute.versions]
    if attribute.version is not None:
        return _version(attribute.version)
    plain = (attribute.bool_value, attribute.int_value, attribute.string)
    return next((value for value in plain if value is not None), None)


# ── the functions that Kubernetes adds ───────────────────────────────────────────────────────────

_Tagged = dict[str, Any]


def _quantity(text: str) -> _Tagged:
    try:
        return {_QUANTITY: parse_quantity(text, milli=True)}
    except QuantityError as error:
        raise ValueError(str(error)) from error


def _version(text: str) -> _Tagged:
    try:
        version = parse_version(text)
    except VersionError as error:
        raise ValueError(str(error)) from error
    return {_VERSION: text.partition("+")[0], "numbers": list(version.numbers)}


def _normalized(text: str) -> str:
    """A version as people write it made one of three numbers: "v1.02" is 1.2.0."""
    parts = text.removeprefix("v").split(".", 2)
    for index, part in enumerate(parts):
        bare = part.lstrip("0") if len(part) > 1 else part
        parts[index] = bare if bare[:1].isdecimal() else f"0{bare}" if len(part) > 1 else part
    if len(parts) < 3 and {"+", "-"} & set(parts[-1]):
        raise ValueError("short version cannot contain PreRelease/Build meta data")
    return ".".join([*parts, *["0"] * (3 - len(parts))])


def _is_version(text: str, loose: bool = False) -> bool:
    try:
        return is_version(_normalized(text) if loose else text)
    except ValueError:
        return False


def _is_quantity(text: str) -> bool:
    try:
        parse_quantity(text)
    except QuantityError:
        return False
    return True


def _order(one: _Tagged, other: _Tagged) -> int:
    """−1, 0 or 1; only like with like."""
    if _QUANTITY in one and _QUANTITY in other:
        low, high = one[_QUANTITY], other[_QUANTITY]
    elif _VERSION in one and _VERSION in other:
        low, high = _read(one), _read(other)
    else:
        raise TypeError("quantities compare with quantities, versions with versions")
    return int(low > high) - int(low < high)


def _read(tagged: _Tagged) -> Version:
    return parse_version(str(tagged[_VERSION]))


def _plus(one: _Tagged, other: Any, sign: int) -> _Tagged:
    amount = other[_QUANTITY] if isinstance(other, dict) else int(other) * _MILLI
    return {_QUANTITY: one[_QUANTITY] + sign * amount}


def _as_integer(tagged: _Tagged) -> int:
    whole, rest = divmod(tagged[_QUANTITY], _MILLI)
    if rest:
        raise ValueError("the quantity is no whole number")
    return int(whole)


def _number(tagged: _Tagged, index: int) -> int:
    return int(tagged["numbers"][index])


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **TEXT_FUNCTIONS,
    "quantity": _quantity,
    "isQuantity": _is_quantity,
    "semver": lambda text, loose=False: _version(_normalized(text) if loose else text),
    "isSemver": _is_version,
    "compareTo": _order,
    "isGreaterThan": lambda one, other: _order(one, other) > 0,
    "isLessThan": lambda one, other: _order(one, other) < 0,
    "sign": lambda one: (one[_QUANTITY] > 0) - (one[_QUANTITY] < 0),
    "isInteger": lambda one: one[_QUANTITY] % _MILLI == 0,
    "asInteger": _as_integer,
    "asApproximateFloat": lambda one: one[_QUANTITY] / _MILLI,
    "add": lambda one, other: _plus(one, other, 1),
    "sub": lambda one, other: _plus(one, other, -1),
    "major": lambda one: _number(one, 0),
    "minor": lambda one: _number(one, 1),
    "patch": lambda one: _number(one, 2),
}


def _first_line(error: Exception) -> str:
    return str(error).split("\n")[0]
