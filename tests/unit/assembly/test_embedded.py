"""The driver: what is told to whom, in which order, and how much at a time."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from tests.unit.controllers.small_cluster import START_S, SmallServer

from muster.api.meta import Condition
from muster.apiserver.exchange import Request
from muster.assembly.embedded import EmbeddedCluster, build_controllers
from muster.controllers.ports import NODES, PODS, Ask, Kind, Seen, View, Wake, Write
from muster.framework.groups import ObjectKey
from muster.framework.ports import (
    BindDone,
    BindFailed,
    BindPod,
    Effect,
    Event,
    GroupSeen,
    NodeSeen,
    ObjectReference,
    PatchPodStatus,
    PodGone,
    PodSeen,
    RecordEvent,
    Synced,
    TimeReached,
    WakeAt,
    WriteFailed,
)

POD_BODY: dict[str, Any] = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": []}, "status": {}}


class Recorder:
    """A scheduler that notes what it is told and answers by type of event."""

    def __init__(self) -> None:
        self.told: list[Event] = []
        self.answers: dict[type, Callable[[Any], list[Effect]]] = {}

    def handle(self, event: Event, now_s: float) -> list[Effect]:
        self.told.append(event)
        answer = self.answers.get(type(event))
        return [] if answer is None else answer(event)

    def kinds(self) -> list[str]:
        return [type(event).__name__ for event in self.told]


class Scripted:
    """A controller that notes changes and refusals, and answers as it is told."""

    name = "scripted"
    kinds: tuple[Kind, ...] | None = None

    def __init__(self) -> None:
        self.seen_names: list[str] = []
        self.due_at: list[float] = []
        self.refused: list[tuple[Write, int, str]] = []
        self.on_seen: Callable[[Seen, View], Iterable[Ask]] = lambda change, view: ()
        self.on_due: Callable[[View, float], Iterable[Ask]] = lambda view, now_s: ()

    def seen(self, change: Seen, view: View, now_s: float) -> Iterable[Ask]:
        self.seen_names.append(change.object["metadata"]["name"])
        return self.on_seen(change, view)

    def due(self, view: View, now_s: float) -> Iterable[Ask]:
        self.due_at.append(now_s)
        return self.on_due(view, now_s)

    def failed(self, write: Write, code: int, message: str, view: View, now_s: float) -> Iterable[Ask]:
        self.refused.append((write, code, message))
        return ()


class Fixture:
    def __init__(self, *schedulers: Recorder, controllers: Iterable[Any] = ()) -> None:
        self.server = SmallServer()
        self.cluster = EmbeddedCluster(self.server, controllers=controllers, schedulers=schedulers)
        self.now_s = START_S

    def post(self, path: str, body: dict[str, Any], name: str) -> dict[str, Any]:
        body = {**body, "metadata": {"name": name}}
        response = self.cluster.request(Request("POST", path, body=body), self.now_s)
        assert response.object is not None
        return response.object

    def pod(self, name: str) -> dict[str, Any]:
        return self.post("/api/v1/namespaces/default/pods", POD_BODY, name)

    def node(self, name: str) -> dict[str, Any]:
        return self.post("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node"}, name)

    def settle(self) -> float | None:
        for _ in range(1000):
            due_s = self.cluster.advance(self.now_s)
            if due_s is None or due_s > self.now_s:
                return due_s
        raise AssertionError("does not come to rest")


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


# ── schedulers ──


def test_a_scheduler_is_shown_what_exists_then_told_so_then_what_happens(recorder: Recorder) -> None:
    fixture = Fixture()
    group = {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup"}
    policy = {"spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}}
    fixture.pod("p")
    fixture.post("/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups", {**group, **policy}, "g")
    fixture.node("n1")
    fixture.cluster.attach(recorder)
    fixture.pod("q")
    fixture.settle()
    assert recorder.kinds() == ["NodeSeen", "GroupSeen", "PodSeen", "Synced", "PodSeen"]
    assert isinstance(recorder.told[1], GroupSeen)
    assert recorder.told[1].group.min_count == 2


def test_a_pod_that_goes_is_told_as_gone(recorder: Recorder) -> None:
    fixture = Fixture(recorder)
    uid = fixture.pod("p")["metadata"]["uid"]
    fixture.cluster.request(Request("DELETE", "/api/v1/namespaces/default/pods/p", body={}), START_S)
    fixture.settle()
    assert recorder.told[-1] == PodGone(ObjectKey("default", "p"), uid)


def test_two_schedulers_are_both_told(recorder: Recorder) -> None:
    other = Recorder()
    fixture = Fixture(recorder, other)
    fixture.node("n1")
    fixture.settle()
    assert recorder.kinds() == other.kinds() == ["Synced", "NodeSeen"]


def test_a_detached_scheduler_hears_nothing_and_its_effects_do_not_happen(recorder: Recorder) -> None:
    fixture = Fixture(recorder)
    fixture.pod("p")
    recorder.answers[PodSeen] = lambda event: [bind(event)]
    while not any(isinstance(event, PodSeen) for event in recorder.told):
        fixture.cluster.advance(START_S, budget_changes=1)
    fixture.cluster.detach(recorder)
    before = len(recorder.told)
    fixture.pod("q")
    fixture.settle()
    assert len(recorder.told) == before
    assert not any("binding" in request.path for request in fixture.server.requests)


def bind(event: PodSeen, node_name: str = "n1") -> BindPod:
    metadata = event.pod.metadata
    return BindPod(ObjectKey(metadata.namespace, metadata.name), metadata.uid, node_name, "muster")


def test_the_outcome_of_a_binding_comes_back(recorder: Recorder) -> None:
    fixture = Fixture(recorder)
    recorder.answers[PodSeen] = lambda event: [] if event.pod.spec.node_name else [bind(event)]
    fixture.server.refusals.append(("POST", "/pods/q/binding", 409, "already there"))
    fixture.pod("q")
    fixture.settle()
    (failed,) = [event for event in recorder.told if isinstance(event, BindFailed)]
    assert (failed.key.name, failed.code, failed.reason, failed.message) == (
        "q",
        409,
        "Conflict",
        "already there",
    )


def test_a_binding_refused_because_it_is_so_already_is_done(recorder: Recorder) -> None:
    fixture = Fixture(recorder)
    spec = {"containers": [], "nodeName": "n1"}
    recorder.answers[PodSeen] = lambda event: [bind(event)]
    fixture.server.refusals.append(("POST", "/binding", 409, "already assigned"))
    fixture.post("/api/v1/namespaces/default/pods", {**POD_BODY, "spec": spec}, "p")
    fixture.settle()
    assert [type(event) for event in recorder.told].count(BindDone) == 1
    assert not any(isinstance(event, BindFailed) for event in recorder.told)


def test_a_status_write_given_up_is_told(recorder: Recorder) -> None:
    fixture = Fixture(recorder)
    fixture.server.refusals.append(("PATCH", "/status", 500, "broken"))
    effect = PatchPodStatus(ObjectKey("default", "p"), "u", Condition("PodScheduled", "False"))
    recorder.answers[Synced] = lambda event: [effect]
    fixture.settle()
    assert recorder.told[-1] == WriteFailed(effect, 500, "broken")


def test_an_event_that_is_refused_is_dropped_and_counted(recorder: Recorder) -> None:
    fixture = Fixture(recorder)
    fixture.server.refusals.append(("POST", "/events", 500, "broken"))
    about = ObjectReference("v1", "Pod", ObjectKey("default", "p"), "u")
    recorder.answers[Synced] = lambda event: [RecordEvent(about, "Normal", "R", "A", "n", "muster")]
    fixture.settle()
    assert recorder.kinds() == ["Synced"]
    assert fixture.cluster.dropped_events == 1


def test_a_scheduler_is_woken_when_it_asked_and_a_later_wish_replaces_an_earlier(
    recorder: Recorder,
) -> None:
    fixture = Fixture(recorder)
    recorder.answers[Synced] = lambda event: [WakeAt(START_S + 5), WakeAt(START_S + 9)]
    assert fixture.settle() == START_S + 9
    fixture.now_s = START_S + 8
    fixture.settle()
    assert TimeReached() not in recorder.told
    fixture.now_s = START_S + 9
    assert fixture.settle() is None
    assert recorder.told[-1] == TimeReached()


def test_events_come_before_timers(recorder: Recorder) -> None:
    fixture = Fixture(recorder)
    recorder.answers[Synced] = lambda event: [WakeAt(START_S)]
    for number in range(5):
        fixture.pod(f"p{number}")
    fixture.settle()
    assert recorder.kinds() == ["Synced", *["PodSeen"] * 5, "TimeReached"]


def test_an_object_that_cannot_be_read_is_noted_and_the_rest_goes_on(recorder: Recorder) -> None:
    fixture = Fixture(recorder)
    broken = {**POD_BODY, "spec": {"containers": "none"}}
    fixture.post("/api/v1/namespaces/default/pods", broken, "p")
    fixture.pod("q")
    fixture.settle()
    assert list(fixture.cluster.unreadable) == ["pods default/p"]
    assert [event.pod.metadata.name for event in recorder.told if isinstance(event, PodSeen)] == ["q"]


# ── controllers ──


def test_controllers_are_told_what_was_there_before_them() -> None:
    server = SmallServer()
    EmbeddedCluster(server).request(
        Request("POST", "/api/v1/nodes", body={"metadata": {"name": "n1"}}), START_S
    )
    controller = Scripted()
    EmbeddedCluster(server, controllers=[controller]).advance(START_S)
    assert controller.seen_names == ["n1"]


def test_a_write_shows_in_the_view_before_the_next_is_asked_for() -> None:
    controller = Scripted()
    counts: list[int] = []

    def make_two(change: Seen, view: View) -> Iterator[Ask]:
        if change.kind == NODES:
            for name in ("a", "b"):
                yield Write("create", PODS, "default", "", {**POD_BODY, "metadata": {"name": name}})
                counts.append(len(list(view.list(PODS))))

    controller.on_seen = make_two
    fixture = Fixture(controllers=[controller])
    fixture.node("n1")
    fixture.settle()
    assert counts == [1, 2]
    assert controller.seen_names == ["n1", "a", "b"]


def test_a_refused_write_is_told_to_who_asked() -> None:
    controller, other = Scripted(), Scripted()
    write = Write("delete", PODS, "default", "ghost", about=("x",))
    controller.on_seen = lambda change, view: [write]
    fixture = Fixture(controllers=[other, controller])
    fixture.node("n1")
    fixture.settle()
    assert controller.refused == [(write, 404, "ghost not found")]
    assert other.refused == []


def test_a_controller_is_told_of_its_kinds_only() -> None:
    controller, other = Scripted(), Scripted()
    controller.kinds = (PODS,)
    fixture = Fixture(controllers=[controller, other])
    fixture.node("n1")
    fixture.pod("p")
    fixture.settle()
    assert controller.seen_names == ["p"]
    assert other.seen_names == ["n1", "p"]


def test_the_earliest_wish_of_a_controller_stands() -> None:
    controller = Scripted()
    controller.on_seen = lambda change, view: [Wake(START_S + 5), Wake(START_S + 2), Wake(START_S + 9)]
    fixture = Fixture(controllers=[controller])
    fixture.node("n1")
    assert fixture.settle() == START_S + 2
    fixture.now_s = START_S + 2
    assert fixture.settle() is None
    assert controller.due_at == [START_S + 2]


# ── how much at a time ──


def test_a_call_does_a_bounded_piece_and_says_that_more_is_left(recorder: Recorder) -> None:
    fixture = Fixture(recorder)
    for number in range(100):
        fixture.pod(f"p{number}")
    assert fixture.cluster.advance(START_S, budget_changes=10) == START_S
    assert len(recorder.told) == 10
    fixture.settle()
    assert len(recorder.told) == 101


def test_a_thousand_effects_are_performed_a_piece_at_a_time(recorder: Recorder) -> None:
    fixture = Fixture(recorder)
    effect = PatchPodStatus(ObjectKey("default", "p"), "u", Condition("PodScheduled", "False"))
    recorder.answers[Synced] = lambda event: [effect] * 1000
    fixture.cluster.advance(START_S, budget_changes=50)
    assert 0 < len(fixture.server.requests) <= 50


def test_with_nothing_to_do_nothing_is_ever_due() -> None:
    assert Fixture().cluster.advance(START_S) is None


def test_reading_makes_no_work(recorder: Recorder) -> None:
    fixture = Fixture(recorder)
    fixture.node("n1")
    fixture.settle()
    told = len(recorder.told)
    fixture.cluster.advance(START_S + 100)
    assert len(recorder.told) == told
    assert isinstance(recorder.told[-1], NodeSeen)


def test_equal_requests_make_equal_histories() -> None:
    def history() -> list[tuple[str, str]]:
        recorder = Recorder()
        recorder.answers[PodSeen] = lambda event: [bind(event)]
        fixture = Fixture(recorder, controllers=build_controllers(kubelets=True))
        fixture.node("n1")
        for number in range(5):
            fixture.pod(f"p{number}")
        fixture.settle()
        return [(request.method, request.path) for request in fixture.server.requests]

    assert history() == history()


def test_without_kubelets_nobody_watches_over_nodes() -> None:
    with_them = {controller.name for controller in build_controllers(kubelets=True)}
    without = {controller.name for controller in build_controllers(kubelets=False)}
    assert with_them - without == {"kubelet", "node-controller", "taint-eviction-controller"}
