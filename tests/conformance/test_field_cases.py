"""The table of field cases is whole, and what it names exists."""

import re
from itertools import chain
from pathlib import Path

import yaml
from tests.conformance.case import load_cases

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
SCENARIOS = HERE.parent / "scenarios" / "field"
TABLE = yaml.safe_load((HERE / "field_cases.yaml").read_text(encoding="utf-8"))
IDS = [line.split()[0] for line in (HERE / "field_case_ids.txt").read_text(encoding="utf-8").splitlines()]


def test_every_case_is_tested() -> None:
    named = set(chain(*TABLE["tested"].values(), *TABLE["elsewhere"].values()))
    assert sorted(named) == sorted(IDS)


def test_case_files_hold_exactly_the_cases_that_the_table_gives_them() -> None:
    for file in sorted(SCENARIOS.glob("*.yaml")):
        assert [case.id for case in load_cases(file)] == TABLE["tested"][file.name], file.name


def test_python_tests_are_named_after_the_cases_that_the_table_gives_them() -> None:
    for name, ids in TABLE["tested"].items():
        if name.startswith("test_"):
            text = (SCENARIOS / name).read_text(encoding="utf-8")
            found = {
                case_id.upper() for case_id in re.findall(r"^def test_\w+_(b\d{3})\(", text, re.MULTILINE)
            }
            assert found == set(ids), name


def test_what_the_table_names_elsewhere_is_there() -> None:
    for file, names in TABLE["elsewhere"].items():
        text = (ROOT / file).read_text(encoding="utf-8")
        missing = [name for name in names.values() if not re.search(rf"\b{name}\b", text)]
        assert not missing, file


def test_every_placement_case_spells_out_a_field_case() -> None:
    assert list(TABLE["placement"]) == ["P02", "P04", "P05", "P07", "P08", "P09"]
    assert set(TABLE["placement"].values()) <= set(IDS)
