"""From what a client sent to an object as Kubernetes would print it.

`decode` walks a value by its schema: types are checked with Go's error texts, unknown fields are pruned
and remembered, texts such as quantities and times are made canonical, zero values are dropped or
filled in as Go prints them.  The result shares nothing with the input.  Next: `writing.py`.
"""

import base64
import binascii
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from muster.api.times import format_moment
from muster.apiserver.gojson import Decimal
from muster.apiserver.quantities import NOT_A_QUANTITY, canonical_quantity
from muster.apiserver.quoting import quoted
from muster.apiserver.schemas import Field, ListOf, MapOf, Record, Scalar, Type

_TIME = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(\.\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII)
_LAYOUT = "2006-01-02T15:04:05Z07:00"
_MICRO_LAYOUT = "2006-01-02T15:04:05.000000Z07:00"
_MICRO_LENGTH = len(".000000")
_STRICT_ERRORS_MOST = 100


class DecodeError(ValueError):
    """A value of the wrong type, in the words of Go's decoder; `converted` are those of the converter that
    strategic merge patches go through."""

    def __init__(self, message: str, *, converted: str = "") -> None:
        super().__init__(message)
        self.converted = converted or message


class _Mismatch(Exception):
    """A value that Go's decoder cannot put where it stands; the path grows on the way up."""

    def __init__(self, found: str, go: str, *, is_record: bool = False) -> None:
        self.found = found
        self.go = go
        self.is_record = is_record
        self.holder = ""
        self.path: list[str] = []


class Reading:
    """What a strict decoder would complain about, in the order it meets it."""

    __slots__ = ("faults", "twice")

    def __init__(self, twice: dict[int, list[str]] | None = None) -> None:
        self.twice = twice or {}
        self.faults: list[str] = []

    def add(self, fault: str) -> None:
        if len(self.faults) < _STRICT_ERRORS_MOST and fault not in self.faults:
            self.faults.append(fault)

    def add_twice(self, value: dict[str, Any], path: str, known: Mapping[str, object] | None = None) -> None:
        for name in self.twice.get(id(value), ()):
            if known is not None and name not in known:
                continue  # told as unknown already
            self.add(f"duplicate field {quoted(path + name)}")


def decode(record: Record, value: dict[str, Any], reading: Reading) -> dict[str, Any]:
    """The object that `value` describes.

    Unknown fields and fields given twice are added to `reading`.
    Raises   DecodeError.
    """
    try:
        return _record(record, value, "", reading)
    except RecursionError:
        raise DecodeError("exceeded max depth") from None
    except _Mismatch as mismatch:
        where = f"struct field {mismatch.holder}.{'.'.join(mismatch.path)}" if mismatch.path else "value"
        why = f"json: cannot unmarshal {mismatch.found} into Go {where} of type {mismatch.go}"
        raise DecodeError(why, converted=_conversion_fault(mismatch)) from None


def zero_of(type_: Type) -> Any:
    """What Go prints for a value of this type that was never set."""
    if isinstance(type_, Record):
        return {name: zero_of_field(field) for name, field in type_.always}
    if isinstance(type_, Scalar):
        return _ZEROS.get(type_.form)
    return None


def zero_of_field(field: Field) -> Any:
    """What Go prints for this field when nothing was given."""
    return None if field.pointer else zero_of(field.type)


def _conversion_fault(mismatch: _Mismatch) -> str:
    found, go = mismatch.found.partition(" ")[0], mismatch.go
    kind = {"number": "int64", "array": "slice", "object": "map"}.get(found, found)
    if go.startswith("map["):
        return f"cannot restore map from {kind}"
    if go.startswith("[]"):
        return f"cannot restore slice from {kind}"
    if mismatch.is_record:
        return f"cannot restore struct from: {kind}"
    if kind in ("slice", "map"):
        return f"unrecognized type: {go}"
    return f"cannot convert {kind} to {go}"


