"""One scheduler's effects performed in this process, and their outcomes."""

from collections.abc import Callable

import numpy as np
import pytest
from msgspec.structs import replace

from muster.api.devices import Allocation
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
    DropClaim,
    Effect,
    Event,
    EvictDone,
    EvictFailed,
    EvictPod,
    MakeClaim,
    NodeGone,
    ObjectReference,
    PatchPodStatus,
    PodSeen,
    PrepareDone,
    PrepareFailed,
    RecordEvent,
    Search,
    SearchDone,
    Synced,
    TimeReached,
    WakeAt,
    WriteFailed,
)
from muster.placement.packing import Answer, Verdict, group_problem, no_rule

POD = ObjectKey("default", "p")
BIND = BindPod(POD, "u", "n1", "muster")
PATCH = PatchPodStatus(POD, "u", Condition("PodScheduled", "False"))
EVENT = RecordEvent(ObjectReference("v1", "Pod", POD, "u"), "Normal", "R", "A", "n", "muster")
TWO_ON_ONE_NODE = group_problem(
    replace(no_rule(2, 1), room=np.array([[4]]), need=np.array([[3], [1]])),
    available=np.array([1, 1]),
    needed=2,
    domains=(np.array([0]),),
    is_exact=True,
)
SEARCH = Search(7, ObjectKey("default", "g"), TWO_ON_ONE_NODE, 250)
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


def test_a_search_is_done_in_place_and_answered_a_moment_later() -> None:
    loopback, line = make_loopback(200, SEARCH)
    assert loopback.deliver(Synced(), 10.0) == []
    assert loopback.take_due(10.0) is None
    due_s = loopback.next_due_s()
    assert due_s is not None
    assert due_s > 10.0
    done = loopback.take_due(due_s)
    assert isinstance(done, SearchDone)
    assert (done.ticket, done.answer.verdict) == (7, Verdict.FOUND)
    assert loopback.next_due_s() is None
    assert line.calls == []


def test_a_search_done_elsewhere_is_answered_when_it_is_done() -> None:
    loopback, _ = make_loopback(200, SEARCH)
    begun: list[tuple[Search, Callable[[Event], None]]] = []
    loopback.search_elsewhere = lambda effect, answer: begun.append((effect, answer))
    loopback.deliver(Synced(), 10.0)
    assert loopback.next_due_s() is None
    done = SearchDone(7, Answer(Verdict.IMPOSSIBLE))
    begun[0][1](done)
    assert loopback.take_due(10.0) is done


def test_the_time_a_scheduler_asked_for_comes_once() -> None:
    loopback, _ = make_loopback(200, WakeAt(12.0))
    loopback.deliver(Synced(), 10.0)
    assert loopback.take_due(11.0) is None
    assert loopback.take_due(12.0) == TimeReached()
    assert loopback.take_due(12.0) is None


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


EVICT = EvictPod(POD, "u", Condition("DisruptionTarget", "True"))
VICTIM = EvictPod(POD, "u", Condition("DisruptionTarget", "True"), "pod", ObjectKey("default", "q"))


def test_a_victim_is_marked_and_then_deleted() -> None:
    loopback, line = make_loopback(200)
    assert loopback.perform(EVICT, 1.0) == EvictDone(POD, "u")
    assert [call.method for call in line.calls] == ["PATCH", "DELETE"]


@pytest.mark.parametrize("code", [404, 409])
def test_a_victim_that_is_gone_or_another_by_now_is_none(code: int) -> None:
    assert make_loopback(code)[0].perform(EVICT, 1.0) == EvictDone(POD, "u", is_gone=True)


@pytest.mark.parametrize(
    ("evict", "calls"), [pytest.param(VICTIM, 1, id="victim"), pytest.param(EVICT, 2, id="released")]
)
def test_a_refused_eviction_is_told(evict: EvictPod, calls: int) -> None:
    loopback, line = make_loopback(403)
    assert loopback.perform(evict, 1.0) == EvictFailed(POD, "u", 403, "no")
    assert len(line.calls) == calls


MAKE = MakeClaim(POD, ObjectKey("default", "unwritten"), "u", (), (), Allocation())
DROP = DropClaim(POD, ObjectKey("default", "c"), "u", "uid-c")


def test_a_claim_is_made_step_by_step_until_a_refusal() -> None:
    loopback, line = make_loopback(201)
    assert loopback.perform(MAKE, 1.0) == PrepareDone(MAKE)
    assert [call.method for call in line.calls] == ["POST", "PATCH", "PATCH"]
    loopback, line = make_loopback(403)
    assert loopback.perform(MAKE, 1.0) == PrepareFailed(MAKE, 403, "no")
    assert len(line.calls) == 1


def test_a_claim_that_is_gone_already_is_dropped() -> None:
    loopback, line = make_loopback(404)
    assert loopback.perform(DROP, 1.0) == PrepareDone(DROP)
    assert [call.method for call in line.calls] == ["PATCH", "DELETE"]
