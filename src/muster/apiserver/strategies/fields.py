"""Field errors in the words of Kubernetes (`field.Error`), and safe reading of what clients sent.

Every function gives a `Cause`; strategies collect them in the order stock gives them.
"""

import json
from collections.abc import Iterable
from typing import Any

from muster.apiserver.kinds import Cause, Object
from muster.apiserver.quoting import quoted

IMMUTABLE = "field is immutable"
AT_LEAST_0 = "must be greater than or equal to 0"


def printed(value: object) -> str:
    """A value as Kubernetes prints it in an error: text quoted, all else JSON without spaces."""
    if isinstance(value, str):
        return quoted(value)
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def invalid(path: str, value: object, detail: str) -> Cause:
    """A value that breaks a rule."""
    return Cause(path, "FieldValueInvalid", f"Invalid value: {printed(value)}: {detail}")


def required(path: str, detail: str = "") -> Cause:
    """A value that is missing."""
    return Cause(path, "FieldValueRequired", f"Required value: {detail}" if detail else "Required value")


def not_supported(path: str, value: object, supported: Iterable[str]) -> Cause:
    """A word that is none of the known ones."""
    known = ", ".join(printed(word) for word in supported)
    return Cause(
        path, "FieldValueNotSupported", f"Unsupported value: {printed(value)}: supported values: {known}"
    )


def duplicate(path: str, value: object, detail: str = "") -> Cause:
    """A value that must be unique and is not."""
    tail = f": {detail}" if detail else ""
    return Cause(path, "FieldValueDuplicate", f"Duplicate value: {printed(value)}{tail}")


def forbidden(path: str, detail: str) -> Cause:
    """A field that may not be set, or not be changed."""
    return Cause(path, "FieldValueForbidden", f"Forbidden: {detail}")


def not_found(path: str, value: object, detail: str = "") -> Cause:
    """A name that points nowhere."""
    tail = f": {detail}" if detail else ""
    return Cause(path, "FieldValueNotFound", f"Not found: {printed(value)}{tail}")


def too_many(path: str, count: int, most: int) -> Cause:
    """A list with too many items."""
    items = "item" if most == 1 else "items"
    return Cause(path, "FieldValueTooMany", f"Too many: {count}: must have at most {most} {items}")


def too_long(path: str, most_bytes: int) -> Cause:
    """A text with too many bytes."""
    return Cause(path, "FieldValueTooLong", f"Too long: may not be more than {most_bytes} bytes")


def invalid_each(path: str, value: object, details: Iterable[str]) -> list[Cause]:
    """One error for each thing wrong with a value."""
    return [invalid(path, value, detail) for detail in details]


def at_least_0(path: str, value: object) -> list[Cause]:
    """An error if a number is there and below zero."""
    if isinstance(value, int) and value < 0:
        return [invalid(path, value, AT_LEAST_0)]
    return []


def mapping(owner: Object, key: str) -> Object:
    """The object under `key`, or an empty one; never written to."""
    value = owner.get(key)
    return value if isinstance(value, dict) else {}


def items(owner: Object, key: str) -> list[Any]:
    """The list under `key`, or an empty one; never written to."""
    value = owner.get(key)
    return value if isinstance(value, list) else []


def text(owner: Object, key: str) -> str:
    """The string under `key`, or an empty one."""
    value = owner.get(key)
    return value if isinstance(value, str) else ""


def keep_from(obj: Object, old: Object, key: str) -> None:
    """Give `obj` what `old` has under `key`, also when that is nothing."""
    if key in old:
        obj[key] = old[key]
    else:
        obj.pop(key, None)


def drop_empty(owner: Object, *keys: str) -> None:
    """Remove fields that Go leaves out of JSON: "", 0, false, empty lists and objects, null."""
    for key in keys:
        if key in owner and not owner[key]:
            del owner[key]
