"""Play a batch of scenarios on both clusters and judge each.

Forty share a cluster, on nodes of their own.  Stock evicts across that border (rule `evicts-for-left-out`):
whoever lost pods to another scenario is played again without it, and the other one is told of it.  So is,
once, whoever had not come to rest in time: the machine may have been busy.  Comes from `__main__.py`; next:
`play.py` and `judge.py`.
"""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from msgspec import Struct, structs
from tests.differential.judge import Finding, judge, judge_strangers
from tests.differential.objects import namespace_of
from tests.differential.play import Outcome, play
from tests.differential.scenario import Scenario
from tests.differential.stage import WatchedStage


class Verdict(Struct, frozen=True):
    """One seed, judged; `placed` says how many of its pods Muster bound."""

    seed: int
    findings: list[Finding]
    placed: int = 0


def play_batch(
    stages: Sequence[WatchedStage],
    scenarios: Sequence[Scenario],
    noted: Mapping[int, Sequence[Finding]] | None = None,
) -> Iterator[Verdict]:
    """A verdict for each, in any order; `noted` is what is known of a seed from an earlier play."""
    with ThreadPoolExecutor(len(stages)) as pool:
        theirs, ours = pool.map(lambda stage: _play_and_clear(stage, scenarios), stages)
    known = {scenario.seed: list((noted or {}).get(scenario.seed, ())) for scenario in scenarios}
    for scenario in scenarios:
        known[scenario.seed] += judge_strangers(scenario, theirs, ours)
    disturbed = []
    for scenario, their, our in zip(scenarios, theirs, ours, strict=True):
        is_late = scenario.take == 0 and not all(step.settled for step in our.steps)
        if their.disturbers or our.disturbers or is_late:
            disturbed.append(structs.replace(scenario, take=scenario.take + 1))
        else:
            findings = known[scenario.seed] + judge(scenario, their, our)
            yield Verdict(scenario.seed, findings, _count_placed(scenario, our))
    disturbers = frozenset().union(*(outcome.disturbers for outcome in (*theirs, *ours)))
    quiet = [scenario for scenario in disturbed if scenario.seed not in disturbers]
    alone = [[scenario] for scenario in disturbed if scenario.seed in disturbers]
    for part in [quiet, *alone]:
        if part:
            yield from play_batch(stages, part, known)


def _play_and_clear(stage: WatchedStage, scenarios: Sequence[Scenario]) -> list[Outcome]:
    outcomes = play(stage, scenarios)
    stage.delete_everything([namespace_of(scenario) for scenario in scenarios])
    return outcomes


def _count_placed(scenario: Scenario, outcome: Outcome) -> int:
    arrived = {short["pod"] for arrival in scenario.arrivals for short in arrival.pods}
    return len(arrived & set(outcome.steps[-1].places))
