"""A proxy that stands between `muster run` and an API server and does to chosen requests what networks do.

`FaultProxy(upstream, …)` is an async context manager that listens on a port of 127.0.0.1 chosen by the system
(plain HTTP, or TLS where it is given an identity; upstream as its address says) and passes everything on,
watch streams as they come.  A `Rule` chooses requests by method, path and how many went before, and says what
becomes of them.  `cut` breaks off everything until `restore`; `show` begins anew with another certificate;
`wanted_token` lets nobody else in.
"""

import asyncio
import re
import ssl
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import Enum
from types import TracebackType
from typing import Any

import aiohttp
from aiohttp import web

from muster.runtime.certificates import ServerIdentity

MEBIBYTE = 1 << 20
STOP_S = 0.1  # what still runs then is cancelled; aiohttp takes 0 for no limit
REFUSAL = "refused by the proxy of the test"
FOR_EVER = 1_000_000_000  # times that a rule applies
BINDING, DELETION = r"/pods/[^/]+/binding$", r"/pods/[^/]+$"
_BODY_BYTES_MAX = 16 * MEBIBYTE
# Headers of one connection, not of what is asked: RFC 9110 section 7.6.1; lengths are counted anew.
_HOP_BY_HOP = {"connection", "content-encoding", "content-length", "host", "keep-alive", "transfer-encoding"}


class Fault(Enum):
    """What becomes of a request."""

    NONE = "passes"
    DELAY = "reaches the server late"
    HANG = "waits for so long, and then breaks off before the server saw it"
    LOSE_REQUEST = "breaks off before the server saw it"
    LOSE_ANSWER = "breaks off after the server did it"
    DUPLICATE = "reaches the server twice; the second answer is told"
    REFUSE = "is refused"


@dataclass
class Rule:
    """Which requests, and what becomes of them.

    `method` whole and `path` a regular expression that is searched for; `skip` matching requests pass, then
    `count` meet `fault`.  `one_at_a_time`: none of the matching ones is passed on before the one before it
    was answered.  `on_hit` is called when one met the fault: before it is broken off, and where the server
    is to have done it, after it has.  `hits` counts them.
    """

    method: str
    path: str
    fault: Fault = Fault.NONE
    skip: int = 0
    count: int = 1
    status: int = 500
    message: str = REFUSAL
    retry_after_s: int | None = None
    delay_s: float = 0.0
    one_at_a_time: bool = False
    on_hit: Callable[[], None] | None = None
    seen: int = 0
    hits: int = 0
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    def matches(self, method: str, path: str) -> bool:
        """Whether the rule speaks of such requests."""
        return method == self.method and re.search(self.path, path) is not None

    def take(self) -> bool:
        """Count a matching request; whether it meets the fault."""
        self.seen += 1
        return self.skip < self.seen <= self.skip + self.count

    def hit(self) -> None:
        """Count and tell."""
        self.hits += 1
        if self.on_hit is not None:
            self.on_hit()


