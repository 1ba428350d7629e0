"""What expressions of Kubernetes may do with texts beyond the language itself, and `cel.bind`.

The functions take what stands before the dot first; they fail with ValueError or TypeError.  Bounded: each
takes time in proportion to texts that are short.  Source: the CEL extensions of kube-apiserver 1.37.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

_TOKEN = re.compile(
    r"""
    (?P<text> (?:[rR][bB]?|[bB][rR]) (?: \"{3}[\s\S]*?\"{3} | '{3}[\s\S]*?'{3} | "[^"\n]*" | '[^'\n]*' )
      | (?: \"{3}(?:\\.|[^\\])*?\"{3}
          | '{3}(?:\\.|[^\\])*?'{3} | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' ) )
    | (?P<bind> (?<![\w.]) cel \s* \. \s* bind \s* \( )
    | (?P<open> [(\[{] ) | (?P<close> [)\]}] ) | (?P<comma> , )
    """,
    re.VERBOSE | re.DOTALL,
)
TEXT_MAX = 10 * 1024  # characters of what is made out of others
_CLOSING = {"(": ")", "[": "]", "{": "}"}


class _Part(NamedTuple):
    """What stands between a bracket and its end, by commas."""

    opening: str
    is_binding: bool
    arguments: list[str]

    def written(self, closing: str) -> str:
        if self.is_binding and len(self.arguments) == 3:
            name, value, body = (argument.strip() for argument in self.arguments)
            return f"([{value}].map({name}, {body})[0])"
        return self.opening + ",".join(self.arguments) + closing


def without_bindings(expression: str) -> str:
    """The expression with `[value].map(name, body)[0]` for `cel.bind(name, value, body)`: the same."""
    if "bind" not in expression:
        return expression
    parts, done = [_Part("", is_binding=False, arguments=[""])], 0
    for token in _TOKEN.finditer(expression):
        parts[-1].arguments[-1] += expression[done : token.start()]
        done, said = token.end(), token.group()
        if token.lastgroup in ("bind", "open"):
            parts.append(_Part(said, is_binding=token.lastgroup == "bind", arguments=[""]))
        elif token.lastgroup == "close":
            if len(parts) == 1 or _CLOSING[parts[-1].opening[-1]] != said:
                return expression  # whoever compiles it says what is wrong
            text = parts.pop().written(said)
            parts[-1].arguments[-1] += text
        elif token.lastgroup == "comma":
            parts[-1].arguments.append("")
        else:
            parts[-1].arguments[-1] += said
    parts[-1].arguments[-1] += expression[done:]
    return parts[0].written("") if len(parts) == 1 else expression


def _char_at(text: str, index: int) -> str:
    _check_index(index, len(text))
    return text[index : index + 1]


def _index_of(where: str | list[Any], what: Any, start: int = 0) -> int:
    """The first place of it, or −1; in a text, or in a list."""
    if isinstance(where, list):
        return where.index(what) if what in where else -1
    _check_index(start, len(where))
    return where.find(what, start)


def _last_index_of(where: str | list[Any], what: Any, start: int | None = None) -> int:
    """The last place of it, at `start` or before, or −1."""
    if isinstance(where, list):
        return len(where) - 1 - where[::-1].index(what) if what in where else -1
    last = len(where) if start is None else start
    _check_index(last, len(where))
    return where.rfind(what, 0, last + len(what))


def _lower(text: str) -> str:
    return "".join(each.lower() if each.isascii() else each for each in text)


def _upper(text: str) -> str:
    return "".join(each.upper() if each.isascii() else each for each in text)


def _replace(text: str, old: str, new: str, limit: int = -1) -> str:
    times = text.count(old) if limit < 0 else min(limit, text.count(old))
    _check_length(len(text) + times * (len(new) - len(old)))
    return text.replace(old, new, limit)


def _split(text: str, separator: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    if not separator:
        pieces = list(text)
        return pieces if limit < 0 or limit >= len(pieces) else [*pieces[: limit - 1], text[limit - 1 :]]
    return text.split(separator, limit - 1 if limit > 0 else -1)


def _substring(text: str, start: int, end: int | None = None) -> str:
    last = len(text) if end is None else end
    _check_index(start, len(text))
    _check_index(last, len(text))
    if start > last:
        raise ValueError(f"invalid substring range: start {start}, end {last}")
    return text[start:last]


def _join(texts: Sequence[str], separator: str = "") -> str:
    _check_length(sum(map(len, texts)) + len(separator) * (len(texts) - 1))
    return separator.join(texts)


def _trim(text: str) -> str:
    return text.strip()


def _check_length(length: int) -> None:
    if length > TEXT_MAX:
        raise ValueError(f"the text would be longer than {TEXT_MAX} characters")


def _check_index(index: int, length: int) -> None:
    if not 0 <= index <= length:
        raise ValueError(f"index out of range: {index}")


TEXT_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "charAt": _char_at,
    "indexOf": _index_of,
    "lastIndexOf": _last_index_of,
    "lowerAscii": _lower,
    "upperAscii": _upper,
    "replace": _replace,
    "split": _split,
    "substring": _substring,
    "join": _join,
    "trim": _trim,
}
