"""What the client sends, and which exception each kind of answer becomes."""

import ssl
from collections.abc import AsyncIterator, Iterator

import aiohttp
import pytest
from aiohttp import web
from tests.unit.runtime.in_process import PairConnector, client_of, status

from muster.base.errors import ApiError, ConfigError, Conflict, Expired, Unavailable
from muster.runtime.client import NOT_SENT, _lines_of
from muster.runtime.credentials import Secret, Token


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


class Failing(aiohttp.BaseConnector):
    """A connector that reaches nobody, for this reason."""

    def __init__(self, error: OSError) -> None:
        super().__init__()
        self._error = error

    async def _create_connection(self, req: aiohttp.ClientRequest, traces: object, timeout: object) -> None:  # type: ignore[override]
        raise aiohttp.ClientConnectorError(req.connection_key, self._error)


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
    async with client_of(PairConnector, connector=lambda: Failing(error)) as client:  # type: ignore[arg-type]
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
    class Content:
        async def iter_any(self) -> AsyncIterator[bytes]:
            for piece in (b"a", b"b", b"c\nd", b"e\n"):
                yield piece

    class Response:
        content = Content()

    lines = [line async for batch in _lines_of(Response()) for line in batch]  # type: ignore[arg-type]
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
