"""The proxy does to a request what its rule says, and the server sees what it should."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator

import aiohttp
import pytest
from aiohttp import web
from tests.reliability.proxy import Fault, FaultProxy, Rule

from muster.runtime.certificates import ServerIdentity, make_identity

BINDING = "/api/v1/namespaces/default/pods/p/binding"
MATCH = "/binding$"


class Server:
    """Says yes, and remembers; a watch is two lines, the second when `more` is set."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.more = asyncio.Event()

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if "watch" in request.query:
            stream = web.StreamResponse()
            await stream.prepare(request)
            await stream.write(b"first\n")
            await self.more.wait()
            await stream.write(b"second\n")
            return stream
        self.seen.append(f"{request.method} {request.path_qs} {(await request.read()).decode()}")
        answer = {"who": request.headers.get("Authorization", "")}
        return web.json_response(answer, status=201 if request.method == "POST" else 200)


class Place:
    """A client, the proxy and the server behind it."""

    def __init__(self, server: Server, proxy: FaultProxy, client: aiohttp.ClientSession) -> None:
        self.server = server
        self.proxy = proxy
        self.client = client
        self.paused: list[float] = []

    async def post(self, path: str = BINDING, body: str = "x") -> int:
        """The status; 0 where the connection broke off."""
        try:
            async with self.client.post(self.proxy.address + path, data=body) as answer:
                await answer.read()
                return answer.status
        except aiohttp.ClientError:
            return 0


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    server = Server()
    runner = web.ServerRunner(web.Server(server.handle))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    paused: list[float] = []

    async def pause(seconds: float) -> None:
        paused.append(seconds)

    proxy = FaultProxy(f"http://{host}:{port}", token="secret", pause=pause)
    async with proxy, aiohttp.ClientSession() as client:
        found = Place(server, proxy, client)
        found.paused = paused
        yield found
    await runner.cleanup()


async def test_what_no_rule_speaks_of_passes_with_query_body_and_the_token(place: Place) -> None:
    async with place.client.post(place.proxy.address + "/a?b=c%20d", data="body") as answer:
        assert (answer.status, await answer.json()) == (201, {"who": "Bearer secret"})
    assert place.server.seen == ["POST /a?b=c%20d body"]
    assert place.proxy.accepted == {("POST", "/a"): 1}


async def test_the_lines_of_a_watch_come_as_they_are_written(place: Place) -> None:
    async with place.client.get(place.proxy.address + "/pods?watch=1") as answer:
        assert await answer.content.readline() == b"first\n"
        place.server.more.set()
        assert await answer.content.readline() == b"second\n"


async def test_a_lost_request_never_reaches_the_server(place: Place) -> None:
    place.proxy.rules = [Rule("POST", MATCH, Fault.LOSE_REQUEST)]
    assert await place.post() == 0
    assert place.server.seen == []


async def test_a_lost_answer_leaves_the_server_with_what_was_asked(place: Place) -> None:
    place.proxy.rules = [Rule("POST", MATCH, Fault.LOSE_ANSWER)]
    assert await place.post() == 0
    assert place.server.seen == [f"POST {BINDING} x"]
    assert place.proxy.accepted == {("POST", BINDING): 1}


async def test_a_doubled_request_reaches_the_server_twice(place: Place) -> None:
    place.proxy.rules = [Rule("POST", MATCH, Fault.DUPLICATE)]
    assert await place.post() == 201
    assert place.server.seen == [f"POST {BINDING} x"] * 2


async def test_a_binding_that_the_server_accepted_twice_is_named(place: Place) -> None:
    once, twice = (f"/api/v1/namespaces/default/pods/g-{number}/binding" for number in range(2))
    await place.post(once)
    place.proxy.rules = [Rule("POST", MATCH, Fault.DUPLICATE)]
    await place.post(twice)
    assert place.proxy.bound_twice("g") == [twice]
    assert place.proxy.bound_twice("other") == []


async def test_a_request_that_hangs_never_reaches_the_server(place: Place) -> None:
    place.proxy.rules = [Rule("POST", MATCH, Fault.HANG, delay_s=30.0)]
    assert await place.post() == 0
    assert (place.paused, place.server.seen) == ([30.0], [])


