"""One table and one JSON out of all results: medians, ranges, ratios in the same pass, fitted exponents.

In come rows and `Results`; out come text for people and plain data for machines.
"""

import math
import platform
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from bench.results import Figures, Results, median, values
from bench.rows import Row

# What is shown of each part: figure, heading, format.
SHOWN: dict[str, tuple[tuple[str, str, str], ...]] = {
    "end to end": (
        ("pods_per_s", "pods/s", ".0f"),
        ("last_bind_s", "last bind s", ".2f"),
        ("last_event_s", "last event s", ".2f"),
        ("events_to_binds", "by last bind", ".2f"),
        ("gang_wait_p50_s", "wait p50 s", ".2f"),
        ("gang_wait_p99_s", "p99 s", ".2f"),
        ("writes_per_pod", "writes/pod", ".2f"),
        ("algorithm_ms", "algorithm ms", ".2f"),
        ("cpu_s_per_1000_pods", "CPU s/1,000", ".2f"),
        ("scheduler_peak_mb", "peak MB", ".0f"),
    ),
    "muster up": (
        ("pods_per_s", "pods/s", ".0f"),
        ("last_event_s", "last event s", ".2f"),
        ("gang_wait_p50_s", "wait p50 s", ".2f"),
        ("gang_wait_p99_s", "p99 s", ".2f"),
        ("scheduler_peak_mb", "peak MB", ".0f"),
    ),
    "cold start": (
        ("first_bind_s", "first bind s", ".2f"),
        ("scheduler_cpu_s", "CPU s", ".2f"),
        ("scheduler_peak_mb", "peak MB", ".0f"),
    ),
    "in process": (
        ("algorithm_ms", "algorithm ms", ".3f"),
        ("algorithm_p99_ms", "p99 ms", ".3f"),
        ("pods_per_s", "pods/s", ".0f"),
        ("peak_mb", "peak MB", ".0f"),
    ),
    "devices": (
        ("algorithm_ms", "algorithm ms", ".1f"),
        ("algorithm_p99_ms", "p99 ms", ".1f"),
        ("cold_ms", "cold ms", ".1f"),
        ("gang_ms", "all ms/gang", ".1f"),
        ("peak_mb", "peak MB", ".0f"),
    ),
    "preemption": (
        ("preempting_p50_ms", "p50 ms", ".2f"),
        ("preempting_p99_ms", "p99 ms", ".2f"),
        ("evictions", "evictions", ".0f"),
    ),
    "exact search": (
        ("median_ms", "median ms", ".1f"),
        ("max_ms", "max ms", ".1f"),
    ),
    "scale": (
        ("algorithm_ms", "algorithm ms", ".3f"),
        ("algorithm_p99_ms", "p99 ms", ".3f"),
        ("events_us", "µs/event", ".1f"),
        ("built_s", "built s", ".1f"),
        ("bytes_per_node", "bytes/node", ".0f"),
    ),
    "storm": (
        ("rejection_us", "rejection µs", ".0f"),
        ("handled_us_per_gang", "all µs/gang", ".0f"),
        ("group_patches_per_gang", "group patches", ".2f"),
        ("pod_patches_per_gang", "pod patches", ".2f"),
        ("needless_attempts", "needless attempts", ".0f"),
        ("vain_attempts", "for one freed node", ".0f"),
        ("freed_node_us", "freed node µs", ".0f"),
        ("possible_wait_ms", "possible wait ms", ".2f"),
        ("possible_wait_alone_ms", "alone ms", ".2f"),
        ("backlog_wait_ms", "backlog wait ms", ".0f"),
        ("backlog_wait_alone_ms", "alone ms", ".0f"),
    ),
    "placement quality": (
        ("unallocated", "unallocated %", ".2f"),
        ("published", "published %", ".2f"),
        ("unallocated_at_full_demand", "at 100 % demand", ".2f"),
        ("fragment", "fragment %", ".2f"),
        ("ms_per_pod", "CPU ms/pod", ".2f"),
        ("accepted_1_1", "accepted % of 1", ".1f"),
        ("accepted_2_8", "of 2–8", ".1f"),
        ("accepted_9_32", "of 9–32", ".1f"),
    ),
}
RATIOS = (("muster", "stock"), ("muster", "null"))
RATIO_OF = (
    "pods_per_s",
    "algorithm_ms",
    "cold_ms",
    "gang_ms",
    "gang_wait_p99_s",
    "cpu_s_per_1000_pods",
    "first_bind_s",
)


