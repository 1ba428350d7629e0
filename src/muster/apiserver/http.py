"""The API server's sockets: HTTP/1.1 requests in, answers and watch streams out.

The only module here that does I/O, and it decides nothing but who is calling: a bearer token from the
list is an administrator, a wrong one is 401, none is `system:anonymous`.  Everything else is `handle`'s, in
practice `ApiServer.handle` with the owner's clock:

    server = HttpServer(handle, now_s=clock.now_s, ssl_context=context, tokens=(token,))
    await server.start(listening_socket)
    …
    await server.close()
"""

import asyncio
import hmac
import ssl
from collections.abc import Callable, Iterable
from socket import socket
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote
from weakref import WeakSet

import msgspec
from aiohttp import web
from aiohttp.http_exceptions import BadHttpMethod, LineTooLong, PayloadEncodingError
from aiohttp.web_protocol import RequestHandler

from muster.apiserver.exchange import Request, Response, Watch
from muster.apiserver.kinds import Refused
from muster.apiserver.statuses import bad_request, method_not_allowed, status_of

BODY_BYTES_MOST = 3 * 1024 * 1024
HEADER_BYTES_MOST = 16 * 1024  # of one header, and of the first line
CONNECTIONS_MOST = 1_000
WATCHES_MOST = 2_000
PATIENCE_S = 30.0  # for the first request of a connection
_ADMIN = ("admin", ("system:masters", "system:authenticated"))
_ANONYMOUS = ("system:anonymous", ("system:unauthenticated",))
_GOODBYE_S = 2.0
_FRAMES_A_WRITE = 500
_FAULT = "Internal error occurred: the server failed at this request; its log says how"


class Limits(NamedTuple):
    """What one server gives away at most, and how long it waits for who connects and says nothing."""

    connections: int = CONNECTIONS_MOST
    watches: int = WATCHES_MOST
    patience_s: float = PATIENCE_S


DEFAULT_LIMITS = Limits()


