"""The way to a server, with the far end of every connection in this process."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator
from typing import Any

import pytest

from muster.runtime.dialing import Route, dial, proxy_authorization

TLS = ssl.create_default_context()


class Network:
    """Records what is connected to; the far end of all that is `far`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.addresses: list[tuple[str, int]] = []
        self.ours, self.far = socket.socketpair()
        self.far.setblocking(False)
        self._loop = asyncio.get_running_loop()
        self._connect = self._loop.create_connection
        monkeypatch.setattr(self._loop, "create_connection", self.create_connection)

    async def create_connection(self, make: Any, host: str, port: int, **_: Any) -> Any:
        self.addresses.append((host, port))
        return await self._connect(make, sock=self.ours)

    async def answer(self, reply: bytes) -> str:
        """Send a reply to what is said first, which is given, and hang up."""
        said = await self._loop.sock_recv(self.far, 1 << 16)
        await self._loop.sock_sendall(self.far, reply)
        self.far.close()
        return said.decode()


class Silent(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()


@pytest.fixture
async def network(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Network]:
    made = Network(monkeypatch)
    yield made
    made.ours.close()
    made.far.close()
    await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("proxy", "address"),
    [(None, ("cluster.test", 80)), ("http://proxy.test", ("proxy.test", 80)), ("http://p:3128", ("p", 3128))],
)
async def test_without_tls_the_server_or_its_proxy_is_connected_to(
    proxy: str | None, address: tuple[str, int], network: Network
) -> None:
    await dial(Silent, Route("cluster.test", 80, proxy=proxy))
    assert network.addresses == [address]


async def test_for_tls_a_proxy_is_asked_for_a_tunnel_and_its_no_is_told(network: Network) -> None:
    answering = asyncio.ensure_future(network.answer(b"HTTP/1.1 403 not from here\r\n\r\n"))
    with pytest.raises(ConnectionRefusedError, match=r"the proxy refuses: HTTP/1\.1 403 not from here"):
        await dial(Silent, Route("::1", 6443, TLS, proxy="http://me:s%40y@p:3128"))
    assert (await answering).split("\r\n") == [
        "CONNECT [::1]:6443 HTTP/1.1",
        "Host: [::1]:6443",
        "Proxy-Authorization: Basic bWU6c0B5",
        "",
        "",
    ]


async def test_what_is_not_sent_when_a_connection_ends_is_dropped() -> None:
    loop = asyncio.get_running_loop()
    made: list[asyncio.WriteTransport] = []

    class Kept(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            made.append(transport)  # type: ignore[arg-type]

    request = b"x" * 200_000
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # so that the rest waits on our side
        await dial(Kept, Route("127.0.0.1", server.getsockname()[1]))
        far, _ = server.accept()
        with far:
            made[0].get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
            made[0].write(request)
            made[0].abort()
            await asyncio.sleep(0)
            far.setblocking(False)
            heard = 0
            with contextlib.suppress(ConnectionResetError):
                while piece := await loop.sock_recv(far, 1 << 16):
                    heard += len(piece)
    assert heard < len(request)


@pytest.mark.parametrize("reply", [b"", b"SSH-2.0\r\n", b"HTTP/1.1 200 OK\r\n", b"x" * 50_000])
async def test_a_proxy_that_speaks_no_http_is_told_as_such(reply: bytes, network: Network) -> None:
    answering = asyncio.ensure_future(network.answer(reply))
    with pytest.raises(ConnectionResetError, match="no answer that is HTTP"):
        await dial(Silent, Route("cluster.test", 443, TLS, proxy="http://p"))
    await answering


async def test_a_tunnel_that_ends_at_once_is_an_error_of_the_connection(network: Network) -> None:
    answering = asyncio.ensure_future(network.answer(b"HTTP/1.1 200 Connected\r\n\r\n"))
    with pytest.raises(OSError):
        await dial(Silent, Route("cluster.test", 443, TLS, proxy="http://p"))
    await answering


def test_a_proxy_without_a_user_is_not_told_one() -> None:
    assert proxy_authorization("http://proxy.test:3128") is None
