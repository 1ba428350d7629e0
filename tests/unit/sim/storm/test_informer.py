"""A watch tells everything in order, through breaks and expiry, and knows a store that went back."""

import pytest
from tests.unit.sim.storm.stage import Stage

from muster.framework.ports import Event, PodGone, PodSeen
from muster.sim.storm.informer import Informer
from muster.sim.storm.weather import Weather


class Ear:
    """An informer of pods, and all that it tells."""

    def __init__(self, stage: Stage) -> None:
        self.heard: list[Event] = []
        self.informer = Informer(
            stage.world.watched["pods"], stage.world, stage.sky, tell=self.heard.append, later=stage.post
        )
        self._stage = stage
        self._told = 0
        self.informer.list()

    def names(self) -> list[str]:
        """Names seen and gone since the last question."""
        news, self._told = self.heard[self._told :], len(self.heard)
        return [
            event.pod.metadata.name if isinstance(event, PodSeen) else f"-{event.key.name}"
            for event in news
            if isinstance(event, PodSeen | PodGone)
        ]

    def follow(self, seconds: float) -> None:
        """Let time pass, step by step, and have the informer see what is written."""
        seen = self._stage.world.store.revision
        until_s = self._stage.simulation.now_s + seconds
        while (due_s := self._stage.simulation.next_due_s()) is not None and due_s <= until_s:
            self._stage.simulation.step()
            for change in self._stage.world.store.changes_after(seen):
                seen = change.revision
                if change.kind.name == "pods":
                    self.informer.see(change)
        self._stage.simulation.run_until(until_s)


@pytest.fixture
def stage() -> Stage:
    return Stage(replicas=False)


def test_what_is_there_is_listed_and_what_comes_is_watched(stage: Stage) -> None:
    stage.pod("a")
    ear = Ear(stage)
    ear.follow(1.0)
    assert ear.names() == ["a"]
    stage.post(lambda: stage.pod("b"), 0.0)
    ear.follow(1.0)
    assert ear.names() == ["b"]


def test_what_happened_while_a_watch_was_broken_is_told_afterwards(stage: Stage) -> None:
    stage.pod("a")
    ear = Ear(stage)
    ear.follow(1.0)
    ear.names()
    ear.informer.disconnect()
    stage.post(lambda: stage.pod("b"), 0.1)
    ear.follow(5.0)
    assert ear.names() == ["b"]


def test_what_vanished_before_a_new_list_is_told_as_gone(stage: Stage) -> None:
    stage.pod("a")
    ear = Ear(stage)
    ear.follow(1.0)
    ear.names()
    ear.informer.disconnect()
    stage.world.client.delete("pod", "a", gracePeriodSeconds=0)
    ear.informer.list()
    ear.follow(5.0)
    assert ear.names() == ["-a"]


def test_a_watch_that_expires_lists_again() -> None:
    stage = Stage(replicas=False, weather=Weather(watch_expired=1.0))
    ear = Ear(stage)
    ear.follow(1.0)
    stage.post(lambda: stage.pod("a"), 0.0)
    ear.follow(1.0)
    assert ear.names() == ["a"]
    assert stage.counts["watch expired (410)"] == 1


def test_events_of_one_kind_keep_their_order_however_late() -> None:
    stage = Stage(replicas=False, weather=Weather(event_late=0.5, event_late_s_max=3.0))
    ear = Ear(stage)
    ear.follow(1.0)
    names = [f"p{number}" for number in range(8)]
    for number, name in enumerate(names):
        stage.post(lambda name=name: stage.pod(name), 0.1 * number)  # type: ignore[misc]
    ear.follow(10.0)
    assert ear.names() == names


def test_a_store_that_went_back_is_noticed(stage: Stage) -> None:
    backup = stage.world.store.backup()
    stage.pod("a")
    ear = Ear(stage)
    ear.follow(1.0)
    stage.world.restore(backup)
    ear.informer.disconnect()
    ear.follow(5.0)
    assert ear.informer.went_back


def test_a_watch_that_has_expired_while_it_was_broken_tells_what_vanished() -> None:
    stage = Stage(replicas=False, weather=Weather(resume_expired=1.0, broken_long=1.0))
    stage.pod("a")
    ear = Ear(stage)
    ear.follow(1.0)
    ear.names()
    ear.informer.disconnect()
    stage.post(lambda: stage.world.client.delete("pod", "a", gracePeriodSeconds=0), 0.1)
    ear.follow(2.9)
    assert ear.names() == []
    ear.follow(20.0)
    assert ear.names() == ["-a"]
    assert stage.counts["watch expired while it was broken (410)"] == 1
