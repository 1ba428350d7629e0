"""What entities ask for: equal where no rule can tell them apart."""

from typing import Any

import pytest

from muster.assembly.profiles import BUILT_IN
from muster.framework.groups import ObjectKey
from muster.framework.runner import Runner, Weighted
from muster.scheduling.asks import find_ask, policy_of, priority_of
from muster.scheduling.members import Cast, Members, group_entity
from muster.testing.builders import make_group, make_pod

RUNNER = Runner([Weighted(make()) for make in BUILT_IN.values()])
GROUP = {"min_count": 2}


def make_cast(name: str, pods: list[dict[str, Any]], **group: Any) -> Cast:
    members = Members(frozenset({"muster"}))
    members.see_group(make_group(name, **{**GROUP, **group}))
    for index, words in enumerate(pods):
        members.see_pod(make_pod(f"{name}-{index}", group=name, **words), ObjectKey("default", name))
    return members.cast(group_entity(ObjectKey("default", name)))


def ask(name: str, pods: list[dict[str, Any]], **group: Any) -> object:
    cast = make_cast(name, pods, **group)
    return find_ask(cast, cast.waiting(), RUNNER, frozenset())


LIKE = [{"cpu": 1}, {"cpu": 1}]


def test_gangs_that_differ_in_name_only_ask_alike() -> None:
    assert ask("a", LIKE) == ask("b", LIKE) is not None


@pytest.mark.parametrize(
    ("pods", "group"),
    [
        pytest.param([{"cpu": 1}, {"cpu": 2}], {}, id="shape"),
        pytest.param([{"cpu": 1}] * 3, {}, id="number"),
        pytest.param(LIKE, {"min_count": 1}, id="minimum"),
        pytest.param(LIKE, {"priority": 5}, id="priority"),
        pytest.param(LIKE, {"preemption_policy": "Never"}, id="policy"),
        pytest.param(LIKE, {"topology_keys": ("rack",)}, id="required-level"),
        pytest.param(LIKE, {"preferred_levels": ("rack",)}, id="preferred-level"),
    ],
)
def test_whatever_a_rule_reads_tells_them_apart(pods: list[dict[str, Any]], group: dict[str, Any]) -> None:
    assert ask("b", pods, **group) not in (None, ask("a", LIKE))


@pytest.mark.parametrize(
    ("pods", "group"),
    [
        pytest.param([{"cpu": 1}, {"cpu": 1, "node": "n1"}], {}, id="somebody-runs"),
        pytest.param(LIKE, {"parent": ObjectKey("default", "tree")}, id="part-of-a-tree"),
        pytest.param(LIKE, {"min_count": None}, id="no-gang"),
        pytest.param(LIKE, {"rank_key": "rank"}, id="by-rank"),
        pytest.param([], {}, id="nobody-waits"),
    ],
)
def test_one_with_a_history_or_terms_of_its_own_is_like_no_other(
    pods: list[dict[str, Any]], group: dict[str, Any]
) -> None:
    assert ask("a", pods, **group) is None


def test_labels_count_where_a_rule_reads_them() -> None:
    casts = [make_cast(name, [{"cpu": 1, "labels": {"app": name}}] * 2) for name in "ab"]
    first, second = (find_ask(cast, cast.waiting(), RUNNER, frozenset()) for cast in casts)
    assert first == second
    first, second = (find_ask(cast, cast.waiting(), RUNNER, frozenset({"app"})) for cast in casts)
    assert first != second


def test_one_member_that_drives_nobody_out_speaks_for_its_group() -> None:
    cast = make_cast("a", [{"cpu": 1}, {"cpu": 1, "preemption_policy": "Never"}])
    assert policy_of(cast, cast.waiting()) == "Never"


def test_a_groups_priority_is_its_own_and_a_lone_pods_the_pods() -> None:
    members = Members(frozenset({"muster"}))
    group = make_group("g", 1, priority=7)
    members.see_group(group)
    members.see_pod(make_pod("g-0", priority=3), group.key)
    lone = members.see_pod(make_pod("p", priority=5), None).member
    assert priority_of(members.cast(group_entity(group.key))) == 7
    assert priority_of(members.cast(lone.entity)) == 5
