"""One scheduler's effects performed in this process, and their outcomes."""

import pytest

from muster.api.meta import Condition
from muster.apiserver.exchange import Response
from muster.assembly.loopback import Loopback, as_request, event_of_change, is_watched
from muster.assembly.requests import JSON, Call
from muster.controllers.ports import JOBS, NODES, PODS, Seen
from muster.framework.groups import ObjectKey
from muster.framework.ports import (
    BindDone,
    BindFailed,
    BindPod,
    Effect,
    Event,
    NodeGone,
    ObjectReference,
    PatchPodStatus,
    PodSeen,
    RecordEvent,
    Synced,
    WakeAt,
    WriteFailed,
)

POD = ObjectKey("default", "p")
BIND = BindPod(POD, "u", "n1", "muster")
PATCH = PatchPodStatus(POD, "u", Condition("PodScheduled", "False"))
EVENT = RecordEvent(ObjectReference("v1", "Pod", POD, "u"), "Normal", "R", "A", "n", "muster")
REFUSED = {"reason": "Conflict", "message": "no"}


class Says:
    """A scheduler that always answers the same."""

    def __init__(self, *effects: Effect) -> None:
        self.effects = list(effects)

    def handle(self, event: Event, now_s: float) -> list[Effect]:
        return self.effects


class Line:
    """What was sent, and the answer to all of it."""

    def __init__(self, code: int) -> None:
        self.code = code
        self.calls: list[Call] = []

    def send(self, call: Call, user: str, now_s: float) -> Response:
        self.calls.append(call)
        return Response(self.code, REFUSED if self.code >= 400 else {})


def make_loopback(
    code: int, *effects: Effect, pod_is_at: tuple[str, str] | None = None
) -> tuple[Loopback, Line]:
    line = Line(code)
    return Loopback(Says(*effects), line.send, lambda *key: pod_is_at, listed_revision=0), line


def test_timers_are_kept_and_the_rest_is_to_be_performed_in_order() -> None:
    loopback, line = make_loopback(200, BIND, WakeAt(5.0), PATCH)
    assert loopback.deliver(Synced(), 1.0) == [BIND, PATCH]
    assert loopback.wake_s == 5.0
    assert line.calls == []


@pytest.mark.parametrize(
    ("code", "effect", "pod_is_at", "outcome"),
    [
        pytest.param(201, BIND, None, BindDone(POD, "u", "n1"), id="bound"),
        pytest.param(409, BIND, ("u", "n1"), BindDone(POD, "u", "n1"), id="was-there-already"),
        pytest.param(
            409, BIND, ("u", "n2"), BindFailed(POD, "u", "n1", 409, "Conflict", "no"), id="is-elsewhere"
        ),
        pytest.param(
            409, BIND, ("other", "n1"), BindFailed(POD, "u", "n1", 409, "Conflict", "no"), id="is-another"
        ),
        pytest.param(404, BIND, None, BindFailed(POD, "u", "n1", 404, "Conflict", "no"), id="is-gone"),
        pytest.param(200, PATCH, None, None, id="said"),
        pytest.param(404, PATCH, None, WriteFailed(PATCH, 404, "no"), id="could-not-be-said"),
        pytest.param(201, EVENT, None, None, id="event-written"),
        pytest.param(500, EVENT, None, None, id="event-lost"),
    ],
)
def test_outcomes(
    code: int,
    effect: BindPod | PatchPodStatus | RecordEvent,
    pod_is_at: tuple[str, str] | None,
    outcome: Event,
) -> None:
    loopback, line = make_loopback(code, pod_is_at=pod_is_at)
    assert loopback.perform(effect, 1.0) == outcome
    assert len(line.calls) == 1


def test_equal_events_of_one_instant_get_different_names() -> None:
    loopback, line = make_loopback(201)
    for _ in range(2):
        loopback.perform(EVENT, 1.0)
    assert len({call.body["metadata"]["name"] for call in line.calls}) == 2
    assert loopback.dropped_events == 0


def test_only_nodes_groups_and_pods_are_watched() -> None:
    assert is_watched(PODS)
    assert not is_watched(JOBS)


def test_changes_become_events() -> None:
    pod = {"metadata": {"name": "p", "namespace": "default", "uid": "u"}, "spec": {"containers": []}}
    seen = event_of_change(Seen(PODS, None, pod))
    assert isinstance(seen, PodSeen)
    assert seen.pod.metadata.name == "p"
    assert event_of_change(Seen(NODES, {"metadata": {"name": "n1"}}, None)) == NodeGone("n1")


def test_a_request_says_who_asks_and_how_the_body_is_meant() -> None:
    request = as_request(Call("POST", "/api/v1/nodes", JSON, {"kind": "Node"}), "system:me")
    assert (request.user, request.headers["content-type"], request.body) == (
        "system:me",
        JSON,
        {"kind": "Node"},
    )
