"""Results on disk: one JSON line a measured row, so that a pass that was broken off goes on where it was.

In come rows' figures; out come, for each row, all its repetitions.  The folder is git-ignored.
"""

import json
import statistics
from collections import defaultdict
from pathlib import Path
from typing import Any

FOLDER = Path("bench-results")

Figures = dict[str, Any]


class Results:
    """The lines of one pass."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._figures: dict[str, list[Figures]] = defaultdict(list)
        if file.exists():
            for line in file.read_text().splitlines():
                entry = json.loads(line)
                self._figures[entry["key"]].append(entry["figures"])

    def count(self, key: str) -> int:
        """How often this row has been measured."""
        return len(self._figures[key])

    def of(self, key: str) -> list[Figures]:
        """The figures of every repetition of a row."""
        return self._figures[key]

    def add(self, key: str, figures: Figures) -> None:
        """Keep a row, on disk at once."""
        self._figures[key].append(figures)
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with self._file.open("a") as file:
            file.write(json.dumps({"key": key, "figures": figures}) + "\n")


def values(runs: list[Figures], name: str) -> list[float]:
    """One figure of all repetitions that have it; a figure that is void is not one."""
    if name == "algorithm_ms":
        runs = [run for run in runs if not run.get("decisions_void")]
    found = [run[name] for run in runs if isinstance(run.get(name), int | float)]
    return [value for value in found if value == value]


def median(runs: list[Figures], name: str) -> float | None:
    """The middle of all repetitions, None where there is none."""
    found = values(runs, name)
    return statistics.median(found) if found else None
