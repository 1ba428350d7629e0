"""The way to a server: a TCP connection, with TLS where asked for, through a proxy where there is one.

In comes a `Route`; `dial` connects a protocol to its far end, or raises OSError.  Next:
`runtime/connections.py`, which talks on what was dialled.
"""

import asyncio
import base64
import socket
import ssl
import struct
from collections.abc import Callable
from typing import NamedTuple, TypeVar, cast
from urllib.parse import unquote, urlsplit

PROXY_ANSWER_BYTES_MAX = 1 << 14
_Protocol = TypeVar("_Protocol", bound=asyncio.Protocol)
DROP_UNSENT = struct.pack("ii", 1, 0)  # struct linger: wait for nothing


class Route(NamedTuple):
    """Where to, and how.  `server_name` is the name that the server's certificate must bear."""

    host: str
    port: int
    tls: ssl.SSLContext | None = None
    server_name: str = ""
    proxy: str | None = None


async def dial(make: Callable[[], asyncio.Protocol], route: Route) -> None:
    """Connect what `make` gives.  Raises OSError (of which ssl.SSLError is one).

    What is not sent when the connection ends, or the process, is dropped.  Else the kernel would go on
    sending it for minutes, and a request that was given up could land when another process leads.
    """
    loop = asyncio.get_running_loop()
    if route.proxy is None:
        name = route.server_name or route.host if route.tls is not None else None
        await _connect(make, route.host, route.port, tls=route.tls, server_hostname=name)
        return
    to = urlsplit(route.proxy)
    is_secure = to.scheme == "https"
    address = (to.hostname or "", to.port or (443 if is_secure else 80))
    if route.tls is None:
        await _connect(make, *address, tls=is_secure or None)
        return
    transport, asking = await _connect(lambda: _Asking(route), *address, tls=is_secure or None)
    try:
        await asking.answer
        protocol = make()
        inner = await loop.start_tls(
            transport, protocol, route.tls, server_hostname=route.server_name or route.host
        )
    except BaseException:
        transport.abort()
        raise
    if inner is None:
        raise ConnectionResetError("the proxy closed the connection")
    protocol.connection_made(inner)


async def _connect(
    make: Callable[[], _Protocol],
    host: str,
    port: int,
    *,
    tls: ssl.SSLContext | bool | None,
    server_hostname: str | None = None,
) -> tuple[asyncio.Transport, _Protocol]:
    """A connection that drops what is unsent when it ends."""
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.create_connection(
        make, host, port, ssl=tls, server_hostname=server_hostname
    )
    found = transport.get_extra_info("socket")
    if found is not None and not transport.is_closing():
        found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, DROP_UNSENT)
    return transport, protocol


class _Asking(asyncio.Protocol):
    """CONNECT; `answer` ends when the tunnel stands, or with an OSError if the proxy will not."""

    def __init__(self, route: Route) -> None:
        host = f"[{route.host}]" if ":" in route.host else route.host
        lines = [f"CONNECT {host}:{route.port} HTTP/1.1", f"Host: {host}:{route.port}"]
        if (authorization := proxy_authorization(route.proxy or "")) is not None:
            lines.append(f"Proxy-Authorization: {authorization}")
        self._request = "\r\n".join((*lines, "", "")).encode()
        self._heard = b""
        self.answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast(asyncio.WriteTransport, transport).write(self._request)

    def data_received(self, data: bytes) -> None:
        self._heard += data
        if self.answer.done():
            return
        if b"\r\n\r\n" not in self._heard:
            if len(self._heard) > PROXY_ANSWER_BYTES_MAX:
                self._end(ConnectionResetError("the proxy gave no answer that is HTTP"))
            return
        status = self._heard.split(b"\r\n", 1)[0].decode("latin-1")
        words = status.split(" ", 2)
        if len(words) < 2 or not words[0].startswith("HTTP/1.") or words[1] != "200":
            self._end(ConnectionRefusedError(0, f"the proxy refuses: {status[:200]}"))
        else:
            self._end(None)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end(ConnectionResetError("the proxy gave no answer that is HTTP"))

    def _end(self, error: OSError | None) -> None:
        if self.answer.done():
            return
        if error is None:
            self.answer.set_result(None)
        else:
            self.answer.set_exception(error)


def proxy_authorization(proxy: str) -> str | None:
    """Basic credentials, where the proxy's URL has a user in it."""
    to = urlsplit(proxy)
    if to.username is None:
        return None
    user = f"{unquote(to.username)}:{unquote(to.password or '')}"
    return "Basic " + base64.b64encode(user.encode()).decode()
