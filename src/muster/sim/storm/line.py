"""The line from one scheduler process to the API server: latency, and every way a request can go wrong.

A request travels, lands (or not), and its answer travels back (or not).  No caller waits longer than its
time-out; what was on the way then may still land.  Retry-After is remembered: `impatience` names requests
that were sent again too early.  Next: `door.py`, where requests land.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol

from muster.apiserver.exchange import Request, Response
from muster.assembly.requests import Call
from muster.sim.storm.weather import Sky
from muster.sim.view import Object

LANDS_WITHIN_S = 8.0  # the latest that a request can land: 3 s after its sender has given it up
_TRAVEL_S = (0.001, 0.02)
_RETRY_AFTER_S = (1, 2, 5, 10)


class Answer(NamedTuple):
    """What came back; `code` 0 is no answer, and then `was_sent` says whether anything left at all."""

    code: int
    body: Object
    retry_after_s: float | None = None
    was_sent: bool = True

    @property
    def reason(self) -> str:
        """status.reason."""
        return str(self.body.get("reason") or "")

    @property
    def message(self) -> str:
        """status.message."""
        return str(self.body.get("message") or "")


class Server(Protocol):
    """The API server as a line sees it."""

    @property
    def is_up(self) -> bool:
        """Whether it takes connections."""
        ...

    def serve(self, request: Request) -> Response:
        """Answer a request that has arrived."""
        ...

    def post(self, action: Callable[[], None], delay_s: float) -> None:
        """Have something done later."""
        ...

    def now_s(self) -> float:
        """True time."""
        ...

    def count(self, name: str) -> None:
        """Note that a fault has happened."""
        ...


class Line:
    """Sends the requests of one process under one user name."""

    def __init__(self, server: Server, sky: Sky, user: str) -> None:
        self._server = server
        self._sky = sky
        self._user = user
        self._not_before_s: dict[tuple[str, ...], float] = {}
        self.impatience: list[str] = []

    def send(
        self, call: Call, done: Callable[[Answer], None], timeout_s: float, *, may_wait: bool = True
    ) -> None:
        """Send; `done` is called exactly once, at the latest after the time-out.

        `may_wait` False: it need not heed an earlier Retry-After, as what keeps or gives back a lease.
        """
        self._heed_retry_after(call, may_wait)
        if not self._server.is_up:
            self._later(done, Answer(0, {}, was_sent=False), 0.001)
            return
        weather, sky = self._sky.weather, self._sky
        fault = sky.pick(
            (
                ("request not sent", weather.unsent),
                ("request reset, not done", weather.reset_before),
                ("request reset, done", weather.reset_after),
                ("answer lost", weather.answer_lost),
                ("request late", weather.request_late),
                ("answer late", weather.answer_late),
                ("request doubled", weather.doubled),
                ("answered 500, not done", weather.error_500),
                ("answered 500, done", weather.error_500_done),
                ("answered 429", weather.throttled),
            )
        )
        if fault:
            self._server.count(fault)
            if "claims/" in call.path:
                self._server.count(f"claim write: {fault}")
        there_s, back_s = sky.between(*_TRAVEL_S), sky.between(*_TRAVEL_S)
        match fault:
            case "request not sent":
                self._later(done, Answer(0, {}, was_sent=False), there_s)
            case "request reset, not done":
                self._later(done, Answer(0, {}), there_s)
            case "answered 500, not done":
                self._later(done, Answer(500, {"message": "not today"}), there_s + back_s)
            case "answered 429":
                self._throttle(call, done, there_s + back_s)
            case _:
                self._deliver(call, done, fault, there_s, back_s, timeout_s)

    def _deliver(
        self,
        call: Call,
        done: Callable[[Answer], None],
        fault: str,
        there_s: float,
        back_s: float,
        timeout_s: float,
    ) -> None:
        """Let it land, and let the answer come back as this fault has it."""
        if fault == "request late":
            there_s = self._sky.between(timeout_s, LANDS_WITHIN_S)
        elif fault == "answer late":
            back_s = self._sky.between(0.5, timeout_s + 1)
        loses = fault in ("answer lost", "request late") or there_s + back_s >= timeout_s

        def land() -> None:
            if not self._server.is_up:
                if not loses:
                    self._later(done, Answer(0, {}), back_s)
                return
            answer = self._arrive(call)
            if fault == "request doubled":
                again = self._arrive(call)
                answer = again if self._sky.strikes(0.5) else answer
            elif fault == "answered 500, done":
                answer = Answer(500, {"message": "something broke on the way back"})
            elif fault == "request reset, done":
                answer = Answer(0, {})
            if not loses:
                self._note_retry_after(call, answer)
                self._later(done, answer, back_s)

        self._server.post(land, there_s)
        if loses:
            self._later(done, Answer(0, {}), timeout_s)

    def _arrive(self, call: Call) -> Answer:
        headers = {"content-type": call.content_type, "user-agent": self._user, "accept": "application/json"}
        body = call.body if call.method != "GET" else b""
        response = self._server.serve(
            Request(call.method, call.path, headers=headers, body=body, user=self._user)
        )
        seconds = next((value for name, value in response.headers if name == "Retry-After"), None)
        return Answer(response.status, response.object or {}, float(seconds) if seconds is not None else None)

    def _throttle(self, call: Call, done: Callable[[Answer], None], delay_s: float) -> None:
        seconds = _RETRY_AFTER_S[int(self._sky.between(0, len(_RETRY_AFTER_S)))]
        answer = Answer(429, {"reason": "TooManyRequests", "message": "slow down"}, float(seconds))
        self._note_retry_after(call, answer)
        self._later(done, answer, delay_s)

    def _later(self, done: Callable[[Answer], None], answer: Answer, delay_s: float) -> None:
        self._server.post(lambda: done(answer), delay_s)

    # ── Retry-After ──

    def _note_retry_after(self, call: Call, answer: Answer) -> None:
        if answer.retry_after_s is not None:
            self._not_before_s[_object_of(call)] = self._server.now_s() + answer.retry_after_s

    def _heed_retry_after(self, call: Call, may_wait: bool) -> None:
        not_before_s = self._not_before_s.pop(_object_of(call), 0.0)
        if may_wait and self._server.now_s() < not_before_s:
            early_s = not_before_s - self._server.now_s()
            self.impatience.append(f"{self._user} sends {call.method} {call.path} {early_s:.1f} s too early")


def _object_of(call: Call) -> tuple[str, ...]:
    """What a request is about: its path, and the name of what it makes."""
    return call.method, call.path, str((call.body.get("metadata") or {}).get("name") or "")
