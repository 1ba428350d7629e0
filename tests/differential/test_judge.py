"""The judge finds out what is wrong, and explains only what the table for users explains."""

import re
from pathlib import Path

from msgspec import structs
from tests.differential.judge import EXPLANATIONS, Finding, judge, judge_strangers
from tests.differential.play import Outcome, Step
from tests.differential.scenario import Arrival, Scenario, Short

ROOT = Path(__file__).parent.parent.parent
NODES: dict[str, Short] = {
    "n0": {"cpu": 4, "labels": {"rack": "r0"}},
    "n1": {"cpu": 2, "labels": {"rack": "r1"}},
}


def member(name: str, cpu: int, **more: object) -> Short:
    return {"pod": name, "cpu": cpu, "priorityClassName": "p6", "group": "g", "labels": {"app": "a"}, **more}


def gang(minimum: int, *pods: Short, **more: str) -> Arrival:
    return Arrival("g", [{"group": "g", "gang": minimum, "priorityClassName": "p6", **more}], list(pods))


def scenario(arrival: Arrival, running: list[Short] | None = None) -> Scenario:
    return Scenario(1, "one", NODES, running or [], [], [arrival])


def runs(name: str, cpu: int, priority: str, node: str) -> Short:
    return {"pod": name, "cpu": cpu, "priorityClassName": priority, "labels": {"app": "b"}, "node": node}


def outcome(**places: str) -> Outcome:
    return Outcome(1, [Step({name.replace("_", "-"): node for name, node in places.items()}, True, {})])


def rules_of(findings: list[Finding]) -> list[str | None]:
    return [finding.rule for finding in findings]


PAIR = gang(2, member("g-0", 2), member("g-1", 4))


def test_equal_results_are_no_difference() -> None:
    both = outcome(g_0="n1", g_1="n0")
    assert judge(scenario(PAIR), both, both) == []


def test_a_gang_that_only_another_order_places_is_explained() -> None:
    assert rules_of(judge(scenario(PAIR), outcome(), outcome(g_0="n1", g_1="n0"))) == ["greedy-order"]


def test_a_gang_that_only_stock_places_is_not_explained() -> None:
    assert rules_of(judge(scenario(PAIR), outcome(g_0="n1", g_1="n0"), outcome())) == [None]


def test_a_torn_gang_is_found() -> None:
    (finding, *_) = judge(scenario(PAIR), outcome(), outcome(g_0="n1"))
    assert finding.rule is None
    assert "g has 1 of 2 members" in finding.text


def test_too_much_on_a_node_is_found() -> None:
    (finding,) = judge(scenario(PAIR), outcome(), outcome(g_0="n0", g_1="n0"))
    assert finding.rule is None
    assert "no order of placing obeys the rules" in finding.text


def test_a_group_over_two_racks_is_found() -> None:
    arrival = gang(2, member("g-0", 2), member("g-1", 2), topology="rack")
    (finding,) = judge(scenario(arrival), outcome(), outcome(g_0="n0", g_1="n1"))
    assert "domains ['r0', 'r1']" in finding.text


ONE = gang(1, member("g-0", 2))
FULL = [runs("a", 4, "p3", "n0"), runs("b", 2, "p5", "n1")]


def test_a_less_important_victim_is_explained_and_a_more_important_one_is_not() -> None:
    weaker, stronger = outcome(g_0="n0", b="n1"), outcome(g_0="n1", a="n0")
    assert rules_of(judge(scenario(ONE, FULL), stronger, weaker)) == ["victims-after-place"]
    assert rules_of(judge(scenario(ONE, FULL), weaker, stronger)) == [None]


def test_a_victim_that_is_not_weaker_is_found() -> None:
    full = [runs("a", 4, "p9", "n0"), runs("b", 2, "p5", "n1")]
    (finding,) = judge(scenario(ONE, full), outcome(g_0="n1", a="n0"), outcome(g_0="n0", b="n1"))
    assert "evicted ['a'], which are not weaker" in finding.text


TREE = Arrival(
    "t",
    [
        {"group": "a", "parent": "t", "gang": 2, "priorityClassName": "p6"},
        {"group": "b", "parent": "t", "gang": 1, "priorityClassName": "p6"},
        {"composite": "t", "gang": 1, "priorityClassName": "p6"},
    ],
    [member("a-0", 2, group="a"), member("a-1", 9, group="a"), member("b-0", 4, group="b")],
)


def test_victims_for_a_group_that_is_left_out_are_explained_of_stock_only() -> None:
    everybody, needed = outcome(b_0="n0"), outcome(b_0="n0", b="n1")
    assert rules_of(judge(scenario(TREE, FULL), everybody, needed)) == ["evicts-for-left-out"]
    assert "evicts-for-left-out" not in rules_of(judge(scenario(TREE, FULL), needed, everybody))


