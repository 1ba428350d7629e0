"""Bugs planted on purpose (`planted.py`): each must be found by some seed of the storm.

    python -m tests.sim.mutants [--seeds N] [--first-seed K] [NAME ...]

begins with the seed that found the bug the last time (`FOUND_BY`), then goes through the others; prints a
table (mutant, the seed that found it, the checker that complained) and ends with 1 if one was not
found.
"""

import argparse
import gc
import os
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import NamedTuple

from tests.sim.planted import MUTANTS

from muster.base.errors import MusterError
from muster.sim.storm.run import run_storm

SEEDS = 500
YOUNG_OBJECTS_BEFORE_COLLECTION = 100_000
FOUND_BY: dict[str, int] = {  # where nothing is said, the first
    "forget-on-timeout": 5,
    "no-precondition": 3,
    "stale-list-believed": 11,
    "lease-not-checked": 8,
    "clock-stops-while-asleep": 18,
    "lease-taken-by-force": 2,
    "void-binding-counts": 7,
    "restored-store-unnoticed": 3,
    "release-skipped": 9,
    "gang-never-released": 5,
    "tree-in-part": 4,
    "tree-never-released": 16,
    "tree-said-whole-too-soon": 4,
    "no-backoff-after-a-release": 2,
    "room-not-kept": 2,
    "room-never-given-back": 17,
    "failed-write-forgotten": 26,
    "lost-binding-given-up": 5,
    "rival-claim-unseen": 3,
    "double-claims-not-told": 7,
    "chosen-devices-forgotten": 3,
}


class Finding(NamedTuple):
    """What became of one mutant; `seed` is None if nobody noticed."""

    name: str
    seed: int | None
    violation: str


def hunt(name: str, first: int, seeds: int) -> Finding:
    """Play seeds with this bug planted until a checker complains, first the one that did the last time."""
    gc.set_threshold(YOUNG_OBJECTS_BEFORE_COLLECTION, 50, 100)
    known = FOUND_BY.get(name, first)
    others = (seed for seed in range(first, first + seeds) if seed != known)
    with MUTANTS[name].planted():
        for seed in (*((known,) if first <= known < first + seeds else ()), *others):
            violation = violation_of(seed)
            if violation:
                return Finding(name, seed, violation)
    return Finding(name, None, "")


def violation_of(seed: int) -> str:
    """What a checker says of this seed, "" for nothing; a product that raises is found, too."""
    try:
        return run_storm(seed).violation
    except (MusterError, AssertionError, KeyError, ValueError, IndexError) as error:
        return f"the product raised: {type(error).__name__} {error}"


def main() -> int:
    """Hunt them all, a mutant a process."""
    parser = argparse.ArgumentParser(prog="scripts/sim --mutants", description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(MUTANTS)}")
    options = parser.parse_args()
    names = options.names or list(MUTANTS)
    unknown = sorted(set(names) - set(MUTANTS))
    if unknown:
        parser.error(f"no such mutant: {', '.join(unknown)}")
    missed = 0
    print("| mutant | seed | found by |\n|---|---|---|")
    with ProcessPoolExecutor(os.cpu_count() or 1) as pool:
        hunts = [pool.submit(hunt, name, options.first_seed, options.seeds) for name in names]
        for future in as_completed(hunts):
            found = future.result()
            missed += found.seed is None
            seed = "none" if found.seed is None else str(found.seed)
            print(f"| {found.name} | {seed} | {found.violation.partition(' (at step')[0]} |", flush=True)
    print(f"{len(names) - missed} of {len(names)} found within {options.seeds} seeds")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
