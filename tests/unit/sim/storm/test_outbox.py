"""What is tried again, what is reported, and that nothing leaves a process that may not write."""

import pytest
from tests.unit.sim.storm.stage import Stage

from muster.api.devices import Allocation
from muster.api.meta import Condition
from muster.assembly.leadership import REQUEST_TIMEOUT_S
from muster.framework.groups import ObjectKey
from muster.framework.ports import (
    BindDone,
    BindFailed,
    BindPod,
    DropClaim,
    Event,
    EvictFailed,
    EvictPod,
    MakeClaim,
    PrepareDone,
    PrepareFailed,
)
from muster.sim.storm.line import Line
from muster.sim.storm.outbox import Outbox
from muster.sim.storm.weather import CALM, Weather
from muster.sim.view import uid_of


class Desk:
    """An outbox over a line of its own."""

    def __init__(self, weather: Weather = CALM, *, writes_max: int = 1000) -> None:
        self.stage = Stage(replicas=False)
        self.stage.pod("p")
        self.stage.run(1.0)
        self.stage.sky.weather = weather
        self.told: list[Event] = []
        self.lost = 0
        self.writes_left = writes_max
        self.line = Line(self.stage.world, self.stage.sky, "muster-a-1")
        self.outbox = Outbox(
            self.line,
            self.stage.sky,
            tell=self.told.append,
            later=self.stage.post,
            now_s=self.stage.world.now_s,
            may_write=self._may_write,
            lost=self._lose,
        )

    def _may_write(self) -> bool:
        self.writes_left -= 1
        return self.writes_left >= 0

    def _lose(self) -> None:
        self.lost += 1

    def bind(self, *, uid: str = "", run_s: float = 60.0) -> list[Event]:
        """Bind the pod, and give what came of it."""
        uid = uid or uid_of(self.stage.object("p"))
        self.outbox.perform(BindPod(ObjectKey("default", "p"), uid, "n0", "muster"))
        self.stage.run(run_s)
        return self.told


def test_a_binding_is_done() -> None:
    desk = Desk()
    assert [type(event) for event in desk.bind()] == [BindDone]
    assert desk.outbox.is_idle


def test_a_lost_answer_is_unknown_and_not_asked_for_again() -> None:
    told = Desk(Weather(answer_lost=1.0)).bind()
    assert [event.code for event in told if isinstance(event, BindFailed)] == [0]


@pytest.mark.parametrize(("weather", "code"), [(Weather(error_500=1.0), 500), (Weather(unsent=1.0), 503)])
def test_what_may_pass_is_tried_five_times(weather: Weather, code: int) -> None:
    desk = Desk(weather)
    told = desk.bind()
    assert [event.code for event in told if isinstance(event, BindFailed)] == [code]
    assert sum(desk.stage.counts.values()) == 5


def test_an_answer_of_500_may_hide_a_success() -> None:
    desk = Desk(Weather(error_500_done=1.0))
    desk.stage.post(lambda: setattr(desk.stage.sky, "weather", Weather()), 0.045)
    assert [type(event) for event in desk.bind()] == [BindDone]


def test_another_pod_of_the_name_is_not_bound() -> None:
    desk = Desk()
    told = desk.bind(uid="another")
    assert [event.code for event in told if isinstance(event, BindFailed)] == [409]
    assert desk.stage.bound() == []


def test_nothing_leaves_a_process_that_may_not_write() -> None:
    desk = Desk(writes_max=0)
    assert desk.bind() == []
    assert (desk.lost, desk.stage.bound()) == (1, [])


@pytest.mark.parametrize("weather", [Weather(throttled=1.0), Weather(error_500=1.0)])
def test_the_lease_is_looked_at_before_another_try(weather: Weather) -> None:
    desk = Desk(weather, writes_max=2)
    assert desk.bind() == []
    assert (desk.lost, sum(desk.stage.counts.values())) == (1, 2)


def test_the_lease_is_looked_at_before_the_second_step() -> None:
    desk = Desk(writes_max=1)
    desk.outbox.perform(DROP)
    desk.stage.run(60.0)
    assert (desk.told, desk.lost) == ([], 1)


def test_nothing_is_over_before_a_write_that_was_given_up_cannot_land_any_more() -> None:
    desk = Desk(Weather(answer_lost=1.0))
    desk.bind(run_s=REQUEST_TIMEOUT_S + 0.1)
    assert desk.outbox.is_idle
    assert not desk.outbox.is_over
    desk.stage.run(REQUEST_TIMEOUT_S)
    assert desk.outbox.is_over


def test_the_server_is_left_alone_for_as_long_as_it_asks() -> None:
    desk = Desk(Weather(bind_throttled=1.0))
    desk.bind(run_s=2.9)
    assert desk.stage.counts["binding refused with 429"] == 1
    desk.stage.run(0.5)
    assert desk.stage.counts["binding refused with 429"] == 2


def test_a_deletion_that_is_given_up_leaves_the_server_alone_for_as_long_as_it_asks() -> None:
    desk = Desk(Weather(throttled=1.0))
    evict = EvictPod(ObjectKey("default", "p"), "u", Condition("DisruptionTarget", "True"))
    desk.outbox.perform(evict)
    desk.outbox.perform(evict)
    desk.stage.run(200.0)
    assert [type(event) for event in desk.told] == [EvictFailed, EvictFailed]
    assert desk.line.impatience == []


DROP = DropClaim(ObjectKey("default", "p"), ObjectKey("default", "gone"), "u", "uid-c")


def test_a_claim_that_is_gone_is_dropped_though_nothing_of_it_is_there() -> None:
    desk = Desk()
    desk.outbox.perform(DROP)
    desk.stage.run(60.0)
    assert desk.told == [PrepareDone(DROP)]
    assert desk.outbox.is_idle


def test_a_claim_is_made_no_further_than_its_first_refusal() -> None:
    desk = Desk(Weather(error_500=1.0))
    make = MakeClaim(ObjectKey("default", "p"), ObjectKey("default", "c"), "u", (), (), Allocation())
    desk.outbox.perform(make)
    desk.stage.run(60.0)
    assert [event.code for event in desk.told if isinstance(event, PrepareFailed)] == [500]
    assert sum(desk.stage.counts.values()) == 5
