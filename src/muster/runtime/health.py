"""The small HTTP server that shows our health and the page of metrics: /metrics, /healthz, /livez, /readyz.

As with kube-scheduler a standby is ready: readiness means in sync, not leading.  A module of its own because
aiohttp takes 0.2 s to load: `process.py` loads it while the API server looks up the first lists.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Mapping

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from muster.runtime.metrics import CONTENT_TYPE

CONNECTIONS_MOST = 256  # one more ends the oldest: whoever keeps many does not keep a probe out

Check = Callable[[], str]  # "" when all is well, else what is not


class HealthServer:
    """Serves /metrics, /healthz, /livez and /readyz on one address."""

    def __init__(
        self, page: Callable[[], bytes], *, alive: Mapping[str, Check], ready: Mapping[str, Check]
    ) -> None:
        self._page = page
        self._alive = alive
        self._ready = ready
        self._runner: web.ServerRunner | None = None
        self._shows: dict[str, Callable[[web.BaseRequest], Awaitable[web.Response]]] = {
            "/metrics": self._show_metrics,
            "/healthz": self._show_health,
            "/livez": self._show_health,
            "/readyz": self._show_readiness,
        }

    async def start(self, listener: socket.socket) -> None:
        """Answer who asks there, and who has asked before."""
        self._runner = web.ServerRunner(_Server(self._answer, access_log=None))
        await self._runner.setup()
        await web.SockSite(self._runner, listener).start()

    async def stop(self) -> None:
        """Stop listening."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _answer(self, request: web.BaseRequest) -> web.Response:
        show = self._shows.get(request.path)
        if show is None:
            return web.Response(text="404: Not Found", status=404)
        if request.method not in ("GET", "HEAD"):
            return web.Response(text="405: Method Not Allowed", status=405, headers={"Allow": "GET, HEAD"})
        return await show(request)

    async def _show_metrics(self, request: web.BaseRequest) -> web.Response:
        return web.Response(body=self._page(), headers={"Content-Type": CONTENT_TYPE})

    async def _show_health(self, request: web.BaseRequest) -> web.Response:
        return _answer(self._alive, is_verbose="verbose" in request.query)

    async def _show_readiness(self, request: web.BaseRequest) -> web.Response:
        return _answer({**self._alive, **self._ready}, is_verbose="verbose" in request.query)


class _Server(web.Server):
    def connection_made(self, handler: RequestHandler, transport: asyncio.Transport) -> None:
        """Take the connection; where there are too many, the oldest end."""
        super().connection_made(handler, transport)
        for oldest in self.connections[:-CONNECTIONS_MOST]:
            oldest.force_close()


def _answer(checks: Mapping[str, Check], *, is_verbose: bool) -> web.Response:
    """Plain `ok`, or with code 500 one line a check, as the stock components answer."""
    found = {name: check() for name, check in checks.items()}
    if not any(found.values()) and not is_verbose:
        return web.Response(text="ok")
    lines = [f"[-]{name} failed: {fault}" if fault else f"[+]{name} ok" for name, fault in found.items()]
    return web.Response(text="\n".join(lines) + "\n", status=500 if any(found.values()) else 200)
