"""The server's sockets, spoken to over one that has a file for an address: no network."""

import asyncio
import gzip
import io
import itertools
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple, cast

import aiohttp
import pytest
from tests.unit.apiserver.small_server import MAPS, PODS, SmallServer

from muster.apiserver.http import BODY_BYTES_MOST, HEADER_BYTES_MOST, HttpServer, Limits
from muster.apiserver.server import ApiServer

TOKEN = "secret"
ADMIN = {"Authorization": f"Bearer {TOKEN}"}
JSON = {**ADMIN, "Content-Type": "application/json"}


class Wire(NamedTuple):
    server: SmallServer
    http: HttpServer
    client: aiohttp.ClientSession
    url: Callable[[str], str]


@pytest.fixture
async def wire() -> AsyncIterator[Wire]:
    server = SmallServer()
    http = HttpServer(
        lambda request: server.api.handle(request, server.now_s), now_s=lambda: server.now_s, tokens=(TOKEN,)
    )
    with TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as listener:
        path = str(Path(folder) / "s")
        listener.bind(path)
        listener.listen()
        await http.start(listener)
        async with aiohttp.ClientSession(connector=aiohttp.UnixConnector(path)) as client:
            yield Wire(server, http, client, lambda target: f"http://server{target}")
            await http.close()


async def test_a_request_is_answered(wire: Wire) -> None:
    body = json.dumps({"metadata": {"name": "a"}})
    async with wire.client.post(wire.url(f"{MAPS}?dryRun=All"), data=body, headers=JSON) as answer:
        assert answer.status == 201
        assert answer.content_type == "application/json"
        assert (await answer.json())["metadata"]["name"] == "a"


async def test_a_path_and_query_are_decoded_once(wire: Wire) -> None:
    wire.server.create_map("a", labels={"x": "y"})
    target = wire.url(f"{MAPS}?labelSelector=x%20in%20(y%2Cz)&limit=1")
    async with wire.client.get(target, headers=ADMIN) as answer:
        assert len((await answer.json())["items"]) == 1


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        pytest.param({}, 403, id="nobody"),
        pytest.param({"Authorization": "Bearer wrong"}, 401, id="a wrong token"),
        pytest.param({"Authorization": "Basic secret"}, 401, id="another scheme"),
        pytest.param({"Authorization": "Bearer \u00e9\u00e9"}, 401, id="a token that is no ASCII"),
        pytest.param(ADMIN, 200, id="the token"),
    ],
)
async def test_a_token_says_who_asks(wire: Wire, headers: dict[str, str], status: int) -> None:
    async with wire.client.get(wire.url(PODS), headers=headers) as answer:
        assert answer.status == status
        assert (await answer.json())["kind"] in ("Status", "PodList")


async def test_a_body_up_to_the_limit_is_read_and_a_larger_one_is_413(wire: Wire) -> None:
    for size, status in ((BODY_BYTES_MOST, 400), (BODY_BYTES_MOST + 1, 413)):
        async with wire.client.post(wire.url(MAPS), data=io.BytesIO(b"x" * size), headers=JSON) as answer:
            assert answer.status == status
            assert (await answer.json())["kind"] == "Status"


async def test_a_body_of_unknown_length_has_the_same_limit(wire: Wire) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(4):
            yield b"x" * (1024 * 1024)

    async with wire.client.post(wire.url(MAPS), data=chunks(), headers=JSON) as answer:
        assert answer.status == 413


async def test_a_watch_streams_lines_as_they_come(wire: Wire) -> None:
    wire.server.create_map("a")
    async with wire.client.get(wire.url(f"{MAPS}?watch=1"), headers=ADMIN) as answer:
        first = json.loads(await answer.content.readline())
        wire.server.create_map("b")
        second = json.loads(await answer.content.readline())
        assert [first["object"]["metadata"]["name"], second["object"]["metadata"]["name"]] == ["a", "b"]


async def test_closing_the_server_ends_the_watches(wire: Wire) -> None:
    async with wire.client.get(wire.url(f"{PODS}?watch=1"), headers=ADMIN) as answer:
        await asyncio.gather(wire.http.close(), answer.content.read())
        assert answer.content.at_eof()


async def test_a_client_that_goes_leaves_nothing_behind(wire: Wire) -> None:
    async with wire.client.get(wire.url(f"{MAPS}?watch=1"), headers=ADMIN) as answer:
        shelf = wire.server.store._shelf(wire.server.api.catalog.by_name["configmaps"])
        assert len(shelf.listeners) == 1
        answer.close()
        while shelf.listeners:
            wire.server.create_map(f"m{wire.server.store.revision}")
            await asyncio.sleep(0)


async def test_a_method_that_does_not_exist_is_405(wire: Wire) -> None:
    async with wire.client.request("FROB", wire.url(PODS), headers=ADMIN) as answer:
        assert answer.status == 405
        assert (await answer.json())["reason"] == "MethodNotAllowed"


