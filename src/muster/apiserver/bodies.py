"""The body of a request, as the object it describes.

JSON, YAML and protobuf bodies and dicts of callers in this process end in the same decoder (`codec.py`).
Next: `writing.py`.
"""

import re
from typing import Any

import yaml

from muster.apiserver.calls import Call
from muster.apiserver.codec import DecodeError, Reading, decode
from muster.apiserver.exchange import Request
from muster.apiserver.gojson import Document, JsonError, parse
from muster.apiserver.kinds import Object, Refused
from muster.apiserver.protobuf import ProtobufError, decode_protobuf
from muster.apiserver.quoting import quoted
from muster.apiserver.schemas import Record
from muster.apiserver.statuses import bad_request, unsupported_media_type
from muster.base.printing import printable

JSON, YAML, PROTOBUF = "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"
_ACCEPTED = (JSON, YAML, PROTOBUF)
_SHOWN_BYTES = 30
_WORD = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_MEDIA_TYPE = re.compile(rf'\s*{_WORD}/{_WORD}\s*(;\s*{_WORD}=({_WORD}|"[^"]*")\s*)*;?\s*')
_VALUES_A_BYTE = 10
_VALUES_FREE = 1_000
_TYPE_META = (
    'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
)
_SCHEME = "pkg/runtime/scheme.go:111"


# The one in C where the package has it: a body of one MiB would take the other a quarter of a minute.
_SafeLoader: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _YamlLoader(_SafeLoader):  # type: ignore[misc]
    """YAML as Kubernetes reads it: dates stay text."""


_YamlLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read_object(
    call: Call, group: str, version: str, kind: str, validation: str, *, older: tuple[str, ...] = ()
) -> Object:
    """The object in the body, of this kind and version, with apiVersion and kind filled in.

    `validation` is Strict, Warn or Ignore: what unknown and doubled fields lead to; `older`: versions that
    may stand in the body instead.
    Raises   Refused (400, 415) with Kubernetes' words.
    """
    api_version = f"{group}/{version}" if group else version
    reading = Reading()
    value = _body_value(call, call.record_of(group, version, kind), kind, reading)
    if value.get("apiVersion") in [f"{group}/{each}" for each in older] and value.get("kind") == kind:
        value = {**value, "apiVersion": api_version}
    given_kind, given_version = _type_of(value, call.request.body, kind)
    given_kind = given_kind or kind
    given_version = given_version or api_version
    short = quoted(given_version.rpartition("/")[2])
    title = f"{printable(given_kind)} in version {short} cannot be handled as a {kind}"
    if why := type_fault(call, value, group, version, kind):
        raise bad_request(f"{title}: {why}")
    record = call.record_of(group, given_version.rpartition("/")[2], kind)
    try:
        obj = decode(record, value, reading)
    except DecodeError as error:
        raise bad_request(f"{title}: {error}") from None
    if given_version != api_version:
        message = (
            f"the API version in the data ({given_version}) does not match the expected API version "
            f"({api_version})"
        )
        raise bad_request(message)
    report(call, reading.faults, validation, title)
    return {"kind": kind, "apiVersion": api_version, **_without_type(obj)}


def report(call: Call, faults: list[str], validation: str, title: str) -> None:
    """Do with unknown and doubled fields what was asked: nothing, warnings, or a 400."""
    if not faults or validation == "Ignore":
        return
    if validation == "Strict":
        raise bad_request(f"{title}: strict decoding error: {', '.join(faults)}")
    for fault in faults:
        call.warn(fault)


def _without_type(obj: Object) -> Object:
    obj.pop("kind", None)
    obj.pop("apiVersion", None)
    return obj


def _body_value(call: Call, record: Record, kind: str, reading: Reading) -> dict[str, Any]:
    body = call.request.body
    if isinstance(body, dict):
        return body
    try:
        document = read_document(call.request, record)
    except (JsonError, ProtobufError) as error:
        raise _unrecognized(kind, str(error), body) from None
    reading.twice = document.twice
    if document.value is None:
        return {}
    if not isinstance(document.value, dict):
        found = {list: "array", str: "string", bool: "bool"}.get(type(document.value), "number")
        why = f"json: cannot unmarshal {found} into Go value of type {_TYPE_META}"
        raise _unrecognized(kind, f"couldn't get version/kind; json parse error: {why}", body)
    return document.value


