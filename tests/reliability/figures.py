"""What a running process uses, and how waits are told: plain numbers for the reports of the checks.

`/proc` is read, so Linux only.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

MEBIBYTE = 1 << 20
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class Waits(NamedTuple):
    """How long gangs waited: how many, the median, the 99th percentile and the longest, in milliseconds."""

    count: int
    p50_ms: float
    p99_ms: float
    max_ms: float


def waits_of(seconds: Sequence[float]) -> Waits:
    """Sum them up; of none, all is nought."""
    if not seconds:
        return Waits(0, 0.0, 0.0, 0.0)
    p50, p99, longest = np.quantile(np.array(seconds) * 1000.0, [0.5, 0.99, 1.0])
    return Waits(len(seconds), round(float(p50), 1), round(float(p99), 1), round(float(longest), 1))


def resident_mib(process_id: int) -> float:
    """Memory of a process that is in RAM."""
    pages = int(Path(f"/proc/{process_id}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / MEBIBYTE


def cpu_s(process_id: int) -> float:
    """Processor time that a process has used, its own and the kernel's for it."""
    after_name = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
    return (int(after_name[11]) + int(after_name[12])) / _TICKS_PER_S
