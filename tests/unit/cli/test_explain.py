"""Tests of cli/explain.py: what is said of a group, out of objects as an API server gives them."""

from typing import Any

import pytest

from muster.base.errors import ConfigError
from muster.cli.explain import lines_of, split_name
from muster.cli.picture import take_picture
from muster.framework.groups import ObjectKey

Object = dict[str, Any]


def explain(
    pods: list[Object],
    events: list[Object] | None = None,
    annotations: dict[str, str] | None = None,
    **status: Any,
) -> list[str]:
    """Explain the gang default/g of two GPU workers on one node with one GPU."""
    node = {"metadata": {"name": "n1"}, "status": {"allocatable": {"nvidia.com/gpu": "1", "pods": "9"}}}
    group = {
        "metadata": {"namespace": "default", "name": "g", "annotations": annotations},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}, "priority": 7},
        "status": status,
    }
    picture = take_picture([node], pods, [group])
    return lines_of(picture.groups[ObjectKey("default", "g")], picture, events or [])


def pod(name: str, node: str = "", phase: str = "Pending") -> Object:
    requests = {"nvidia.com/gpu": "1"}
    spec = {
        "nodeName": node,
        "schedulingGroup": {"podGroupName": "g"},
        "containers": [{"resources": {"requests": requests}}],
    }
    metadata = {"namespace": "default", "name": name}
    return {"metadata": metadata, "spec": spec, "status": {"phase": phase}}


def test_a_waiting_gang_is_told_with_needs_and_room() -> None:
    assert explain([pod("g-0"), pod("g-1")]) == [
        "default/g  (gang, minCount 2, priority 7)  cannot run yet: 0 of 2 needed members have a node",
        "  members    2: 2 waiting",
        "  needs      2 nvidia.com/gpu more",
        "  cluster    1 of 1 nvidia.com/gpu free on 1 nodes",
    ]


def test_a_gang_short_of_members_says_so() -> None:
    assert "waits for members: 1 of 2 exist" in explain([pod("g-0")])[0]
    assert explain([])[1] == "  members    none created yet"


@pytest.mark.parametrize(
    ("phase", "state"), [("Running", "can run: 2 placed of 2 needed"), ("Succeeded", "all members are done")]
)
def test_a_gang_that_got_what_it_needs_says_so(phase: str, state: str) -> None:
    assert state in explain([pod("g-0", "n1", phase), pod("g-1", "n1", phase)])[0]


def test_conditions_that_matter_are_shown() -> None:
    conditions = [
        {
            "type": "PodGroupInitiallyScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": "why",
        },
        {"type": "Other", "status": "True", "reason": "X", "message": "y"},
    ]
    lines = explain([pod("g-0")], conditions=conditions)
    assert "  condition  PodGroupInitiallyScheduled=False Unschedulable: why" in lines
    assert not any("Other" in line for line in lines)


def test_a_gang_that_is_half_held_is_told_with_the_cure() -> None:
    message = '2 created, 1 bound; half-held for more than 300 s; set muster.dev/release-bare-pods: "true"'
    half = {"type": "muster.dev/Whole", "status": "False", "reason": "HalfHeld", "message": message}
    lines = explain([pod("g-0", "n1"), pod("g-1")], conditions=[half])
    told = " ".join(" ".join(lines).split())
    assert f"condition muster.dev/Whole=False HalfHeld: {message}" in told


def test_what_was_said_once_is_not_said_again() -> None:
    said = {"status": "False", "reason": "Unschedulable", "message": "no room"}
    conditions = [{"type": "PodGroupInitiallyScheduled", **said}, {"type": "muster.dev/Waiting", **said}]
    event: Object = {"eventTime": "2026-01-01T00:00:00Z", "reason": "FailedScheduling", "note": "no room"}
    event["regarding"] = {"name": "g-0"}
    lines = explain([pod("g-0")], [event], conditions=conditions)
    assert sum("no room" in line for line in lines) == 1
    assert lines[-1] == "  event      2026-01-01T00:00:00 g-0 FailedScheduling"


def test_annotations_that_say_nothing_on_the_pods_are_told() -> None:
    pods = [pod(f"g-{index}") for index in range(3)]
    for each in pods[1:]:
        each["metadata"]["annotations"] = {"muster.dev/bind-timeout": "1m", "muster.dev/run-seconds": "3"}
    told = " ".join(" ".join(explain(pods)).split())
    assert told.endswith(
        "ignored metadata.annotations[muster.dev/bind-timeout] of 2 of 3 pods, for example g-1: "
        "says nothing on a pod; give it to pod group default/g"
    )


def test_an_annotation_that_the_group_reads_as_a_rank_is_not_ignored() -> None:
    ranked = pod("g-0")
    ranked["metadata"]["annotations"] = {"muster.dev/rank": "0"}
    annotations = {"muster.dev/rank-order": "muster.dev/rank"}
    assert not any("ignored" in line for line in explain([ranked], annotations=annotations))


def test_long_reasons_are_folded_into_100_columns() -> None:
    said = {"status": "False", "reason": "Unschedulable", "message": "no room for it " * 20}
    lines = explain([pod("g-0")], conditions=[{"type": "PodGroupInitiallyScheduled", **said}])
    assert max(map(len, lines)) <= 100
    assert " ".join(" ".join(lines).split()).count("no room for it") == 20


def test_a_deadlock_is_told() -> None:
    text = " ".join(explain([pod("g-0", "n1"), pod("g-1")]))
    assert "  why        deadlock: default/g holds 1 nvidia.com/gpu" in text


def test_the_latest_events_come_last_and_at_most_five() -> None:
    events = [
        {"eventTime": f"2026-01-01T00:00:0{second}Z", "type": "Warning", "reason": "R", "note": str(second)}
        for second in (7, 3, 5, 1, 9, 8)
    ]
    shown = [line for line in explain([pod("g-0")], events) if line.startswith("  event")]
    assert [line[-1] for line in shown] == ["3", "5", "7", "8", "9"]


@pytest.mark.parametrize(
    ("text", "expected"), [("a/b", ("a", "b")), ("b", ("default", "b"))], ids=["whole", "bare"]
)
def test_a_bare_name_is_in_the_default_namespace(text: str, expected: tuple[str, str]) -> None:
    assert split_name(text) == expected


@pytest.mark.parametrize("text", ["", "a/", "/b", "a/b/c"])
def test_what_is_no_name_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="is not NAMESPACE/GROUP"):
        split_name(text)
