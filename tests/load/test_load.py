"""The load script itself, with a load that any machine carries."""

import json
import sys
from pathlib import Path

from tests.conformance.cluster_process import run

HERE = Path(__file__).parents[2]


def test_every_pod_of_a_load_is_bound_and_counted() -> None:
    command = [sys.executable, "-m", "tests.load", "--nodes", "3", "--gangs", "4", "--size", "5"]
    ran = run([*command, "--connections", "3"], PYTHONPATH=str(HERE))
    assert ran.code == 0, ran.err
    figures = json.loads(ran.out)
    assert (figures["pods"], figures["bound"]) == (20, 20)
    assert figures["pods_per_s"] > 0
    assert figures["memory_most_mib"] > 0


def test_a_load_that_does_not_fit_is_told_as_not_bound() -> None:
    command = [sys.executable, "-m", "tests.load", "--nodes", "1", "--gangs", "2", "--size", "10"]
    ran = run([*command, "--patience-s", "2"], PYTHONPATH=str(HERE))
    assert ran.code == 1
    assert json.loads(ran.out)["bound"] == 10
