"""One seed of the storm: two replicas, a rival, every fault; then calm, and everybody must be placed.

Comes in: a seed.  Goes out: a `Report`; with a violation it holds one line that replays the run up to the
step that broke the promise.
"""

from collections import Counter
from collections.abc import Iterable

import numpy as np
from msgspec.structs import replace

from muster.sim.loop import Checker, Simulation, Violation
from muster.sim.report import Meter, Report
from muster.sim.run import START_S, replay_line
from muster.sim.storm.bounds import NotHeldIdle, NoticesBackup, SaysWhatIs, TreesNotHeldIdle
from muster.sim.storm.claimed import DevicesOnce, GivenBack, NotClaimedIdle
from muster.sim.storm.forest import Forest, TrueAfterItsTree
from muster.sim.storm.outages import Outages
from muster.sim.storm.promises import (
    BeginsWithAll,
    BindsAsDecided,
    SoundDecisions,
    Starts,
    TrueIsTrue,
)
from muster.sim.storm.settled import ConditionsAgree, KnowsWhatIs, WholeOrEmpty
from muster.sim.storm.supplies import Supplies
from muster.sim.storm.transitions import Transitions
from muster.sim.storm.trees import SEEDS_PER_TREES, Trees
from muster.sim.storm.users import Users
from muster.sim.storm.weather import Sky, Weather
from muster.sim.storm.world import REPLICAS, StormWorld

SCENARIO = "storm"
STORM_S = 1200.0
REST_S = 90.0  # at the end of it nobody makes anything any more
CALM_S = 660.0  # longer than a bind time-out and the backoffs after it


class Sampled:
    """A checker that takes a measure at most every few seconds of virtual time."""

    def __init__(self, checker: Checker, *, every_s: float) -> None:
        self.name = checker.name
        self._checker = checker
        self._every_s = every_s
        self._last_s = -np.inf

    def check(self, now_s: float) -> Iterable[str]:
        """Ask it if its time has come."""
        if now_s - self._last_s < self._every_s:
            return ()
        self._last_s = now_s
        return self._checker.check(now_s)


class Storm:
    """One run, ready to be played."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.counts: Counter[str] = Counter()
        sequences = np.random.SeedSequence([seed, 0x5707]).spawn(8)
        streams = [np.random.Generator(np.random.PCG64(sequence)) for sequence in sequences]
        self.sky = Sky(Weather.draw(streams[0]), streams[1])
        self.world = StormWorld(
            start_s=START_S,
            server_generator=streams[2],
            generator=streams[3],
            sky=self.sky,
            count=self._count,
        )
        self.supplies = Supplies(self.world, streams[6], storm_s=STORM_S)
        self.users = Users(self.world, streams[4], self.supplies, storm_s=STORM_S)
        self.outages = Outages(self.world, streams[5], storm_s=STORM_S)
        self.trees = Trees(self.world, streams[7], self.users, storm_s=STORM_S)
        self.starts = Starts(self.world.ledger, self.world.is_by_outdated)
        self.forest = Forest(self.world.ledger)
        self.meter = Meter(self.world.ledger.view)
        true_is_true = TrueIsTrue(self.starts)
        true_after_tree = TrueAfterItsTree(self.world.ledger, self.starts, self.forest)
        bounds = [
            NotHeldIdle(self.world, self.starts),
            NotClaimedIdle(self.world, self.starts),
            SaysWhatIs(self.world, self.forest),
            TreesNotHeldIdle(self.world, self.forest),
        ]
        transitions = Transitions(self.world.ledger, self.starts, self.forest, self._count)
        said = (true_is_true, true_after_tree)
        self.world.ledger.readers += [self.starts, self.forest, *said, *bounds, transitions]
        self.simulation = Simulation(
            self.world,
            start_s=START_S,
            checkers=[
                BindsAsDecided(self.world),
                SoundDecisions(self.world),
                BeginsWithAll(self.world),
                DevicesOnce(self.world),
                *said,
                *bounds,
                Sampled(NoticesBackup(self.world), every_s=1.0),
                Sampled(KnowsWhatIs(self.world), every_s=10.0),
                Sampled(self.meter, every_s=10.0),
            ],
        )
        self.world.simulation = self.simulation

    def play(self, until_event: int | None = None) -> Report:
        """Storm, then calm, and what came of it."""
        violation: Violation | None = None
        try:
            self._play(until_event)
        except Violation as found:
            violation = found
        report = self.meter.report(
            seed=self.seed,
            scenario=SCENARIO,
            steps=self.simulation.steps,
            counts=dict(sorted(self.counts.items())),
        )
        if violation is None:
            return report
        return replace(
            report,
            violation=f"{violation} (at step {violation.step})",
            replay=replay_line(self.seed, SCENARIO, violation.step),
        )

    def _play(self, until_event: int | None) -> None:
        simulation = self.simulation
        self.supplies.start()
        self.users.start()
        if self.seed % SEEDS_PER_TREES == 0:
            self.trees.start()
        self.outages.start()
        for name in REPLICAS:
            self.world.start(name)
        simulation.run_until(START_S + STORM_S, step_max=until_event)
        self.sky.clear()
        self.world.post_when_up(self._calm, 0.0)
        simulation.post(self.users.rest, delay_s=CALM_S - REST_S)
        simulation.run_until(START_S + STORM_S + CALM_S, step_max=until_event)
        if until_event is None or simulation.steps < until_event:
            whole_or_empty = WholeOrEmpty(self.world, self.starts, self.forest)
            conditions_agree = ConditionsAgree(self.world, self.forest)
            simulation.judge([whole_or_empty, conditions_agree, GivenBack(self.world)])

    def _calm(self) -> None:
        self.outages.calm()
        self.users.calm()
        self.supplies.calm()
        self.trees.calm()

    def _count(self, name: str) -> None:
        self.counts[name] += 1


def run_storm(seed: int, *, until_event: int | None = None) -> Report:
    """Play one seed; `until_event` stops after that many steps."""
    return Storm(seed).play(until_event)
