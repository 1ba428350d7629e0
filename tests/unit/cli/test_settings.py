"""Tests of cli/settings.py: a file gives the settings, names on the command line overrule it."""

from pathlib import Path

import pytest

from muster.base.errors import ConfigError
from muster.cli.settings import read_settings


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "muster.yaml"
    path.write_text("schedulerNames: [from-file]\nqueue: {initialBackoffSeconds: 3}\n")
    return path


def test_without_a_file_there_are_defaults() -> None:
    assert read_settings(None, None).scheduler_names == ("muster", "default-scheduler")


def test_the_file_counts(file: Path) -> None:
    config = read_settings(file, None)
    assert config.scheduler_names == ("from-file",)
    assert config.queue.initial_backoff_seconds == 3


def test_names_overrule_the_file_and_nothing_else_of_it(file: Path) -> None:
    config = read_settings(file, ("a", "b"))
    assert config.scheduler_names == ("a", "b")
    assert config.queue.initial_backoff_seconds == 3


def test_a_mistake_names_file_and_field(file: Path) -> None:
    file.write_text("queue: {initialBackofSeconds: 3}\n")
    with pytest.raises(ConfigError, match=rf"{file}: \$\.queue"):
        read_settings(file, None)


@pytest.mark.parametrize("content", [None, b"\xff\xfe"], ids=["missing", "binary"])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "other.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=f"--config {path}: "):
        read_settings(path, None)
