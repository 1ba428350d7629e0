"""Tests of cli/main.py: verbs, exit codes, and that asking for help costs nothing."""

import errno
import subprocess
import sys

import pytest

from muster.base.errors import ApiError, ConfigError, ObjectInvalid
from muster.cli import main


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    """Run the command line in this process and give its exit code."""
    monkeypatch.setattr(sys, "argv", ["muster", *words])
    with pytest.raises(SystemExit) as ended:
        main.main()
    return int(ended.value.code or 0)


def test_help_names_every_verb(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "--help") == 0
    text = capsys.readouterr().out
    assert all(f"\n  {verb} " in text for verb in ("demo", "up", "run", "check", "explain", "node"))


def test_version_is_that_of_the_package(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import muster

    assert run(monkeypatch, "--version") == 0
    assert capsys.readouterr().out == f"muster {muster.__version__}\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param(["up", "--nods", "3"], "No such option: --nods (Possible options:", id="option"),
        pytest.param(["upp"], "No such command 'upp'", id="verb"),
        pytest.param(["up", "--port", "http"], "Invalid value for '--port'", id="value"),
        pytest.param(["up", "--port", "70000"], "less than or equal to 65535", id="range"),
        pytest.param(["simulate", "--seed", "-1"], "greater than or equal to 0", id="seed"),
        pytest.param(["explain"], "Missing argument", id="missing-argument"),
    ],
)
def test_a_usage_error_is_named_and_ends_with_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    assert run(monkeypatch, *words) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        pytest.param(
            ConfigError("is wrong", path="f.yaml", hint="mend it"),
            2,
            "muster: f.yaml: is wrong\nhint: mend it\n",
            id="a-file-of-the-user",
        ),
        pytest.param(
            OSError(errno.ENOSPC, "No space left on device"),
            1,
            "muster: No space left on device\n",
            id="nowhere-to-print-to",
        ),
        pytest.param(ApiError("not found", code=404), 1, "muster: not found\n", id="the-server-refused"),
        pytest.param(ObjectInvalid("Pod: \x1b[2J"), 1, "muster: Pod: \\x1b[2J\n", id="no-object-of-the-api"),
    ],
)
def test_an_error_a_user_can_mend_is_a_line_and_a_hint(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: Exception,
    code: int,
    text: str,
) -> None:
    def fail() -> None:
        raise error

    monkeypatch.setattr(main, "app", fail)
    monkeypatch.setattr(sys, "argv", ["muster"])
    with pytest.raises(SystemExit) as ended:
        main.main()
    assert ended.value.code == code
    assert capsys.readouterr().err == text


def test_help_imports_nothing_heavy() -> None:
    heavy = ("numpy", "aiohttp", "rich", "yaml", "cryptography", "msgspec")
    script = f"import sys, muster.cli.main; print([m for m in {heavy!r} if m in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert loaded == "[]\n"
