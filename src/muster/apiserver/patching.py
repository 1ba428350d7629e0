"""PATCH: the object that a JSON patch, a merge patch or a strategic merge patch makes of a stored one.

The result is decoded by the schema of the kind like any body.  Strategic merges are in `strategic.py`.
"""

import json
from typing import Any

import msgspec

from muster.apiserver.bodies import type_fault
from muster.apiserver.calls import Call
from muster.apiserver.codec import DecodeError, Reading, decode
from muster.apiserver.gojson import Document, JsonError, duplicates_of, parse
from muster.apiserver.kinds import Cause, Object, Refused
from muster.apiserver.routing import Route
from muster.apiserver.schemas import Record
from muster.apiserver.statuses import bad_request, invalid, not_found
from muster.apiserver.strategic import PatchError, go_text, merge_strategically
from muster.apiserver.views import view_of

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
_OPERATIONS_MOST = 10_000
_COPIED_BYTES_MOST = 3 * 1024 * 1024  # by all copies of one patch, as stock's
_NOT_A_MAP = "json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
_REJECTED = "the server rejected our request due to an error in our request"


def apply_patch(call: Call, route: Route, old: Object | None, validation: str) -> Object:
    """The patched object, decoded, in the version and form that the request speaks.

    Raises   Refused: 415, 400 and 422 for patches that cannot be read or applied, 404 where there is
             nothing to patch.
    """
    try:
        return _patched(call, route, old, validation)
    except RecursionError:
        raise bad_request("error decoding patch: exceeded max depth") from None


def _patched(call: Call, route: Route, old: Object | None, validation: str) -> Object:
    content = _content_type(call)
    document = _read_patch(call)
    if old is None:
        raise not_found(route.kind, route.name)
    current = view_of(route.kind, route.version, old)
    record = call.record_of(*_kind_of(route))
    faults = duplicates_of(document)
    is_strategic = content == STRATEGIC_PATCH
    if content == JSON_PATCH:
        faults = [f"json patch {fault}" for fault in faults]
        patched = _apply_json_patch(current, document.value)
    elif content == MERGE_PATCH:
        if document.value is None:
            raise bad_request("Invalid JSON Patch")
        if not isinstance(document.value, dict):
            raise bad_request(f"error decoding patch: {_NOT_A_MAP.format(found=_found(document.value))}")
        patched = merge_patch(current, document.value)
    else:
        patched = _merge_strategically(record, current, document.value)
    why = "" if is_strategic else type_fault(call, patched, *_kind_of(route))
    if why:
        raise _not_decodable(document, patched, why, is_strategic=is_strategic)
    reading = Reading()
    try:
        obj = decode(record, patched, reading)
    except DecodeError as error:
        why = error.converted if is_strategic else str(error)
        raise _not_decodable(document, patched, why, is_strategic=is_strategic) from None
    faults += sorted(reading.faults) if is_strategic else reading.faults  # stock's order
    if faults and validation == "Strict":
        why = f"strict decoding error: {', '.join(faults)}"
        raise _not_decodable(document, patched, why, is_strategic=is_strategic)
    if validation == "Warn":
        for fault in faults:
            call.warn(fault)
    return obj


def _merge_strategically(record: Record, current: Object, patch: Any) -> Object:
    if patch is None:
        return current
    if not isinstance(patch, dict):
        raise bad_request(_NOT_A_MAP.format(found=_found(patch)))
    try:
        return merge_strategically(record, current, patch)
    except PatchError as error:
        raise Refused(str(error), code=500, reason="") from None


def _content_type(call: Call) -> str:
    given = call.request.headers.get("content-type", "").partition(";")[0]
    if not given and isinstance(call.request.body, dict):
        return MERGE_PATCH
    if given not in (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH):
        raise Refused("415: Unsupported Media Type", code=415, reason="UnsupportedMediaType", details={})
    return given


def _read_patch(call: Call) -> Document:
    body = call.request.body
    if isinstance(body, dict):
        return Document(body, {})
    try:
        return parse(body)
    except JsonError:
        raise bad_request("invalid JSON patch") from None


def _found(value: Any) -> str:
    return {list: "array", str: "string", bool: "bool", dict: "object"}.get(type(value), "number")


def _kind_of(route: Route) -> tuple[str, str, str]:
    return route.kind.group, route.version, route.kind.kind


def _not_decodable(document: Document, patched: Object, why: str, *, is_strategic: bool) -> Refused:
    shown = go_text(document.value) if is_strategic else json.dumps(patched, separators=(",", ":"))
    quoted = json.dumps(shown, ensure_ascii=False)
    cause = Cause("patch", "FieldValueInvalid", f"Invalid value: {quoted}: {why}")
    return invalid("", "", "", [cause])


def merge_patch(target: Any, patch: Any) -> Any:
    """The value that a merge patch makes of another (RFC 7396); it may share parts with both."""
    if not isinstance(patch, dict):
        return patch
    out = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            out.pop(name, None)
        else:
            out[name] = merge_patch(out.get(name), value)
    return out


# JSON patch (RFC 6902)


class _Rejected(Exception):
    """An operation that cannot be done."""


