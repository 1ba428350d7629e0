"""Scenarios side by side: whoever lost pods to another one is played again without it."""

from collections.abc import Iterable, Sequence, Set

import pytest
from tests.differential.batch import play_batch
from tests.differential.objects import Made, namespace_of
from tests.differential.play import Evicted, Key, Pods, play
from tests.differential.scenario import Arrival, Scenario


class QuietStage:
    """A cluster on which nobody is placed, but all are told so, after the first `slow_rounds` rounds.

    A minute goes by at every look at the clock.  Notes who played in each round.
    """

    scheduler = "quiet"

    def __init__(self, evictions: Sequence[Evicted] = (), *, slow_rounds: int = 0) -> None:
        self.rounds: list[list[str]] = []
        self._evictions = list(evictions)
        self._now_s = 0.0
        self._slow_rounds = slow_rounds
        self._pods: Pods = {}

    def make(self, batches: Iterable[Sequence[Made]]) -> None:
        told = (
            [] if len(self.rounds) < self._slow_rounds else [{"type": "PodScheduled", "message": "no room"}]
        )
        for made in (made for batch in batches for made in batch if made.body["kind"] == "Pod"):
            space, name = made.path.split("/")[-2], made.body["metadata"]["name"]
            self._pods[space, name] = {**made.body, "status": {"conditions": told}}

    def pods(self) -> Pods:
        return self._pods

    def seen(self) -> Set[Key]:
        return self._pods.keys()

    def wait(self, timeout_s: float) -> bool:
        return False

    def now_s(self) -> float:
        self._now_s += 60.0
        return self._now_s

    def evictions(self) -> list[Evicted]:
        return self._evictions

    def delete_everything(self, namespaces: Iterable[str]) -> None:
        self.rounds.append(list(namespaces))


class FleetingStage(QuietStage):
    """All that arrives is gone again before anybody looks; `is_seen`: but was noticed."""

    def __init__(self, *, is_seen: bool) -> None:
        super().__init__()
        self._is_seen = is_seen

    def pods(self) -> Pods:
        return {}

    def seen(self) -> Set[Key]:
        return self._pods.keys() if self._is_seen else set()


def scenario(seed: int, kind: str = "rush") -> Scenario:
    pod = {"pod": "x", "cpu": 1, "priorityClassName": "p1", "labels": {"app": "a"}}
    return Scenario(seed, kind, {"n0": {"cpu": 1}}, [], [], [Arrival("x", [], [pod])])


SCENARIOS = [scenario(seed) for seed in (1, 2, 3)]


def test_a_batch_in_which_nobody_takes_from_others_is_played_once() -> None:
    stages = [QuietStage(), QuietStage([Evicted("s1", "s1")])]
    assert [verdict.seed for verdict in play_batch(stages, SCENARIOS)] == [1, 2, 3]
    assert [stage.rounds for stage in stages] == [[["s1", "s2", "s3"]]] * 2


def test_the_robbed_is_played_again_without_the_robber_who_is_told_of() -> None:
    stages = [QuietStage([Evicted("s1", "s2")]), QuietStage()]
    verdicts = {verdict.seed: verdict for verdict in play_batch(stages, SCENARIOS)}
    assert stages[1].rounds == [["s1", "s2", "s3"], ["s1-1"]]
    assert [len(verdicts[seed].findings) for seed in (1, 2, 3)] == [0, 1, 0]


def test_two_that_rob_each_other_are_played_alone() -> None:
    stages = [QuietStage([Evicted("s1", "s2")]), QuietStage([Evicted("s2", "s1")])]
    verdicts = {verdict.seed: verdict for verdict in play_batch(stages, SCENARIOS)}
    assert stages[0].rounds == [["s1", "s2", "s3"], ["s1-1"], ["s2-1"]]
    assert all("evicted pods of 1 other" in verdicts[seed].findings[0].text for seed in (1, 2))


def test_who_had_not_come_to_rest_is_played_once_more() -> None:
    stages = [QuietStage(), QuietStage(slow_rounds=1)]
    assert [verdict.findings for verdict in play_batch(stages, SCENARIOS[:1])] == [[]]
    assert stages[0].rounds == [["s1"], ["s1-1"]]


def test_who_never_comes_to_rest_is_told_of() -> None:
    (verdict,) = play_batch([QuietStage(), QuietStage(slow_rounds=2)], [scenario(1, "one")])
    assert verdict.findings[0].text == "muster did not come to rest with x"


@pytest.mark.parametrize("is_seen", [True, False])
def test_who_is_gone_has_come_to_rest_if_it_was_ever_seen(is_seen: bool) -> None:
    (outcome,) = play(FleetingStage(is_seen=is_seen), SCENARIOS[:1])
    assert [step.settled for step in outcome.steps] == [is_seen]


def test_a_second_play_has_a_namespace_of_its_own() -> None:
    assert namespace_of(scenario(7)) == "s7"
    assert namespace_of(Scenario(7, "one", {}, [], [], [], take=2)) == "s7-2"
