"""The link loses, delays, doubles and refuses, each only as told, and keeps order within a kind."""

import numpy as np

from muster.api.core import Node, Pod
from muster.api.meta import ObjectMeta
from muster.framework.groups import Group, ObjectKey
from muster.framework.ports import (
    BindDone,
    BindFailed,
    BindPod,
    Effect,
    Event,
    GroupSeen,
    NodeSeen,
    PatchPodStatus,
    PodSeen,
    Synced,
    TimeReached,
    WakeAt,
    WriteFailed,
)
from muster.sim.faults import NO_FAULTS, Faults, FaultyLink

KEY = ObjectKey("default", "p")
BIND = BindPod(KEY, "uid-p", "n1", "muster")


class Script:
    """A scheduler that answers each event with what it was told to, and remembers the events."""

    def __init__(self, *answers: list[Effect]) -> None:
        self.answers = list(answers)
        self.seen: list[tuple[float, Event]] = []

    def handle(self, event: Event, now_s: float) -> list[Effect]:
        self.seen.append((now_s, event))
        return self.answers.pop(0) if self.answers else []

    def names(self) -> list[str]:
        return [type(event).__name__ for _, event in self.seen]


def make_link(scheduler: Script, faults: Faults = NO_FAULTS) -> FaultyLink:
    return FaultyLink(scheduler, lambda: faults, np.random.default_rng(1))


def pod(name: str) -> PodSeen:
    return PodSeen(Pod(ObjectMeta(name=name, namespace="default", uid=f"uid-{name}")))


def run_to(link: FaultyLink, effects: list[Effect], until_s: float) -> list[Effect]:
    """Wake the link whenever it asks, up to a time; every effect but the wakes."""
    given: list[Effect] = [effect for effect in effects if not isinstance(effect, WakeAt)]
    wakes = [effect.at_s for effect in effects if isinstance(effect, WakeAt)]
    while wakes and wakes[-1] <= until_s:
        effects = link.handle(TimeReached(), wakes[-1])
        given += [effect for effect in effects if not isinstance(effect, WakeAt)]
        wakes = [effect.at_s for effect in effects if isinstance(effect, WakeAt)]
    return given


def test_without_faults_everything_passes_at_once() -> None:
    scheduler = Script([], [BIND])
    link = make_link(scheduler)
    assert link.handle(Synced(), 0.0) == []
    assert link.handle(pod("p"), 1.0) == [BIND]
    assert scheduler.seen == [(0.0, Synced()), (1.0, pod("p"))]


def test_a_wake_the_scheduler_asked_for_reaches_it_at_that_time() -> None:
    scheduler = Script([WakeAt(7.0)])
    link = make_link(scheduler)
    effects = link.handle(Synced(), 0.0)
    assert effects == [WakeAt(7.0)]
    run_to(link, effects, 10.0)
    assert scheduler.seen[-1] == (7.0, TimeReached())


def test_a_later_wake_replaces_the_one_before() -> None:
    scheduler = Script([WakeAt(7.0)], [WakeAt(3.0)])
    link = make_link(scheduler)
    link.handle(Synced(), 0.0)
    effects = link.handle(pod("p"), 1.0)
    run_to(link, effects, 10.0)
    assert [now_s for now_s, event in scheduler.seen if isinstance(event, TimeReached)] == [3.0]


def test_a_refused_bind_never_reaches_the_api_and_is_answered() -> None:
    scheduler = Script([], [BIND])
    link = make_link(scheduler, Faults(bind_refused=1.0))
    link.handle(Synced(), 0.0)
    given = run_to(link, link.handle(pod("p"), 1.0), 2.0)
    assert given == []
    failed = scheduler.seen[-1][1]
    assert isinstance(failed, BindFailed)
    assert (failed.key, failed.uid, failed.code) == (KEY, "uid-p", 500)


def test_an_unanswered_bind_reaches_the_api_and_nobody_knows() -> None:
    scheduler = Script([], [BIND])
    link = make_link(scheduler, Faults(bind_unanswered=1.0))
    link.handle(Synced(), 0.0)
    assert run_to(link, link.handle(pod("p"), 1.0), 1.0) == [BIND]
    run_to(link, link.handle(BindDone(KEY, "uid-p", "n1"), 1.5), 2.0)
    failed = scheduler.seen[-1][1]
    assert isinstance(failed, BindFailed)
    assert failed.code == 0


def test_a_refused_status_write_never_reaches_the_api_and_is_answered() -> None:
    patch = PatchPodStatus(KEY, "uid-p")
    scheduler = Script([], [patch])
    link = make_link(scheduler, Faults(write_refused=1.0))
    link.handle(Synced(), 0.0)
    assert run_to(link, link.handle(pod("p"), 1.0), 2.0) == []
    assert scheduler.seen[-1][1] == WriteFailed(patch, 409, "the object has been modified")


def test_late_events_keep_their_order_within_a_kind_but_not_between_kinds() -> None:
    scheduler = Script()
    link = make_link(scheduler, Faults(event_late=1.0, event_late_s_max=5.0))
    link.handle(Synced(), 0.0)
    for number in range(8):
        link.handle(pod(f"p{number}"), 0.1)
        group = Group(ObjectKey("default", f"g{number}"), f"uid-g{number}")
        effects = link.handle(GroupSeen(group), 0.1)
    run_to(link, effects, 20.0)
    pods = [event.pod.metadata.name for _, event in scheduler.seen if isinstance(event, PodSeen)]
    groups = [event.group.key.name for _, event in scheduler.seen if isinstance(event, GroupSeen)]
    assert pods == [f"p{number}" for number in range(8)]
    assert groups == [f"g{number}" for number in range(8)]
    assert scheduler.names()[1:] != ["PodSeen", "GroupSeen"] * 8


def test_a_doubled_event_comes_twice() -> None:
    scheduler = Script()
    link = make_link(scheduler, Faults(event_doubled=1.0))
    link.handle(Synced(), 0.0)
    link.handle(pod("p"), 1.0)
    assert scheduler.names() == ["Synced", "PodSeen", "PodSeen"]


def test_the_first_list_is_never_late() -> None:
    scheduler = Script()
    link = make_link(scheduler, Faults(event_late=1.0, event_late_s_max=5.0, event_doubled=1.0))
    link.handle(NodeSeen(Node(ObjectMeta(name="n1"))), 0.0)
    link.handle(pod("p"), 0.0)
    link.handle(Synced(), 0.0)
    assert scheduler.names() == ["NodeSeen", "PodSeen", "Synced"]


def test_equal_seeds_give_equal_delays() -> None:
    runs = []
    for _ in range(2):
        scheduler = Script()
        link = make_link(scheduler, Faults(event_late=0.5, event_late_s_max=5.0))
        link.handle(Synced(), 0.0)
        for number in range(20):
            effects = link.handle(pod(f"p{number}"), float(number))
        run_to(link, effects, 40.0)
        runs.append(scheduler.seen)
    assert runs[0] == runs[1]
