"""`scripts/bench`: run the quick pass, or the full one, and print the table.

    python -m bench [--full] [--only TEXT] [--repeat N] [--minutes N] [--fresh] [--list] [--report]
                    [--page FILE]

Exits with 1 if a result was wrong; never because something was slow.  Next: `rows.py`.
"""

import argparse
import json
import math
import sys
from pathlib import Path

from bench.page import make_page, put_into
from bench.passes import run_rows
from bench.results import FOLDER, Results
from bench.rows import by_worth, full_rows, quick_rows
from bench.table import faults_of, make_report, print_report


def main() -> int:
    """Read the options, run, print."""
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--full", action="store_true", help="the whole table; goes on where it was broken off"
    )
    parser.add_argument("--only", default="", metavar="TEXT", help="rows whose name holds this text")
    parser.add_argument("--repeat", type=int, default=0, metavar="N", help="runs a row [quick: 1, full: 3]")
    parser.add_argument(
        "--minutes", type=float, default=math.inf, metavar="N", help="begin no row after so many minutes"
    )
    parser.add_argument("--fresh", action="store_true", help="forget earlier results of the full pass")
    parser.add_argument("--list", action="store_true", help="name the rows and run nothing")
    parser.add_argument("--report", action="store_true", help="print what has been measured and run nothing")
    parser.add_argument("--page", type=Path, metavar="FILE", help="put the tables into this page of the docs")
    given = parser.parse_args()
    rows = [row for row in (full_rows() if given.full else quick_rows()) if given.only in row.key]
    if given.list:
        print("\n".join(row.key for row in by_worth(rows)))
        return 0
    name = "full" if given.full else "quick"
    lines, report_file = FOLDER / f"{name}.jsonl", FOLDER / f"{name}.json"
    if given.fresh or not (given.full or given.report):
        lines.unlink(missing_ok=True)
    results = Results(lines)
    if not given.report:
        repetitions = given.repeat or (3 if given.full else 1)
        run_rows(rows, results, repetitions=repetitions, time_s=60.0 * given.minutes)
    report = make_report([row for row in rows if results.count(row.key)], results)
    FOLDER.mkdir(exist_ok=True)
    report_file.write_text(json.dumps(report, indent=1))
    if given.page is not None:
        given.page.write_text(put_into(given.page.read_text(), make_page(report)))
    print_report(report)
    faults = faults_of(report)
    for fault in faults:
        print(f"WRONG  {fault}", file=sys.stderr)
    print(f"{len(rows)} rows, {len(faults)} wrong; {report_file}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
