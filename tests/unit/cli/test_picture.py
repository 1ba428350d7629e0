"""Tests of cli/picture.py: what groups hold and need, and who blocks whom, out of API objects."""

from typing import Any

import pytest

from muster.cli.picture import Picture, natural_order, take_picture
from muster.framework.groups import ObjectKey

Object = dict[str, Any]
GPU = "nvidia.com/gpu"


def node(name: str, gpus: int = 1, **spec: Any) -> Object:
    amounts = {"cpu": "8", "memory": "64Gi", "pods": "110", GPU: str(gpus)}
    return {"metadata": {"name": name}, "spec": spec, "status": {"allocatable": amounts}}


def group(name: str, min_count: int | None = None) -> Object:
    policy = {"basic": {}} if min_count is None else {"gang": {"minCount": min_count}}
    return {"metadata": {"namespace": "default", "name": name}, "spec": {"schedulingPolicy": policy}}


def pod(name: str, group: str | None, node: str = "", phase: str = "Pending", gpus: int = 1) -> Object:
    spec: Object = {
        "nodeName": node,
        "containers": [{"name": "c", "resources": {"requests": {GPU: str(gpus), "cpu": "500m"}}}],
    }
    if group is not None:
        spec["schedulingGroup"] = {"podGroupName": group}
    metadata = {"namespace": "default", "name": name, "uid": name}
    return {"metadata": metadata, "spec": spec, "status": {"phase": phase}}


def members(name: str, placed: list[str], waiting: int) -> list[Object]:
    running = [pod(f"{name}-{index}", name, where, "Running") for index, where in enumerate(placed)]
    return running + [pod(f"{name}-{len(placed) + index}", name) for index in range(waiting)]


@pytest.fixture
def deadlock() -> Picture:
    """Two basic groups of three on four nodes, two placed each."""
    nodes = [node(f"n{number}") for number in range(1, 5)]
    pods = members("a", ["n1", "n3"], 1) + members("b", ["n2", "n4"], 1)
    return take_picture(nodes, pods, [group("a"), group("b")])


def test_groups_that_hold_what_the_other_needs_are_deadlocked(deadlock: Picture) -> None:
    assert [entry.group.key.name for entry in deadlock.deadlocked] == ["a", "b"]


def test_the_deadlock_is_told_with_who_holds_what(deadlock: Picture) -> None:
    assert deadlock.explain_deadlock() == (
        "deadlock: default/a holds 2 nvidia.com/gpu and needs 1 nvidia.com/gpu more; "
        "default/b holds 2 nvidia.com/gpu and needs 1 nvidia.com/gpu more; "
        "free: 0 of 4 nvidia.com/gpu; none of them gives anything back before it has run"
    )


def test_a_free_node_ends_the_deadlock() -> None:
    nodes = [node(f"n{number}") for number in range(1, 6)]
    pods = members("a", ["n1", "n3"], 1) + members("b", ["n2", "n4"], 1)
    picture = take_picture(nodes, pods, [group("a"), group("b")])
    assert picture.deadlocked == ()
    assert picture.explain_deadlock() == ""


def test_a_cordoned_node_does_not() -> None:
    nodes = [node(f"n{number}") for number in range(1, 5)] + [node("n5", unschedulable=True)]
    pods = members("a", ["n1", "n3"], 1) + members("b", ["n2", "n4"], 1)
    assert len(take_picture(nodes, pods, [group("a"), group("b")]).deadlocked) == 2


def test_a_lone_pod_that_runs_may_end_and_give_back() -> None:
    nodes = [node(f"n{number}") for number in range(1, 5)]
    pods = [*members("a", ["n1", "n3"], 1), pod("lone", None, "n2", "Running"), *members("b", ["n4"], 2)]
    assert take_picture(nodes, pods, [group("a"), group("b")]).deadlocked == ()


def test_a_gang_wants_only_what_is_missing_to_its_minimum() -> None:
    pods = members("g", ["n1"], 3)
    found = take_picture([node("n1")], pods, [group("g", 2)]).groups[ObjectKey("default", "g")]
    assert (found.needed, found.placed, found.can_run) == (2, 1, False)
    assert found.wanted == {"cpu": 500, GPU: 1}


def test_succeeded_members_count_and_hold_nothing() -> None:
    pods = [pod("g-0", "g", "n1", "Succeeded"), pod("g-1", "g", "n1", "Running")]
    found = take_picture([node("n1")], pods, [group("g", 2)]).groups[ObjectKey("default", "g")]
    assert found.can_run
    assert found.held == {"cpu": 500, GPU: 1}
    assert not found.ended


def test_a_group_without_members_cannot_run() -> None:
    found = take_picture([], [], [group("g", 2)]).groups[ObjectKey("default", "g")]
    assert not found.can_run
    assert not found.ended


def test_totals_leave_out_what_ended() -> None:
    pods = [pod("x", None, "n1", "Failed"), pod("y", None, "n1", "Running")]
    picture = take_picture([node("n1", gpus=4)], pods, [])
    assert (picture.requested[GPU], picture.allocatable[GPU]) == (1, 4)


def test_numbers_in_names_sort_as_numbers() -> None:
    assert sorted(["n10", "n2", "a", "n", "n1x"], key=natural_order) == ["a", "n", "n1x", "n2", "n10"]
