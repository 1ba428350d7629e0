"""`muster simulate` tells what it saw, and ends in failure when a promise was broken."""

import json

import pytest
import typer

from muster.base.errors import ConfigError
from muster.cli.simulate import simulate
from muster.framework.status import Status
from muster.plugins.gang_scheduling import GangScheduling


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
    with pytest.raises(ConfigError, match="no such scenario: 'storm'") as caught:
        simulate(scenario="storm")
    assert "churn" in caught.value.hint
