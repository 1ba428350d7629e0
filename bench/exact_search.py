"""The exact search for a placement of unlike members, on its own: milliseconds, and whether it is right.

Three shapes that compete for GPUs, CPU and memory on partly full nodes; the demand is the largest that has a
placement (`feasible`), or one step more, where there is none (`infeasible`).  Seeded.  Next: `rows.py`.
"""

import statistics
import time
from typing import Any

import numpy as np

from muster.placement.exact import Limits, solve
from muster.placement.packing import Packing, Problem, Verdict, group_problem, is_placement

GIBI = 2**30
#                  gpu cpu(milli) memory     pods
SHAPES = np.array([[4, 8_000, 64 * GIBI, 1], [0, 12_000, 16 * GIBI, 1], [1, 2_000, 96 * GIBI, 1]])
SEEDS = 3
LIMITS = Limits(time_ms=10_000)


def run(nodes: int, feasible: bool) -> dict[str, Any]:
    """Solve one instance a seed; each is built before the watch is started."""
    times_ms, faults = [], []
    wanted = Verdict.FOUND if feasible else Verdict.IMPOSSIBLE
    for seed in range(SEEDS):
        step = _last_feasible_step(nodes, seed)
        problem = _problem(nodes, seed, step if feasible else step + 1)
        began_s = time.perf_counter()
        answer = solve(problem, LIMITS)
        times_ms.append(1000.0 * (time.perf_counter() - began_s))
        if answer.verdict is not wanted:
            faults.append(f"seed {seed}: {answer.verdict.value}, expected {wanted.value}")
        elif answer.counts is not None and not is_placement(problem, answer.counts):
            faults.append(f"seed {seed}: the answer is no placement")
    return {"median_ms": statistics.median(times_ms), "max_ms": max(times_ms), "wrong": faults}


def _last_feasible_step(nodes: int, seed: int) -> int:
    """The largest demand that has a placement, by halving; more members are never easier to place."""
    low, high = 1, 8 * nodes
    while high - low > 1:
        middle = (low + high) // 2
        found = solve(_problem(nodes, seed, middle), LIMITS).verdict is Verdict.FOUND
        low, high = (middle, high) if found else (low, middle)
    return low


def _problem(nodes: int, seed: int, step: int) -> Problem:
    generator = np.random.default_rng(seed)
    room = np.stack(
        [
            generator.integers(0, 9, nodes),
            generator.integers(0, 97, nodes) * 1_000,
            generator.integers(0, 512, nodes) * GIBI,
            generator.integers(2, 20, nodes),
        ],
        axis=1,
    )
    available = np.array([(2 * step) // 3, step, step + 1])
    packing = Packing(room, SHAPES, np.zeros((3, 3), dtype=np.bool_), np.ones((3, nodes), dtype=np.bool_))
    everywhere = (np.arange(nodes),)
    return group_problem(packing, available, needed=int(available.sum()), domains=everywhere, is_exact=True)
