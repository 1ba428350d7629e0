"""When one piece of data answers to another, in the sense of the cases.

Pure functions; next: `expectations.py`, which applies them to what a server holds.
"""

import re
from typing import Any

_PATH_PART = re.compile(r"(?<=\[)[^\]]+|[^.\[\]]+")


def has_part(wanted: Any, found: Any) -> bool:
    """Whether all of `wanted` is in `found`.

    None means not there; a list means as many items, each like one of those found.  A list of conditions
    may have others beside it.
    """
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(
            has_part(value, found.get(key)) for key, value in wanted.items()
        )
    if isinstance(wanted, list):
        if not isinstance(found, list):
            return False
        count_may_differ = bool(wanted) and all(_is_condition(each) for each in wanted)
        return (count_may_differ or len(wanted) == len(found)) and all(
            any(has_part(each, candidate) for candidate in found) for each in wanted
        )
    return bool(wanted == found)


def field_at(found: Any, dotted: str) -> Any:
    """The value at a path; in a list a part is an index, or the type or name of an item."""
    for part in _PATH_PART.findall(dotted):
        if isinstance(found, list):
            found = next((each for index, each in enumerate(found) if _names(part, index, each)), None)
        else:
            found = (found or {}).get(part)
    return found


def says(wanted: str, found: str, *, compare_texts: bool) -> bool:
    """Whether a text says what is wanted: contains it, or with a leading `=` is it.

    Unless texts are compared it is enough that something is said where something is wanted.
    """
    if not compare_texts:
        return bool(found) or wanted in ("", "=")
    return found == wanted[1:] if wanted.startswith("=") else wanted in found


def find_condition(thing: Any, type_: str) -> Any:
    """The condition of this type of an object, or None."""
    conditions = ((thing or {}).get("status") or {}).get("conditions") or []
    return next((each for each in conditions if each["type"] == type_), None)


def _is_condition(wanted: Any) -> bool:
    return isinstance(wanted, dict) and {"type", "status"} <= wanted.keys()


def _names(part: str, index: int, item: Any) -> bool:
    return part == str(index) or (isinstance(item, dict) and part in (item.get("type"), item.get("name")))
