"""Kubernetes' protobuf bodies, read into the values that JSON would have given.

kubectl sends some requests (imperative create, access reviews) in no other form.  The envelope names the
type; fields are found by the numbers in the schemas.  Next: `codec.py`, as for JSON.
"""

import base64
import struct
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from muster.api.times import format_moment
from muster.apiserver.schemas import Field, ListOf, MapOf, Record, Scalar, Type

_PREFIX = b"k8s\x00"
_DEEPEST = 100
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class ProtobufError(ValueError):
    """A body that is not a Kubernetes protobuf message."""


def decode_protobuf(record: Record, body: bytes) -> dict[str, Any]:
    """The object in an enveloped message, with apiVersion and kind as the envelope names them.

    Raises   ProtobufError.
    """
    if not body.startswith(_PREFIX):
        why = "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
        raise ProtobufError(why)
    try:
        envelope = dict(_fields(body[len(_PREFIX) :]))
        type_meta = {number: _text(value) for number, value in _fields(_bytes_of(envelope.get(1, b"")))}
        value = _message(record, _bytes_of(envelope.get(2, b"")), 0)
    except (IndexError, struct.error, OverflowError):
        raise ProtobufError("unexpected EOF") from None
    return {"apiVersion": type_meta.get(1, ""), "kind": type_meta.get(2, ""), **value}


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            value, at = _varint(data, at)
            yield number, value
        elif wire == 2:
            length, at = _varint(data, at)
            if at + length > len(data):
                raise ProtobufError("unexpected EOF")
            yield number, data[at : at + length]
            at += length
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
            yield number, data[at : at + size]
            at += size
        else:
            raise ProtobufError(f"proto: illegal wireType {wire}")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (1 << 64) - 1, at
        shift += 7
        if shift > 63:
            raise ProtobufError("proto: integer overflow")


def _bytes_of(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ProtobufError("proto: wrong wireType")
    return value


def _text(value: int | bytes) -> str:
    return _bytes_of(value).decode("utf-8", "replace")


def _message(record: Record, data: bytes, depth: int) -> dict[str, Any]:
    if depth > _DEEPEST:
        raise ProtobufError("exceeded max depth")
    return _fill(list(record.fields.values()), data, depth)


def _fill(fields: list[Field], data: bytes, depth: int, level: int = 0) -> dict[str, Any]:
    """Read the fields whose number at this level is met; embedded types lie one level deeper."""
    here = [field for field in fields if len(field.number) > level]
    plain = {field.number[level]: field for field in here if len(field.number) == level + 1}
    out: dict[str, Any] = {}
    for number, value in _fields(data):
        nested = [field for field in here if field.number[level] == number and len(field.number) > level + 1]
        if nested:
            out |= _fill(nested, _bytes_of(value), depth + 1, level + 1)
        elif (field := plain.get(number)) is not None:
            _put(out, field, value, depth)
    return out


def _put(out: dict[str, Any], field: Field, value: int | bytes, depth: int) -> None:
    type_ = field.type
    if isinstance(type_, ListOf):
        if isinstance(type_.item, Scalar) and type_.item.form in ("int", "bool") and isinstance(value, bytes):
            at = 0
            while at < len(value):  # packed
                item, at = _varint(value, at)
                out.setdefault(field.name, []).append(_scalar(type_.item, item))
            return
        out.setdefault(field.name, []).append(_one(type_.item, value, depth))
    elif isinstance(type_, MapOf):
        entry = dict(_fields(_bytes_of(value)))
        item = _one(type_.item, entry.get(2, b""), depth)
        out.setdefault(field.name, {})[_text(entry.get(1, b""))] = item
    else:
        out[field.name] = _one(type_, value, depth)


def _one(type_: Type, value: int | bytes, depth: int) -> Any:
    if isinstance(type_, Record):
        return _message(type_, _bytes_of(value), depth + 1)
    if isinstance(type_, Scalar):
        return _scalar(type_, value)
    items = [item for number, item in _fields(_bytes_of(value)) if number == 1]
    assert isinstance(type_, ListOf)
    return [_one(type_.item, item, depth + 1) for item in items]


def _scalar(type_: Scalar, value: int | bytes) -> Any:
    form = type_.form
    if form == "string":
        return _text(value)
    if form == "bool":
        return bool(value)
    if form == "int":
        return _signed(value)
    if form == "float":
        return struct.unpack("<d", _bytes_of(value))[0]
    if form == "bytes":
        return base64.b64encode(_bytes_of(value)).decode()
    inner = dict(_fields(_bytes_of(value)))
    if form == "quantity":
        return _text(inner.get(1, b""))
    if form in ("time", "microtime"):
        return _time_text(inner, form)
    if form == "intstr":
        return _text(inner.get(3, b"")) if inner.get(1, 0) else _signed(inner.get(2, 0))
    return {}


def _signed(value: int | bytes) -> int:
    if not isinstance(value, int):
        raise ProtobufError("proto: wrong wireType")
    return value - (1 << 64) if value >> 63 else value


def _time_text(inner: dict[int, int | bytes], form: str) -> str | None:
    """The text of a time: whole seconds, or as many microseconds more as its nanoseconds (int32) make."""
    if not inner:
        return None
    seconds, nanos = _signed(inner.get(1, 0)), _signed(inner.get(2, 0))
    nanos = (nanos + (1 << 31)) % (1 << 32) - (1 << 31)
    micros = abs(nanos) // 1000 * (1 if nanos > 0 else -1) if form == "microtime" else 0
    try:
        moment = _EPOCH + timedelta(seconds=seconds, microseconds=micros)
        return format_moment(moment, "microseconds" if form == "microtime" else "seconds")
    except OverflowError:
        raise ProtobufError(f"no time: {seconds} s, {nanos} ns") from None
