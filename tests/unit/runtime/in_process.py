"""A server for the client's tests that needs no network: both ends of a socket pair live in this process."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from muster.runtime.client import ApiClient
from muster.runtime.connections import Dial
from muster.runtime.credentials import Credentials, Nobody
from muster.runtime.dialing import Route
from muster.runtime.kubeconfig import Access

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class ManualClock:
    """Time that passes only when somebody pauses, and a record of the pauses."""

    def __init__(self, now_s: float = 1_000.0) -> None:
        self.value_s = now_s
        self.pauses: list[float] = []

    def now_s(self) -> float:
        return self.value_s

    async def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.value_s += seconds


class PairDialer:
    """Connects every request to `handler` by a socket pair."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._server: web.Server[web.BaseRequest] | None = None
        self._transports: list[asyncio.WriteTransport] = []

    async def __call__(self, make: Callable[[], asyncio.Protocol], route: Route) -> None:
        loop = asyncio.get_running_loop()
        if self._server is None:
            self._server = web.Server(self._handler)
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        theirs.setblocking(False)
        try:
            transport, _ = await loop.connect_accepted_socket(self._server, theirs)
        except asyncio.CancelledError:
            ours.close()
            raise
        self._transports.append(transport)
        await loop.create_connection(make, sock=ours)

    async def close(self) -> None:
        """Close the far ends that are still open."""
        for transport in self._transports:
            transport.abort()
        await asyncio.sleep(0)


def client_of(
    handler: Handler,
    *,
    clock: ManualClock | None = None,
    credentials: Credentials | None = None,
    headers: tuple[tuple[str, str], ...] = (),
    dial: Dial | None = None,
) -> ApiClient:
    """A client of a server that is this function."""
    access = Access(
        server="http://cluster.test",
        tls=None,
        credentials=credentials or Nobody(),
        origin="kubeconfig",
        headers=headers,
    )
    return ApiClient(
        access,
        now_s=(clock or ManualClock()).now_s,
        dial=dial or PairDialer(handler),
        timeout_s=30.0,
    )


def status(code: int, reason: str, message: str, **details: Any) -> web.Response:
    """An answer that is a Status, as the API server gives it."""
    body = {"kind": "Status", "code": code, "reason": reason, "message": message, "details": details}
    return web.json_response(body, status=code)
