"""What `muster run` makes of its options."""

from pathlib import Path

import pytest

from muster.base.errors import ConfigError
from muster.cli.run import check_names, parse_boolean, settings_of


def test_names_keep_their_order_and_repeats_go() -> None:
    assert check_names(["b", "a", "b"]) == ("b", "a")


@pytest.mark.parametrize("name", ["", "Muster", "a b", "-a", "a/b", "x" * 254])
def test_a_name_that_no_lease_can_have_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="--scheduler-name: needs lower-case letters"):
        check_names([name])


@pytest.mark.parametrize(("text", "expected"), [("true", True), ("FALSE", False), ("0", False), ("t", True)])
def test_booleans_are_written_as_for_the_stock_components(text: str, expected: bool) -> None:
    assert parse_boolean(text, "--leader-elect") is expected


def test_another_word_is_refused_with_the_option() -> None:
    with pytest.raises(ConfigError, match="--leader-elect: needs true or false, got 'no'"):
        parse_boolean("no", "--leader-elect")


def test_the_default_leaves_the_stock_schedulers_pods_alone() -> None:
    assert settings_of(None, None).scheduler_names == ("muster",)


def test_a_file_may_name_others(tmp_path: Path) -> None:
    file = tmp_path / "muster.yaml"
    file.write_text("schedulerNames: [a, b]\n")
    assert settings_of(file, None).scheduler_names == ("a", "b")
    assert settings_of(file, ["c"]).scheduler_names == ("c",)


def test_a_name_in_the_file_is_checked_too(tmp_path: Path) -> None:
    file = tmp_path / "muster.yaml"
    file.write_text("schedulerNames: [A B]\n")
    with pytest.raises(ConfigError, match="needs lower-case letters"):
        settings_of(file, None)
