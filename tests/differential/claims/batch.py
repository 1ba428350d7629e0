"""Batches of claims scenarios: on both clusters, or Muster alone on virtual time.

Comes from `__main__.py`; next: `play.py` and `judge.py`.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from msgspec import structs
from tests.differential.batch import Verdict
from tests.differential.claims.draw import draw_scenario
from tests.differential.claims.draw_parts import draw_parts
from tests.differential.claims.judge import Claimed, judge, judge_alone
from tests.differential.claims.objects import namespace_of
from tests.differential.claims.play import LEFT_OVER, play_claims
from tests.differential.claims.scenario import ClaimScenario
from tests.differential.stage import SimulatedStage, WatchedStage


def play_batch(stages: Sequence[WatchedStage], scenarios: Sequence[ClaimScenario]) -> Iterator[Verdict]:
    """A verdict for each, in any order; whoever had not come to rest is played once more."""
    with ThreadPoolExecutor(len(stages)) as pool:
        theirs, ours = pool.map(lambda stage: _play_and_clear(stage, scenarios), stages)
    late = []
    for scenario, their, our in zip(scenarios, theirs, ours, strict=True):
        if scenario.take == 0 and not all(note.settled for note in (*their.notes, *our.notes)):
            late.append(structs.replace(scenario, take=1))
        else:
            yield Verdict(scenario.seed, judge(scenario, their, our), len(our.notes[-1].state.places))
    if late:
        yield from play_batch(stages, late)


DRAWS = {"all": draw_scenario, "parts": draw_parts}  # by the word of --claims


def play_alone(seed: int, kind: str = "all") -> Verdict:
    """Muster against the slow checker, on virtual time; `kind`: a word of `DRAWS`."""
    scenario = DRAWS[kind](seed)
    (played,) = play_claims(SimulatedStage(), [scenario])
    return Verdict(seed, judge_alone(scenario, played), len(played.notes[-1].state.places))


def _play_and_clear(stage: WatchedStage, scenarios: Sequence[ClaimScenario]) -> list[Claimed]:
    found = play_claims(stage, scenarios)
    stage.delete_everything([namespace_of(scenario) for scenario in scenarios], LEFT_OVER)
    return found
