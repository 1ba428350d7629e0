"""Unions: of a few fields exactly one must be set, as declarative validation words it."""

from collections.abc import Sequence

from muster.apiserver.kinds import Cause, Object
from muster.apiserver.strategies.fields import invalid

SET_LATER = "field cannot be set once created"
CLEARED = "field cannot be cleared once set"


def validate_union(path: str, value: Object, members: Sequence[str]) -> list[Cause]:
    """An error unless exactly one member is set; an empty list counts as not set."""
    chosen = [name for name in members if value.get(name) not in (None, [])]
    if len(chosen) == 1:
        return []
    known = ", ".join(f"`{name}`" for name in members)
    if not chosen:
        return [invalid(path, "", f"must specify one of: {known}")]
    return [invalid(path, "{" + ", ".join(chosen) + "}", f"must specify exactly one of: {known}")]


def validate_kept(path: str, new: object, old: object) -> list[Cause]:
    """A field that may neither be set nor cleared after creation, whatever is in it."""
    if new is None and old is not None:
        return [invalid(path, None, CLEARED)]
    if new is not None and old is None:
        return [invalid(path, None, SET_LATER)]
    return []
