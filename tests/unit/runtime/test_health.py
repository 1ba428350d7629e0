"""What probes are answered."""

import asyncio
import socket
from pathlib import Path

import aiohttp
import pytest
from aiohttp.test_utils import make_mocked_request

from muster.runtime import health as health_module
from muster.runtime.health import HealthServer


async def ask(server: HealthServer, path: str, method: str = "GET") -> tuple[int, str]:
    answer = await server._answer(make_mocked_request(method, path))
    return answer.status, answer.text or ""


def server_of(*, alive: str = "", ready: str = "") -> HealthServer:
    checks = {"leaderElection": lambda: alive}, {"sync": lambda: ready}
    return HealthServer(lambda: b"", alive=checks[0], ready=checks[1])


async def test_all_is_well_is_ok() -> None:
    assert await ask(server_of(), "/healthz") == (200, "ok")
    assert await ask(server_of(), "/readyz") == (200, "ok")


async def test_what_is_not_ready_is_alive_all_the_same() -> None:
    server = server_of(ready="not listed yet: pods")
    assert await ask(server, "/healthz") == (200, "ok")
    status, text = await ask(server, "/readyz")
    assert status == 500
    assert "[+]leaderElection ok\n[-]sync failed: not listed yet: pods" in text


async def test_what_is_not_alive_is_not_ready() -> None:
    server = server_of(alive="lease not renewed: muster")
    assert (await ask(server, "/healthz"))[0] == 500
    assert (await ask(server, "/readyz"))[0] == 500


async def test_verbose_lists_the_checks() -> None:
    assert await ask(server_of(), "/readyz?verbose") == (200, "[+]leaderElection ok\n[+]sync ok\n")


async def test_what_is_not_served_is_refused() -> None:
    assert (await ask(server_of(), "/debug"))[0] == 404
    assert (await ask(server_of(), "/healthz", "POST"))[0] == 405


async def test_one_connection_too_many_ends_the_oldest_and_is_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health_module, "CONNECTIONS_MOST", 2)
    server, path = server_of(), str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        await server.start(listener)
        async with asyncio.timeout(10):
            idle = [await asyncio.open_unix_connection(path) for _ in range(2)]
            async with (
                aiohttp.ClientSession(connector=aiohttp.UnixConnector(path)) as client,
                client.get("http://server/healthz") as answer,
            ):
                assert await answer.text() == "ok"
            assert await idle[0][0].read() == b""
        for _, writer in idle:
            writer.close()
        await server.stop()