def make_report(rows: Sequence[Row], results: Results) -> dict[str, Any]:
    """Everything as plain data."""
    report: dict[str, Any] = {"machine": describe_machine(), "rows": [], "ratios": [], "exponents": {}}
    for row in rows:
        runs = [_flat(run) for run in results.of(row.key)]
        figures = {
            name: {"median": median(runs, name), "min": min(found), "max": max(found)}
            for name, _, _ in SHOWN[row.part]
            if (found := values(runs, name))
        }
        wrong = [text for run in runs for text in run["wrong"]]
        report["rows"].append(
            {"part": row.part, "name": row.name, "subject": row.subject, "runs": len(runs)}
            | {"figures": figures, "void": any(run.get("decisions_void") for run in runs), "wrong": wrong}
        )
    report["ratios"] = _ratios(report["rows"])
    report["exponents"] = _exponents(rows, results)
    return report


def faults_of(report: dict[str, Any]) -> list[str]:
    """What is wrong, row by row; stock is not ours to mend, so its rows count as measured."""
    return [
        f"{row['part']} | {row['name']} | {row['subject']}: {text}"
        for row in report["rows"]
        if row["subject"] != "stock"
        for text in row["wrong"]
    ]


def print_report(report: dict[str, Any]) -> None:
    """The table, part by part."""
    print(f"machine: {report['machine']}")
    for part, rows in groupby(report["rows"], key=lambda row: row["part"]):
        _print_part(part, list(rows))
    if report["ratios"]:
        print("\nratios (medians of this pass)")
    for line in report["ratios"]:
        told = ", ".join(f"{name} {value:.3g}" for name, value in line["figures"].items())
        print(f"  {line['name']}: {line['of']} / {line['to']}: {told}")
    for name, exponent in report["exponents"].items():
        print(f"  time grows with nodes to the power of {exponent:.2f} ({name})")


def _print_part(part: str, rows: list[dict[str, Any]]) -> None:
    shown = SHOWN[part]
    width = max(len(row["name"]) for row in rows)
    headings = "".join(f"{heading:>22}" for _, heading, _ in shown)
    print(f"\n{part:<{width}}  {'who':<8}{headings}")
    for row in rows:
        cells = "".join(f"{cell(row['figures'].get(name), form):>22}" for name, _, form in shown)
        mark = "  WRONG" if row["wrong"] else "  algorithm void" if row["void"] else ""
        print(f"{row['name']:<{width}}  {row['subject']:<8}{cells}{mark}")


def cell(figure: dict[str, float] | None, form: str) -> str:
    """The median, with the range where there is one."""
    if figure is None:
        return "–"
    middle = f"{figure['median']:{form}}"
    if math.isclose(figure["min"], figure["max"]):
        return middle
    return f"{middle} ({figure['min']:{form}}–{figure['max']:{form}})"


def _flat(run: Figures) -> Figures:
    """With the scheduler's own CPU seconds and memory as figures."""
    flat = dict(run)
    for name in ("cpu_s", "peak_mb"):
        if isinstance(run.get(name), dict):
            flat[f"scheduler_{name}"] = run[name].get("scheduler")
    return flat


def _ratios(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    by_name = {(row["part"], row["name"], row["subject"]): row["figures"] for row in rows}
    lines = []
    for part, name in dict.fromkeys((row["part"], row["name"]) for row in rows):
        for of, to in RATIOS:
            ours, theirs = by_name.get((part, name, of), {}), by_name.get((part, name, to), {})
            figures = {
                figure: ours[figure]["median"] / theirs[figure]["median"]
                for figure in RATIO_OF
                if figure in ours and figure in theirs and theirs[figure]["median"]
            }
            if figures:
                lines.append({"part": part, "name": name, "of": of, "to": to, "figures": figures})
    return lines


def _exponents(rows: Sequence[Row], results: Results) -> dict[str, float]:
    """By how much the decision grows with the number of nodes: the slope of the logs."""
    points = [
        (row.arguments["nodes"], middle)
        for row in rows
        if row.part == "scale" and (middle := median(results.of(row.key), "algorithm_ms")) is not None
    ]
    found = {}
    if len(points) > 1:
        found["all sizes"] = fit_exponent(points)
    if len(large := [point for point in points if point[0] >= 5000]) > 1:
        found["from 5,000 nodes"] = fit_exponent(large)
    return found


def fit_exponent(points: Sequence[tuple[float, float]]) -> float:
    """The b of time ∝ N^b, least squares on the logs."""
    sizes, times = np.log(np.array(points, dtype=np.float64)).T
    return float(np.polyfit(sizes, times, 1)[0])


def describe_machine() -> str:
    """Processor, cores, memory and interpreter, in one line."""
    model = next(
        (line.split(":")[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")), "?"
    )
    cores = sum(line.startswith("processor") for line in _lines("/proc/cpuinfo"))
    memory = next((line.split()[1] for line in _lines("/proc/meminfo") if line.startswith("MemTotal")), "0")
    gigabytes = int(memory) * 1024 / 1e9
    return f"{cores} × {model}, {gigabytes:.0f} GB, Linux, CPython {platform.python_version()}"


def _lines(file: str) -> list[str]:
    path = Path(file)
    return path.read_text().splitlines() if path.exists() else []
