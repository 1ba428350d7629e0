"""HTTP/1.1 on connections that are kept: bytes of a request out, a `Reply` or a stream of pieces back.

In come a `Route` (`runtime/dialing.py`) and a whole request as bytes; what HTTP allows beyond that
(redirects, cookies, compression) an API server does not need.  Written by hand because the client is what a
scheduler spends itself on: 25 µs of processor time a request where aiohttp's client takes 90 (both over TLS,
bodies of 200 bytes).  Next: `runtime/client.py`, which says what to send and what an answer means.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import NamedTuple, cast

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from muster.runtime.dialing import Route

IDLE_S = 30.0  # shorter than what servers and balancers keep an idle connection for
HEAD_BYTES_MAX = 1 << 20  # of headers, and of whatever else is not body
STREAM_BYTES_MAX = 4 << 20  # what a stream may send before somebody reads: the rest waits in the server
_SPACE_AND_COMMA = ", "

Dial = Callable[[Callable[[], asyncio.Protocol], Route], Awaitable[None]]


class NoConnection(Exception):
    """Nobody was reached, so nothing was sent; `cause` says why."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


class NoAnswer(Exception):
    """The request may have arrived, but the answer did not come whole; `is_unheard`: not a byte of it."""

    def __init__(self, cause: Exception | None, *, is_unheard: bool) -> None:
        super().__init__(str(cause or "closed"))
        self.is_unheard = is_unheard


class TooLong(Exception):
    """The answer is longer than `most` bytes."""

    def __init__(self, most: int) -> None:
        super().__init__(str(most))
        self.most = most


RawHeaders = Sequence[tuple[bytes, bytes]]


class Reply(NamedTuple):
    """An answer; of a stream, only its beginning."""

    code: int
    raw_headers: RawHeaders
    body: bytes

    @property
    def headers(self) -> dict[str, str]:
        """As `headers_of`; few answers are asked for them."""
        return headers_of(self.raw_headers)


def headers_of(raw_headers: RawHeaders) -> dict[str, str]:
    """By name in lower case; those said several times joined by commas."""
    found: dict[str, str] = {}
    for raw_name, raw_value in raw_headers:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode(errors="replace")
        found[name] = found[name] + _SPACE_AND_COMMA + value if name in found else value
    return found


