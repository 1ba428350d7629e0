"""Texts in an expression that must be durations, times or patterns.

Only what is wrong beyond doubt is told: patterns are those of RE2, which Python's `re` does not quite read.
"""

import re
import warnings

from muster.api.times import is_duration
from muster.apiserver.expressions.syntax import Fault, Node

_TIMESTAMP = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]+)?(?:Z|[+-][0-9]{2}:[0-9]{2})"
)
_BEYOND_DOUBT = (
    "unterminated character set",
    "unterminated subpattern",
    "unbalanced parenthesis",
    "bad escape (end",
)


def _duration(node: Node) -> Fault | None:
    is_wrong = node.name == "string" and not is_duration(node.text)
    return Fault(node.at, "invalid duration argument") if is_wrong else None


def _timestamp(node: Node) -> Fault | None:
    is_wrong = node.name == "string" and not _TIMESTAMP.fullmatch(node.text)
    return Fault(node.at, "invalid timestamp argument") if is_wrong else None


def _pattern(node: Node) -> Fault | None:
    if node.form != "literal" or "\\Q" in node.text:
        return None
    try:
        with warnings.catch_warnings(action="ignore"):  # of sets within sets, which RE2 has
            re.compile(node.text)
    except re.error as error:
        if any(why in error.msg for why in _BEYOND_DOUBT):
            return Fault(node.at, "invalid matches argument")
    except (OverflowError, RecursionError):
        return None
    return None


# By the function whose first argument (not what stands before the dot) they look at.
LITERALS = {"duration": _duration, "timestamp": _timestamp, "matches": _pattern}
