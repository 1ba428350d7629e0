"""Run rows, each in a fresh process and each as often as asked, and keep what comes out.

In come rows and `Results`; out come lines on stdout as rows finish.  Repetitions go round by round, so that
contenders of one row stand close in time, and what is worth most comes first.  Next: `table.py`.
"""

import math
import multiprocessing
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor

from bench.results import Figures, Results
from bench.rows import Row, by_worth


def run_rows(
    rows: Sequence[Row],
    results: Results,
    *,
    repetitions: int,
    time_s: float = math.inf,
    now_s: Callable[[], float] = time.monotonic,
) -> None:
    """Measure what is not measured yet.  A row that raises is wrong, and the pass goes on.

    After `time_s` seconds no further row is begun.
    """
    until_s = now_s() + time_s
    for repetition in range(repetitions):
        for row in by_worth(rows):
            wanted = 1 if row.once else repetition + 1
            if results.count(row.key) >= wanted:
                continue
            if now_s() >= until_s:
                print("the time is over; the same command goes on from here", file=sys.stderr, flush=True)
                return
            began = time.monotonic()
            figures = _run_alone(row)
            results.add(row.key, figures)
            seconds = time.monotonic() - began
            fault = f"  WRONG: {figures['wrong'][0]}" if figures["wrong"] else ""
            print(f"{seconds:6.1f} s  {row.key}{fault}", file=sys.stderr, flush=True)


def _run_alone(row: Row) -> Figures:
    """In a process of its own: peak memory and the garbage of other rows must not count."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        try:
            return pool.submit(row.function, **row.arguments).result()
        except Exception as error:
            traceback.print_exc()
            return {"wrong": [f"{type(error).__name__}: {error}"]}
