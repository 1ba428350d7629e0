"""`muster simulate`: play seeds of a scenario on a virtual cluster and say what came of it.

The whole product runs in this process on virtual time; `sim/plays.py` says what can be played.  A broken
promise is told with the command that replays it.  Exit code 1 if there was one, or if over many seeds some
kind of fault or transition never happened.
"""

import gc
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from muster.sim.plays import Play
    from muster.sim.report import Report

_YOUNG_OBJECTS_BEFORE_COLLECTION = 100_000  # a run makes few rings, and ends before they matter


def simulate(
    seed: Annotated[
        int, typer.Option("--seed", "--first-seed", metavar="N", min=0, help="The first seed.")
    ] = 1,
    seeds: Annotated[int, typer.Option(metavar="N", min=1, help="How many seeds, one after the other.")] = 1,
    scenario: Annotated[str, typer.Option(metavar="NAME", help="What happens to the cluster.")] = "churn",
    until_event: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Stop after this step, as a violation names it.")
    ] = None,
    processes: Annotated[
        int, typer.Option(metavar="N", min=1, help="How many seeds are played side by side.")
    ] = 1,
    minutes: Annotated[
        float | None,
        typer.Option(metavar="N", min=0, help="Go on with more seeds until so much time has passed."),
    ] = None,
    results: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Keep a JSON line a seed here, and leave out seeds that are there."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON line a seed.")] = False,
) -> None:
    """Play random gangs on a simulated cluster and check every promise after every step."""
    import msgspec

    from muster.base.errors import ConfigError
    from muster.sim.coverage import missing
    from muster.sim.plays import PLAYS

    if scenario not in PLAYS:
        raise ConfigError(
            f"no such scenario: {scenario!r}",
            path="--scenario",
            hint=f"one of {', '.join(sorted(PLAYS))}",
        )
    reports = _kept(results, scenario, seed)
    played = {report.seed for report in reports}
    wanted = _numbers(seed, seeds, minutes)
    numbers = (number for number in wanted if number not in played)
    for report in _played(numbers, scenario, until_event, processes):
        reports.append(report)
        line = msgspec.json.encode(report).decode()
        if results is not None:
            with results.open("a") as file:
                file.write(line + "\n")
        if as_json:
            print(line, flush=True)
        elif report.violation:
            print(f"seed {report.seed}: {report.violation}\n  replay: {report.replay}", flush=True)
    play = PLAYS[scenario]
    lacking = missing(_counts_of(reports), play.required)
    are_enough = len(reports) >= play.seeds_min
    if not as_json:
        _print_summary(reports, play, lacking)
    elif lacking and are_enough:
        print(json.dumps({"neverHappened": lacking}))
    fails = (lacking and are_enough) or any(report.violation for report in reports)
    raise typer.Exit(1 if fails else 0)


def _kept(results: Path | None, scenario: str, first: int) -> "list[Report]":
    """What an earlier run has left in the file, from this seed on."""
    import msgspec

    from muster.sim.report import Report

    if results is None or not results.exists():
        return []
    lines = results.read_bytes().splitlines()
    kept = [msgspec.json.decode(line, type=Report) for line in lines]
    return [report for report in kept if report.scenario == scenario and report.seed >= first]


def _numbers(first: int, count: int, minutes: float | None) -> Iterator[int]:
    """`count` seeds, and more while there is time."""
    from muster.runtime.clock import Clock

    clock = Clock()
    until_s = clock.now_s() + 60.0 * (minutes or 0.0)
    number = first
    while number < first + count or (minutes is not None and clock.now_s() < until_s):
        yield number
        number += 1


def _play(scenario: str, seed: int, until_event: int | None) -> "Report":
    """One seed, in whatever process."""
    from muster.sim.plays import PLAYS

    gc.set_threshold(_YOUNG_OBJECTS_BEFORE_COLLECTION, 50, 100)
    return PLAYS[scenario].run(seed, until_event)


def _played(
    numbers: Iterable[int], scenario: str, until_event: int | None, processes: int
) -> "Iterator[Report]":
    """The report of each seed: in order of seeds, or as they are done where several are played at once."""
    if processes == 1:
        for number in numbers:
            yield _play(scenario, number, until_event)
        return
    left = iter(numbers)
    with ProcessPoolExecutor(processes) as pool:
        running: set[Future[Report]] = set()
        while True:
            # no more than are at work: whether there is time for another is asked when one is done
            for number in islice(left, processes - len(running)):
                running.add(pool.submit(_play, scenario, number, until_event))
            if not running:
                return
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in sorted(done, key=lambda future: future.result().seed):
                yield future.result()


def _print_summary(reports: "list[Report]", play: "Play", lacking: list[str]) -> None:
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
    counts = _counts_of(reports)
    for name in sorted({*counts, *play.required}):
        print(f"  {counts[name]:7} {name}")
    if count >= play.seeds_min:
        for name in lacking:
            print(f"never happened: {name}")
    elif lacking:
        print(f"{len(lacking)} kinds never happened, which fails from {play.seeds_min} seeds on")


def _counts_of(reports: "list[Report]") -> Counter[str]:
    counts: Counter[str] = Counter()
    for report in reports:
        counts.update(report.counts)
    return counts
