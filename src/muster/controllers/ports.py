"""What a controller sees and what it may ask for: pure values on both sides.

Objects are plain dicts in the API's JSON form and must never be changed in place.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from msgspec import Struct

Object = dict[str, Any]


class Kind(Struct, frozen=True):
    """Which API a request goes to: `group` is "" for core."""

    group: str
    version: str
    resource: str


class Seen(Struct, frozen=True):
    """One change of an object; `before` is None when it is new, `after` is None when it is gone."""

    kind: Kind
    before: Object | None
    after: Object | None


class View(Protocol):
    """What exists now, by kind; answers are current as of the change being handled."""

    def get(self, kind: Kind, namespace: str, name: str) -> Object | None:
        """One object, or None."""
        ...

    def list(self, kind: Kind, namespace: str | None = None) -> Iterable[Object]:
        """All objects of a kind, of one namespace where given, in order of name."""
        ...


class Write(Struct, frozen=True):
    """One request to the API server, as the controller `user`.

    `verb` is create, update, patch (a merge patch) or delete; `subresource` "" or status, binding,
    eviction.  `uid` is a precondition of update, patch and delete.  A failed write is told to the
    controller that asked for it (`Controller.failed`), which decides what to do.
    """

    verb: str
    kind: Kind
    namespace: str
    name: str
    body: Mapping[str, Any] | None = None
    subresource: str = ""
    uid: str = ""


class Wake(Struct, frozen=True):
    """Call `Controller.due` at this time (Unix seconds)."""

    at_s: float


Ask = Write | Wake


class Controller(Protocol):
    """Looks at changes, answers with writes; keeps only what it can rebuild from a fresh list."""

    name: str

    def seen(self, change: Seen, view: View, now_s: float) -> Iterable[Ask]:
        """React to one change."""
        ...

    def due(self, view: View, now_s: float) -> Iterable[Ask]:
        """The time asked for by `Wake` has come."""
        ...

    def failed(self, write: Write, code: int, message: str, now_s: float) -> Iterable[Ask]:
        """A write was refused; a wake with growing delay is the usual answer."""
        ...