_ZEROS = {"string": "", "int": 0, "float": 0, "bool": False, "quantity": "0", "intstr": 0}


def _record(record: Record, value: Any, path: str, reading: Reading) -> dict[str, Any]:
    if type(value) is not dict:
        raise _Mismatch(_found(value), record.go, is_record=True)
    out: dict[str, Any] = {}
    fields = record.fields
    for name, item in value.items():
        field = fields.get(name)
        if field is None:
            reading.add(f"unknown field {quoted(path + name)}")
            continue
        if item is None:
            continue
        try:
            made = _value(field.type, item, path + name, reading)
        except _Mismatch as mismatch:
            mismatch.path.insert(0, name)
            mismatch.holder = mismatch.holder or record.short
            raise
        if made or not field.drop_zero:
            out[name] = made
    if reading.twice:
        reading.add_twice(value, path, fields)
    for name, field in record.always:
        if name not in out:
            out[name] = zero_of_field(field)
    return out


def _value(type_: Type, value: Any, path: str, reading: Reading) -> Any:
    kind = type(type_)
    if kind is Scalar:
        form = type_.form  # type: ignore[union-attr]
        if form == "string" and type(value) is str:
            return value
        return _SCALARS[form](type_, value)  # type: ignore[arg-type]
    if kind is Record:
        return _record(type_, value, f"{path}.", reading)  # type: ignore[arg-type]
    if kind is ListOf:
        return _list(type_, value, path, reading)  # type: ignore[arg-type]
    return _map(type_, value, path, reading)  # type: ignore[arg-type]


def _list(type_: ListOf, value: Any, path: str, reading: Reading) -> Any:
    if type(value) is not list:
        raise _Mismatch(_found(value), type_.go)
    item_type = type_.item
    made = [
        zero_of(item_type) if item is None else _value(item_type, item, f"{path}[{index}]", reading)
        for index, item in enumerate(value)
    ]
    return made or None


def _map(type_: MapOf, value: Any, path: str, reading: Reading) -> Any:
    if type(value) is not dict:
        raise _Mismatch(_found(value), type_.go)
    if reading.twice:
        reading.add_twice(value, f"{path}.")
    item_type = type_.item
    made = {
        key: zero_of(item_type) if item is None else _value(item_type, item, f"{path}.{key}", reading)
        for key, item in value.items()
    }
    return made or None


def _string(type_: Scalar, value: Any) -> str:
    if type(value) is str:
        return value
    raise _Mismatch(_found(value), type_.go)


def _bool(type_: Scalar, value: Any) -> bool:
    if type(value) is bool:
        return value
    raise _Mismatch(_found(value), type_.go)


def _int(type_: Scalar, value: Any) -> int:
    if type(value) is int and -(1 << type_.bits) <= value < 1 << type_.bits:
        return value
    if isinstance(value, int | float) and type(value) is not bool:
        raise _Mismatch(f"number {_number(value)}", type_.go)
    raise _Mismatch(_found(value), type_.go)


def _float(type_: Scalar, value: Any) -> float:
    if isinstance(value, int | float) and type(value) is not bool:
        return float(value)
    raise _Mismatch(_found(value), type_.go)


def _bytes(type_: Scalar, value: Any) -> str:
    if type(value) is not str:
        raise _Mismatch(_found(value), type_.go)
    try:
        return base64.b64encode(base64.b64decode(value.replace("\n", ""), validate=True)).decode()
    except (binascii.Error, ValueError):
        raise DecodeError(f"illegal base64 data at input byte {_base64_fault(value)}") from None


def _base64_fault(text: str) -> int:
    match = re.match(r"[A-Za-z0-9+/]*", text)
    return min(match.end() if match else 0, max(len(text) - 1, 0))


