"""Whom a budget counts."""

import pytest

from muster.api.core import LabelSelector
from muster.cluster.budgets import Budget
from muster.testing.builders import make_pod

SELECTOR = LabelSelector(match_labels={"app": "a"})


@pytest.mark.parametrize(
    ("budget", "is_counted"),
    [
        (Budget("default", "b", selector=SELECTOR), True),
        (Budget("other", "b", selector=SELECTOR), False),
        (Budget("default", "b", selector=LabelSelector(match_labels={"app": "b"})), False),
        (Budget("default", "b", selector=LabelSelector()), True),
        (Budget("default", "b", selector=None), False),
        (Budget("default", "b", selector=SELECTOR, disrupted=frozenset({"p"})), False),
    ],
)
def test_a_budget_counts_what_its_selector_takes_in_its_namespace(budget: Budget, is_counted: bool) -> None:
    assert budget.counts(make_pod("p", labels={"app": "a"})) == is_counted
