"""Text of clients in messages of the server: quoted as Go quotes it, so that no terminal obeys it."""

from collections.abc import Iterable

_WARNINGS_MAX = 4 * 1024  # characters in all; where there are more, each is cut
_WARNING_MAX = 256
_SHORT = {"\a": r"\a", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v"}


def quoted(text: str) -> str:
    """The text in double quotes, with escapes for what is not printable (`strconv.Quote`)."""
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return f'"{"".join(map(_escaped, text))}"'


def warning_headers(texts: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """The Warning headers of an answer; if they are long all in all they are cut, and then left out."""
    given = list(texts)
    if sum(map(len, given)) > _WARNINGS_MAX:
        given = [text[:_WARNING_MAX] for text in given]
    headers: list[tuple[str, str]] = []
    written = 0
    for text in given:
        if written >= _WARNINGS_MAX:
            break
        headers.append(("Warning", f"299 - {quoted(text)}"))
        written += len(text)
    return tuple(headers)


def _escaped(letter: str) -> str:
    if letter in '"\\':
        return f"\\{letter}"
    if letter.isprintable():
        return letter
    code = ord(letter)
    if letter in _SHORT:
        return _SHORT[letter]
    if code < 0x20 or code == 0x7F:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