class Connection(asyncio.Protocol):
    """One connection, one request at a time."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._parser = HttpResponseParser(self)
        self._answer: asyncio.Future[Reply] | None = None
        self._most: Callable[[int], int] = lambda code: 0
        self._is_stream = False
        self._arrived: asyncio.Future[None] | None = None
        self._error: Exception | None = None
        self._is_complete = True
        self._is_paused = False
        self._headers: list[tuple[bytes, bytes]] = []
        self._pieces: list[bytes] = []
        self._size = 0
        self._head_size = 0
        self._is_heard = False
        self.lost: asyncio.Future[None] = self._loop.create_future()
        self.idle_since_s = 0.0

    # ── for the pool ─────────────────────────────────────────────────────────────────────────────

    @property
    def is_reusable(self) -> bool:
        """Whether another request may follow."""
        return self._transport is not None and self._is_complete and self._error is None

    async def ask(
        self, request: bytes, *, most: Callable[[int], int], timeout_s: float, is_stream: bool = False
    ) -> Reply:
        """Send a request and give its answer; `most` says by status code how many bytes that may have.

        `is_stream`: an answer below 300 is given once its headers are here; `pieces` gives the rest.
        Raises   NoAnswer, TooLong, TimeoutError.
        """
        if self._transport is None:
            raise NoAnswer(self._error, is_unheard=True)
        self._most, self._is_stream = most, is_stream
        self._headers, self._pieces, self._size, self._head_size = [], [], 0, 0
        self._is_complete = self._is_heard = False
        self._answer = self._loop.create_future()
        timer = self._loop.call_later(timeout_s, self._fail, TimeoutError())
        self._transport.write(request)
        try:
            return await self._answer
        except BaseException:
            self.abort()  # what is still to come belongs to nobody
            raise
        finally:
            timer.cancel()
            self._answer = None

    async def pieces(self, silence_s: float) -> AsyncIterator[bytes]:
        """The body of a stream as it comes, to its end.

        Raises   NoAnswer when it breaks, TimeoutError when nothing comes for so long.
        """
        while True:
            if self._pieces:
                piece = b"".join(self._pieces)
                self._pieces, self._size = [], 0
                self._go_on_reading()
                yield piece
            elif self._is_complete:
                return
            elif self._error is not None:
                raise self._error
            else:
                self._arrived = self._loop.create_future()
                timer = self._loop.call_later(silence_s, self._fail, TimeoutError())
                try:
                    await self._arrived
                finally:
                    timer.cancel()
                    self._arrived = None

    def abort(self) -> None:
        """End it at once."""
        if self._transport is not None:
            self._transport.abort()
            self._transport = None

    # ── asyncio's side ───────────────────────────────────────────────────────────────────────────

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's are no subclasses of it

    def data_received(self, data: bytes) -> None:
        if self._is_complete:
            self.abort()  # a server that speaks unasked
            return
        self._is_heard = True
        self._head_size += len(data)
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            self._fail(NoAnswer(error, is_unheard=False))
        if self._head_size > HEAD_BYTES_MAX:
            self._fail(TooLong(HEAD_BYTES_MAX))

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if not self._is_complete and exc is None and self._ends_with_connection():
            self.on_message_complete()
        self._fail(NoAnswer(exc, is_unheard=not self._is_heard))
        if not self.lost.done():
            self.lost.set_result(None)

    # ── the parser's side ────────────────────────────────────────────────────────────────────────

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        code = self._parser.get_status_code()
        if self._is_stream and 200 <= code < 300 and self._answer is not None and not self._answer.done():
            self._answer.set_result(Reply(code, self._headers, b""))

    def on_body(self, body: bytes) -> None:
        self._pieces.append(body)
        self._size += len(body)
        self._head_size = 0
        code = self._parser.get_status_code()
        if self._is_stream and code < 300:
            if self._size > STREAM_BYTES_MAX and not self._is_paused and self._transport is not None:
                self._is_paused = True
                self._transport.pause_reading()
            self._wake()
        elif self._size > self._most(code):
            self._fail(TooLong(self._most(code)))

    def on_message_complete(self) -> None:
        code = self._parser.get_status_code()
        if code < 200:  # not the answer yet
            self._headers = []
            return
        self._is_complete = True
        if not self._parser.should_keep_alive():
            self.abort()
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(Reply(code, self._headers, b"".join(self._pieces)))
        self._wake()

    # ── inside ───────────────────────────────────────────────────────────────────────────────────

    def _ends_with_connection(self) -> bool:
        """Whether the end of the connection is the end of the body: nothing else says where that is."""
        names = {name.lower() for name, _ in self._headers}
        is_begun = self._is_heard and self._parser.get_status_code() >= 200
        return is_begun and not names & {b"content-length", b"transfer-encoding"}

    def _fail(self, error: Exception) -> None:
        """Whoever waits is told, and the connection is used no more."""
        if self._is_complete or self._error is not None:
            return
        self._error = error
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error)
        self._wake()
        self.abort()

    def _wake(self) -> None:
        if self._arrived is not None and not self._arrived.done():
            self._arrived.set_result(None)

    def _go_on_reading(self) -> None:
        if self._is_paused and self._transport is not None:
            self._is_paused = False
            self._transport.resume_reading()


class Connections:
    """All connections of one client.  Callers bound how much they ask at once: there is no limit here.

    `boot_s`: a clock that goes on while the machine sleeps (the loop's own may not): what was not sent in its
    time is not sent after the sleep either.
    """

    def __init__(self, dial: Dial, boot_s: Callable[[], float] | None = None) -> None:
        self._dial = dial
        self._boot_s = boot_s or asyncio.get_running_loop().time
        self._idle: dict[Route, list[Connection]] = {}
        self._all: set[Connection] = set()
        self._sweeper: asyncio.TimerHandle | None = None

    async def ask(
        self,
        route: Route,
        request: bytes,
        *,
        most: Callable[[int], int],
        timeout_s: float,
        may_repeat: bool,
    ) -> Reply:
        """Send a request and give its answer, both within the time: nothing is sent after it.

        `may_repeat`: it may be sent again where a connection that was kept turned out to be closed.
        Raises   NoConnection, NoAnswer, TooLong, TimeoutError.
        """
        end_s = self._boot_s() + timeout_s
        connection = self._take(route)
        if connection is not None:
            try:
                return await self._exchange(connection, route, request, most, timeout_s)
            except NoAnswer as error:
                if not (may_repeat and error.is_unheard):
                    raise
        connection = await self._connect(route, end_s - self._boot_s())
        left_s = end_s - self._boot_s()
        if left_s <= 0.0:
            connection.abort()
            raise NoConnection(TimeoutError())
        return await self._exchange(connection, route, request, most, left_s)

    @contextlib.asynccontextmanager
    async def stream(
        self, route: Route, request: bytes, *, most: Callable[[int], int], timeout_s: float
    ) -> AsyncIterator[tuple[Reply, Connection]]:
        """Send a request whose answer has no end, on a connection of its own; what it raises is as `ask`."""
        connection = await self._connect(route, timeout_s)
        try:
            yield await connection.ask(request, most=most, timeout_s=timeout_s, is_stream=True), connection
        finally:
            connection.abort()

    async def close(self) -> None:
        """End all connections and wait until they are gone."""
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None
        self._idle.clear()
        every = list(self._all)
        for connection in every:
            connection.abort()
        for connection in every:
            await connection.lost

    async def _exchange(
        self,
        connection: Connection,
        route: Route,
        request: bytes,
        most: Callable[[int], int],
        timeout_s: float,
    ) -> Reply:
        reply = await connection.ask(request, most=most, timeout_s=timeout_s)
        if connection.is_reusable:
            connection.idle_since_s = asyncio.get_running_loop().time()
            self._idle.setdefault(route, []).append(connection)
            if self._sweeper is None:
                self._sweeper = asyncio.get_running_loop().call_later(IDLE_S, self._sweep)
        return reply

    def _take(self, route: Route) -> Connection | None:
        """The connection that was used last: the others have their chance to grow old."""
        idle = self._idle.get(route)
        while idle:
            connection = idle.pop()
            if connection.is_reusable:
                return connection
        return None

    async def _connect(self, route: Route, timeout_s: float) -> Connection:
        made: list[Connection] = []

        def make() -> Connection:
            made.append(Connection())
            return made[-1]

        try:
            async with asyncio.timeout(timeout_s):
                await self._dial(make, route)
        except (OSError, TimeoutError) as error:
            raise NoConnection(error) from error
        connection = made[-1]
        self._all.add(connection)
        connection.lost.add_done_callback(lambda _: self._all.discard(connection))
        return connection

    def _sweep(self) -> None:
        """Close what has been idle for long, and come back for what has not."""
        loop = asyncio.get_running_loop()
        self._sweeper = None
        for route, idle in list(self._idle.items()):
            for connection in idle:
                if loop.time() - connection.idle_since_s >= IDLE_S:
                    connection.abort()
            self._idle[route] = [connection for connection in idle if connection.is_reusable]
            if not self._idle[route]:
                del self._idle[route]
        if self._idle:
            self._sweeper = loop.call_later(IDLE_S, self._sweep)
