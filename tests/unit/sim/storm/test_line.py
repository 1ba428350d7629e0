"""What becomes of one request, by fault."""

import pytest
from tests.unit.sim.storm.stage import Stage

from muster.assembly.requests import JSON, Call
from muster.sim.client import pod_manifest, pod_spec
from muster.sim.storm.line import Answer, Line
from muster.sim.storm.weather import Weather

PODS = "/api/v1/namespaces/default/pods"
CREATION = Call("POST", PODS, JSON, pod_manifest("p", pod_spec({"cpu": "1"}, scheduler="muster")))


def send(weather: Weather, *, run_s: float = 20.0) -> tuple[Stage, list[Answer]]:
    """Send one creation under this weather."""
    stage = Stage(weather=weather, replicas=False)
    answers: list[Answer] = []
    Line(stage.world, stage.sky, "muster-a-1").send(CREATION, answers.append, 5.0)
    stage.run(run_s)
    return stage, answers


@pytest.mark.parametrize(
    ("weather", "code", "is_done"),
    [
        pytest.param(Weather(), 201, True, id="no fault"),
        pytest.param(Weather(unsent=1.0), 0, False, id="unsent"),
        pytest.param(Weather(reset_before=1.0), 0, False, id="reset, not done"),
        pytest.param(Weather(reset_after=1.0), 0, True, id="reset, done"),
        pytest.param(Weather(answer_lost=1.0), 0, True, id="answer lost"),
        pytest.param(Weather(request_late=1.0), 0, True, id="request late"),
        pytest.param(Weather(error_500=1.0), 500, False, id="500, not done"),
        pytest.param(Weather(error_500_done=1.0), 500, True, id="500, done"),
        pytest.param(Weather(throttled=1.0), 429, False, id="429"),
    ],
)
def test_a_request_meets_its_fault(weather: Weather, code: int, is_done: bool) -> None:
    stage, answers = send(weather)
    assert [answer.code for answer in answers] == [code]
    assert ("p" in stage.world.ledger.pods) is is_done


def test_a_doubled_request_arrives_twice() -> None:
    _, answers = send(Weather(doubled=1.0))
    assert [answer.code for answer in answers] in ([201], [409])


def test_nobody_waits_longer_than_the_time_out() -> None:
    _, answers = send(Weather(answer_lost=1.0), run_s=5.01)
    assert len(answers) == 1


def test_only_what_never_left_says_so() -> None:
    assert not send(Weather(unsent=1.0))[1][0].was_sent
    assert send(Weather(reset_before=1.0))[1][0].was_sent


@pytest.mark.parametrize("may_wait", [True, False])
def test_a_request_that_is_sent_again_too_early_is_noted_where_it_may_wait(may_wait: bool) -> None:
    stage = Stage(weather=Weather(throttled=1.0), replicas=False)
    line = Line(stage.world, stage.sky, "muster-a-1")
    line.send(CREATION, lambda answer: None, 5.0)
    stage.run(0.5)
    line.send(CREATION, lambda answer: None, 5.0, may_wait=may_wait)
    assert len(line.impatience) == may_wait


def test_nothing_is_sent_to_a_server_that_is_away() -> None:
    stage = Stage(replicas=False)
    stage.world.go_away(60.0)
    answers: list[Answer] = []
    Line(stage.world, stage.sky, "muster-a-1").send(CREATION, answers.append, 5.0)
    stage.run(1.0)
    assert answers == [Answer(0, {}, was_sent=False)]
