"""The report as Markdown: the goals, then every part's table, as `docs/performance.md` shows them.

In comes a report (`table.py`); out comes text.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from bench.goals import Goal, judge
from bench.table import SHOWN, cell

BEGIN, END = "<!-- measured -->", "<!-- end of what was measured -->"


def make_page(report: dict[str, Any]) -> str:
    """All of it; `report["machine"]` is named once."""
    runs = sorted({row["runs"] for row in report["rows"]})
    lines = [f"Machine: {report['machine']}; runs a row: {', '.join(map(str, runs))}.", "", "### Goals", ""]
    lines += _table(("goal", "measured", ""), [_goal(goal) for goal in judge(report)])
    for part, rows in groupby(report["rows"], key=lambda row: row["part"]):
        lines += ["", f"### {part[0].upper()}{part[1:]}", "", *_part(part, list(rows))]
    for name, exponent in report["exponents"].items():
        lines += ["", f"Time grows with the number of nodes to the power of {exponent:.2f} ({name})."]
    return "\n".join(lines) + "\n"


def put_into(page: str, tables: str) -> str:
    """The page with these tables between its two marks.  Raises ValueError where it has none."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no part between {BEGIN} and {END}")
    return f"{before}{begin}\n{tables}{end}{after}"


def _part(part: str, rows: list[dict[str, Any]]) -> list[str]:
    shown = [
        each for each in SHOWN[part] if any(each[0] in row["figures"] for row in rows)
    ]  # a figure that nobody has is no column
    body = []
    before = ""
    for row in rows:
        mark = " (wrong)" if row["wrong"] else " (void)" if row["void"] else ""
        cells = [cell(row["figures"].get(name), form) for name, _, form in shown]
        body.append((row["name"] if row["name"] != before else "", row["subject"] + mark, *cells))
        before = row["name"]
    return _table(("load", "who", *(heading for _, heading, _ in shown)), body)


def _goal(goal: Goal) -> tuple[str, str, str]:
    """Its best and worst row, or all where there are few."""
    found = sorted(goal.found, key=lambda pair: pair[1])
    if len(found) > 3:
        found = [found[0], found[-1]]
    told = "; ".join(f"{value:{goal.form}} ({name})" for name, value in found)
    return goal.text, told or "–", goal.verdict


def _table(headings: Sequence[str], body: Sequence[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(line)} |" for line in (headings, ["---"] * len(headings), *body)]
