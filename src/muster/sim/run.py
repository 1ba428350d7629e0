"""One seed, one run: builds the world, plays a scenario, judges every step, and says how to replay a fault.

Comes in: a seed and the name of a scenario.  Goes out: a `Report`; with a violation it holds one line that
replays the run up to the step that broke the promise.
"""

from collections import Counter

import numpy as np
from msgspec.structs import replace

from muster.sim.checkers import (
    NodeRoom,
    NothingForgotten,
    NoTornGangs,
    RoomIsUsed,
    SaysWhy,
    ScheduledIsSaid,
    TrueStaysTrue,
)
from muster.sim.coverage import Coverage
from muster.sim.devices import DevicesApart
from muster.sim.evictions import SoundEvictions
from muster.sim.faults import NO_FAULTS, Faults
from muster.sim.loop import Checker, Simulation, Violation
from muster.sim.report import Meter, Report
from muster.sim.scenarios import SCENARIOS
from muster.sim.told import GangWhole, RoomAsTold, Told
from muster.sim.world import ProductWorld

START_S = 1_767_225_600.0  # a round date: 2026-01-01
ROOM_IS_USED_WITHIN_S = 1.5  # an event that makes room wakes whom it helps at once, not after a backoff


def run_seed(seed: int, scenario: str = "churn", *, until_event: int | None = None) -> Report:
    """Play one seed; `until_event` stops after that many steps.

    Every second seed is played with faults on the line between scheduler and API.
    """
    streams = [np.random.Generator(np.random.PCG64(s)) for s in np.random.SeedSequence(seed).spawn(4)]
    faults = Faults.draw(streams[0]) if seed % 2 else NO_FAULTS
    counts: Counter[str] = Counter()
    told = Told()
    whole = GangWhole(told)
    evictions = SoundEvictions(told)
    world = ProductWorld(
        now_s=START_S,
        faults=faults,
        server_generator=streams[1],
        line_generator=streams[2],
        observers=(told, evictions),
        count=lambda name: counts.update([name]),
    )
    meter = Meter(world.view)
    checkers: list[Checker] = [
        whole,
        RoomAsTold(told),
        evictions,
        NothingForgotten(world, told),
        NoTornGangs(
            world.view,
            is_quiet=lambda: world.is_quiet and not faults.breaks_binds,
            ever_whole=whole.ever_whole,
        ),
        TrueStaysTrue(world.view, least_needed=told.least_needed, ever_bound=told.ever_bound),
        Coverage(world.view, counts),
        meter,
    ]
    if not faults.event_late:
        checkers += [NodeRoom(world.view), DevicesApart(world.view)]
    if faults == NO_FAULTS:
        checkers.append(
            RoomIsUsed(world.view, is_settled=lambda: world.is_settled, patience_s=ROOM_IS_USED_WITHIN_S)
        )
    if not (faults.event_late or faults.write_refused):
        checkers.append(
            SaysWhy(
                world.view, is_settled=lambda: world.is_settled, started_s=lambda: world.scheduler_started_s
            )
        )
    simulation = Simulation(world, start_s=START_S, checkers=checkers)
    violation: Violation | None = None
    try:
        _play(world, simulation, scenario, streams[3], until_event)
    except Violation as found:
        violation = found
    counts["pod preempted"] += evictions.count
    report = meter.report(
        seed=seed, scenario=scenario, steps=simulation.steps, counts=dict(sorted(counts.items()))
    )
    return report if violation is None else _with_violation(report, violation)


def _play(
    world: ProductWorld,
    simulation: Simulation,
    name: str,
    generator: np.random.Generator,
    until_event: int | None,
) -> None:
    """Churn, then calm: no more faults, nothing cordoned; then everything that fits must be placed."""
    scenario = SCENARIOS[name](world, simulation, generator)
    scenario.start()
    simulation.run_until(simulation.now_s + scenario.churn_s, step_max=until_event)
    simulation.post(scenario.calm)
    world.end_faults()
    simulation.run_until(simulation.now_s + scenario.calm_s, step_max=until_event)
    if until_event is None or simulation.steps < until_event:
        at_rest = RoomIsUsed(world.view, is_settled=lambda: True, patience_s=0.0)
        simulation.judge([at_rest, ScheduledIsSaid(world.view)])


def replay_line(seed: int, scenario: str, step: int) -> str:
    """The command that plays this seed up to this step."""
    return f"muster simulate --seed {seed} --scenario {scenario} --until-event {step}"


def _with_violation(report: Report, violation: Violation) -> Report:
    replay = replay_line(report.seed, report.scenario, violation.step)
    return replace(report, violation=f"{violation} (at step {violation.step})", replay=replay)
