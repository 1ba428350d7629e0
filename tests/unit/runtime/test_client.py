"""What the client sends, and which exception each kind of answer becomes."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
from aiohttp import web
from tests.unit.runtime.in_process import ManualClock, PairDialer, client_of, status

from muster.assembly.leadership import REQUEST_TIMEOUT_S
from muster.base.errors import ApiError, ConfigError, Conflict, Expired, Unavailable
from muster.runtime import client as client_module
from muster.runtime.client import NOT_SENT, Answer, ApiClient, ItemList, _lines_of, raise_for
from muster.runtime.credentials import (
    ClientCertificate,
    ExecStatus,
    ExecVariable,
    Nobody,
    Secret,
    Token,
)
from muster.runtime.dialing import Route
from muster.runtime.kubeconfig import Access, read_access
from muster.runtime.kubeconfig_file import User


class Renewing:
    """Credentials that a refresh makes good."""

    def __init__(self) -> None:
        self.refreshed = 0

    async def secret(self, now_s: float) -> Secret:
        return Secret("Bearer new" if self.refreshed else "Bearer old")

    def refresh(self) -> bool:
        self.refreshed += 1
        return True


async def test_a_call_carries_body_type_query_and_token() -> None:
    seen = []

    async def handler(request: web.BaseRequest) -> web.Response:
        seen.append((request.method, request.path_qs, request.headers["Content-Type"], await request.text()))
        seen.append((request.headers["Authorization"], request.headers["Impersonate-User"], "", ""))
        return web.Response(body=b"{}", status=201)

    headers = (("Impersonate-User", "jane"),)
    async with client_of(handler, credentials=Token("secret"), headers=headers) as client:
        answer = await client.call(
            "PATCH",
            "/api/v1/x",
            {"a": 1},
            content_type="application/merge-patch+json",
            query={"dryRun": "All"},
        )
    assert (answer.code, answer.body) == (201, b"{}")
    assert seen == [
        ("PATCH", "/api/v1/x?dryRun=All", "application/merge-patch+json", '{"a":1}'),
        ("Bearer secret", "jane", "", ""),
    ]


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        pytest.param(404, ApiError, id="not-found"),
        pytest.param(409, Conflict, id="conflict"),
        pytest.param(410, Expired, id="gone"),
        pytest.param(422, ApiError, id="invalid"),
        pytest.param(429, Unavailable, id="too-many"),
        pytest.param(503, Unavailable, id="server-down"),
    ],
)
async def test_each_refusal_has_its_exception_with_the_servers_words(code: int, kind: type[ApiError]) -> None:
    async def handler(request: web.BaseRequest) -> web.Response:
        return status(code, "Because", "the server says so")

    async with client_of(handler) as client:
        with pytest.raises(ApiError, match="the server says so") as caught:
            await client.call("GET", "/x")
    assert type(caught.value) is kind
    assert (caught.value.code, caught.value.reason) == (code, "Because")


@pytest.mark.parametrize(
    ("header", "details", "expected"),
    [
        pytest.param({"Retry-After": "7"}, {}, 7.0, id="header"),
        pytest.param({}, {"retryAfterSeconds": 3}, 3.0, id="details"),
        pytest.param(
            {"Retry-After": "Tue, 15 Jan 2030 08:00:09 GMT", "Date": "Tue, 15 Jan 2030 08:00:00 GMT"},
            {},
            9.0,
            id="date",
        ),
        pytest.param({}, {}, None, id="unsaid"),
    ],
)
async def test_the_time_to_wait_is_read_from_header_or_details(
    header: dict[str, str], details: dict[str, int], expected: float | None
) -> None:
    async def handler(request: web.BaseRequest) -> web.Response:
        answer = status(429, "TooManyRequests", "slow down", **details)
        answer.headers.update(header)
        return answer

    async with client_of(handler) as client:
        with pytest.raises(Unavailable) as caught:
            await client.call("GET", "/x")
    assert caught.value.retry_after_s == expected


async def test_a_refusal_that_is_no_status_is_quoted() -> None:
    async def handler(request: web.BaseRequest) -> web.Response:
        return web.Response(status=502, text="bad gateway of some proxy")

    async with client_of(handler) as client:
        with pytest.raises(Unavailable, match="bad gateway of some proxy"):
            await client.call("GET", "/x")


async def test_a_401_renews_the_credentials_once_and_tries_again() -> None:
    async def handler(request: web.BaseRequest) -> web.Response:
        if request.headers["Authorization"] == "Bearer new":
            return web.Response(body=b"fine")
        return status(401, "Unauthorized", "Unauthorized")

    credentials = Renewing()
    async with client_of(handler, credentials=credentials) as client:
        assert (await client.call("GET", "/x")).body == b"fine"
    assert credentials.refreshed == 1


class Slow(Renewing):
    """Credentials that take a minute to be made anew."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__()
        self._clock = clock

    async def secret(self, now_s: float) -> Secret:
        if self.refreshed:
            self._clock.value_s += 60.0
        return await super().secret(now_s)


