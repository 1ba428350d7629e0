"""The slow checker of whole groups: trees of any depth, units that go together, what victims cost."""

import pytest
from tests.differential.oracle import (
    broken_groups,
    cheapest_victims,
    find_placement,
    price_of,
    units_below,
)
from tests.differential.rules import Cluster, Placed
from tests.differential.scenario import Arrival, Scenario, Short

NODES: dict[str, Short] = {name: {"cpu": 1} for name in ("n0", "n1", "n2")}


def pod(name: str, group: str | None = None, priority: str = "p6", **more: object) -> Short:
    grouped = {} if group is None else {"group": group}
    labels = {"app": "a"}
    return {"pod": name, "cpu": 1, "priorityClassName": priority, "labels": labels, **grouped, **more}


def group(name: str, gang: int, parent: str = "", **more: object) -> Short:
    under = {"parent": parent} if parent else {}
    return {"group": name, "gang": gang, "priorityClassName": "p6", **under, **more}


def composite(name: str, gang: int, parent: str = "", **more: object) -> Short:
    under = {"parent": parent} if parent else {}
    return {"composite": name, "gang": gang, "priorityClassName": "p6", **under, **more}


# x ── m (both of them) ── a (1), b (1)
#   └─ c (1)
DEEP = Arrival(
    "x",
    [group("a", 1, "m"), group("b", 1, "m"), group("c", 1, "x"), composite("m", 2, "x"), composite("x", 1)],
    [pod("a-0", "a"), pod("b-0", "b"), pod("c-0", "c")],
)


def scenario(*running: Short, arrival: Arrival = DEEP, **more: list[Short]) -> Scenario:
    return Scenario(
        1, "one", NODES, list(running), more.get("groups", []), [arrival], more.get("budgets", [])
    )


def cluster(*running: Short) -> Cluster:
    return Cluster(NODES, [Placed(short, short["node"]) for short in running])


def test_a_level_between_needs_its_own_minimum() -> None:
    (text,) = broken_groups(cluster(), DEEP, {"a-0": "n0", "c-0": "n1"})
    assert text == "m has 1 of 2 groups"


def test_a_tree_is_placed_by_the_branch_that_fits() -> None:
    full = cluster(*(pod(f"r{number}", node=f"n{number}") for number in range(2)))
    assert find_placement(full, DEEP) == {"c-0": "n2"}


def test_nothing_of_a_gated_arrival_may_be_bound() -> None:
    gated = Arrival("g", [group("g", 1)], [pod("g-0", "g"), pod("g-1", "g", gates=["wait"])])
    assert find_placement(cluster(), gated) is None
    assert list(broken_groups(cluster(), gated, {"g-0": "n0"})) == ["g is held back by a gate"]


RUNNING = [
    pod("v-0", "v", "p2", node="n0"),
    pod("w-0", "w", "p2", node="n1"),
    pod("l", None, "p3", node="n2"),
]


@pytest.mark.parametrize(
    ("root", "leaf", "units"),
    [
        ("all", "single", [{"v-0", "w-0"}, {"l"}]),
        ("single", "all", [{"v-0"}, {"w-0"}, {"l"}]),
        ("single", "single", [{"v-0"}, {"w-0"}, {"l"}]),
    ],
)
def test_the_topmost_group_that_goes_whole_is_the_unit(root: str, leaf: str, units: list[set[str]]) -> None:
    groups = [
        group("v", 1, "t", disruption=leaf),
        group("w", 1, "t", disruption=leaf),
        composite("t", 1, disruption=root),
    ]
    found = units_below(scenario(*RUNNING, groups=groups), cluster(*RUNNING), 60)
    assert [set(pods) for _, pods in found] == units


@pytest.mark.parametrize(("name", "expected"), [("p6", (0, 20, 1)), ("n6", None)])
def test_whose_policy_is_never_evicts_nobody(name: str, expected: tuple[int, int, int] | None) -> None:
    arrival = Arrival("x", [], [pod("x", None, name)])
    assert cheapest_victims(scenario(arrival=arrival), cluster(*RUNNING), arrival) == expected


def test_a_broken_budget_weighs_more_than_any_priority() -> None:
    kept = [*RUNNING[:2], pod("l", None, "p3", node="n2")]
    kept[0]["labels"] = kept[1]["labels"] = {"keep": "k"}
    arrival = Arrival("x", [], [pod("x")])
    guarded = scenario(arrival=arrival, budgets=[{"pdb": "k", "selector": {"keep": "k"}, "allowed": 0}])
    assert price_of(guarded, cluster(*kept), ["v-0", "w-0"]) == (2, 20, 2)
    assert cheapest_victims(guarded, cluster(*kept), arrival) == (0, 30, 1)
