"""HTTP to a Kubernetes API server: bytes in, bytes out, ApiError for everything else.

In comes an `Access` (`runtime/kubeconfig.py`); out come answers, or exceptions of `base/errors.py` sorted by
what the caller can do about them.  Who is not known to the server (401) gets new credentials once.  Nothing
is retried here: `runtime/watch.py` and `runtime/executor.py` know what is safe to say twice.
"""

import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, NoReturn

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
IDLE_S = 30.0  # shorter than what servers and balancers keep an idle connection for
NOT_SENT = "NotSent"  # `reason` of an Unavailable that never left this machine

_LEGIBLE = {
    ssl.SSLCertVerificationError: "the server's certificate is not trusted",
    ConnectionRefusedError: "connection refused",
    ConnectionResetError: "connection reset",
    TimeoutError: "no answer in time",
}


class StatusDetails(Struct, rename="camel"):
    retry_after_seconds: int | None = None


class Status(Struct, rename="camel"):
    """The server's word on a request that it did not fulfil."""

    kind: str = ""
    message: str | None = None
    reason: str | None = None
    code: int | None = None
    details: StatusDetails | None = None


class Answer(Struct, frozen=True):
    """A successful answer; `warnings` are the texts of its Warning headers."""

    code: int
    body: bytes
    warnings: tuple[str, ...] = ()


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
            version: str = msgspec.json.decode(answer.body)["gitVersion"]
        except (msgspec.DecodeError, KeyError, TypeError) as error:
            raise ConfigError(
                f"{self.server} is no Kubernetes API server: /version is not its answer",
                path=self._access.origin,
            ) from error
        except ApiError as error:
            said = (
                f"{self.server} refused the credentials: {error}" if error.code in (401, 403) else str(error)
            )
            raise ConfigError(said, path=self._access.origin) from error
        return version

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
            async with self._open(method, path, query, headers, data, timeout) as response:
                raw = await response.read()
            self._count(method, response.status)
            if response.status == 401 and not is_last and self._access.credentials.refresh():
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
                if response.status == 401 and not is_last and self._access.credentials.refresh():
                    continue
                if response.status >= 300:
                    raise_for(response.status, await response.read(), response.headers)
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
    except msgspec.DecodeError:
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
    if header.isdigit():
        return float(header)
    if status.details is not None and status.details.retry_after_seconds is not None:
        return float(status.details.retry_after_seconds)
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


async def _lines_of(response: aiohttp.ClientResponse) -> AsyncIterator[list[bytes]]:
    """Split by ourselves: aiohttp's reader refuses lines longer than its buffer; objects may have 1 MiB."""
    rest = b""
    async for chunk in response.content.iter_any():
        if b"\n" not in chunk:
            rest += chunk
            continue
        *whole, rest = (rest + chunk).split(b"\n")
        yield [line for line in whole if line]
