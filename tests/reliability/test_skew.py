"""What a release left is played as if it had been left now."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.reliability.skew import LEFT, PLAYS, moved_to

from muster import __version__


def test_every_time_is_moved_alike() -> None:
    said = {"said": "by 2026-01-01T00:01:00Z"}
    left = {"at": "2026-01-01T00:00:10Z", "pods": [said, "2025-12-31T23:59:59Z"]}
    moved = moved_to(left, datetime(2027, 1, 1, tzinfo=UTC))
    assert moved["pods"] == [{"said": "by 2027-01-01T00:00:50Z"}, "2026-12-31T23:59:49Z"]


def test_this_release_has_been_recorded() -> None:
    assert (LEFT / f"{__version__}.json").exists(), "play: scripts/reliability skew --record"


@pytest.mark.parametrize("path", sorted(LEFT.glob("*.json")), ids=lambda path: path.stem)
def test_a_record_has_every_state_that_is_played(path: Path) -> None:
    states = json.loads(path.read_text())
    assert {state for state, _, _ in PLAYS} <= states.keys()