async def test_what_takes_too_long_to_be_sent_is_not_sent() -> None:
    heard: list[str] = []

    async def handler(request: web.BaseRequest) -> web.Response:
        heard.append(request.headers["Authorization"])
        return status(401, "Unauthorized", "Unauthorized")

    clock = ManualClock()
    async with client_of(handler, clock=clock, credentials=Slow(clock)) as client:
        with pytest.raises(Unavailable) as caught:
            await client.call("POST", "/x", {})
    assert (heard, caught.value.reason) == (["Bearer old"], NOT_SENT)


async def test_a_401_with_a_fixed_token_is_told_at_once() -> None:
    async def handler(request: web.BaseRequest) -> web.Response:
        return status(401, "Unauthorized", "Unauthorized")

    async with client_of(handler, credentials=Token("wrong")) as client:
        with pytest.raises(ConfigError, match="refused the credentials: Unauthorized"):
            await client.check_connection()


async def test_a_server_that_is_something_else_is_named_as_such() -> None:
    async def handler(request: web.BaseRequest) -> web.Response:
        return web.Response(text="<html>welcome</html>")

    async with client_of(handler) as client:
        with pytest.raises(ConfigError, match=r"http://cluster\.test is no Kubernetes API server"):
            await client.check_connection()


async def test_an_answer_that_never_comes_is_unavailable_and_may_have_been_sent() -> None:
    async def handler(request: web.BaseRequest) -> web.Response:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    async with client_of(handler) as client:
        with pytest.raises(Unavailable) as caught:
            await client.call("POST", "/x", {})
    assert (caught.value.code, caught.value.reason) == (0, "NoAnswer")


class Failing:
    """A dialer that reaches nobody, for this reason."""

    def __init__(self, error: OSError) -> None:
        self._error = error

    async def __call__(self, make: Callable[[], asyncio.Protocol], route: Route) -> None:
        raise self._error


async def unasked(request: web.BaseRequest) -> web.Response:
    raise AssertionError("nobody can reach this")


def untrusted(why: str) -> ssl.SSLCertVerificationError:
    """The error that a handshake ends in."""
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_message = why
    return error


@pytest.mark.parametrize(
    ("error", "words"),
    [
        pytest.param(ConnectionRefusedError(111, "x"), "connection refused", id="wrong-port"),
        pytest.param(OSError(101, "Network is unreachable"), "Network is unreachable", id="no-route"),
        pytest.param(
            untrusted("self-signed"), "the server's certificate is not trusted: self-signed", id="authority"
        ),
    ],
)
async def test_a_server_that_cannot_be_reached_is_told_in_plain_words(error: OSError, words: str) -> None:
    async with client_of(unasked, dial=Failing(error)) as client:
        with pytest.raises(Unavailable, match=f"cannot reach http://cluster.test: .*{words}") as caught:
            await client.call("POST", "/x", {})
    assert (caught.value.code, caught.value.reason) == (0, NOT_SENT)


def _pieces(text: bytes, size: int) -> Iterator[bytes]:
    return (text[at : at + size] for at in range(0, len(text), size))


async def test_a_stream_is_cut_into_lines_wherever_its_pieces_end() -> None:
    long = b'{"long":"' + b"x" * 300_000 + b'"}'

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for piece in _pieces(b"one\ntwo\n\n" + long + b"\nlast\nunfinished", 50_000):
            await response.write(piece)
        return response

    async with client_of(handler) as client, client.lines("/x", {"watch": "true"}) as batches:
        lines = [line async for batch in batches for line in batch]
    assert lines == [b"one", b"two", long, b"last"]