def test_pods_of_other_scenarios_evicted_are_explained_of_a_tree_of_stock_only() -> None:
    calm, robbed = Outcome(1, []), Outcome(2, [], frozenset({1}))
    for arrival, rules in ((TREE, ["evicts-for-left-out"]), (PAIR, [None])):
        assert rules_of(list(judge_strangers(scenario(arrival), [calm, robbed], [calm]))) == rules
        assert rules_of(list(judge_strangers(scenario(arrival), [calm], [calm, robbed]))) == [None]
    assert not list(judge_strangers(scenario(TREE), [calm], [calm]))


def test_a_broken_budget_costs_more_than_a_more_important_victim() -> None:
    full = [runs("a", 4, "p3", "n0") | {"labels": {"keep": "k"}}, runs("b", 2, "p5", "n1")]
    budgets = [{"pdb": "k", "selector": {"keep": "k"}, "allowed": 0}]
    guarded = structs.replace(scenario(ONE, full), budgets=budgets)
    kept, broken = outcome(g_0="n1", a="n0"), outcome(g_0="n0", b="n1")
    assert rules_of(judge(guarded, broken, kept)) == ["victims-after-place"]
    assert rules_of(judge(guarded, kept, broken)) == [None]


def test_whose_policy_is_never_may_evict_nobody() -> None:
    polite = gang(1, member("g-0", 2, priorityClassName="n6"))
    (finding,) = judge(scenario(polite, FULL), outcome(a="n0", b="n1"), outcome(g_0="n0", b="n1"))
    assert "evicted ['a'], which are not weaker" in finding.text


FIRST = gang(1, member("g-0", 2, priorityClassName="p7"))
SECOND = Arrival("l", [], [runs("l", 1, "p4", "") | {"pod": "l"}])


def in_steps(*places: dict[str, str]) -> Outcome:
    return Outcome(1, [Step(each, True, {}) for each in places])


def test_somebody_who_waited_may_evict_later_what_is_weaker_than_him() -> None:
    both = Scenario(1, "several", NODES, FULL, [], [FIRST, SECOND])
    for pod in SECOND.pods:
        pod.pop("node", None)
    waits, full = {"a": "n0", "b": "n1"}, {"a": "n0", "g-0": "n1"}
    assert rules_of(judge(both, in_steps(waits, waits), in_steps(waits, full))) == ["waited-before"]
    (finding,) = judge(both, in_steps(waits, waits), in_steps(waits, {"a": "n0", "l": "n1"}))
    assert "evicted ['b'], which are not weaker" in finding.text


def test_a_gang_of_a_rush_that_lost_a_member_to_another_one_is_not_torn_by_the_scheduler() -> None:
    rush = Scenario(1, "rush", NODES, [], [], [PAIR])
    lost, waiting = Step({"g-0": "n0"}, True, {}), Step({"g-0": "n0"}, True, {"g-1": "no room"})
    assert judge(rush, Outcome(1, [lost]), Outcome(1, [lost])) == []
    assert rules_of(judge(rush, Outcome(1, [lost]), Outcome(1, [waiting]))) == [None]


def test_victims_for_nothing_are_explained_of_stock_only() -> None:
    vain, right = outcome(b="n1"), outcome(g_0="n0", b="n1")
    assert rules_of(judge(scenario(ONE, FULL), vain, right)) == ["evicts-in-vain"]
    assert None in rules_of(judge(scenario(ONE, FULL), right, vain))


def test_the_table_for_users_and_the_rules_agree() -> None:
    text = (ROOT / "docs" / "beyond-stock.md").read_text(encoding="utf-8")
    table = text.partition("## What random scenarios differ in")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `([a-z-]+)` \|", table, re.MULTILINE) == list(EXPLANATIONS)


def tree(*pods: Short) -> Arrival:
    """Groups of one pod each, of which one is enough."""
    groups = [{"group": pod["group"], "parent": "t", "gang": 1, "priorityClassName": "p6"} for pod in pods]
    return Arrival("t", [*groups, {"composite": "t", "gang": 1, "priorityClassName": "p6"}], list(pods))


def test_a_group_of_a_tree_that_could_have_been_added_is_not_explained() -> None:
    arrival = tree(member("a-0", 2) | {"group": "a"}, member("b-0", 2) | {"group": "b"})
    findings = judge(scenario(arrival), outcome(a_0="n0", b_0="n1"), outcome(a_0="n0"))
    assert rules_of(findings) == [None]


def test_a_group_of_a_tree_that_has_no_room_is_explained_where_the_clusters_differ() -> None:
    lone = member("x", 2)
    del lone["group"]
    arrival = tree(member("a-0", 3) | {"group": "a"}, member("b-0", 1) | {"group": "b"})
    late = Scenario(1, "several", NODES, [], [], [Arrival("x", [], [lone]), arrival])

    def played(where: str, **places: str) -> Outcome:
        placed = {name.replace("_", "-"): node for name, node in places.items()}
        return Outcome(1, [Step({"x": where}, True, {}), Step({"x": where, **placed}, True, {})])

    theirs, ours = played("n1", a_0="n0", b_0="n0"), played("n0", b_0="n0")
    assert rules_of(judge(late, theirs, ours)) == ["places-differ"]
