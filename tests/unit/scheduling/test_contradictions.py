"""On what members and group must agree."""

from typing import Any

import pytest

from muster.scheduling.contradictions import find_contradiction
from muster.scheduling.members import Members, group_entity
from muster.testing.builders import make_group, make_pod

NAMES = "all pods in a single pod group should have the same .spec.schedulerName set, got: "
PRIORITY = "all pods in a single pod group should have the same priority as the pod group's priority, got "
POLICY = "all pods in a single pod group should have the same preemption policy"


@pytest.mark.parametrize(
    ("group", "pods", "expected"),
    [
        pytest.param({}, [{}, {}], None, id="all-agree"),
        pytest.param({}, [{}, {"scheduler": "b"}], f'{NAMES}"muster" and "b"', id="names"),
        pytest.param(
            {},
            [{"scheduler": "other", "node": "n1"}, {}],
            f'{NAMES}"other" and "muster"',
            id="placed-name-first",
        ),
        pytest.param({}, [{"priority": 100}], f"{PRIORITY}100 and 0", id="priority"),
        pytest.param({"priority": 7}, [{}], f"{PRIORITY}0 and 7", id="no-priority-is-zero"),
        pytest.param(
            {"preemption_policy": "PreemptLowerPriority"},
            [{"preemption_policy": "Never"}],
            f"{POLICY} as the pod group's preemption policy, got Never and PreemptLowerPriority",
            id="policy-of-the-group",
        ),
        pytest.param(
            {},
            [{}, {"preemption_policy": "Never"}],
            f"{POLICY}, got PreemptLowerPriority and Never",
            id="policies",
        ),
        pytest.param({}, [], None, id="no-members"),
    ],
)
def test_the_first_contradiction_is_told_in_stocks_words(
    group: dict[str, Any], pods: list[dict[str, Any]], expected: str | None
) -> None:
    members = Members(frozenset({"muster", "b"}))
    key = make_group("g").key
    members.see_group(make_group("g", 2, **group))
    for index, words in enumerate(pods):
        members.see_pod(make_pod(f"g-{index}", **words), key)
    cast = members.cast(group_entity(key))
    assert find_contradiction(cast, cast.waiting()) == expected


def test_a_lone_pod_contradicts_nobody() -> None:
    members = Members(frozenset({"muster"}))
    member = members.see_pod(make_pod("p", priority=9), None).member
    cast = members.cast(member.entity)
    assert find_contradiction(cast, cast.waiting()) is None