class HttpServer:
    """Serves `handle` on a listening socket.

    `now_s` tells watches the time; `tokens` are the bearer tokens of administrators.  Beyond `limits` a
    connection is closed as soon as it is made, and a watch is answered with 429.
    """

    def __init__(
        self,
        handle: Callable[[Request], Response],
        *,
        now_s: Callable[[], float],
        tokens: Iterable[str],
        ssl_context: ssl.SSLContext | None = None,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self._handle = handle
        self._limits = limits
        self._now_s = now_s
        self._tokens = tuple(token.encode() for token in tokens)
        self._ssl_context = ssl_context
        self._streams: set[_Stream] = set()
        self._runner: web.ServerRunner | None = None

    async def start(self, listener: socket) -> None:
        """Begin to answer on this socket."""
        self._runner = web.ServerRunner(
            _Server(
                self._answer,
                self._limits,
                access_log=None,
                auto_decompress=False,  # as stock: what is no JSON, YAML or protobuf is told so
                max_line_size=HEADER_BYTES_MOST,
                max_field_size=HEADER_BYTES_MOST,
            ),
            shutdown_timeout=_GOODBYE_S,
        )
        await self._runner.setup()
        await web.SockSite(self._runner, listener, ssl_context=self._ssl_context).start()

    async def close(self) -> None:
        """End all watches at once, finish what is being answered, and stop."""
        for stream in list(self._streams):
            stream.end()
        if self._runner is not None:
            await self._runner.cleanup()

    async def _answer(self, raw: web.BaseRequest) -> web.StreamResponse:
        """Answer one request; what is not HTTP at all ends in `_Protocol.handle_error`."""
        try:
            user, groups = self._who(raw)
            request = await _read(raw, user, groups)
        except Refused as refused:
            return _whole(Response(refused.code, status_of(refused), headers=refused.headers), raw)
        response = self._handle(request)
        if response.watch is None:
            return _whole(response, raw)
        if len(self._streams) >= self._limits.watches:
            response.watch.stop()
            return _whole(_busy(self._limits.watches), raw)
        stream = _Stream(response.watch, self._now_s)
        self._streams.add(stream)
        try:
            return await stream.send(raw, response)
        finally:
            self._streams.discard(stream)
            response.watch.stop()

    def _who(self, raw: web.BaseRequest) -> tuple[str, tuple[str, ...]]:
        header = raw.headers.get("Authorization", "")
        if not header:
            return _ANONYMOUS
        scheme, _, token = header.partition(" ")
        given = token.strip().encode("utf-8", "surrogateescape")
        known = False
        for each in self._tokens:  # all of them, so that the time tells nothing
            known |= hmac.compare_digest(each, given)
        if scheme.lower() != "bearer" or not known:
            raise Refused("Unauthorized", code=401, reason="Unauthorized")
        return _ADMIN


class _Protocol(RequestHandler):
    """Answers what the HTTP parser refuses with a Status, as it answers everything else.

    A connection too many, and one on which nothing is asked for too long, is closed.
    """

    def __init__(self, manager: "_Server", **keywords: Any) -> None:
        super().__init__(manager, **keywords)
        self._server = manager
        self._impatience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection, or close it."""
        super().connection_made(transport)
        if len(self._server.connections) > self._server.limits.connections:
            self.force_close()
            return
        loop = asyncio.get_running_loop()
        self._impatience = loop.call_later(self._server.limits.patience_s, self._give_up)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Wait for nothing any more."""
        if self._impatience is not None:
            self._impatience.cancel()
        super().connection_lost(exc)

    def _give_up(self) -> None:
        if not self._server.has_asked(self):
            self.force_close()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        if status >= 500:
            super().handle_error(request, status, exc, message)  # which logs it
            refused = Refused(_FAULT, code=500, reason="InternalError", details={})
        elif isinstance(exc, BadHttpMethod):
            refused = method_not_allowed()
        elif isinstance(exc, LineTooLong):
            refused = bad_request(f"the first line or a header is longer than {HEADER_BYTES_MOST} bytes")
        else:
            refused = bad_request("Bad Request")
        answer = _whole(Response(refused.code, status_of(refused)), request)
        answer.force_close()
        return answer


class _Server(web.Server):
    def __init__(self, handler: Callable[[web.BaseRequest], Any], limits: Limits, **keywords: Any) -> None:
        self.limits = limits
        self._asked: WeakSet[RequestHandler] = WeakSet()
        super().__init__(self._noting(handler), **keywords)

    def __call__(self) -> RequestHandler:
        return _Protocol(self, loop=self._loop, **self._kwargs)

    def has_asked(self, connection: RequestHandler) -> bool:
        """Whether a whole head of a request has ever come on it."""
        return connection in self._asked

    def _noting(self, handler: Callable[[web.BaseRequest], Any]) -> Callable[[web.BaseRequest], Any]:
        async def note(request: web.BaseRequest) -> web.StreamResponse:
            self._asked.add(request.protocol)
            answer: web.StreamResponse = await handler(request)
            return answer

        return note


async def _read(raw: web.BaseRequest, user: str, groups: tuple[str, ...]) -> Request:
    """The request as a value.

    Raises   Refused (413) for a body that is too large.
    """
    headers: dict[str, str] = {}
    for name, value in raw.headers.items():
        key = name.lower()
        headers[key] = f"{headers[key]},{value}" if key in headers else value
    headers.pop("authorization", None)
    url = raw.rel_url
    body = await _read_body(raw) if raw.can_read_body else b""
    query = tuple(parse_qsl(url.raw_query_string, keep_blank_values=True)) if url.raw_query_string else ()
    return Request(raw.method, unquote(url.raw_path), query, headers, body, user, groups)


async def _read_body(raw: web.BaseRequest) -> bytes:
    length = raw.content_length
    if length is not None and length > BODY_BYTES_MOST:
        raise _too_large()
    if raw.headers.get("Expect", "").lower() == "100-continue":
        await raw.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        raw.writer.output_size = 0
    chunks: list[bytes] = []
    size = 0
    try:
        async for chunk in raw.content.iter_any():
            size += len(chunk)
            if size > BODY_BYTES_MOST:
                raise _too_large()
            chunks.append(chunk)
    except PayloadEncodingError as error:
        raise Refused(str(error), code=400, reason="BadRequest", details={}) from None
    return b"".join(chunks)


def _busy(most: int) -> Response:
    refused = Refused(
        f"too many watches: this server keeps {most} at once", code=429, reason="TooManyRequests", details={}
    )
    return Response(429, status_of(refused), headers=(("Retry-After", "1"),))


def _too_large() -> Refused:
    message = f"Request entity too large: limit is {BODY_BYTES_MOST}"
    return Refused(message, code=413, reason="RequestEntityTooLarge")


def _whole(response: Response, raw: web.BaseRequest) -> web.StreamResponse:
    body = response.raw
    if body is None:
        body = msgspec.json.encode(response.object) + b"\n" if response.object is not None else b""
    answer = web.Response(status=response.status, body=body if raw.method != "HEAD" else b"")
    if body:
        answer.headers["Content-Type"] = response.content_type
    else:
        answer.headers.pop("Content-Type", None)
    answer.headers["Cache-Control"] = "no-cache, private"
    for name, value in response.headers:
        answer.headers.add(name, value)
    if response.status == 413:
        answer.force_close()  # the rest of the body is not read
    return answer


class _Stream:
    """A watch on its way to a client."""

    def __init__(self, watch: Watch, now_s: Callable[[], float]) -> None:
        self._watch = watch
        self._now_s = now_s
        self._ready = asyncio.Event()
        self._ended = False
        watch.on_ready = self._ready.set

    def end(self) -> None:
        """Send no more."""
        self._ended = True
        self._ready.set()

    async def send(self, raw: web.BaseRequest, response: Response) -> web.StreamResponse:
        """Write frames as they come, until the watch ends or the client goes."""
        answer = web.StreamResponse(status=response.status)
        answer.headers["Content-Type"] = response.content_type
        answer.headers["Cache-Control"] = "no-cache, private"
        for name, value in response.headers:
            answer.headers.add(name, value)
        answer.enable_chunked_encoding()
        await answer.prepare(raw)
        try:
            await self._pump(answer)
            await answer.write_eof()
        except (ConnectionError, asyncio.CancelledError):
            pass  # the client went away
        return answer

    async def _pump(self, answer: web.StreamResponse) -> None:
        watch = self._watch
        while not self._ended:
            self._ready.clear()
            now_s = self._now_s()
            frames = watch.pull(now_s, _FRAMES_A_WRITE)
            if frames:
                await answer.write(b"".join(frames))
                continue
            if watch.closed:
                return
            due_s = watch.next_due_s()
            try:
                async with asyncio.timeout(None if due_s is None else max(due_s - now_s, 0)):
                    await self._ready.wait()
            except TimeoutError:
                continue
