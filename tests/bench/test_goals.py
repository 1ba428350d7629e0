"""Goals beside figures, and the page that shows both."""

from typing import Any

import pytest
from bench.goals import judge
from bench.page import BEGIN, END, make_page, put_into

BACKLOG = "5,000 nodes, 1,000 × 3, backlog"


def row(subject: str, name: str = BACKLOG, part: str = "end to end", **figures: float) -> dict[str, Any]:
    found = {each: {"median": value, "min": value, "max": value} for each, value in figures.items()}
    named = {"part": part, "name": name, "subject": subject}
    return {**named, "runs": 1, "figures": found, "void": False, "wrong": []}


def report(*rows: dict[str, Any]) -> dict[str, Any]:
    return {"machine": "two cores", "rows": list(rows), "ratios": [], "exponents": {}}


def verdict(text: str, *rows: dict[str, Any]) -> str:
    return next(goal.verdict for goal in judge(report(*rows)) if text in goal.text)


@pytest.mark.parametrize(("ours_ms", "expected"), [(1.0, "met"), (1.1, "missed")])
def test_the_algorithm_is_held_against_its_share_of_stocks(ours_ms: float, expected: str) -> None:
    rows = [row("muster", algorithm_ms=ours_ms), row("stock", algorithm_ms=8.0)]
    assert verdict("algorithm, 3-pod gang", *rows) == expected


def test_a_goal_without_figures_is_open_and_one_that_a_single_row_misses_is_missed() -> None:
    assert verdict("at least 90 %") == "open"
    rows = [row("null", pods_per_s=100.0), row("muster", pods_per_s=91.0)]
    assert verdict("at least 90 %", *rows) == "met"
    other = "1,000 nodes, 500 × 20, backlog"
    rows += [row("null", other, pods_per_s=100.0), row("muster", other, pods_per_s=89.0)]
    assert verdict("at least 90 %", *rows) == "missed"


def test_a_row_that_was_wrong_answers_no_goal() -> None:
    wrong = {**row("muster", pods_per_s=91.0), "wrong": ["a half gang"]}
    assert verdict("at least 90 %", row("null", pods_per_s=100.0), wrong) == "open"


def test_possible_gangs_in_a_storm_are_judged_both_ways_they_come() -> None:
    waits = {"possible_wait_ms": 1.1, "possible_wait_alone_ms": 1.0, "backlog_wait_alone_ms": 300.0}
    assert verdict("possible gangs wait", row("muster", "storm", "storm", **waits)) == "met"
    waits["backlog_wait_ms"] = 900.0
    assert verdict("possible gangs wait", row("muster", "storm", "storm", **waits)) == "missed"


def test_quality_is_the_difference_to_our_own_fgd() -> None:
    names = {"name": "openb default", "part": "placement quality"}
    rows = [row("fgd", unallocated=4.6, **names), row("muster", unallocated=4.4, **names)]  # type: ignore[arg-type]
    assert verdict("openb default", *rows) == "missed"
    assert verdict("nowhere more than", *rows) == "met"


def test_the_page_names_a_load_once_and_shows_only_figures_that_somebody_has() -> None:
    page = make_page(report(row("null", pods_per_s=100.0), row("muster", pods_per_s=91.0)))
    assert page.count(f"| {BACKLOG} |") == 1
    assert "|  | muster | 91 |" in page
    assert "peak MB" not in page
    assert f"| 0.91 ({BACKLOG}) | met |" in page


def test_tables_go_between_the_marks_of_a_page_and_nowhere_else() -> None:
    page = f"# Title\n{BEGIN}\nold\n{END}\nthe rest\n"
    assert put_into(page, "new\n") == f"# Title\n{BEGIN}\nnew\n{END}\nthe rest\n"
    with pytest.raises(ValueError, match="no part between"):
        put_into("# Title", "new")
