"""Semantic versions (semver.org 2.0.0), as attributes of devices have them.

In comes text such as "1.2.3-rc.1+build"; out goes a value that compares as the specification orders: numbers
by value, a pre-release before its release, build metadata not at all.
"""

import re
from functools import total_ordering

from msgspec import Struct

_NUMBER = r"(?:0|[1-9][0-9]{0,19})"  # as many digits as a uint64
_WORD = rf"(?:{_NUMBER}|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)"
_GRAMMAR = re.compile(
    rf"({_NUMBER})\.({_NUMBER})\.({_NUMBER})(?:-({_WORD}(?:\.{_WORD})*))?(?:\+[0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*)?"
)


class VersionError(ValueError):
    """A text that is not a semantic version."""


@total_ordering
class Version(Struct, frozen=True):
    """`numbers`: major, minor, patch; `words`: the identifiers of a pre-release, none for a release."""

    numbers: tuple[int, int, int]
    words: tuple[str, ...] = ()

    def __lt__(self, other: "Version") -> bool:
        if self.numbers != other.numbers:
            return self.numbers < other.numbers
        if not self.words or not other.words:
            return bool(self.words) and not other.words
        return [_rank(word) for word in self.words] < [_rank(word) for word in other.words]


def parse_version(text: str) -> Version:
    """Read a version.  Raises   VersionError if the text does not follow the grammar."""
    match = _GRAMMAR.fullmatch(text)
    if match is None:
        raise VersionError(f"{text!r} is no semantic version (major.minor.patch)")
    major, minor, patch, words = match.groups()
    return Version((int(major), int(minor), int(patch)), tuple(words.split(".")) if words else ())


def is_version(text: str) -> bool:
    """Whether the text follows the grammar."""
    return _GRAMMAR.fullmatch(text) is not None


def _rank(word: str) -> tuple[bool, int, str]:
    """Numbers come before words, by value; words by their characters."""
    return (False, int(word), "") if word.isdigit() else (True, 0, word)
