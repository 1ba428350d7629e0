"""What probes are answered."""

from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from muster.runtime.health import HealthServer


async def ask(server: HealthServer, path: str) -> tuple[int, str]:
    request = make_mocked_request("GET", path)
    show = server._show_readiness if path.startswith("/readyz") else server._show_health
    answer = await show(request)
    assert isinstance(answer, web.Response)
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
