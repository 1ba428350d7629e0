"""HTTP to a Kubernetes API server: bytes in, bytes out, ApiError for everything else.

In comes an `Access` (`runtime/kubeconfig.py`); out come answers, or exceptions of `base/errors.py` sorted by
what the caller can do about them.  Who is not known to the server (401) gets new credentials once, and files
that were replaced are read again.  Nothing
is retried here: `runtime/watch.py` and `runtime/executor.py` know what is safe to say twice.
"""

import logging
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, NoReturn, TypeVar

import aiohttp
import msgspec
from msgspec import Struct

from muster import __version__
from muster.base.errors import ApiError, ConfigError, Conflict, Expired, Unavailable
from muster.runtime.credentials import ClientCertificate, Secret
from muster.runtime.kubeconfig import Access

JSON = "application/json"
TIMEOUT_S = 5.0
SILENCE_S = 150.0  # a watch hears a bookmark every minute; after two missed ones the line is taken for dead
ANSWER_BYTES_MAX = 1 << 30  # a list in one piece of the largest cluster there is, and no more
REFUSAL_BYTES_MAX = 1 << 20
LINE_BYTES_MAX = 16 << 20  # ten times what an API server stores of one object
RETRY_AFTER_S_MAX = 3600.0
IDLE_S = 30.0  # shorter than what servers and balancers keep an idle connection for
NOT_SENT = "NotSent"  # `reason` of an Unavailable that never left this machine

log = logging.getLogger("muster.client")

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


class ItemList(Struct):
    """Any list of objects, as plain dicts."""

    items: list[dict[str, Any]] | None = None


class Answer(Struct, frozen=True):
    """A successful answer; `warnings` are the texts of its Warning headers."""

    code: int
    body: bytes
    warnings: tuple[str, ...] = ()

    def read(self, kind: type[Kind]) -> Kind:
        """The body as this type.  Raises Unavailable for anything else: a server may send what it likes."""
        try:
            return msgspec.json.decode(self.body, type=kind)
        except (msgspec.DecodeError, RecursionError) as error:
            raise Unavailable(
                f"the answer is not what the API says: {error}", code=0, reason="Unreadable"
            ) from error


