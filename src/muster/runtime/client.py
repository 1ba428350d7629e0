"""HTTP to a Kubernetes API server: bytes in, bytes out, ApiError for everything else.

In comes an `Access` (`runtime/kubeconfig.py`); out come answers, or exceptions of `base/errors.py` sorted by
what the caller can do about them.  Who is not known to the server (401) gets new credentials once, and files
that were replaced are read again.  Nothing
is retried here: `runtime/watch.py` and `runtime/executor.py` know what is safe to say twice.
"""

import logging
import re
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import Any, NamedTuple, NoReturn, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import msgspec
from msgspec import Struct

from muster import __version__
from muster.assembly.leadership import REQUEST_TIMEOUT_S
from muster.base.errors import ApiError, ConfigError, Conflict, Expired, Unavailable
from muster.runtime.connections import (
    Connections,
    Dial,
    NoAnswer,
    NoConnection,
    RawHeaders,
    TooLong,
    headers_of,
)
from muster.runtime.credentials import Secret
from muster.runtime.dialing import Route, dial, proxy_authorization
from muster.runtime.kubeconfig import Access

JSON = "application/json"
SILENCE_S = 150.0  # a watch hears a bookmark every minute; after two missed ones the line is taken for dead
ANSWER_BYTES_MAX = 1 << 30  # a list in one piece of the largest cluster there is, and no more
REFUSAL_BYTES_MAX = 1 << 20
LINE_BYTES_MAX = 16 << 20  # ten times what an API server stores of one object
RETRY_AFTER_S_MAX = 3600.0
NOT_SENT = "NotSent"  # `reason` of an Unavailable that never left this machine

log = logging.getLogger("muster.client")

_PRINTABLE = re.compile(r"[!-~]+")
_REPEATABLE = frozenset({"GET", "PUT", "DELETE"})  # as HTTP has it: said twice is as good as once
_LEGIBLE = {
    ssl.SSLCertVerificationError: "the server's certificate is not trusted",
    ConnectionRefusedError: "connection refused",
    ConnectionResetError: "connection reset",
    TimeoutError: "no answer in time",
}


Kind = TypeVar("Kind")


class StatusDetails(Struct, rename="camel"):
    retry_after_seconds: int | None = None


class Status(Struct, rename="camel"):
    """The server's word on a request that it did not fulfil."""

    kind: str = ""
    message: str | None = None
    reason: str | None = None
    code: int | None = None
    details: StatusDetails | None = None


class Version(Struct, rename="camel"):
    git_version: str


class SomeObject(Struct):
    """Whatever the API answers a write with: the object, or a Status."""

    kind: str = ""


class ItemList(Struct):
    """Any list of objects, as plain dicts."""

    items: list[dict[str, Any]] | None = None


class Greeting(NamedTuple):
    """What the server says of itself; `clock_ahead_s`: how far our clock is ahead of its own, if it says."""

    version: str
    clock_ahead_s: float | None


class Answer(Struct, frozen=True):
    """A successful answer."""

    code: int
    body: bytes
    raw_headers: RawHeaders = ()

    def read(self, kind: type[Kind]) -> Kind:
        """The body as this type.  Raises Unavailable for anything else: a server may send what it likes."""
        try:
            return msgspec.json.decode(self.body, type=kind)
        except (msgspec.DecodeError, RecursionError) as error:
            raise Unavailable(
                f"the answer is not what the API says: {error}", code=0, reason="Unreadable"
            ) from error