def read_document(request: Request, record: Record | None = None) -> Document:
    """The value in a body of bytes; `record` is needed for protobuf.

    Raises   JsonError or ProtobufError when it cannot be read, Refused (415) for an unknown type.
    """
    body = request.body
    assert isinstance(body, bytes)
    header = request.headers.get("content-type", "") or JSON
    content = header.partition(";")[0].strip() if _MEDIA_TYPE.fullmatch(header) else ""
    if content == JSON:
        try:
            return parse(body)
        except JsonError as error:
            raise JsonError(f"couldn't get version/kind; json parse error: {error}") from None
    if content == YAML:
        return Document(_parse_yaml(body), {})
    if content == PROTOBUF and record is not None:
        return Document(decode_protobuf(record, body), {})
    raise unsupported_media_type(_ACCEPTED)


def _parse_yaml(body: bytes) -> Any:
    try:
        return _Expansion(len(body)).of(_first_document(body))
    except RecursionError:
        raise JsonError("yaml: exceeded max depth") from None
    except (yaml.YAMLError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f"line {mark.line + 1}: " if mark is not None else ""
        raise JsonError(f"yaml: {line}{getattr(error, 'problem', error)}") from None


def _first_document(body: bytes) -> Any:
    """What stands before the first `---` between documents; the others are not looked at."""
    loader = _YamlLoader(body)
    try:
        return loader.get_data() if loader.check_data() else None
    finally:
        loader.dispose()


class _Expansion:
    """Copies a YAML value as JSON has it: keys are text, and what an alias names stands in its place.

    A few aliases of aliases can stand for more than any memory holds, so there is an end to it.
    """

    def __init__(self, body_bytes: int) -> None:
        self._left = _VALUES_A_BYTE * body_bytes + _VALUES_FREE

    def of(self, value: Any) -> Any:
        """The copy; ValueError when there is too much of it."""
        self._left -= 1
        if self._left < 0:
            raise ValueError("document contains excessive aliasing")
        if isinstance(value, dict):
            return {_key_text(key): self.of(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.of(item) for item in value]
        return value


def _key_text(key: Any) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)


def _type_of(value: dict[str, Any], body: bytes | dict[str, Any], kind: str) -> tuple[str, str]:
    if why := _type_not_text(value):
        raise _unrecognized(kind, why, body)
    return value.get("kind") or "", value.get("apiVersion") or ""


def _type_not_text(value: dict[str, Any]) -> str:
    """What is wrong where kind or version are not even text; "" for nothing."""
    for name in ("apiVersion", "kind"):
        if not isinstance(value.get(name, ""), str | None):
            found = {list: "array", dict: "object", bool: "bool"}.get(type(value[name]), "number")
            why = f"json: cannot unmarshal {found} into Go struct field .{name} of type string"
            return f"couldn't get version/kind; json parse error: {why}"
    return ""


def check_options_type(value: Any) -> None:
    """Refuse (400) a body that is not an object, or says that it is something else than DeleteOptions."""
    if value is not None and not isinstance(value, dict):
        found = {list: "array", str: "string", bool: "bool"}.get(type(value), "number")
        why = f"json: cannot unmarshal {found} into Go value of type {_TYPE_META}"
        raise bad_request(f"couldn't get version/kind; json parse error: {why}")
    given = value or {}
    if why := _type_not_text(given):
        raise bad_request(why)
    kind = given.get("kind") or "DeleteOptions"
    if kind != "DeleteOptions":
        version = given.get("apiVersion") or "v1"
        raise bad_request(_no_kind(kind, version))


def _no_kind(kind: str, version: str) -> str:
    return f'no kind {quoted(kind)} is registered for version {quoted(version)} in scheme "{_SCHEME}"'


def type_fault(call: Call, value: dict[str, Any], group: str, version: str, kind: str) -> str:
    """What is wrong with the kind and version that an object of this kind says it is; "" for nothing."""
    if why := _type_not_text(value):
        return why
    api_version = f"{group}/{version}" if group else version
    given_version, given_kind = value.get("apiVersion") or api_version, value.get("kind") or kind
    if (given_version, given_kind) == (api_version, kind):
        return ""
    if call.catalog.of_kind(given_version, given_kind) is None:
        return _no_kind(given_kind, given_version)
    given_group, _, short = given_version.rpartition("/")
    if (given_group, given_kind) != (group, kind):
        hub = group.partition(".")[0] or "core"
        return f"converting ({short}.{given_kind}) to ({hub}.{kind}): unknown conversion"
    return ""


def _unrecognized(kind: str, why: str, body: bytes | dict[str, Any]) -> Refused:
    raw = body if isinstance(body, bytes) else b"{}"
    shown = raw[:_SHOWN_BYTES]
    text = shown.decode("utf-8", "replace") if shown.startswith(b"{") else shown.hex()
    summary = f"{text}{' ...' if len(raw) > _SHOWN_BYTES else ''}" or "<empty>"
    return bad_request(f"the object provided is unrecognized (must be of type {kind}): {why} ({summary})")