async def test_a_line_is_put_together_from_pieces_without_an_end() -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for piece in (b"a", b"b", b"c\nd", b"e\n"):
            yield piece

    lines = [line async for batch in _lines_of(pieces()) for line in batch]
    assert lines == [b"abc", b"de"]


async def test_a_stream_that_is_refused_raises_as_a_call_does() -> None:
    async def handler(request: web.BaseRequest) -> web.Response:
        return status(410, "Expired", "too old resource version")

    async with client_of(handler) as client:
        with pytest.raises(Expired, match="too old"):
            async with client.lines("/x", {}):
                pass


async def test_every_answer_is_counted_by_verb_and_code() -> None:
    counted: list[tuple[str, int]] = []

    async def handler(request: web.BaseRequest) -> web.Response:
        return web.Response(body=b"{}")

    client = client_of(handler)
    client._count = lambda verb, code: counted.append((verb, code))
    async with client:
        await client.call("GET", "/x")
    assert counted == [("GET", 200)]


# ── what a server may do to us ───────────────────────────────────────────────────────────────────


async def test_a_line_without_an_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "LINE_BYTES_MAX", 1000)

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b"x" * 400)
            await asyncio.sleep(0)

    async with client_of(answer) as client:
        with pytest.raises(Unavailable, match="a line of more than"):
            await read_all(client)


async def read_all(client: ApiClient) -> list[list[bytes]]:
    async with client.lines("/watch", {}) as lines:
        return [batch async for batch in lines]


@pytest.mark.parametrize(
    ("method", "code", "bound"),
    [
        pytest.param("GET", 200, "ANSWER_BYTES_MAX", id="list"),
        pytest.param("POST", 200, "LINE_BYTES_MAX", id="write"),
        pytest.param("GET", 500, "REFUSAL_BYTES_MAX", id="refusal"),
        pytest.param("PATCH", 500, "REFUSAL_BYTES_MAX", id="refused-write"),
    ],
)
async def test_an_answer_without_an_end_is_given_up(
    method: str, code: int, bound: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, bound, 1000)

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse(status=code)
        await response.prepare(request)
        while True:
            await response.write(b"x" * 400)
            await asyncio.sleep(0)

    async with client_of(answer) as client:
        with pytest.raises(Unavailable, match="an answer of more than"):
            await client.call(method, "/list")


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        pytest.param("²", None, id="not-ascii"),
        pytest.param("-1", None, id="negative"),
        pytest.param("9" * 400, 3600.0, id="for-ever"),
        pytest.param("soon", None, id="a-word"),
        pytest.param("Tue, 99 Jan 2030 08:00:00 GMT", None, id="no-such-day"),
        pytest.param("Fri, 01 Jan 2027 00:00:00 GMT", 0.0, id="date-that-is-over"),
        pytest.param("Fri, 01 Jan 2100 00:00:00 GMT", 3600.0, id="date-of-another-century"),
    ],
)
def test_a_time_to_wait_that_makes_no_sense_is_not_obeyed(header: str, seconds: float | None) -> None:
    with pytest.raises(Unavailable) as caught:
        raise_for(429, b"{}", {"retry-after": header}, now_s=1_800_000_000.0)
    assert caught.value.retry_after_s == seconds


def test_a_date_to_wait_for_counts_from_our_clock_where_the_answer_has_no_date() -> None:
    with pytest.raises(Unavailable) as caught:
        raise_for(429, b"{}", {"retry-after": "Fri, 15 Jan 2027 08:00:07 GMT"}, now_s=1_800_000_000.0)
    assert caught.value.retry_after_s == 7.0


@pytest.mark.parametrize("seconds", [-5, 10**400])
def test_so_is_one_in_the_details_within_bounds(seconds: int) -> None:
    body = json.dumps({"details": {"retryAfterSeconds": seconds}}).encode()
    with pytest.raises(Unavailable) as caught:
        raise_for(503, body, {}, now_s=0.0)
    assert caught.value.retry_after_s in (0.0, 3600.0, None)


