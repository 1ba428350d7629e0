"""`muster simulate` tells what it saw, and ends in failure when a promise was broken."""

import json
from itertools import islice
from pathlib import Path

import pytest
import typer

from muster.base.errors import ConfigError
from muster.cli.simulate import _numbers, simulate
from muster.framework.status import Status
from muster.plugins.gang_scheduling import GangScheduling
from muster.sim import plays
from muster.sim.plays import PLAYS


def exit_code_of(**options: object) -> int:
    with pytest.raises(typer.Exit) as caught:
        simulate(**options)  # type: ignore[arg-type]
    return caught.value.exit_code


def test_a_summary_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(seed=16, seeds=2) == 0
    printed = capsys.readouterr().out
    assert "seeds                2, 0 with a violation" in printed
    assert "gang placed at once" in printed
    assert max(map(len, printed.splitlines())) <= 100


def test_one_json_line_a_seed_for_machines(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(seed=16, seeds=2, as_json=True) == 0
    reports = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [report["seed"] for report in reports] == [16, 17]


def test_a_broken_promise_is_told_with_its_replay(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(GangScheduling, "placement_feasible", lambda *_, **__: Status.success())
    assert exit_code_of(seed=2, seeds=1) == 1
    assert "replay: muster simulate --seed 2 --scenario churn --until-event" in capsys.readouterr().out


def test_an_unknown_scenario_is_named_with_those_there_are() -> None:
    with pytest.raises(ConfigError, match="no such scenario: 'calm'") as caught:
        simulate(scenario="calm")
    assert "churn" in caught.value.hint


def test_seeds_that_are_in_the_file_are_not_played_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "seeds.jsonl"
    exit_code_of(seed=16, seeds=1, results=results)
    exit_code_of(seed=16, seeds=2, results=results)
    lines = results.read_text().splitlines()
    assert [json.loads(line)["seed"] for line in lines] == [16, 17]
    assert "seeds                2, 0 with a violation" in capsys.readouterr().out


def test_more_seeds_are_played_only_while_there_is_time() -> None:
    assert list(_numbers(3, 2, minutes=0.0)) == [3, 4]
    assert list(islice(_numbers(3, 2, minutes=60.0), 5)) == [3, 4, 5, 6, 7]


@pytest.mark.parametrize(("seeds_min", "code"), [(3, 0), (2, 1)])
def test_a_kind_that_never_happened_is_printed_and_fails_over_enough_seeds(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    seeds_min: int,
    code: int,
) -> None:
    play = PLAYS["churn"]._replace(required=("gang placed at once", "pigs flew"), seeds_min=seeds_min)
    monkeypatch.setattr(plays, "PLAYS", {"churn": play})
    results = tmp_path / "seeds.jsonl"
    assert exit_code_of(seed=16, seeds=1, results=results) == 0  # a chunk: not judged alone
    capsys.readouterr()
    assert exit_code_of(seed=16, seeds=2, results=results) == code
    printed = capsys.readouterr().out.splitlines()
    assert "        0 pigs flew" in printed
    assert ("never happened: pigs flew" in printed) is bool(code)
