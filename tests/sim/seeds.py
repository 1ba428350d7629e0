"""Runs of seeds, each made once however many tests look at it."""

from functools import cache

from muster.sim.report import Report
from muster.sim.run import run_seed


@cache
def report_of(seed: int) -> Report:
    """The report of this seed of the churn scenario."""
    return run_seed(seed)