def _apply_json_patch(current: Object, operations: Any) -> Object:
    if operations is None:
        return current
    if not isinstance(operations, list):
        why = f"json: cannot unmarshal {_found(operations)} into Go value of type []handlers.jsonPatchOp"
        raise bad_request(f"error decoding patch: {why}")
    for operation in operations:
        if not isinstance(operation, dict):
            why = f"json: cannot unmarshal {_found(operation)} into Go value of type handlers.jsonPatchOp"
            raise bad_request(f"error decoding patch: {why}")
        for name in ("op", "path", "from"):
            if not isinstance(operation.get(name) or "", str):
                found = _found(operation[name])
                why = f"json: cannot unmarshal {found} into Go struct field jsonPatchOp.{name} of type string"
                raise bad_request(f"error decoding patch: {why}")
    if len(operations) > _OPERATIONS_MOST:
        message = (
            "Request entity too large: The allowed maximum operations in a JSON patch is "
            f"{_OPERATIONS_MOST}, got {len(operations)}"
        )
        raise Refused(message, code=413, reason="RequestEntityTooLarge")
    document, left = copied(current), _COPIED_BYTES_MOST
    try:
        for operation in operations:
            if operation.get("op") == "copy":
                left -= _size_of_copy(document, operation)
                if left < 0:
                    raise _Rejected
            document = _apply_operation(document, operation)
    except (_Rejected, RecursionError):
        raise Refused(_REJECTED, code=422, reason="Invalid", details={}) from None
    if not isinstance(document, dict):
        raise Refused(_REJECTED, code=422, reason="Invalid", details={})
    return document


def copied(value: Any) -> Any:
    """A JSON value that shares nothing with this one."""
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    if isinstance(value, list):
        return [copied(item) for item in value]
    return value


def _size_of_copy(document: Any, operation: dict[str, Any]) -> int:
    """How many bytes a copy adds: one of everything into itself doubles it, time and again."""
    source = operation.get("from")
    if not isinstance(source, str):
        raise _Rejected
    return len(msgspec.json.encode(_look(document, source, or_nothing=True)))


def _apply_operation(document: Any, operation: dict[str, Any]) -> Any:
    name, path = operation.get("op"), operation.get("path")
    if not isinstance(path, str):
        raise _Rejected
    if name == "test":
        if _look(document, path, or_nothing=True) != operation.get("value"):
            raise _Rejected
        return document
    if name == "remove":
        return _remove(document, path)
    if name == "add":
        return _add(document, path, operation.get("value"))
    if name == "replace":
        _look(document, path, or_nothing=True)
        return _replace(document, path, operation.get("value"))
    if name in ("move", "copy"):
        source = operation.get("from")
        if not isinstance(source, str):
            raise _Rejected
        value = _look(document, source, or_nothing=name == "copy")
        if name == "move":
            document = _remove(document, source)
        return _add(document, path, copied(value))
    raise _Rejected


def _parts(path: str) -> list[str]:
    if path == "":
        return []
    if not path.startswith("/"):
        raise _Rejected
    return [part.replace("~1", "/").replace("~0", "~") for part in path[1:].split("/")]


def _index(part: str, length: int) -> int:
    try:
        index = int(part)
    except ValueError:
        raise _Rejected from None
    if index < 0:
        index += length
    if not 0 <= index < length:
        raise _Rejected
    return index


def _look(document: Any, path: str, *, or_nothing: bool = False) -> Any:
    """The value at a path; `or_nothing`: None where only its last part is not there."""
    here = document
    parts = _parts(path)
    for index, part in enumerate(parts):
        if isinstance(here, dict) and part in here:
            here = here[part]
        elif isinstance(here, dict) and or_nothing and index == len(parts) - 1:
            return None
        elif isinstance(here, list):
            here = here[_index(part, len(here))]
        else:
            raise _Rejected
    return here


def _holder(document: Any, path: str) -> tuple[Any, str]:
    *parents, last = _parts(path)
    holder = document
    for part in parents:
        if isinstance(holder, dict) and part in holder:
            holder = holder[part]
        elif isinstance(holder, list):
            holder = holder[_index(part, len(holder))]
        else:
            raise _Rejected
    if not isinstance(holder, (dict, list)):
        raise _Rejected
    return holder, last


def _add(document: Any, path: str, value: Any) -> Any:
    if path == "":
        return value
    holder, last = _holder(document, path)
    if isinstance(holder, dict):
        holder[last] = value
    elif last == "-":
        holder.append(value)
    else:
        holder.insert(_index(last, len(holder) + 1), value)
    return document


def _replace(document: Any, path: str, value: Any) -> Any:
    if path == "":
        return value
    holder, last = _holder(document, path)
    holder[last if isinstance(holder, dict) else _index(last, len(holder))] = value
    return document


def _remove(document: Any, path: str) -> Any:
    if path == "":
        raise _Rejected
    holder, last = _holder(document, path)
    if isinstance(holder, dict):
        if last not in holder:
            raise _Rejected
        del holder[last]
    else:
        del holder[_index(last, len(holder))]
    return document
