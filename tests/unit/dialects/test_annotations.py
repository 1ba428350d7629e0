"""Wishes in annotations."""

import pytest

from muster.dialects.annotations import KNOWN, LEVELS, PREFERRED_KEY, RANK_ORDER, find_idle, read_wishes
from muster.framework.annotations import ON_PODS
from muster.framework.groups import ObjectKey


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
        pytest.param({"muster.dev/gpu-milli": "500"}, "give it to the pods", id="of-pods"),
    ],
)
def test_what_cannot_be_read_is_named(annotations: dict[str, str], part: str) -> None:
    fields = read_wishes(annotations).unreadable
    assert len(fields) == 1
    assert fields[0].path.startswith("metadata.annotations[muster.dev/")
    assert part in fields[0].why


@pytest.mark.parametrize("name", KNOWN)
def test_what_is_for_groups_says_nothing_on_a_pod_and_is_sent_to_its_group(name: str) -> None:
    (field,) = find_idle({name: "1"}, ObjectKey("default", "g"))
    assert field.path == f"metadata.annotations[{name}]"
    assert field.why == "says nothing on a pod; give it to pod group default/g"


def test_a_pod_of_no_group_is_told_that_it_is_of_none() -> None:
    (field,) = find_idle({LEVELS: "rack"}, None)
    assert field.why == "says nothing on a pod; it is for pod groups, and this pod is of none"


@pytest.mark.parametrize("name", ["muster.dev/rank-ordr", "muster.dev/kubelet", "muster.dev/"])
def test_what_nobody_reads_on_a_pod_is_named_with_what_is_read(name: str) -> None:
    (field,) = find_idle({name: "1"}, None)
    assert field.why.startswith("nobody reads it on a pod; on pods there are muster.dev/gpu-milli, ")
    assert RANK_ORDER in field.why


def test_what_is_read_on_pods_and_annotations_of_others_are_not_idle() -> None:
    others = ("example.com/bind-timeout", "batch.kubernetes.io/job-completion-index", "muster.development/x")
    assert find_idle(dict.fromkeys((*ON_PODS, *others), "1"), None) == ()
