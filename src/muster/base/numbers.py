"""Whole numbers in text that others wrote: of any length, and never a fault.

Python refuses to read a number of some thousand digits with an exception of its own, and nobody who asks for
a rank, an index or a resourceVersion expects one.
"""

DIGITS_MAX = 19  # all that an int64 may have


def whole_number(text: str) -> int | None:
    """The number that the text writes in ASCII digits alone, at most 19 of them; None for any other text."""
    return int(text) if len(text) <= DIGITS_MAX and text.isascii() and text.isdigit() else None
