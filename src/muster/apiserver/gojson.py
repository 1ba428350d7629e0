"""JSON as Go reads it: what is accepted, which fields were given twice, and the words for what is wrong.

`parse` is the door for every body; `codec.py` takes it from there.
"""

import json
import re
from typing import Any, NoReturn

from muster.apiserver.quoting import quoted

_SPACE = " \t\r\n"
_ESCAPES = set('"\\/bfnrt')
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_HEX = set("0123456789abcdefABCDEF")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_DEEPEST = 900  # far beyond any object, and short of the interpreter's own limit


class JsonError(ValueError):
    """A body that is not JSON, in Go's words."""


class Decimal(float):
    """A number with a fraction or an exponent; `text` is how it was written."""

    text: str

    @classmethod
    def of(cls, text: str) -> "Decimal":
        """The number of a text."""
        number = cls(text)
        number.text = text
        return number


class Document:
    """A parsed body; `twice` maps the id() of an object to the names it was given more than once."""

    __slots__ = ("twice", "value")

    def __init__(self, value: Any, twice: dict[int, list[str]]) -> None:
        self.value = value
        self.twice = twice


def parse(raw: bytes) -> Document:
    """Read one JSON value.

    Numbers are int or Decimal; text that is not UTF-8 becomes the replacement character, as in Go.
    Raises   JsonError.
    """
    twice: dict[int, list[str]] = {}

    def build(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) != len(pairs):
            seen: set[str] = set()
            twice[id(made)] = [name for name, _ in pairs if name in seen or seen.add(name)]  # type: ignore[func-returns-value]
        return made

    text = raw.decode("utf-8", "replace")
    try:
        value = json.loads(
            text, object_pairs_hook=build, parse_float=Decimal.of, parse_constant=_refuse_constant
        )
        if b"\\ud" in raw or b"\\uD" in raw:
            value = _without_surrogates(value)
    except RecursionError:
        raise JsonError("exceeded max depth") from None
    except ValueError:
        raise JsonError(_explain(text)) from None
    return Document(value, twice)


def duplicates_of(document: Document) -> list[str]:
    """The names that an untyped reader of this document meets twice, as it tells them."""
    found: list[str] = []
    if document.twice:
        _add_duplicates(document.value, "", document.twice, found)
    return found


def _add_duplicates(value: Any, path: str, twice: dict[int, list[str]], found: list[str]) -> None:
    if isinstance(value, dict):
        start = f"{path}." if path else ""
        found += [
            f"duplicate field {quoted(start + name)}" for name in dict.fromkeys(twice.get(id(value), ()))
        ]
        for name, item in value.items():
            _add_duplicates(item, f"{start}{name}", twice, found)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _add_duplicates(item, f"{path}[{index}]", twice, found)


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(word)


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return _LONE_SURROGATE.sub("�", value)
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
    return value


def _explain(text: str) -> str:
    try:
        end = _skip(text, _value(text, _skip(text, 0), 0))
    except _Stop as stop:
        return str(stop)
    except RecursionError:
        return "exceeded max depth"
    return _bad(text, end, "after top-level value") if end < len(text) else "invalid JSON"


class _Stop(Exception):
    pass


def _bad(text: str, at: int, where: str) -> str:
    if at >= len(text):
        return "unexpected end of JSON input"
    char = text[at]
    shown = {"'": r"'\''", '"': "'\"'"}.get(char) or (f"'{char}'" if char.isprintable() else repr(char))
    return f"invalid character {shown} {where}"


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at


def _expect(text: str, at: int, wanted: str, where: str) -> int:
    if at >= len(text) or text[at] not in wanted:
        raise _Stop(_bad(text, at, where))
    return at + 1


def _value(text: str, at: int, depth: int) -> int:
    if depth > _DEEPEST:
        raise _Stop("exceeded max depth")
    char = text[at : at + 1]
    if char == "{":
        return _object(text, at, depth)
    if char == "[":
        return _array(text, at, depth)
    if char == '"':
        return _string(text, at)
    for word in ("true", "false", "null"):
        if char == word[0]:
            for offset, letter in enumerate(word):
                where = f"in literal {word} (expecting '{letter}')"
                _expect(text, at + offset, letter, where)
            return at + len(word)
    number = _NUMBER.match(text, at)
    if number is None:
        if char == "-":
            raise _Stop(_bad(text, at + 1, "in numeric literal"))
        raise _Stop(_bad(text, at, "looking for beginning of value"))
    return number.end()


def _object(text: str, at: int, depth: int) -> int:
    at = _skip(text, at + 1)
    if text[at : at + 1] == "}":
        return at + 1
    while True:
        if text[at : at + 1] != '"':
            raise _Stop(_bad(text, at, "looking for beginning of object key string"))
        at = _skip(text, _string(text, at))
        at = _skip(text, _expect(text, at, ":", "after object key"))
        at = _skip(text, _value(text, at, depth + 1))
        end = _expect(text, at, ",}", "after object key:value pair")
        if text[at] == "}":
            return end
        at = _skip(text, end)


def _array(text: str, at: int, depth: int) -> int:
    at = _skip(text, at + 1)
    if text[at : at + 1] == "]":
        return at + 1
    while True:
        at = _skip(text, _value(text, at, depth + 1))
        end = _expect(text, at, ",]", "after array element")
        if text[at] == "]":
            return end
        at = _skip(text, end)


def _string(text: str, at: int) -> int:
    at += 1
    while True:
        char = text[at : at + 1]
        if char == '"':
            return at + 1
        if char == "\\":
            escape = text[at + 1 : at + 2]
            if escape == "u":
                for offset in range(2, 6):
                    if text[at + offset : at + offset + 1] not in _HEX:
                        raise _Stop(_bad(text, at + offset, "in \\u hexadecimal character escape"))
                at += 6
                continue
            if escape not in _ESCAPES:
                raise _Stop(_bad(text, at + 1, "in string escape code"))
            at += 2
            continue
        if not char or char < " ":
            raise _Stop(_bad(text, at, "in string literal"))
        at += 1
