"""HTTP on connections that are kept, against a far end that writes bytes."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from muster.runtime import connections
from muster.runtime.connections import Connection, Connections, NoAnswer, NoConnection, Reply, TooLong
from muster.runtime.dialing import Route

ROUTE = Route("cluster.test", 80)
REQUEST = b"GET / HTTP/1.1\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"


class FarEnd:
    """Keeps the far ends of all connections; each is driven by hand."""

    def __init__(self) -> None:
        self.sockets: list[socket.socket] = []
        self.refuses: OSError | None = None

    async def dial(self, make: Callable[[], asyncio.Protocol], route: Route) -> None:
        if self.refuses is not None:
            raise self.refuses
        ours, theirs = socket.socketpair()
        for each in (ours, theirs):
            each.setblocking(False)
        self.sockets.append(theirs)
        await asyncio.get_running_loop().create_connection(make, sock=ours)

    async def hear(self, number: int = 0) -> bytes:
        while len(self.sockets) <= number:
            await asyncio.sleep(0)
        return await asyncio.get_running_loop().sock_recv(self.sockets[number], 1 << 16)

    async def say(self, data: bytes, number: int = 0) -> None:
        await asyncio.get_running_loop().sock_sendall(self.sockets[number], data)

    async def hang_up(self, after: bytes = b"") -> None:
        """Hear the request on the first connection, say this, and close it."""
        assert await self.hear() == REQUEST
        await self.say(after)
        self.sockets[0].close()


@asynccontextmanager
async def pool_and_far_end() -> AsyncIterator[tuple[Connections, FarEnd]]:
    far = FarEnd()
    pool = Connections(far.dial)
    try:
        yield pool, far
    finally:
        await pool.close()
        for each in far.sockets:
            each.close()


def ask(pool: Connections, *, may_repeat: bool = True, most: int = 1000) -> asyncio.Task[Reply]:
    return asyncio.ensure_future(
        pool.ask(ROUTE, REQUEST, most=lambda code: most, timeout_s=30.0, may_repeat=may_repeat)
    )


async def answer(far: FarEnd, task: asyncio.Task[Reply], data: bytes, number: int = 0) -> Reply:
    assert await far.hear(number) == REQUEST
    await far.say(data, number)
    return await task


@asynccontextmanager
async def stream(*, begins: bytes = b"") -> AsyncIterator[tuple[FarEnd, Reply, Connection]]:
    """A stream whose headers are here, and as much of its body."""
    async with pool_and_far_end() as (pool, far):
        opening = pool.stream(ROUTE, REQUEST, most=lambda code: 10, timeout_s=30.0)
        entering = asyncio.ensure_future(opening.__aenter__())
        assert await far.hear() == REQUEST
        await far.say(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + begins)
        reply, connection = await entering
        yield far, reply, connection
        await opening.__aexit__(None, None, None)


@pytest.mark.parametrize(
    "data",
    [
        OK + b"hi",
        b"HTTP/1.1 100 Continue\r\n\r\n" + OK + b"hi",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nh\r\n1\r\ni\r\n0\r\n\r\n",
    ],
    ids=["length", "continue first", "chunks"],
)
async def test_a_connection_serves_one_request_after_the_other(data: bytes) -> None:
    async with pool_and_far_end() as (pool, far):
        for _ in range(2):
            reply = await answer(far, ask(pool), data)
            assert (reply.code, reply.body) == (200, b"hi")
        assert len(far.sockets) == 1


async def test_a_body_may_end_with_its_connection_and_that_is_not_used_again() -> None:
    async with pool_and_far_end() as (pool, far):
        task = ask(pool)
        await far.hang_up(after=b"HTTP/1.1 200 OK\r\n\r\nhi")
        assert (await task).body == b"hi"
        await answer(far, ask(pool), OK + b"hi", 1)


async def test_who_asks_at_once_gets_connections_of_their_own() -> None:
    async with pool_and_far_end() as (pool, far):
        first, second = ask(pool), ask(pool)
        assert (await far.hear(0), await far.hear(1)) == (REQUEST, REQUEST)
        await far.say(OK + b"b!", 1)
        await far.say(OK + b"a!", 0)
        assert {(await first).body, (await second).body} == {b"a!", b"b!"}


async def test_a_kept_connection_that_was_closed_in_the_moment_of_asking_is_replaced() -> None:
    async with pool_and_far_end() as (pool, far):
        await answer(far, ask(pool), OK + b"hi")
        task = ask(pool)
        await far.hang_up()
        assert (await answer(far, task, OK + b"ok", 1)).body == b"ok"


async def test_what_may_not_be_said_twice_is_not() -> None:
    async with pool_and_far_end() as (pool, far):
        await answer(far, ask(pool), OK + b"hi")
        task = ask(pool, may_repeat=False)
        await far.hang_up()
        with pytest.raises(NoAnswer):
            await task
        assert len(far.sockets) == 1


async def test_half_an_answer_is_none_and_is_not_asked_for_again() -> None:
    async with pool_and_far_end() as (pool, far):
        task = ask(pool)
        await far.hang_up(after=OK + b"h")
        with pytest.raises(NoAnswer):
            await task
        assert len(far.sockets) == 1


async def test_bytes_that_nobody_asked_for_end_the_connection() -> None:
    async with pool_and_far_end() as (pool, far):
        await answer(far, ask(pool), OK + b"hi")
        await far.say(OK + b"no")
        assert await far.hear() == b""
        assert (await answer(far, ask(pool), OK + b"ok", 1)).body == b"ok"


@pytest.mark.parametrize("data", [b"SSH-2.0-x\r\n", b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n"])
async def test_what_is_no_answer_is_told_as_such(data: bytes) -> None:
    async with pool_and_far_end() as (pool, far):
        with pytest.raises(NoAnswer):
            await answer(far, ask(pool), data)


async def test_an_answer_may_be_as_long_as_allowed_and_no_longer() -> None:
    async with pool_and_far_end() as (pool, far):
        await answer(far, ask(pool, most=2), OK + b"hi")
        with pytest.raises(TooLong):
            await answer(far, ask(pool, most=1), OK + b"hi")


@pytest.mark.parametrize("begin", [b"HTTP/1.1 200 OK\r\nX: ", OK[:-2] + b"Transfer-Encoding: chunked\r\n"])
async def test_headers_without_an_end_are_given_up(begin: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_BYTES_MAX", 500)
    async with pool_and_far_end() as (pool, far):
        with pytest.raises((TooLong, NoAnswer)):
            await answer(far, ask(pool), begin + b"x" * 1000)


async def test_a_stream_gives_what_comes_and_ends_with_its_connection() -> None:
    async with asyncio.timeout(30), stream(begins=b"2\r\nhi\r\n") as (far, reply, connection):
        pieces = connection.pieces(30.0)
        assert (reply.code, await anext(pieces)) == (200, b"hi")
        await far.say(b"2\r\nho\r\n0\r\n\r\n")
        assert [piece async for piece in pieces] == [b"ho"]


async def test_a_stream_that_falls_silent_is_given_up() -> None:
    async with stream() as (_, _, connection):
        with pytest.raises(TimeoutError):
            await anext(connection.pieces(0.0))


async def test_what_a_stream_sends_waits_in_the_server_until_somebody_reads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "STREAM_BYTES_MAX", 10)
    size = 1 << 22
    async with asyncio.timeout(30), stream(begins=b"%x\r\n" % size) as (far, _, connection):
        saying = asyncio.ensure_future(far.say(b"x" * size))
        for _ in range(1000):
            await asyncio.sleep(0)
        assert not saying.done()
        heard = 0
        async for piece in connection.pieces(30.0):
            heard += len(piece)
            if heard == size:
                break
        await saying


async def test_a_connection_that_nobody_used_for_long_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "IDLE_S", 0.0)
    async with asyncio.timeout(30), pool_and_far_end() as (pool, far):
        await answer(far, ask(pool), OK + b"hi")
        assert await far.hear() == b""
        assert (await answer(far, ask(pool), OK + b"ok", 1)).body == b"ok"


async def test_an_answer_that_does_not_come_in_time_is_given_up() -> None:
    async with pool_and_far_end() as (pool, far):
        await answer(far, ask(pool), OK + b"hi")
        with pytest.raises(TimeoutError):
            await pool.ask(ROUTE, REQUEST, most=lambda code: 10, timeout_s=0.0, may_repeat=False)


async def test_who_is_reached_too_late_hears_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    late_s = 0.0
    time_s = loop.time
    monkeypatch.setattr(loop, "time", lambda: time_s() + late_s)
    async with pool_and_far_end() as (_, far):

        async def dial(make: Callable[[], asyncio.Protocol], route: Route) -> None:
            nonlocal late_s
            await far.dial(make, route)
            late_s = 30.0

        with pytest.raises(NoConnection):
            await Connections(dial).ask(ROUTE, REQUEST, most=lambda code: 10, timeout_s=30.0, may_repeat=True)
        assert await far.hear() == b""


async def test_who_is_reached_after_the_machine_slept_hears_nothing() -> None:
    boot_s = 0.0
    async with pool_and_far_end() as (_, far):

        async def dial(make: Callable[[], asyncio.Protocol], route: Route) -> None:
            nonlocal boot_s
            await far.dial(make, route)
            boot_s = 30.0

        pool = Connections(dial, lambda: boot_s)
        with pytest.raises(NoConnection):
            await pool.ask(ROUTE, REQUEST, most=lambda code: 10, timeout_s=30.0, may_repeat=True)
        assert await far.hear() == b""


async def test_who_cannot_be_reached_has_heard_nothing() -> None:
    async with pool_and_far_end() as (pool, far):
        far.refuses = ConnectionRefusedError()
        with pytest.raises(NoConnection):
            await ask(pool)


def test_headers_are_found_by_name() -> None:
    reply = Reply(200, [(b"Retry-After", b"1"), (b"WARNING", b"a"), (b"Warning", b"b")], b"")
    assert reply.headers == {"retry-after": "1", "warning": "a, b"}
