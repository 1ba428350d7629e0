"""A pass: rows, what is kept and resumed, the table; small in-process rows that must be right."""

from pathlib import Path

import pytest
from bench.passes import run_rows
from bench.results import Results, median
from bench.rows import Row, by_worth, full_rows, quick_rows
from bench.table import SHOWN, faults_of, fit_exponent, make_report

from bench import hard_groups, impossible_gangs, in_process


def always(value: float, wrong: str = "") -> dict[str, object]:
    """A row that measures nothing."""
    figures: dict[str, object] = {"pods_per_s": value, "wrong": [wrong] if wrong else []}
    return figures


def broken() -> dict[str, object]:
    raise RuntimeError("no luck")


def row(subject: str, value: float, wrong: str = "") -> Row:
    return Row("end to end", "load", subject, always, {"value": value, "wrong": wrong})


def test_rows_have_names_of_their_own_and_a_part_that_is_printed() -> None:
    for rows in (quick_rows(), full_rows()):
        assert len({each.key for each in rows}) == len(rows)
        assert {each.part for each in rows} <= SHOWN.keys()


def test_the_quick_pass_has_a_row_of_every_part_but_the_cold_start() -> None:
    assert {each.part for each in quick_rows()} == SHOWN.keys() - {"cold start"}


def test_what_is_on_disk_is_not_measured_again(tmp_path: Path) -> None:
    file = tmp_path / "pass.jsonl"
    rows = [row("muster", 10.0), row("stock", 5.0)]
    run_rows(rows[:1], Results(file), repetitions=1)
    run_rows(rows, Results(file), repetitions=1)
    assert [Results(file).count(each.key) for each in rows] == [1, 1]


def test_after_its_time_a_pass_begins_no_row_and_goes_on_when_asked_again(tmp_path: Path) -> None:
    results = Results(tmp_path / "pass.jsonl")
    rows = [row("muster", 10.0), row("stock", 5.0), row("null", 7.0)]
    clock = iter([0.0, 0.0, 59.0, 60.0])
    run_rows(rows, results, repetitions=1, time_s=60.0, now_s=lambda: next(clock))
    assert [results.count(each.key) for each in rows] == [1, 1, 0]
    run_rows(rows, results, repetitions=1)
    assert [results.count(each.key) for each in rows] == [1, 1, 1]


def test_what_answers_a_goal_comes_before_what_takes_stock_minutes_and_quality_comes_last() -> None:
    keys = [each.key for each in by_worth(full_rows())]
    assert keys[0] == "end to end | 5,000 nodes, 1,000 × 3, streaming | null"
    assert keys.index("cold start | 5,000 nodes, 50,000 pods | muster") < keys.index(
        "end to end | 1,000 nodes, 1 × 5,000, backlog | muster"
    )
    slow = keys.index("end to end | 1,000 nodes, 1 × 10,000, streaming | stock")
    assert keys.index("muster up | 1,000 nodes, 500 × 20, streaming | muster") < slow
    assert all(key.startswith("placement quality") for key in keys[slow + 4 :])
    assert sorted(keys) == sorted(each.key for each in full_rows())


def test_ratios_are_those_of_the_medians(tmp_path: Path) -> None:
    results = Results(tmp_path / "pass.jsonl")
    rows = [row("muster", 0.0), row("stock", 0.0)]
    for ours, theirs in ((10.0, 4.0), (12.0, 6.0), (50.0, 7.0)):
        results.add(rows[0].key, {"pods_per_s": ours, "wrong": []})
        results.add(rows[1].key, {"pods_per_s": theirs, "wrong": []})
    assert make_report(rows, results)["ratios"][0]["figures"] == {"pods_per_s": 2.0}


def test_a_decision_not_timed_once_a_gang_is_void() -> None:
    runs = [{"algorithm_ms": 1.0, "decisions_void": True}, {"algorithm_ms": 3.0, "decisions_void": False}]
    assert median(runs, "algorithm_ms") == 3.0


def test_a_row_that_raises_is_wrong_and_the_pass_goes_on(tmp_path: Path) -> None:
    results = Results(tmp_path / "pass.jsonl")
    rows = [Row("end to end", "load", "muster", broken, {}), row("null", 1.0)]
    run_rows(rows, results, repetitions=1)
    report = make_report(rows, results)
    assert faults_of(report) == ["end to end | load | muster: RuntimeError: no luck"]
    assert results.count(rows[1].key) == 1


def test_what_stock_does_wrong_fails_no_pass(tmp_path: Path) -> None:
    results = Results(tmp_path / "pass.jsonl")
    rows = [row("stock", 1.0, "3 pods not bound")]
    results.add(rows[0].key, {"pods_per_s": 1.0, "wrong": ["3 pods not bound"]})
    assert faults_of(make_report(rows, results)) == []


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0])
def test_the_fitted_exponent_is_that_of_the_curve(exponent: float) -> None:
    points = [(size, 3.0 * size**exponent) for size in (1000.0, 5000.0, 50_000.0)]
    assert fit_exponent(points) == pytest.approx(exponent)


@pytest.mark.parametrize(
    "figures",
    [
        pytest.param(lambda: in_process.make_gangs(30, 10, 3), id="gangs"),
        pytest.param(lambda: in_process.make_gangs(40, 8, 4, 4), id="racks"),
        pytest.param(lambda: in_process.scale(200, 2), id="full-cluster"),
        pytest.param(lambda: impossible_gangs.storm(10, 60, 3), id="storm"),
        pytest.param(lambda: hard_groups.preempt(6), id="preemption"),
        pytest.param(lambda: hard_groups.make_trees(20, 4, 2, 3), id="composites"),
    ],
)
def test_small_rows_in_process_are_right(figures: object) -> None:
    assert callable(figures)
    measured = figures()
    assert measured["wrong"] == []
    assert not measured.get("decisions_void", False)


def test_gangs_that_cannot_all_fit_are_found_wrong() -> None:
    assert in_process.make_gangs(1, 11, 4)["wrong"] == ["40 of 44 pods bound"]
