"""A sweep that was stopped goes on where it was, and plays again what was broken."""

from pathlib import Path

from tests.reliability.record import Record


def test_what_was_good_in_an_earlier_run_is_there_and_counts(tmp_path: Path) -> None:
    Record(tmp_path / "r").add("a", [], gap_s=1.5)
    later = Record(tmp_path / "r")
    assert later.has("a")
    assert later.items == [{"name": "a", "broken": [], "gap_s": 1.5}]


def test_what_broke_is_played_again_and_the_new_outcome_counts(tmp_path: Path) -> None:
    Record(tmp_path / "r").add("a", ["it holds 3 of 20"])
    later = Record(tmp_path / "r")
    assert not later.has("a")
    assert later.broken == ["a: it holds 3 of 20"]
    later.add("a", [])
    assert Record(tmp_path / "r").broken == []


def test_without_a_file_nothing_is_kept(tmp_path: Path) -> None:
    Record(None).add("a", [])
    assert not Record(None).has("a")
