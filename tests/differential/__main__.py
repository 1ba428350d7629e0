"""Give the same random scenarios to the stock scheduler and to Muster and compare what they place.

    scripts/sim --differential [--claims [parts]] [--seeds N] [--first-seed K] [--results FILE] [--ci]
                               [--in-process]

Two stock control planes are started, one with kube-scheduler 1.37.2 and one with `muster run` (Go is needed
once, tests/controlplane/build.py).  With --in-process Muster is held against the slow checker alone, on
virtual time.  With --claims the scenarios are of volumes, devices and claims (`claims/`), with --claims parts
of devices cut out of counters and given in shares.  Every difference
that no listed rule explains is printed with the command that replays it, and the exit code is then 1.  With
--results FILE seeds that are in it already are not played again.
"""

import argparse
import contextlib
import json
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from pathlib import Path

import msgspec
from tests.conformance.scheduler_control import ControlError
from tests.controlplane.build import BuildError
from tests.controlplane.start import StartError
from tests.differential.batch import Verdict, play_batch
from tests.differential.claims.batch import DRAWS, play_alone
from tests.differential.claims.batch import play_batch as play_claims_batch
from tests.differential.draw import draw_scenario
from tests.differential.play import make_shared
from tests.differential.promises import check_promises
from tests.differential.stage import WatchedStage, muster_stage, stock_stage

CI_SEEDS = 120
REFRESH = 120  # scenarios on one control plane, before it is made anew


def main() -> int:
    """Play what is asked for and print what differs."""
    arguments = _parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # else the control planes would stay
    done = _read(arguments.results)
    wanted = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    seeds = [seed for seed in wanted if seed not in done]
    began = time.monotonic()
    verdicts = {seed: done[seed] for seed in wanted if seed in done}
    played = _in_process(seeds, arguments) if arguments.in_process else _on_stock(seeds, arguments)
    try:
        for verdict in played:
            verdicts[verdict.seed] = verdict
            _write(arguments.results, verdict)
            _print(verdict, arguments)
    except (BuildError, StartError, ControlError) as error:
        print(f"differential: {error}", file=sys.stderr)
        return 2
    return _summary(list(verdicts.values()), time.monotonic() - began)


def _in_process(seeds: Sequence[int], arguments: argparse.Namespace) -> Iterator[Verdict]:
    with ProcessPoolExecutor(arguments.processes) as pool:
        if arguments.claims:
            yield from pool.map(play_alone, seeds, repeat(arguments.claims), chunksize=8)
        else:
            yield from pool.map(_promises, seeds, chunksize=8)


def _promises(seed: int) -> Verdict:
    return Verdict(seed, check_promises(draw_scenario(seed)))


def _on_stock(seeds: Sequence[int], arguments: argparse.Namespace) -> Iterator[Verdict]:
    for part in _parts(seeds, REFRESH):
        with (
            tempfile.TemporaryDirectory(prefix="muster-differential-") as folder,
            _stages(Path(folder), manager=bool(arguments.claims)) as stages,
        ):
            for batch in _parts(part, arguments.batch):
                if arguments.claims:
                    yield from play_claims_batch(stages, [DRAWS[arguments.claims](seed) for seed in batch])
                else:
                    yield from play_batch(stages, [draw_scenario(seed) for seed in batch])


def _parts(seeds: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    return (seeds[first : first + size] for first in range(0, len(seeds), size))


@contextlib.contextmanager
def _stages(folder: Path, *, manager: bool) -> Iterator[list[WatchedStage]]:
    """Both clusters, with what all scenarios share; with controllers where volumes are to be bound."""
    with contextlib.ExitStack() as opened:
        starts = (("stock", stock_stage), ("muster", muster_stage))
        stages = [opened.enter_context(start(folder / name, manager=manager)) for name, start in starts]
        for stage in stages:
            make_shared(stage)
        time.sleep(1.0)  # admission learns of priority classes by a watch of its own
        yield stages


# ── results and words ────────────────────────────────────────────────────────────────────────────


def _read(file: Path | None) -> dict[int, Verdict]:
    if file is None or not file.exists():
        return {}
    verdicts = [msgspec.json.decode(line, type=Verdict) for line in file.read_text().splitlines()]
    return {verdict.seed: verdict for verdict in verdicts}


def _write(file: Path | None, verdict: Verdict) -> None:
    if file is not None:
        with file.open("ab") as lines:
            lines.write(msgspec.json.encode(verdict) + b"\n")


def _print(verdict: Verdict, arguments: argparse.Namespace) -> None:
    for finding in verdict.findings:
        if finding.rule is None or arguments.verbose:
            mode = {"all": " --claims", "parts": " --claims parts"}.get(arguments.claims or "", "")
            mode += " --in-process" if arguments.in_process else ""
            replay = f"scripts/sim --differential{mode} --first-seed {verdict.seed} --seeds 1"
            rule = finding.rule or "UNEXPLAINED"
            print(f"seed {verdict.seed} step {finding.step}: {rule}: {finding.text}; {replay}", flush=True)


def _summary(verdicts: list[Verdict], took_s: float) -> int:
    rules = Counter(finding.rule or "unexplained" for verdict in verdicts for finding in verdict.findings)
    equal = sum(not verdict.findings for verdict in verdicts)
    counted = ", ".join(f"{count} {rule}" for rule, count in sorted(rules.items()))
    head = f"{len(verdicts)} scenarios in {took_s:.0f} s: {equal} without a difference"
    print(f"{head}; {counted or 'nothing else'}")
    return 1 if rules["unexplained"] else 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/sim --differential", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--seeds", type=int, default=None, help="how many; 120 unless told")
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--results", type=Path, help="file of verdicts, to go on from and to add to")
    parser.add_argument("--batch", type=int, default=40, help="scenarios side by side on one cluster")
    parser.add_argument("--ci", action="store_true", help=f"{CI_SEEDS} seeds, what every commit must pass")
    parser.add_argument(
        "--in-process", action="store_true", help="Muster against the slow checker, without stock"
    )
    parser.add_argument(
        "--processes", type=int, default=2, help="with --in-process, how many seeds side by side"
    )
    parser.add_argument("--verbose", action="store_true", help="print explained differences, too")
    kinds = "scenarios of volumes, devices and claims; of devices in parts"
    parser.add_argument("--claims", nargs="?", const="all", choices=sorted(DRAWS), help=kinds)
    parser.add_argument("--show", action="store_true", help="print the scenarios and play nothing")
    arguments = parser.parse_args()
    if arguments.seeds is None:
        arguments.seeds = CI_SEEDS
    if arguments.show:
        for seed in range(arguments.first_seed, arguments.first_seed + arguments.seeds):
            scenario = DRAWS[arguments.claims](seed) if arguments.claims else draw_scenario(seed)
            print(json.dumps(msgspec.to_builtins(scenario), indent=1))
        sys.exit(0)
    return arguments


if __name__ == "__main__":
    sys.exit(main())