async def test_a_client_that_asks_whether_to_go_on_is_told_so(wire: Wire) -> None:
    body = json.dumps({"metadata": {"name": "a"}}).encode()
    async with wire.client.post(wire.url(MAPS), data=body, headers=JSON, expect100=True) as answer:
        assert answer.status == 201


async def test_a_fault_of_ours_is_a_status_too_and_the_server_lives(wire: Wire) -> None:
    healthy, wire.server.api = wire.server.api, cast(ApiServer, None)
    async with wire.client.get(wire.url(PODS), headers=ADMIN) as answer:
        assert answer.status == 500
        assert (await answer.json())["reason"] == "InternalError"
    wire.server.api = healthy
    async with wire.client.get(wire.url(PODS), headers=ADMIN) as answer:
        assert answer.status == 200


async def test_head_has_no_body(wire: Wire) -> None:
    async with wire.client.head(wire.url(PODS), headers=ADMIN) as answer:
        assert answer.status == 405
        assert await answer.read() == b""


async def test_warnings_are_headers(wire: Wire) -> None:
    body = json.dumps({"metadata": {"name": "a"}, "foo": 1, "bar": 2})
    async with wire.client.post(wire.url(MAPS), data=body, headers=JSON) as answer:
        assert answer.headers.getall("Warning") == [
            '299 - "unknown field \\"foo\\""',
            '299 - "unknown field \\"bar\\""',
        ]


@asynccontextmanager
async def limited(limits: Limits) -> AsyncIterator[tuple[Wire, str]]:
    server = SmallServer()
    http = HttpServer(
        lambda request: server.api.handle(request, server.now_s),
        now_s=lambda: server.now_s,
        tokens=(TOKEN,),
        limits=limits,
    )
    with TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as listener:
        path = str(Path(folder) / "s")
        listener.bind(path)
        listener.listen()
        await http.start(listener)
        async with aiohttp.ClientSession(connector=aiohttp.UnixConnector(path)) as client:
            yield Wire(server, http, client, lambda target: f"http://server{target}"), path
            await http.close()


async def test_a_watch_too_many_is_429_and_the_place_of_one_that_ended_is_free_again() -> None:
    async with limited(Limits(watches=1)) as (wire, _):
        target = wire.url(f"{MAPS}?watch=true&resourceVersion=0")
        first = await wire.client.get(target, headers=ADMIN)
        async with wire.client.get(target, headers=ADMIN) as second:
            assert second.status == 429
            assert second.headers["Retry-After"] == "1"
            assert (await second.json())["reason"] == "TooManyRequests"
        first.close()
        for number in itertools.count():
            wire.server.create_map(f"a{number}")  # the server notices who went when it writes
            async with wire.client.get(target, headers=ADMIN) as third:
                if third.status == 200:
                    break


async def test_a_connection_too_many_is_closed_and_the_others_are_served() -> None:
    async with limited(Limits(connections=2)) as (wire, path):
        idle = [await asyncio.open_unix_connection(path) for _ in range(2)]
        async with asyncio.timeout(10):
            reader, writer = await asyncio.open_unix_connection(path)
            assert await reader.read() == b""
            writer.close()
            idle.pop()[1].close()
            while True:
                try:
                    async with wire.client.get(wire.url("/version"), headers=ADMIN) as answer:
                        assert answer.status in (200, 404)
                        break
                except aiohttp.ClientError:
                    continue
        idle.pop()[1].close()


async def test_who_connects_and_asks_nothing_is_not_waited_for() -> None:
    async with limited(Limits(patience_s=0.0)) as (_, path):
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write(b"GET / HTTP/1.1\r\nhalf-a-header")
        async with asyncio.timeout(10):
            assert await reader.read() == b""
        writer.close()


async def test_a_header_beyond_the_limit_is_refused_with_the_limit(wire: Wire) -> None:
    headers = {**ADMIN, "X-Long": "x" * (HEADER_BYTES_MOST + 1)}
    async with wire.client.get(wire.url(MAPS), headers=headers) as answer:
        assert answer.status == 400
        text = f"the first line or a header is longer than {HEADER_BYTES_MOST} bytes"
        assert (await answer.json())["message"] == text


async def test_a_packed_body_is_not_unpacked(wire: Wire) -> None:
    body = gzip.compress(json.dumps({"metadata": {"name": "a"}}).encode())
    async with wire.client.post(
        wire.url(MAPS), data=body, headers={**JSON, "Content-Encoding": "gzip"}
    ) as answer:
        assert answer.status == 400
        assert "invalid character '\\x1f'" in (await answer.json())["message"]


async def test_a_warning_about_a_name_of_control_characters_is_a_header(wire: Wire) -> None:
    body = json.dumps({"a\x1b[31m\r\nX-Injected: yes": 1, "metadata": {"name": "a"}})
    async with wire.client.post(wire.url(f"{MAPS}?dryRun=All"), data=body, headers=JSON) as answer:
        assert answer.status == 201
        assert "X-Injected" not in answer.headers
        assert r"a\\x1b[31m\\r\\nX-Injected: yes" in answer.headers["Warning"]
