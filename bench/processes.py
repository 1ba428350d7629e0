"""What a process has used so far, as Linux tells it: CPU seconds and the most memory it ever had."""

import os
from pathlib import Path
from typing import NamedTuple

TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class Usage(NamedTuple):
    """CPU seconds (user and system, of all threads) and peak resident memory in MB."""

    cpu_s: float
    peak_mb: float


def usage_of(process_id: int) -> Usage:
    """What this process has used; zeros once it is gone."""
    try:
        stat = Path(f"/proc/{process_id}/stat").read_text()
        status = Path(f"/proc/{process_id}/status").read_text()
    except FileNotFoundError:
        return Usage(0.0, 0.0)
    fields = stat.rsplit(")", 1)[1].split()
    peak = next((line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:")), "0")
    return Usage((int(fields[11]) + int(fields[12])) / TICKS_PER_S, int(peak) * 1.024 / 1000.0)
