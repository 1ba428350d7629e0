"""Load and soak: what a long queue, a long time, a flood of events and a gang that always fails do to others.

    python -m tests.reliability soak [ROW …] [--quick] [--minutes N] [--gangs N] [--phases N]

Results are judged: what fits is bound, nothing else, no gang in part, no node over its own.  Times are told
beside their goals and never judged, for they depend on the machine.
"""

import argparse
import asyncio
import json
from typing import Any

from tests.reliability import backlog, bad_gang, churn, flood
from tests.reliability.stage import Late

ROWS = ("backlog", "flood", "bad-gang", "churn")
SIZES = {"minutes": 30.0, "gangs": 2000, "phases": 6}
QUICK_SIZES = {"minutes": 0.5, "gangs": 220, "phases": 1}


async def _play(row: str, sizes: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    if row == "backlog":
        return await backlog.play(sizes["gangs"])
    if row == "churn":
        return await churn.play(sizes["minutes"])
    return await (flood if row == "flood" else bad_gang).play(sizes["phases"])


def main(words: list[str]) -> int:
    """Read the options, play the rows one after another; 1 if something was broken."""
    reader = argparse.ArgumentParser(prog="scripts/reliability soak")
    reader.add_argument("rows", nargs="*", metavar="ROW", help=f"of {', '.join(ROWS)} (default: all)")
    reader.add_argument("--quick", action="store_true", help="everything small: two minutes in all")
    reader.add_argument("--minutes", type=float, help=f"of churn (default {SIZES['minutes']:.0f})")
    reader.add_argument("--gangs", type=int, help=f"in the backlog (default {SIZES['gangs']})")
    reader.add_argument("--phases", type=int, help=f"with flood or bad gang (default {SIZES['phases']})")
    asked = reader.parse_args(words)
    if unknown := sorted(set(asked.rows) - set(ROWS)):
        reader.error(f"no row {unknown[0]}; there are {', '.join(ROWS)}")
    sizes = dict(QUICK_SIZES if asked.quick else SIZES)
    sizes |= {name: value for name in sizes if (value := getattr(asked, name)) is not None}
    failed = False
    for row in asked.rows or ROWS:
        try:
            figures, broken = asyncio.run(_play(row, sizes))
        except Late as error:
            figures, broken = {}, [str(error)]
        for line in broken:
            print(f"BROKEN: {row}: {line}")
        print(json.dumps({"row": row, "broken": len(broken), **figures}), flush=True)
        failed = failed or bool(broken)
    return 1 if failed else 0