class ApiClient:
    """One API server.  An async context manager; safe to use from many tasks of one loop."""

    def __init__(
        self,
        access: Access,
        *,
        now_s: Callable[[], float],
        count: Callable[[str, int], None] = lambda verb, code: None,
        timeout_s: float = TIMEOUT_S,
        connector: Callable[[], aiohttp.BaseConnector] | None = None,
    ) -> None:
        self._access = access
        self._now_s = now_s
        self._count = count
        self._timeout = aiohttp.ClientTimeout(total=timeout_s)
        # Callers bound how much they ask at once; a limit here would let binds hold up a lease.
        self._connector = connector or (lambda: aiohttp.TCPConnector(limit=0, keepalive_timeout=IDLE_S))
        self._session: aiohttp.ClientSession | None = None
        self._tls: ssl.SSLContext | None = None
        self._tls_of: ClientCertificate | None = None

    async def __aenter__(self) -> "ApiClient":
        self._session = aiohttp.ClientSession(
            connector=self._connector(),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={
                "Accept": JSON,
                "Accept-Encoding": "identity",
                "User-Agent": f"muster/{__version__}",
            },
            read_bufsize=1 << 20,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()

    @property
    def server(self) -> str:
        """Where it is, for messages."""
        return self._access.server

    async def check_connection(self) -> str:
        """Ask for the version and give it.

        Raises   ConfigError in plain words if the kubeconfig leads nowhere.
        """
        await self._access.credentials.secret(self._now_s())  # its own ConfigError says more than ours would
        try:
            answer = await self.call("GET", "/version")
            return answer.read(Version).git_version
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
        """Send one request and give the answer.

        Raises   ApiError by kind: Conflict (409), Expired (410), Unavailable (429, 5xx, or `code` 0 when no
                 answer came; its `reason` is NOT_SENT if the server cannot have seen the request).
        """
        data = None if body is None else msgspec.json.encode(body)
        headers = {"Content-Type": content_type} if data is not None else {}
        timeout = self._timeout if timeout_s is None else aiohttp.ClientTimeout(total=timeout_s)
        for is_last in (False, True):
            try:
                async with self._open(method, path, query, headers, data, timeout) as response:
                    most = ANSWER_BYTES_MAX if response.status < 300 else REFUSAL_BYTES_MAX
                    raw = await _body_of(response, most)
            except Unavailable as error:
                is_untrusted = isinstance(error.__cause__, aiohttp.ClientConnectorCertificateError)
                if is_last or not is_untrusted or not self._read_anew():
                    raise
                continue
            self._count(method, response.status)
            if response.status == 401 and not is_last and self._renew():
                continue
            if response.status >= 300:
                raise_for(response.status, raw, response.headers)
            return Answer(response.status, raw, tuple(response.headers.getall("Warning", ())))
        raise AssertionError("the second try always returns or raises")

    @asynccontextmanager
    async def lines(self, path: str, query: Mapping[str, str]) -> AsyncIterator[AsyncIterator[list[bytes]]]:
        """Open a stream of lines (a watch); the iterator gives the lines that came together.

        Raises   ApiError as `call`, on opening and while reading; a line that went silent is Unavailable.
        """
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=self._timeout.total, sock_read=SILENCE_S)
        for is_last in (False, True):
            async with self._open("GET", path, query, {}, None, timeout) as response:
                self._count("WATCH", response.status)
                if response.status == 401 and not is_last and self._renew():
                    continue
                if response.status >= 300:
                    raw = await _body_of(response, REFUSAL_BYTES_MAX)
                    raise_for(response.status, raw, response.headers)
                yield _lines_of(response)
                return

    @asynccontextmanager
    async def _open(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        headers: dict[str, str],
        data: bytes | None,
        timeout: aiohttp.ClientTimeout,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        if self._session is None:
            raise RuntimeError("an ApiClient is used inside `async with`")
        try:
            secret = await self._access.credentials.secret(self._now_s())
            tls = self._tls_for(secret)
        except ConfigError as error:
            raise Unavailable(f"no credentials: {error}", code=0, reason=NOT_SENT) from error
        sent = [*headers.items(), *self._access.headers]
        if secret.authorization is not None:
            sent.append(("Authorization", secret.authorization))
        try:
            async with self._session.request(
                method,
                self._access.server + path,
                params=query,
                data=data,
                headers=sent,
                ssl=tls if tls is not None else True,
                server_hostname=self._access.server_name,
                proxy=self._access.proxy,
                timeout=timeout,
                allow_redirects=False,
            ) as response:
                yield response
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            self._count(method, 0)
            raise _unreached(self._access.server, error) from error

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
        self._access, self._tls, self._tls_of = fresh, None, None
        return True

    def _tls_for(self, secret: Secret) -> ssl.SSLContext | None:
        if self._access.tls is None:
            return None
        if self._tls is None or secret.certificate != self._tls_of:
            self._tls = self._access.tls.context_for(secret.certificate)
            self._tls_of = secret.certificate
        return self._tls


def raise_for(code: int, raw: bytes, headers: Mapping[str, str]) -> NoReturn:
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
        raise Unavailable(message, code=code, reason=reason, retry_after_s=_retry_after_s(status, headers))
    raise ApiError(message, code=code, reason=reason)


def _retry_after_s(status: Status, headers: Mapping[str, str]) -> float | None:
    header = headers.get("Retry-After", "")
    if header.isascii() and header.isdigit():
        return min(float(header), RETRY_AFTER_S_MAX)
    if status.details is not None and status.details.retry_after_seconds is not None:
        return float(min(max(status.details.retry_after_seconds, 0), int(RETRY_AFTER_S_MAX)))
    return None


def _unreached(server: str, error: Exception) -> Unavailable:
    """Say in plain words why no answer came, and whether the request can have arrived."""
    cause: BaseException = error
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        cause = error.certificate_error
    elif isinstance(error, aiohttp.ClientConnectorError):
        cause = error.os_error
    if isinstance(error, aiohttp.ClientPayloadError | aiohttp.ServerDisconnectedError):
        return Unavailable(f"the connection to {server} broke off", code=0, reason="NoAnswer")
    words = next((said for kind, said in _LEGIBLE.items() if isinstance(cause, kind)), str(cause))
    if isinstance(cause, ssl.SSLCertVerificationError):
        words += f": {cause.verify_message}"
    not_sent = isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError)
    return Unavailable(
        f"cannot reach {server}: {words or type(cause).__name__}",
        code=0,
        reason=NOT_SENT if not_sent else "NoAnswer",
    )


async def _body_of(response: aiohttp.ClientResponse, most: int) -> bytes:
    """The whole body.  Raises Unavailable for one of more than so many bytes, of which no more is read."""
    chunks, size = [], 0
    async for chunk in response.content.iter_any():
        size += len(chunk)
        if size > most:
            raise Unavailable(f"an answer of more than {most >> 20} MiB", code=0, reason="TooLarge")
        chunks.append(chunk)
    return b"".join(chunks)


async def _lines_of(response: aiohttp.ClientResponse) -> AsyncIterator[list[bytes]]:
    """Split by ourselves: aiohttp's reader refuses lines longer than its buffer; objects may have 1 MiB."""
    pieces: list[bytes] = []  # of the line that has no end yet
    size = 0
    async for chunk in response.content.iter_any():
        if b"\n" not in chunk:
            pieces.append(chunk)
            size += len(chunk)
            if size > LINE_BYTES_MAX:
                most = LINE_BYTES_MAX >> 20
                raise Unavailable(f"a line of more than {most} MiB in a watch", code=0, reason="TooLarge")
            continue
        *whole, rest = (b"".join(pieces) + chunk).split(b"\n")
        pieces, size = [rest], len(rest)
        yield [line for line in whole if line]