class ApiClient:
    """One API server.  An async context manager; safe to use from many tasks of one loop.

    `boot_s`: a clock that goes on while the machine sleeps, so that nothing is sent after its time-out.
    """

    def __init__(
        self,
        access: Access,
        *,
        now_s: Callable[[], float],
        count: Callable[[str, int], None] = lambda verb, code: None,
        timeout_s: float = REQUEST_TIMEOUT_S,
        dial: Dial = dial,
        boot_s: Callable[[], float] | None = None,
    ) -> None:
        self._access = access
        self._now_s = now_s
        self._boot_s = boot_s
        self._count = count
        self._timeout_s = timeout_s
        self._dial = dial
        self._connections: Connections | None = None
        self._way: Way | None = None

    async def __aenter__(self) -> "ApiClient":
        self._connections = Connections(self._dial, self._boot_s)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._connections is not None:
            await self._connections.close()

    @property
    def server(self) -> str:
        """Where it is, for messages."""
        return self._access.server

    async def check_connection(self) -> Greeting:
        """Ask for the version and give it, with the difference of the clocks.

        Raises   ConfigError in plain words if the kubeconfig leads nowhere.
        """
        await self._access.credentials.secret(self._now_s())  # its own ConfigError says more than ours would
        try:
            answer = await self.call("GET", "/version")
            answered_s = _seconds_of_date(headers_of(answer.raw_headers).get("date", ""))
            ahead_s = None if answered_s is None else self._now_s() - answered_s
            return Greeting(answer.read(Version).git_version, ahead_s)
        except ApiError as error:
            if error.reason == "Unreadable":
                raise ConfigError(
                    f"{self.server} is no Kubernetes API server: /version is not its answer",
                    path=self._access.origin,
                ) from error
            said = (
                f"{self.server} refused the credentials: {error}" if error.code in (401, 403) else str(error)
            )
            raise ConfigError(said, path=self._access.origin) from error

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = JSON,
        query: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
    ) -> Answer:
        """Send one request and give the answer; all of it, new credentials too, within one time-out.

        Raises   ApiError by kind: Conflict (409), Expired (410), Unavailable (429, 5xx, or `code` 0 when no
                 answer came; its `reason` is NOT_SENT if the server cannot have seen the request).
        """
        data = None if body is None else msgspec.json.encode(body)
        target = _target(path, query)
        time_s = self._boot_s or self._now_s
        end_s = time_s() + (timeout_s or self._timeout_s)
        for is_last in (False, True):
            try:
                way = await self._find_way()
                left_s = end_s - time_s()
                if left_s <= 0.0:
                    raise NoConnection(TimeoutError())
                reply = await self._pool.ask(
                    way.route,
                    way.request(method, target, data, content_type),
                    most=_most if method == "GET" else _most_of_a_write,
                    timeout_s=left_s,
                    may_repeat=method in _REPEATABLE,
                )
            except (NoConnection, NoAnswer, TooLong, TimeoutError) as error:
                self._count(method, 0)
                if is_last or not _is_untrusted(error) or not self._read_anew():
                    raise _unreached(self._access.server, error) from error
                continue
            self._count(method, reply.code)
            if reply.code == 401 and not is_last and self._renew():
                continue
            if reply.code >= 300:
                raise_for(reply.code, reply.body, reply.headers, now_s=self._now_s())
            return Answer(reply.code, reply.body, reply.raw_headers)
        raise AssertionError("the second try always returns or raises")

    @asynccontextmanager
    async def lines(self, path: str, query: Mapping[str, str]) -> AsyncIterator[AsyncIterator[list[bytes]]]:
        """Open a stream of lines (a watch); the iterator gives the lines that came together.

        Raises   ApiError as `call`, on opening and while reading; a line that went silent is Unavailable.
        """
        for is_last in (False, True):
            way = await self._find_way()
            request = way.request("GET", _target(path, query), None, "")
            try:
                async with self._pool.stream(way.route, request, most=_most, timeout_s=self._timeout_s) as (
                    reply,
                    connection,
                ):
                    self._count("WATCH", reply.code)
                    if reply.code == 401 and not is_last and self._renew():
                        continue
                    if reply.code >= 300:
                        raise_for(reply.code, reply.body, reply.headers, now_s=self._now_s())
                    yield _lines_of(connection.pieces(SILENCE_S))
                    return
            except (NoConnection, NoAnswer, TooLong, TimeoutError) as error:
                self._count("WATCH", 0)
                raise _unreached(self._access.server, error) from error

    @property
    def _pool(self) -> Connections:
        if self._connections is None:
            raise RuntimeError("an ApiClient is used inside `async with`")
        return self._connections

    async def _find_way(self) -> "Way":
        """Where to send and what to prove ourselves with, made anew only when one of them has changed."""
        try:
            secret = await self._access.credentials.secret(self._now_s())
            way = self._way
            if way is None or way.access is not self._access or way.secret != secret:
                self._way = way = Way.of(self._access, secret, known=way)
        except ConfigError as error:
            raise Unavailable(f"no credentials: {error}", code=0, reason=NOT_SENT) from error
        return way

    def _renew(self) -> bool:
        """Whether another try would bring other credentials: made anew, or as the files have them now."""
        is_renewed = self._access.credentials.refresh()
        return self._read_anew() or is_renewed

    def _read_anew(self) -> bool:
        """Whether kubeconfig or authority have been replaced since; from now on the new ones count."""
        fresh = self._access.renew()
        if fresh is None:
            return False
        log.info("%s was replaced and is read again", fresh.origin)
        self._access = fresh
        return True


