"""JSON → the typed views of `core.py`, `scheduling.py`, …

In comes text or a plain dict as the API has it; out goes a typed object, or an `ObjectInvalid` that names the
place.  Unknown fields are ignored on the way in: whoever must keep them works on the plain dict.
"""

from typing import Any, TypeVar

import msgspec

from muster.base.errors import ObjectInvalid

T = TypeVar("T")


def decode_object(raw: bytes | str | dict[str, Any], kind: type[T]) -> T:
    """Read one object.  A null counts as an absent field, as in Go.

    Raises   ObjectInvalid if it is no JSON, or a field has the wrong type; the message carries the path.
    """
    try:
        if isinstance(raw, dict):
            return msgspec.convert(raw, kind)
        return msgspec.json.decode(raw, type=kind)
    except msgspec.ValidationError as error:
        plain = raw if isinstance(raw, dict) else msgspec.json.decode(raw)
        pruned = _without_nulls(plain)
        if pruned == plain:
            raise ObjectInvalid(f"{kind.__name__}: {error}") from error
    except msgspec.DecodeError as error:
        raise ObjectInvalid(f"{kind.__name__}: {error}") from error
    try:
        return msgspec.convert(pruned, kind)
    except msgspec.ValidationError as error:
        raise ObjectInvalid(f"{kind.__name__}: {error}") from error


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(part) for key, part in value.items() if part is not None}
    if isinstance(value, list):
        return [_without_nulls(part) for part in value]
    return value
