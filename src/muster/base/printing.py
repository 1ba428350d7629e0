"""Text of others made safe to show: on a terminal, in a log, inside a sentence."""

_MARK = "…"


def printable(text: str, *, longest: int | None = None) -> str:
    """The text with every character that is not printable written as its escape, cut to `longest` characters.

    Names and messages come from servers and users: an escape sequence, a line break or a mark that turns the
    direction of writing would show something else than what is there.
    """
    if not text.isprintable():
        text = "".join(each if each.isprintable() else _escape(each) for each in text)
    return text if longest is None or len(text) <= longest else text[: longest - len(_MARK)] + _MARK


def _escape(character: str) -> str:
    return character.encode("unicode_escape", "backslashreplace").decode("ascii")
