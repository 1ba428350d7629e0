"""One request and one answer, as values; HTTP (http.py), the controllers and the simulator all use these."""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct


class Request(Struct, frozen=True):
    """A request after the wire: header names in lower case, the query as pairs in order, decoded.

    `body` is what came over the wire, or, from callers in this process, the object itself (never changed).
    """

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    headers: Mapping[str, str] = {}
    body: bytes | dict[str, Any] = b""
    user: str = "system:admin"
    groups: tuple[str, ...] = ("system:masters", "system:authenticated")

    def first(self, name: str) -> str | None:
        """The first value of a query parameter, or None."""
        return next((value for key, value in self.query if key == name), None)


class Watch:
    """An open watch: `pull` gives the encoded frames that are ready; `on_ready` is called when some are.

    After `closed` is True and `pull` gives nothing more, the stream is at its end.
    """

    closed: bool
    content_type: str
    on_ready: Callable[[], None] | None

    def pull(self, now_s: float, limit: int = 1000) -> list[bytes]:
        """Take up to `limit` frames; bookmarks and the end by `timeoutSeconds` come from `now_s`."""
        raise NotImplementedError

    def next_due_s(self) -> float | None:
        """When `pull` should be called again though nothing changed (bookmark, time-out)."""
        raise NotImplementedError

    def stop(self) -> None:
        """The client went away; nothing is kept for it any more."""
        raise NotImplementedError


class Response:
    """An answer: `object` where it is one (encoded on demand), or raw bytes, or a watch."""

    def __init__(
        self,
        status: int,
        obj: dict[str, Any] | None = None,
        *,
        raw: bytes | None = None,
        content_type: str = "application/json",
        headers: tuple[tuple[str, str], ...] = (),
        watch: Watch | None = None,
    ) -> None:
        self.status = status
        self.object = obj
        self.raw = raw
        self.content_type = content_type
        self.headers = headers
        self.watch = watch
