"""The small HTTP server that shows our health and the page of metrics: /metrics, /healthz, /livez, /readyz.

As with kube-scheduler a standby is ready: readiness means in sync, not leading.  A module of its own because
aiohttp takes 0.2 s to load: `process.py` loads it while the API server looks up the first lists.
"""

import socket
from collections.abc import Callable, Mapping

from aiohttp import web

from muster.runtime.metrics import CONTENT_TYPE

Check = Callable[[], str]  # "" when all is well, else what is not


class HealthServer:
    """Serves /metrics, /healthz, /livez and /readyz on one address."""

    def __init__(
        self, page: Callable[[], bytes], *, alive: Mapping[str, Check], ready: Mapping[str, Check]
    ) -> None:
        self._page = page
        self._alive = alive
        self._ready = ready
        self._runner: web.AppRunner | None = None

    async def start(self, listener: socket.socket) -> None:
        """Answer who asks there, and who has asked before."""
        app = web.Application()
        app.router.add_get("/metrics", self._show_metrics)
        app.router.add_get("/healthz", self._show_health)
        app.router.add_get("/livez", self._show_health)
        app.router.add_get("/readyz", self._show_readiness)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        await web.SockSite(self._runner, listener).start()

    async def stop(self) -> None:
        """Stop listening."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _show_metrics(self, request: web.Request) -> web.Response:
        return web.Response(body=self._page(), headers={"Content-Type": CONTENT_TYPE})

    async def _show_health(self, request: web.Request) -> web.Response:
        return _answer(self._alive, is_verbose="verbose" in request.query)

    async def _show_readiness(self, request: web.Request) -> web.Response:
        return _answer({**self._alive, **self._ready}, is_verbose="verbose" in request.query)


def _answer(checks: Mapping[str, Check], *, is_verbose: bool) -> web.Response:
    """Plain `ok`, or with code 500 one line a check, as the stock components answer."""
    found = {name: check() for name, check in checks.items()}
    if not any(found.values()) and not is_verbose:
        return web.Response(text="ok")
    lines = [f"[-]{name} failed: {fault}" if fault else f"[+]{name} ok" for name, fault in found.items()]
    return web.Response(text="\n".join(lines) + "\n", status=500 if any(found.values()) else 200)
