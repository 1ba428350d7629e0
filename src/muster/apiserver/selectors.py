"""Label and field selectors of a query string: parsed, and asked of an object.

Kubernetes' grammar and its error texts; `reading.py` and `watching.py` ask `Selection.holds`.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from muster.apiserver.kinds import Kind, Object
from muster.apiserver.quoting import quoted
from muster.apiserver.statuses import bad_request
from muster.apiserver.strategies.names import label_key, label_value
from muster.base.printing import printable

_TOKEN = re.compile(r"\s*(?:(!=|==|=|!|<|>|\(|\)|,)|([^\s=!<>(),]+))")
_SYMBOLS = {"=": "=", "==": "=", "!=": "!=", ">": "gt", "<": "lt", "in": "in", "notin": "notin"}
_OPERATORS = "in, notin, =, ==, !=, gt, lt"


class Requirement(Struct, frozen=True):
    """One term: `operator` is =, !=, in, notin, exists, !, gt or lt."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def holds(self, value: str | None) -> bool:
        """Whether it holds for this value of its key (None: the key is not there)."""
        if self.operator in ("=", "in", "exists"):
            return value is not None and (self.operator == "exists" or value in self.values)
        if self.operator in ("!=", "notin"):
            return value not in self.values
        if self.operator == "!":
            return value is None
        number = _integer(value)
        bound = int(self.values[0])
        return number is not None and (number > bound if self.operator == "gt" else number < bound)


class Selection(Struct, frozen=True):
    """What a list or watch is limited to."""

    labels: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()
    field_value: Callable[[Object, str], str] | None = None

    @property
    def is_everything(self) -> bool:
        """Whether every object is wanted."""
        return not self.labels and not self.fields

    def holds(self, obj: Object) -> bool:
        """Whether the object (as stored) is wanted."""
        if self.labels:
            labels = obj["metadata"].get("labels") or {}
            if not all(term.holds(labels.get(term.key)) for term in self.labels):
                return False
        if self.fields:
            read = self.field_value or value_at
            return all(term.holds(_metadata_or(read, obj, term.key)) for term in self.fields)
        return True


def _metadata_or(read: Callable[[Object, str], str], obj: Object, path: str) -> str:
    if path.startswith("metadata."):
        return str(obj["metadata"].get(path.removeprefix("metadata."), ""))
    return read(obj, path)


def value_at(obj: Object, path: str) -> str:
    """The text of the field at a dotted path, "" where there is none."""
    here: Any = obj
    for part in path.split("."):
        here = here.get(part) if isinstance(here, Mapping) else None
    if here is None:
        return ""
    return str(here).lower() if isinstance(here, bool) else str(here)


def parse_selection(kind: Kind, label_selector: str | None, field_selector: str | None) -> Selection:
    """What a query's labelSelector and fieldSelector ask of this kind.

    Raises   Refused (400) with Kubernetes' words.
    """
    return Selection(
        labels=parse_label_selector(label_selector) if label_selector else (),
        fields=_parse_field_selector(kind, field_selector) if field_selector else (),
        field_value=kind.field_value,
    )


def _integer(text: str | None) -> int | None:
    try:
        return int(text) if text is not None else None
    except ValueError:
        return None


def parse_label_selector(text: str) -> tuple[Requirement, ...]:
    """The terms of a label selector, by key as Kubernetes sorts them."""
    reader = _Reader(text)
    terms: list[Requirement] = []
    while True:
        token = reader.peek()
        if token == "":
            return tuple(sorted(terms, key=lambda term: term.key))
        if token not in ("!",) and not reader.is_word:
            raise bad_request(f"found '{token}', expected: !, identifier, or 'end of string'")
        terms.append(_requirement(reader))
        token = reader.take()
        if token == "":
            return tuple(sorted(terms, key=lambda term: term.key))
        if token != ",":
            raise bad_request(f"found '{token}', expected: ',' or 'end of string'")
        if reader.peek() != "!" and not reader.is_word:
            raise bad_request(f"found '{reader.peek()}', expected: identifier after ','")