class Way(Struct, frozen=True):
    """Where requests go and what stands at the head of each; `head` has all headers but those of a body."""

    access: Access
    secret: Secret
    route: Route
    prefix: bytes  # before each target: the path of a server behind a gateway; all of its URL for a proxy
    head: bytes

    @classmethod
    def of(cls, access: Access, secret: Secret, *, known: "Way | None") -> "Way":
        """Make one; the TLS context of a known way is kept if it is still the right one.

        Raises   ConfigError for what no header can carry.
        """
        url = urlsplit(access.server)
        tls = None
        if access.tls is not None:
            certificate = secret.certificate
            if known is not None and known.access is access and known.secret.certificate == certificate:
                tls = known.route.tls
            else:
                tls = access.tls.context_for(certificate)
        port = url.port or (443 if url.scheme == "https" else 80)
        route = Route(url.hostname or "", port, tls, access.server_name or "", access.proxy)
        headers = [
            ("Host", url.netloc.rpartition("@")[2]),
            ("Accept", JSON),
            ("Accept-Encoding", "identity"),
            ("User-Agent", f"muster/{__version__}"),
            *access.headers,
        ]
        if secret.authorization is not None:
            headers.append(("Authorization", secret.authorization))
        is_relayed = access.proxy is not None and tls is None
        if is_relayed and (authorization := proxy_authorization(access.proxy or "")) is not None:
            headers.append(("Proxy-Authorization", authorization))
        prefix = access.server if is_relayed else url.path.rstrip("/")
        head = b"".join(_header(name, value, access.origin) for name, value in headers)
        return cls(access, secret, route, prefix.encode(), head)

    def request(self, method: str, target: bytes, data: bytes | None, content_type: str) -> bytes:
        """A whole request."""
        begun = b"%b %b%b HTTP/1.1\r\n%b" % (method.encode(), self.prefix, target, self.head)
        if data is None:
            return begun + (b"\r\n" if method == "GET" else b"Content-Length: 0\r\n\r\n")
        return b"%bContent-Type: %b\r\nContent-Length: %d\r\n\r\n%b" % (
            begun,
            content_type.encode(),
            len(data),
            data,
        )


def _header(name: str, value: str, origin: str) -> bytes:
    if any(ord(letter) < 32 or ord(letter) == 127 for letter in value):
        raise ConfigError(f"what goes into the header {name} has a line break in it", path=origin)
    return f"{name}: {value}\r\n".encode()


def _target(path: str, query: Mapping[str, str] | None) -> bytes:
    """Path and query as they go on the wire; what a request line cannot hold is escaped."""
    if not _PRINTABLE.fullmatch(path):
        path = quote(path, safe="/%:@!$&'()*+,;=~")
    return (f"{path}?{urlencode(query)}" if query else path).encode()


