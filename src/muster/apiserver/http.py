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
from urllib.parse import parse_qsl, unquote

import msgspec
from aiohttp import web
from aiohttp.http_exceptions import BadHttpMethod, PayloadEncodingError
from aiohttp.web_protocol import RequestHandler

from muster.apiserver.exchange import Request, Response, Watch
from muster.apiserver.kinds import Refused
from muster.apiserver.statuses import bad_request, method_not_allowed, status_of

BODY_BYTES_MOST = 3 * 1024 * 1024
_ADMIN = ("admin", ("system:masters", "system:authenticated"))
_ANONYMOUS = ("system:anonymous", ("system:unauthenticated",))
_GOODBYE_S = 2.0
_FRAMES_A_WRITE = 500
_FAULT = "Internal error occurred: the server failed at this request; its log says how"


class HttpServer:
    """Serves `handle` on a listening socket.

    `now_s` tells watches the time; `tokens` are the bearer tokens of administrators.
    """

    def __init__(
        self,
        handle: Callable[[Request], Response],
        *,
        now_s: Callable[[], float],
        tokens: Iterable[str],
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        self._handle = handle
        self._now_s = now_s
        self._tokens = tuple(token.encode() for token in tokens)
        self._ssl_context = ssl_context
        self._streams: set[_Stream] = set()
        self._runner: web.ServerRunner | None = None

    async def start(self, listener: socket) -> None:
        """Begin to answer on this socket."""
        self._runner = web.ServerRunner(_Server(self._answer, access_log=None), shutdown_timeout=_GOODBYE_S)
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
    """Answers what the HTTP parser refuses with a Status, as it answers everything else."""

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
        else:
            refused = bad_request("Bad Request")
        answer = _whole(Response(refused.code, status_of(refused)), request)
        answer.force_close()
        return answer


class _Server(web.Server):
    def __call__(self) -> RequestHandler:
        return _Protocol(self, loop=self._loop, **self._kwargs)


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


def _too_large() -> Refused:
    message = f"Request entity too large: limit is {BODY_BYTES_MOST}"
    return Refused(message, code=413, reason="RequestEntityTooLarge", details={})


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