class FaultProxy:
    """The proxy; `rules` may be changed at any time, the first that matches applies.

    `accepted` counts by (method, path) what the server answered with success to, whoever heard of it;
    `unauthorized` counts requests with another token than the one that is wanted.
    """

    def __init__(
        self,
        upstream: str,
        *,
        token: str = "",
        tls: ssl.SSLContext | None = None,
        identity: ServerIdentity | None = None,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.rules: list[Rule] = []
        self.accepted: Counter[tuple[str, str]] = Counter()
        self.address = ""
        self.wanted_token = ""
        self.unauthorized = 0
        self._identity = identity
        self._upstream = upstream.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._tls = tls
        self._pause = pause
        self._is_cut = False

    async def __aenter__(self) -> "FaultProxy":
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=True if self._tls is None else self._tls),
            timeout=aiohttp.ClientTimeout(total=None),
            auto_decompress=False,
        )
        self._server = web.Server(self._handle)
        self._runner = web.ServerRunner(self._server, shutdown_timeout=STOP_S)
        await self._runner.setup()
        await self._listen(0)
        host, port = self._runner.addresses[0][:2]
        self.address = f"{'http' if self._identity is None else 'https'}://{host}:{port}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()
        await self._runner.cleanup()

    def cut(self) -> None:
        """From now on every request breaks off before the server sees it."""
        self._is_cut = True

    def restore(self) -> None:
        """Pass requests on again."""
        self._is_cut = False

    def bound_twice(self, gang: str) -> list[str]:
        """The bindings of a gang's pods that the server accepted more than once, by path."""
        return [
            path
            for (_, path), count in self.accepted.items()
            if f"/{gang}-" in path and path.endswith("/binding") and count > 1
        ]

    async def show(self, identity: ServerIdentity) -> None:
        """From now on serve with this certificate, on the same port; what is open breaks off."""
        port = self._runner.addresses[0][1]
        self._identity = identity
        await self._site.stop()
        for connection in self._server.connections:
            if connection.transport is not None:
                connection.transport.abort()
        await self._listen(port)

    async def _listen(self, port: int) -> None:
        context = None if self._identity is None else self._identity.server_context
        self._site = web.TCPSite(self._runner, "127.0.0.1", port, ssl_context=context)
        await self._site.start()

    # ── one request ──────────────────────────────────────────────────────────────────────────────

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        body = await request.content.read(_BODY_BYTES_MAX)
        while not request.content.at_eof():
            body += await request.content.read(_BODY_BYTES_MAX)
        rule = next((each for each in self.rules if each.matches(request.method, request.path)), None)
        if rule is None:
            return await self._pass_on(request, body)
        if not rule.one_at_a_time:
            return await self._apply(rule, request, body)
        async with rule.turn:
            return await self._apply(rule, request, body)

    async def _apply(self, rule: Rule, request: web.BaseRequest, body: bytes) -> web.StreamResponse:
        if self._is_cut:
            return _break_off(request)
        if not rule.take():
            return await self._pass_on(request, body)
        if rule.fault is Fault.LOSE_REQUEST:
            rule.hit()
            return _break_off(request)
        if rule.fault is Fault.REFUSE:
            rule.hit()
            return _refusal(rule.status, rule.message, rule.retry_after_s)
        if rule.fault is Fault.HANG:
            rule.hit()
            await self._pause(rule.delay_s)
            return _break_off(request)
        if rule.fault is Fault.DELAY:
            await self._pause(rule.delay_s)
        if rule.fault in (Fault.LOSE_ANSWER, Fault.DUPLICATE):
            await self._exchange(request, body)
        if rule.fault is Fault.LOSE_ANSWER:
            rule.hit()
            return _break_off(request)
        answer = await self._pass_on(request, body)
        rule.hit()
        return answer

    async def _exchange(self, request: web.BaseRequest, body: bytes) -> None:
        """Let the server do it, and keep the answer from the client."""
        async with self._open(request, body) as answer:
            self._note(request, answer.status)
            await answer.read()

    async def _pass_on(self, request: web.BaseRequest, body: bytes) -> web.StreamResponse:
        if self._is_cut:
            return _break_off(request)
        if self.wanted_token and request.headers.get("Authorization") != f"Bearer {self.wanted_token}":
            self.unauthorized += 1
            return _refusal(401)
        try:
            async with self._open(request, body) as answer:
                self._note(request, answer.status)
                headers = _end_to_end(answer.headers)
                if encoding := answer.headers.get("Content-Encoding"):
                    headers["Content-Encoding"] = encoding
                response = web.StreamResponse(status=answer.status, headers=headers)
                await response.prepare(request)
                async for piece in answer.content.iter_any():
                    if self._is_cut:
                        return _break_off(request)
                    await response.write(piece)
                await response.write_eof()
                return response
        except (aiohttp.ClientError, ConnectionError):
            return _break_off(request)

    def _open(self, request: web.BaseRequest, body: bytes) -> Any:
        return self._session.request(
            request.method,
            self._upstream + request.path_qs,
            headers=_end_to_end(request.headers) | self._headers,
            data=body or None,
            allow_redirects=False,
        )

    def _note(self, request: web.BaseRequest, status: int) -> None:
        if status < 300:
            self.accepted[request.method, request.path] += 1


def _end_to_end(headers: Any) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() not in _HOP_BY_HOP}


def _break_off(request: web.BaseRequest) -> web.Response:
    """Close the connection without a word."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


def _refusal(code: int, message: str = REFUSAL, retry_after_s: int | None = None) -> web.Response:
    """Answer as an API server that refuses does."""
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "message": message,
        "code": code,
    }
    after = {} if retry_after_s is None else {"Retry-After": str(retry_after_s)}
    return web.json_response(status, status=code, headers=after)
