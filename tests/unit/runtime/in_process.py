"""A server for the client's tests that needs no network: both ends of a socket pair live in this process."""

import socket
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
from aiohttp import web
from aiohttp.client_proto import ResponseHandler

from muster.runtime.client import ApiClient
from muster.runtime.credentials import Credentials, Nobody
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


class PairConnector(aiohttp.BaseConnector):
    """Connects every request to `handler` by a socket pair."""

    def __init__(self, handler: Handler) -> None:
        super().__init__(limit=0)
        self._server = web.Server(handler)

    async def _create_connection(self, req: Any, traces: Any, timeout: Any) -> ResponseHandler:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        theirs.setblocking(False)
        await self._loop.connect_accepted_socket(self._server, theirs)
        _, protocol = await self._loop.create_connection(self._factory, sock=ours)
        return protocol


def client_of(
    handler: Handler,
    *,
    clock: ManualClock | None = None,
    credentials: Credentials | None = None,
    headers: tuple[tuple[str, str], ...] = (),
    connector: Callable[[], aiohttp.BaseConnector] | None = None,
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
        connector=connector or (lambda: PairConnector(handler)),
        timeout_s=30.0,
    )


def status(code: int, reason: str, message: str, **details: Any) -> web.Response:
    """An answer that is a Status, as the API server gives it."""
    body = {"kind": "Status", "code": code, "reason": reason, "message": message, "details": details}
    return web.json_response(body, status=code)
