"""Certificates and authorities that are replaced while a client runs, over real TLS on loopback."""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web
from tests.unit.runtime.in_process import ManualClock

from muster.base.errors import Unavailable
from muster.runtime.certificates import ServerIdentity, kubeconfig, make_identity
from muster.runtime.client import ApiClient
from muster.runtime.kubeconfig import read_access, read_service_account


@asynccontextmanager
async def serving(identity: ServerIdentity, listener: socket.socket) -> AsyncIterator[None]:
    async def answer(request: web.BaseRequest) -> web.Response:
        return web.json_response({})

    runner = web.ServerRunner(web.Server(answer))
    await runner.setup()
    await web.SockSite(runner, listener, ssl_context=identity.server_context).start()
    yield
    await runner.cleanup()


async def call(client: ApiClient) -> None:
    await client.call("GET", "/", timeout_s=30)


async def test_another_authority_is_not_trusted_until_the_kubeconfig_has_it(
    tmp_path: Path,
) -> None:
    old, new = make_identity(), make_identity()
    file = tmp_path / "config"
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"https://127.0.0.1:{listener.getsockname()[1]}"
        file.write_bytes(kubeconfig(old, url))
        async with (
            serving(new, listener),
            ApiClient(read_access([file]), now_s=ManualClock().now_s) as client,
        ):
            with pytest.raises(Unavailable, match="certificate is not trusted"):
                await call(client)
            file.write_bytes(kubeconfig(new, url))
            await call(client)


async def test_the_authority_of_a_service_account_is_read_again(tmp_path: Path) -> None:
    old, new = make_identity(), make_identity()
    (tmp_path / "token").write_text("t")
    (tmp_path / "ca.crt").write_bytes(old.authority_pem)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
        environment = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": port}
        access = read_service_account(environment, tmp_path)
        async with serving(new, listener), ApiClient(access, now_s=ManualClock().now_s) as client:
            with pytest.raises(Unavailable, match="certificate is not trusted"):
                await call(client)
            (tmp_path / "ca.crt").write_bytes(new.authority_pem)
            await call(client)