@pytest.mark.parametrize("body", [b"[" * 100_000, b'{"a":' * 100_000, b"\xff\xfe", b"null", b"[]", b""])
def test_an_answer_that_is_something_else_is_unavailable(body: bytes) -> None:
    with pytest.raises(Unavailable, match="not what the API says"):
        Answer(200, body).read(ItemList)
    with pytest.raises(ApiError):
        raise_for(404, body, {}, now_s=0.0)


async def test_a_redirect_is_not_followed_and_no_token_goes_elsewhere() -> None:
    asked = []

    async def answer(request: web.BaseRequest) -> web.Response:
        asked.append(request.path)
        return web.Response(status=307, headers={"Location": "http://elsewhere.test/steal"})

    async with client_of(answer, credentials=Token("secret")) as client:
        with pytest.raises(ApiError, match="HTTP 307"):
            await client.call("GET", "/api")
    assert asked == ["/api"]


# ── credentials that are replaced while we run ───────────────────────────────────────────────────


def write_config(file: Path, token: str) -> None:
    file.write_text(
        "current-context: c\n"
        "clusters: [{name: k, cluster: {server: 'http://cluster.test'}}]\n"
        f"users: [{{name: u, user: {{token: {token}}}}}]\n"
        "contexts: [{name: c, context: {cluster: k, user: u}}]\n"
    )


async def test_a_token_that_is_replaced_in_the_kubeconfig_is_read_again(tmp_path: Path) -> None:
    taken, asked = "old", []

    async def answer(request: web.BaseRequest) -> web.Response:
        asked.append(request.headers["Authorization"])
        is_known = asked[-1] == f"Bearer {taken}"
        return web.json_response({}) if is_known else status(401, "Unauthorized", "Unauthorized")

    write_config(tmp_path / "config", "old")
    access = read_access([tmp_path / "config"])
    client = ApiClient(access, now_s=ManualClock().now_s, dial=PairDialer(answer))
    async with client:
        await client.call("GET", "/")
        taken = "new"
        with pytest.raises(ApiError):  # nobody has written the new one yet
            await client.call("GET", "/")
        write_config(tmp_path / "config", "new")
        await client.call("GET", "/")
        await client.call("GET", "/")
    assert asked == [f"Bearer {token}" for token in ("old", "old", "old", "new", "new")]


async def test_nothing_is_sent_where_the_machine_slept_while_credentials_were_asked_for() -> None:
    boot_s, asked = 0.0, []

    class Slow(Nobody):
        async def secret(self, now_s: float) -> Secret:
            nonlocal boot_s
            boot_s += REQUEST_TIMEOUT_S
            return await super().secret(now_s)

    async def answer(request: web.BaseRequest) -> web.Response:
        asked.append(request.path)
        return web.json_response({})

    access = Access(server="http://cluster.test", tls=None, credentials=Slow(), origin="kubeconfig")
    now_s = ManualClock().now_s
    async with ApiClient(access, now_s=now_s, dial=PairDialer(answer), boot_s=lambda: boot_s) as client:
        with pytest.raises(Unavailable) as caught:
            await client.call("POST", "/", {})
    assert (caught.value.reason, asked) == (NOT_SENT, [])


def test_a_kubeconfig_that_is_half_written_is_tried_again_later(tmp_path: Path) -> None:
    write_config(tmp_path / "config", "old")
    access = read_access([tmp_path / "config"])
    (tmp_path / "config").write_text("current-context: c\nclus")
    assert access.renew() is None
    write_config(tmp_path / "config", "old")
    assert access.renew() is None  # as it was
    write_config(tmp_path / "config", "new")
    assert access.renew() is not None


def test_nothing_that_holds_a_secret_shows_it() -> None:
    certificate = ClientCertificate("PEM", "hush", "place")
    shown = [
        repr(each)
        for each in (
            certificate,
            Secret("Bearer hush", certificate),
            User(token="hush", password="hush", client_key_data="hush"),
            ExecVariable("A", "hush"),
            ExecStatus(token="hush"),
            Token("hush"),
            Nobody(certificate),
        )
    ]
    assert [text for text in shown if "hush" in text] == []
