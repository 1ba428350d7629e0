"""Units of victims: their order, their cost, what budgets protect, and who may stay."""

import pytest
from msgspec.structs import replace

from muster.api.core import LabelSelector
from muster.cluster.budgets import Budget
from muster.framework.runner import Runner, Weighted
from muster.placement.victims import (
    Cost,
    Unit,
    cost_of,
    split_by_budgets,
)
from muster.plugins.node_resources import NodeResourcesFit
from muster.plugins.priority_sort import PrioritySort
from muster.testing.builders import make_pod

RUNNER = Runner([Weighted(PrioritySort()), Weighted(NodeResourcesFit())])


def unit(name: str, priority: int = 0, *, pods: int = 1, group: bool = False, start_s: float = 0.0) -> Unit:
    made = tuple((make_pod(f"{name}-{index}", labels={"app": name}), 0) for index in range(pods))
    return Unit(name, priority, made, group, start_s)


def leaving(one: Unit) -> Unit:
    pods = tuple(
        (replace(pod, metadata=replace(pod.metadata, deletion_timestamp="2026-01-01T00:00:00Z")), row)
        for pod, row in one.pods
    )
    return replace(one, pods=pods)


def budget(app: str, allowed: int, *disrupted: str) -> Budget:
    selector = LabelSelector(match_labels={"app": app})
    return Budget(
        "default", f"keep-{app}", selector=selector, allowed=allowed, disrupted=frozenset(disrupted)
    )


@pytest.mark.parametrize(
    ("more", "less"),
    [
        (unit("a", 5), unit("b", 4)),
        (unit("a", 5, group=True, start_s=9), unit("b", 5)),
        (unit("a", 5, group=True, pods=3, start_s=9), unit("b", 5, group=True, pods=2)),
        (unit("a", 5, start_s=1), unit("b", 5, start_s=2)),
        (unit("a", 5, group=True, pods=2, start_s=1), unit("b", 5, group=True, pods=2, start_s=2)),
        (unit("a", 5), unit("b", 5)),
    ],
)
def test_one_is_more_important_than_the_other(more: Unit, less: Unit) -> None:
    assert more.importance < less.importance


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ([unit("a", 9)], [unit("p", 1)]),  # p's budget allows none
        ([unit("a", 1), unit("b", 1)], [unit("c", 2)]),
        ([unit("a", 2)], [unit("b", 2), unit("c", 1)]),
        ([unit("a", 2), unit("b", 1)], [unit("c", 2), unit("d", 2)]),
        ([unit("a", 2)], [unit("b", 2, group=True)]),
        ([unit("a", 2, start_s=9)], [unit("b", 2, start_s=1)]),
        ([], [unit("a", -5)]),
        ([leaving(unit("a", 9))], [unit("b", 1)]),
    ],
)
def test_one_set_costs_less_than_the_other(better: list[Unit], worse: list[Unit]) -> None:
    budgets = [budget("p", 0)]
    assert cost_of(better, budgets) < cost_of(worse, budgets)


def test_nobody_costs_nothing() -> None:
    assert cost_of([], []) == Cost()
    assert cost_of([leaving(unit("a"))], []).is_nothing
    assert not cost_of([unit("a")], []).is_nothing


def test_pods_that_are_counted_as_disrupted_already_use_up_nothing_in_any_order() -> None:
    first, second = unit("a", pods=2), unit("a", pods=1)
    spent = budget("a", 1, "a-0")
    assert cost_of([first], [spent]).violations == 0
    assert cost_of([first, second], [spent]) == cost_of([second, first], [spent])
    assert cost_of([first], [budget("a", 1)]).violations == 1


def test_the_least_important_use_up_a_budget_and_the_others_are_protected() -> None:
    old, young = unit("a", 5, start_s=1), replace(unit("a", 5, start_s=2), name="b")
    protected, unprotected = split_by_budgets([old, young], [budget("a", 1)])
    assert protected == (old,)
    assert unprotected == (young,)


def test_a_unit_that_asks_too_much_of_a_budget_leaves_it_to_the_others() -> None:
    group, pod = unit("a", 1, pods=2, group=True), replace(unit("a", 5), name="b")
    protected, unprotected = split_by_budgets([pod, group], [budget("a", 1)])
    assert protected == (group,)
    assert unprotected == (pod,)


def test_budgets_of_another_namespace_or_without_selector_protect_nobody() -> None:
    pod = make_pod("a-0", labels={"app": "a"})
    assert budget("a", 0).counts(pod)
    assert not replace(budget("a", 0), namespace="other").counts(pod)
    assert not replace(budget("a", 0), selector=None).counts(pod)