def _quantity(type_: Scalar, value: Any) -> str:
    if type(value) is str:
        text = value.strip()
    elif isinstance(value, int | float) and type(value) is not bool:
        text = _number(value)
    else:
        raise DecodeError(NOT_A_QUANTITY)
    try:
        return canonical_quantity(text)
    except ValueError as error:
        raise DecodeError(str(error)) from None


def _intstr(type_: Scalar, value: Any) -> int | str:
    if type(value) is str:
        return value
    if type(value) is int and -(1 << 31) <= value < 1 << 31:
        return value
    is_number = isinstance(value, int | float) and type(value) is not bool
    found = f"number {_number(value)}" if is_number else _found(value)
    raise _Mismatch(found, "int32")


def _time(type_: Scalar, value: Any) -> str | None:
    return format_moment(_instant(value, _LAYOUT), "seconds")


def _microtime(type_: Scalar, value: Any) -> str | None:
    return format_moment(_instant(value, _MICRO_LAYOUT), "microseconds")


def _instant(value: Any, layout: str) -> datetime:
    if type(value) is not str:
        raise _Mismatch(_found(value), "string")
    match = _TIME.fullmatch(value)
    if match is None or (layout == _MICRO_LAYOUT and len(match[7] or "") != _MICRO_LENGTH):
        raise DecodeError(f'parsing time {quoted(value)} as "{layout}": cannot parse {_rest(value, layout)}')
    try:
        fraction = (match[7] or ".")[1:7].ljust(6, "0")
        zone = "+00:00" if match[8] == "Z" else match[8]
        return datetime.fromisoformat(f"{value[:19]}.{fraction}{zone}").astimezone(UTC)
    except (ValueError, OverflowError):
        raise DecodeError(f"parsing time {quoted(value)}: {_part_out_of_range(match)} out of range") from None


def _part_out_of_range(match: re.Match[str]) -> str:
    for group, part, least, most in (
        (2, "month", 1, 12),
        (4, "hour", 0, 23),
        (5, "minute", 0, 59),
        (6, "second", 0, 59),
    ):
        if not least <= int(match[group]) <= most:
            return part
    return "day"


def _rest(value: str, layout: str) -> str:
    """Where parsing stops, as Go tells it: what is left, and the element that it should have been."""
    parts = [(r"\d{4}", "2006"), ("-", "-"), (r"\d\d", "01"), ("-", "-"), (r"\d\d", "02"), ("T", "T")]
    parts += [(r"\d\d", "15"), (":", ":"), (r"\d\d", "04"), (":", ":"), (r"\d\d", "05")]
    parts += [(r"\.\d{6}", ".000000")] if layout == _MICRO_LAYOUT else [(r"(\.\d+)?", "")]
    parts += [(r"(Z|[+-]\d\d:\d\d)", "Z07:00")]
    at = 0
    for pattern, name in parts:
        match = re.compile(pattern).match(value, at)
        if match is None:
            return f'{quoted(value[at:])} as "{name}"'
        at = match.end()
    return quoted(value[at:])


def _object(type_: Scalar, value: Any) -> Any:
    """Kept as it is, but for numbers, which are plain again."""
    if isinstance(value, dict):
        return {key: _object(type_, item) for key, item in value.items()}
    if isinstance(value, list):
        return [_object(type_, item) for item in value]
    return float(value) if isinstance(value, float) else value


_SCALARS = {
    "string": _string,
    "bool": _bool,
    "int": _int,
    "float": _float,
    "bytes": _bytes,
    "quantity": _quantity,
    "intstr": _intstr,
    "time": _time,
    "microtime": _microtime,
    "object": _object,
}


def _found(value: Any) -> str:
    if type(value) is bool:
        return "bool"
    if isinstance(value, int | float):
        return "number"
    names: dict[type, str] = {str: "string", list: "array", dict: "object"}
    return names.get(type(value), "null")


def _number(value: float) -> str:
    """The number as it was written, as near as can be told."""
    return value.text if isinstance(value, Decimal) else repr(value)
