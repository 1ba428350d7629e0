"""The row of a Job."""

from typing import Any

import pytest

from muster.apiserver.kinds import Object
from muster.apiserver.strategies.job_table import COLUMNS, job_cells

NOW_S = 1_767_225_600.0  # 2026-01-01T00:00:00Z


def row(status: Object | None = None, spec: Object | None = None, **meta: Any) -> list[Any]:
    whole = {"metadata": {"name": "j", **meta}, "spec": spec or {}, "status": status or {}}
    return job_cells(whole, NOW_S)


def true(*types: str) -> Object:
    return {"conditions": [{"type": type_, "status": "True"} for type_ in types]}


@pytest.mark.parametrize(
    ("status", "word"),
    [
        pytest.param({}, "Running", id="nothing said"),
        pytest.param(true("SuccessCriteriaMet", "Complete"), "Complete", id="complete"),
        pytest.param(true("Failed"), "Failed", id="failed"),
        pytest.param(true("Suspended"), "Suspended", id="suspended"),
        pytest.param(true("FailureTarget"), "FailureTarget", id="about to fail"),
        pytest.param(true("SuccessCriteriaMet"), "SuccessCriteriaMet", id="about to succeed"),
    ],
)
def test_one_word_says_how_a_job_is(status: Object, word: str) -> None:
    assert row(status)[1] == word


def test_a_job_on_its_way_out_is_terminating() -> None:
    assert row(deletionTimestamp="t")[1] == "Terminating"


@pytest.mark.parametrize(
    ("spec", "shown"),
    [
        pytest.param({"completions": 3, "parallelism": 3}, "2/3", id="of a number"),
        pytest.param({"parallelism": 5}, "2/1 of 5", id="any one of several"),
        pytest.param({"parallelism": 1}, "2/1", id="one"),
    ],
)
def test_completions_are_counted(spec: Object, shown: str) -> None:
    assert row({"succeeded": 2}, spec)[2] == shown


def test_a_duration_ends_with_the_job() -> None:
    assert row()[3] == ""
    started = {"startTime": "2025-12-31T23:59:00Z"}
    assert row(started)[3] == "60s"
    assert row({**started, "completionTime": "2025-12-31T23:59:05Z"})[3] == "5s"


def test_wide_columns_show_containers_and_selector() -> None:
    containers = [{"name": "a", "image": "i"}, {"name": "b", "image": "j"}]
    spec = {"template": {"spec": {"containers": containers}}, "selector": {"matchLabels": {"x": "y"}}}
    assert row(spec=spec)[5:] == ["a,b", "i,j", "x=y"]
    assert len(COLUMNS) == 8
