"""What can be played, by the name of the scenario: how a seed is run, and what many seeds must have met."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from muster.sim.coverage import REQUIRED as CHURN_REQUIRED
from muster.sim.report import Report
from muster.sim.run import run_seed
from muster.sim.storm.run import run_storm
from muster.sim.storm.transitions import REQUIRED as STORM_REQUIRED


class Play(NamedTuple):
    """One scenario.

    `run` takes a seed and the step to stop after (None: play it to its end).  Over `seeds_min` seeds or more
    everything in `required` must have happened; fewer need not meet every kind.
    """

    run: Callable[[int, int | None], Report]
    required: tuple[str, ...]
    seeds_min: int


def _churn(seed: int, until_event: int | None) -> Report:
    return run_seed(seed, "churn", until_event=until_event)


def _storm(seed: int, until_event: int | None) -> Report:
    return run_storm(seed, until_event=until_event)


PLAYS: Mapping[str, Play] = {
    "churn": Play(_churn, CHURN_REQUIRED, 100),
    "storm": Play(_storm, STORM_REQUIRED, 60),
}
