"""`muster simulate`: play seeds of a scenario on a virtual cluster and say what came of it.

The whole product runs in this process on virtual time; `sim/run.py` plays one seed.  A broken promise is
told with the command that replays it.  Exit code 1 if there was one.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from muster.sim.report import Report

COVERAGE_SEEDS_MIN = 100  # fewer seeds need not meet every kind of transition


def simulate(
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="The first seed.")] = 1,
    seeds: Annotated[int, typer.Option(metavar="N", min=1, help="How many seeds, one after the other.")] = 1,
    scenario: Annotated[str, typer.Option(metavar="NAME", help="What happens to the cluster.")] = "churn",
    until_event: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Stop after this step, as a violation names it.")
    ] = None,
    processes: Annotated[
        int, typer.Option(metavar="N", min=1, help="How many seeds are played side by side.")
    ] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON line a seed.")] = False,
) -> None:
    """Play random gangs on a simulated cluster and check every promise after every step."""
    import msgspec

    from muster.base.errors import ConfigError
    from muster.sim.coverage import REQUIRED, missing
    from muster.sim.run import run_seed
    from muster.sim.scenarios import SCENARIOS

    if scenario not in SCENARIOS:
        raise ConfigError(
            f"no such scenario: {scenario!r}",
            path="--scenario",
            hint=f"one of {', '.join(sorted(SCENARIOS))}",
        )
    reports = []
    numbers = range(seed, seed + seeds)
    for report in _played(numbers, partial(run_seed, scenario=scenario, until_event=until_event), processes):
        reports.append(report)
        if as_json:
            print(msgspec.json.encode(report).decode(), flush=True)
        elif report.violation:
            print(f"seed {report.seed}: {report.violation}\n  replay: {report.replay}", flush=True)
    lacking = missing(_counts_of(reports), REQUIRED) if seeds >= COVERAGE_SEEDS_MIN else []
    if not as_json:
        _print_summary(reports, lacking)
    elif lacking:
        print(json.dumps({"neverHappened": lacking}))
    raise typer.Exit(1 if lacking or any(report.violation for report in reports) else 0)


def _played(numbers: Iterable[int], play: "Callable[[int], Report]", processes: int) -> "Iterator[Report]":
    """The report of each seed, in order of seeds."""
    if processes == 1:
        yield from map(play, numbers)
        return
    with ProcessPoolExecutor(processes) as pool:
        yield from pool.map(play, numbers)


def _print_summary(reports: "list[Report]", lacking: list[str]) -> None:
    count = len(reports)
    broken = sum(bool(report.violation) for report in reports)
    without_room = sum(report.gangs_waiting for report in reports)
    medians_s = sorted(report.wait_s_median for report in reports)
    rows = {
        "seeds": f"{count}, {broken} with a violation",
        "steps checked": f"{sum(report.steps for report in reports)}",
        "virtual time": f"{sum(report.virtual_s for report in reports) / 3600:.1f} h",
        "pods bound": f"{sum(report.pods_bound for report in reports)}",
        "gangs placed": f"{sum(report.gangs_placed for report in reports)}; {without_room} never had room",
        "CPU bound": f"{100 * sum(report.utilisation for report in reports) / count:.0f} % on average",
        "waiting, median": f"{medians_s[count // 2]:.1f} s a gang",
        "waiting, longest": f"{max(report.wait_s_max for report in reports):.1f} s",
    }
    for name, value in rows.items():
        print(f"{name:20} {value}")
    for name, times in sorted(_counts_of(reports).items()):
        print(f"  {times:7} {name}")
    for name in lacking:
        print(f"never happened: {name}")


def _counts_of(reports: "list[Report]") -> Counter[str]:
    counts: Counter[str] = Counter()
    for report in reports:
        counts.update(report.counts)
    return counts