async def test_a_late_request_waits_before_the_server_sees_it(place: Place) -> None:
    place.proxy.rules = [Rule("POST", MATCH, Fault.DELAY, delay_s=6.0)]
    assert await place.post() == 201
    assert place.paused == [6.0]


@pytest.mark.parametrize(("status", "after"), [(429, 3), (500, None), (403, None)])
async def test_a_refusal_says_so_as_an_api_server_does(place: Place, status: int, after: int | None) -> None:
    place.proxy.rules = [Rule("POST", MATCH, Fault.REFUSE, status=status, retry_after_s=after)]
    async with place.client.post(place.proxy.address + BINDING, data="x") as answer:
        told = await answer.json()
        assert (answer.status, told["kind"], told["code"]) == (status, "Status", status)
        assert answer.headers.get("Retry-After") == (None if after is None else str(after))
    assert place.server.seen == []


async def test_a_rule_takes_only_its_method_its_path_and_its_turns(place: Place) -> None:
    rule = Rule("POST", MATCH, Fault.REFUSE, skip=1, count=2, status=500)
    place.proxy.rules = [rule]
    assert await place.post("/elsewhere") == 201
    async with place.client.get(place.proxy.address + BINDING) as answer:
        assert answer.status == 200
    assert [await place.post() for _ in range(4)] == [201, 500, 500, 201]
    assert (rule.seen, rule.hits) == (4, 2)


async def test_one_at_a_time_lets_exactly_as_many_pass_as_went_before_the_cut(place: Place) -> None:
    rule = Rule(
        "POST", MATCH, Fault.LOSE_REQUEST, skip=2, one_at_a_time=True, on_hit=lambda: place.proxy.cut()
    )
    place.proxy.rules = [rule]
    answers = await asyncio.gather(*(place.post() for _ in range(6)))
    assert sorted(answers) == [0, 0, 0, 0, 201, 201]
    assert len(place.server.seen) == 2


async def test_who_is_told_of_a_lost_answer_is_told_after_the_server_did_it(place: Place) -> None:
    told: list[int] = []
    place.proxy.rules = [
        Rule("POST", MATCH, Fault.LOSE_ANSWER, on_hit=lambda: told.append(len(place.server.seen)))
    ]
    await place.post()
    assert told == [1]


async def test_a_cut_breaks_everything_off_until_it_is_restored(place: Place) -> None:
    place.proxy.cut()
    assert await place.post("/elsewhere") == 0
    place.proxy.restore()
    assert await place.post("/elsewhere") == 201


async def test_the_proxy_ends_while_a_watch_is_still_open(place: Place) -> None:
    async with aiohttp.ClientSession() as client, contextlib.AsyncExitStack() as watch:
        async with asyncio.timeout(10.0), FaultProxy(place.proxy.address) as second:
            answer = await watch.enter_async_context(client.get(second.address + "/pods?watch=1"))
            assert await answer.content.readline() == b"first\n"
        with pytest.raises(aiohttp.ClientError):
            await answer.content.readline()


async def test_who_has_another_token_than_the_wanted_one_is_refused(place: Place) -> None:
    place.proxy.wanted_token = "new"
    assert await place.post() == 401
    assert place.server.seen == []
    assert place.proxy.unauthorized == 1


async def test_another_certificate_is_shown_on_the_same_port_and_what_is_open_breaks_off() -> None:
    server, old, new = Server(), make_identity(), make_identity()
    runner = web.ServerRunner(web.Server(server.handle))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    proxy = FaultProxy(f"http://{host}:{port}", identity=old)

    async def get(identity: ServerIdentity, query: str = "") -> bytes:
        trust = ssl.create_default_context(cadata=identity.authority_pem.decode())
        async with (
            aiohttp.ClientSession() as client,
            client.get(f"{proxy.address}/p{query}", ssl=trust) as answer,
        ):
            if query:
                await proxy.show(new)
            return await answer.read()

    async with proxy:
        with pytest.raises(aiohttp.ClientPayloadError):
            await get(old, "?watch=1")
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await get(old)
        assert await get(new)
        server.more.set()
    await runner.cleanup()
