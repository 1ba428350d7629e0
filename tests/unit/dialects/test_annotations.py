"""Wishes in annotations."""

import pytest

from muster.dialects.annotations import LEVELS, PREFERRED_KEY, RANK_ORDER, read_wishes


def test_levels_are_read_in_order_and_a_single_key_is_one_level() -> None:
    assert read_wishes({LEVELS: "zone, topology.example.com/block,rack"}).levels == (
        "zone",
        "topology.example.com/block",
        "rack",
    )
    assert read_wishes({PREFERRED_KEY: "rack"}).levels == ("rack",)


def test_the_rank_key_is_a_label_or_annotation() -> None:
    key = "batch.kubernetes.io/job-completion-index"
    assert read_wishes({RANK_ORDER: key}).rank_key == key


def test_annotations_of_others_mean_nothing() -> None:
    wishes = read_wishes({"example.com/topology-levels": "???"})
    assert (wishes.levels, wishes.rank_key, wishes.unreadable) == ((), "", ())


@pytest.mark.parametrize(
    ("annotations", "part"),
    [
        pytest.param({LEVELS: "zone,,rack"}, '"" is no label key', id="empty-level"),
        pytest.param({LEVELS: "zone,zone"}, "given twice", id="level-twice"),
        pytest.param({LEVELS: "a b"}, '"a b" is no label key', id="blank"),
        pytest.param({PREFERRED_KEY: ""}, '"" is no label key', id="no-key"),
        pytest.param({PREFERRED_KEY: "rack", LEVELS: "zone"}, "not both", id="both"),
        pytest.param({RANK_ORDER: "-"}, '"-" is no key', id="rank"),
        pytest.param({"muster.dev/topology-level": "rack"}, "there is no such annotation", id="misspelt"),
    ],
)
def test_what_cannot_be_read_is_named(annotations: dict[str, str], part: str) -> None:
    fields = read_wishes(annotations).unreadable
    assert len(fields) == 1
    assert fields[0].path.startswith("metadata.annotations[muster.dev/")
    assert part in fields[0].why
