"""The notation of the cases means what it says."""

from pathlib import Path

import pytest
import yaml
from tests.conformance.case import CASE_FILES, load_cases
from tests.conformance.expectations import CHECKS
from tests.conformance.left_out import LEFT_OUT
from tests.conformance.matching import field_at, has_part, says
from tests.conformance.names import JobNames, job_names, spread, spread_all

FILES = sorted(CASE_FILES.glob("*.yaml"))


def test_a_range_is_spelt_out_and_other_names_stand_for_themselves() -> None:
    assert spread("g-[0..2]") == ["g-0", "g-1", "g-2"]
    assert spread("g-0") == ["g-0"]
    assert spread_all(["a", "n[9..10]x"]) == ["a", "n9x", "n10x"]


def test_job_names_are_those_of_live_objects() -> None:
    vectors = yaml.safe_load((CASE_FILES / "job.yaml").read_text(encoding="utf-8"))["vectors"]
    for vector in vectors:
        wanted = JobNames(vector["workload"], vector["template"], vector["group"])
        assert job_names(vector["job"], vector["uid"]) == wanted
    assert len(vectors) == 2


@pytest.mark.parametrize(
    ("wanted", "found", "fits"),
    [
        pytest.param({"a": None}, {}, True, id="none-is-not-there"),
        pytest.param({"a": None}, {"a": 1}, False, id="none-is-not-something"),
        pytest.param([1], [1, 2], False, id="a-list-has-as-many-items"),
        pytest.param([2, 1], [1, 2], True, id="in-any-order"),
        pytest.param(
            [{"type": "A", "status": "True"}],
            [{"type": "B", "status": "True"}, {"type": "A", "status": "True", "reason": "R"}],
            True,
            id="other-conditions-may-stand-beside",
        ),
        pytest.param({"a": {"b": 1}}, {"a": None}, False, id="a-part-of-nothing"),
    ],
)
def test_has_part(wanted: object, found: object, fits: bool) -> None:
    assert has_part(wanted, found) is fits


def test_a_field_is_found_by_index_by_type_and_by_name() -> None:
    thing = {"status": {"conditions": [{"type": "A", "message": "m"}]}, "items": [{"name": "x", "v": 3}]}
    assert field_at(thing, "status.conditions.A.message") == "m"
    assert field_at(thing, "status.conditions[0].type") == "A"
    assert field_at(thing, "items.x.v") == 3
    assert field_at(thing, "status.conditions.1") is None


def test_texts_are_compared_only_when_asked() -> None:
    assert says("room", "no room here", compare_texts=True)
    assert not says("=room", "no room here", compare_texts=True)
    assert says("anything", "some text", compare_texts=False)
    assert not says("anything", "", compare_texts=False)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_word_of_every_expectation_is_known(file: Path) -> None:
    for case in load_cases(file):
        for step in case.steps:
            ((verb, arguments),) = step.items()
            if verb in ("expect", "right", "stock"):
                assert set(arguments) - {"within", "settle"} <= set(CHECKS), case.id


def test_ids_are_unique_and_the_table_of_those_left_out_names_real_ones() -> None:
    ids = [case.id for file in FILES for case in load_cases(file)]
    assert len(ids) == len(set(ids))
    assert set(LEFT_OUT) <= set(ids)
