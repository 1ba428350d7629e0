"""The embedded server in this process as a wire for recorded requests, on virtual time.

Nodes, kubelets and scheduler are left out, as the recordings want it; the controllers work.  What the socket
layer says by itself (a bad token) is not here: without Authorization a request is the administrator's.
"""

import json
import urllib.parse
from collections import deque

from tests.conformance.replay import Stream, WireAnswer, WireRequest
from tests.conformance.simulation import SimulatedCluster

from muster.apiserver.exchange import Request, Response, Watch

_ANONYMOUS = "system:anonymous", ("system:unauthenticated",)
_LOOK_EVERY_S = 0.25


class SimulatedWire:
    """One fresh cluster; every request takes a few milliseconds, unless nobody is to work in it."""

    def __init__(self, *, controllers: bool = True) -> None:
        self.cluster = SimulatedCluster(scheduler=False)
        self._controllers = controllers

    def send(self, request: WireRequest) -> WireAnswer:
        answer = _answer_of(self._exchange(request))
        if self._controllers:
            self.cluster.pass_request()
        return answer

    def watch(self, request: WireRequest) -> Stream:
        response = self._exchange(request)
        self.cluster.pass_request()
        return SimulatedStream(self.cluster, response)

    def sleep(self, seconds: float) -> None:
        self.cluster.sleep(seconds)

    def _exchange(self, request: WireRequest) -> Response:
        path, _, query = request.target.partition("?")
        headers = {key.lower(): value for key, value in request.headers.items()}
        sent = Request(
            method=request.method,
            path=urllib.parse.unquote(path),
            query=tuple(urllib.parse.parse_qsl(query, keep_blank_values=True)),
            headers=headers,
            body=request.data or b"",
        )
        if headers.pop("authorization", "") == "none":
            user, groups = _ANONYMOUS
            sent = Request(sent.method, sent.path, sent.query, headers, sent.body, user, groups)
        return self.cluster.world.request(sent)


class SimulatedStream:
    """A watch that is pulled while virtual time goes on."""

    def __init__(self, cluster: SimulatedCluster, response: Response) -> None:
        self.answer = None if response.watch else _answer_of(response)
        self._watch: Watch | None = response.watch
        self._cluster = cluster
        self._lines: deque[bytes] = deque()

    def next_line(self, patience_s: float) -> bytes | None:
        if self._watch is None:
            return None
        until_s = self._cluster.now_s() + patience_s
        while True:
            self._lines.extend(self._watch.pull(self._cluster.now_s()))
            if self._lines:
                return self._lines.popleft()
            if self._watch.closed or self._cluster.now_s() >= until_s:
                return None
            self._cluster.sleep(_LOOK_EVERY_S)

    def close(self) -> None:
        if self._watch is not None:
            self._watch.stop()


def _answer_of(response: Response) -> WireAnswer:
    raw = response.raw
    if raw is None:
        raw = b"" if response.object is None else json.dumps(response.object).encode()
    headers = [("content-type", response.content_type)]
    headers += [(key.lower(), value) for key, value in response.headers]
    return WireAnswer(response.status, tuple(headers), raw)