class _Reader:
    """The tokens of a label selector."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self.is_word = False

    def peek(self) -> str:
        at = self._at
        token = self.take()
        self._at = at
        return token

    def take(self) -> str:
        match = _TOKEN.match(self._text, self._at)
        if match is None:
            self.is_word = False
            return ""
        self._at = match.end()
        self.is_word = match[2] is not None
        return match[1] or match[2]


def _requirement(reader: _Reader) -> Requirement:
    negated = reader.peek() == "!"
    if negated:
        reader.take()
    key = reader.take()
    if not reader.is_word:
        raise bad_request(f"unable to parse requirement: found '{key}', expected: identifier")
    if faults := label_key(key):
        raise bad_request(f"unable to parse requirement: <nil>: Invalid value: {quoted(key)}: {faults[0]}")
    following = reader.peek()
    if negated or following in ("", ","):
        return Requirement(key, "!" if negated else "exists")
    symbol = reader.take()
    operator = _SYMBOLS.get(symbol)
    if operator is None:
        raise bad_request(f"unable to parse requirement: found '{symbol}', expected: {_OPERATORS}")
    values = _values(reader) if operator in ("in", "notin") else (_exact_value(reader),)
    for value in values:
        if operator in ("gt", "lt"):
            if _integer(value) is None:
                bad = f"values[0]: Invalid value: \"{value}\": for 'Gt', 'Lt' operators, the value"
                raise bad_request(f"unable to parse requirement: {bad} must be an integer")
        elif faults := label_value(value):
            bad = f"values[{values.index(value)}][{key}]: Invalid value: {quoted(value)}: {faults[0]}"
            raise bad_request(f"unable to parse requirement: {bad}")
    return Requirement(key, operator, values)


def _exact_value(reader: _Reader) -> str:
    following = reader.peek()
    if following in ("", ","):
        return ""
    value = reader.take()
    if not reader.is_word:
        raise bad_request(f"unable to parse requirement: found '{value}', expected: identifier")
    return value


def _values(reader: _Reader) -> tuple[str, ...]:
    opening = reader.take()
    if opening != "(":
        raise bad_request(f"unable to parse requirement: found '{opening}' expected: '('")
    values: list[str] = []
    wants_value = True
    while True:
        token = reader.take()
        if token == ")":
            if wants_value:
                values.append("")
            return tuple(sorted(set(values)))
        if token == ",":
            if wants_value:
                values.append("")
            wants_value = True
        elif reader.is_word and wants_value:
            values.append(token)
            wants_value = False
        else:
            expected = "',', ')' or identifier" if wants_value else "',' or ')'"
            raise bad_request(f"unable to parse requirement: found '{token}', expected: {expected}")


def _parse_field_selector(kind: Kind, text: str) -> tuple[Requirement, ...]:
    terms = []
    for part in re.split(r"(?<!\\),", text):
        if not part:
            continue
        match = re.match(r"((?:[^=!\\]|\\.)*?)(!=|==|=)(.*)", part, re.DOTALL)
        if match is None:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{part}'")
        field, symbol, value = match.groups()
        plain = _unescaped(value)
        known = field in ("metadata.name", "metadata.namespace", *kind.field_selectors)
        if not known or (not kind.namespaced and field == "metadata.namespace"):
            raise bad_request(kind.unknown_field.format(field=printable(field)))
        terms.append(Requirement(field, "!=" if symbol == "!=" else "=", (plain,)))
    return tuple(terms)


def _unescaped(value: str) -> str:
    """The value that a field selector means: in it backslash, comma and equals sign follow a backslash."""
    bare = re.sub(r"\\[\\,=]", "", value)
    if "\\" in bare:
        raise bad_request(f"invalid field selector: invalid escape sequence: {value}")
    if "=" in bare:
        raise bad_request(f"invalid field selector: unescaped character in value: {ord('=')}")
    return re.sub(r"\\([\\,=])", r"\1", value)