def _most(code: int) -> int:
    """How many bytes an answer of this code may have."""
    return ANSWER_BYTES_MAX if code < 300 else REFUSAL_BYTES_MAX


def _most_of_a_write(code: int) -> int:
    """One object at most: 64 of them may come at once."""
    return min(_most(code), LINE_BYTES_MAX)


def _is_untrusted(error: Exception) -> bool:
    return isinstance(error, NoConnection) and isinstance(error.cause, ssl.SSLCertVerificationError)


def raise_for(code: int, raw: bytes, headers: Mapping[str, str], *, now_s: float) -> NoReturn:
    """Raise the ApiError that an answer means; a body that is no Status is quoted."""
    try:
        status = msgspec.json.decode(raw, type=Status)
    except (msgspec.DecodeError, RecursionError):
        status = Status(message=raw[:200].decode(errors="replace").strip())
    message = status.message or f"HTTP {code}"
    reason = status.reason or ""
    if code == 409:
        raise Conflict(message, code=code, reason=reason)
    if code == 410:
        raise Expired(message, code=code, reason=reason)
    if code == 429 or code >= 500:
        retry_after_s = _retry_after_s(status, headers, now_s)
        raise Unavailable(message, code=code, reason=reason, retry_after_s=retry_after_s)
    raise ApiError(message, code=code, reason=reason)


def _retry_after_s(status: Status, headers: Mapping[str, str], now_s: float) -> float | None:
    """Seconds, or a date as gateways write it, which counts from the answer's own date; else the details."""
    header = headers.get("retry-after", "")
    if header.isascii() and header.isdigit():
        return min(float(header), RETRY_AFTER_S_MAX)
    if (until_s := _seconds_of_date(header)) is not None:
        answered_s = _seconds_of_date(headers.get("date", ""))
        return min(max(until_s - (now_s if answered_s is None else answered_s), 0.0), RETRY_AFTER_S_MAX)
    if status.details is not None and status.details.retry_after_seconds is not None:
        return float(min(max(status.details.retry_after_seconds, 0), int(RETRY_AFTER_S_MAX)))
    return None


def _seconds_of_date(text: str) -> float | None:
    """A date of HTTP in Unix seconds; None for any other text."""
    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError, TypeError, IndexError):
        return None


def _unreached(server: str, error: Exception) -> Unavailable:
    """Say in plain words why no answer came, and whether the request can have arrived."""
    if isinstance(error, TooLong):
        return Unavailable(f"an answer of more than {error.most >> 20} MiB", code=0, reason="TooLarge")
    if isinstance(error, NoAnswer):
        return Unavailable(f"the connection to {server} broke off", code=0, reason="NoAnswer")
    cause = error.cause if isinstance(error, NoConnection) else error
    words = next((said for kind, said in _LEGIBLE.items() if isinstance(cause, kind)), str(cause))
    if isinstance(cause, ssl.SSLCertVerificationError):
        words += f": {cause.verify_message}"
    return Unavailable(
        f"cannot reach {server}: {words or type(cause).__name__}",
        code=0,
        reason=NOT_SENT if isinstance(error, NoConnection) else "NoAnswer",
    )


async def _lines_of(pieces: AsyncIterator[bytes]) -> AsyncIterator[list[bytes]]:
    """The whole lines that came together; objects may have 1 MiB, so a line may come in many pieces."""
    begun: list[bytes] = []  # of the line that has no end yet
    size = 0
    async for piece in pieces:
        if b"\n" not in piece:
            begun.append(piece)
            size += len(piece)
            if size > LINE_BYTES_MAX:
                most = LINE_BYTES_MAX >> 20
                raise Unavailable(f"a line of more than {most} MiB in a watch", code=0, reason="TooLarge")
            continue
        first, *others, rest = piece.split(b"\n")
        whole = b"".join([*begun, first])
        begun, size = [rest], len(rest)
        yield [line for line in (whole, *others) if line]
