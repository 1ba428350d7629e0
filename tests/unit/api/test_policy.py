"""Budgets as the API writes them."""

from muster.api.codec import decode_object
from muster.api.policy import PodDisruptionBudget


def test_a_budget_is_read_with_what_it_allows_now() -> None:
    budget = decode_object(
        {
            "metadata": {"name": "keep", "namespace": "default"},
            "spec": {"selector": {"matchLabels": {"app": "a"}}, "minAvailable": 1},
            "status": {"disruptionsAllowed": 2, "disruptedPods": {"a-0": "2026-01-01T00:00:00Z"}},
        },
        PodDisruptionBudget,
    )
    assert budget.spec.selector is not None
    assert budget.spec.selector.match_labels == {"app": "a"}
    assert budget.status.disruptions_allowed == 2
    assert list(budget.status.disrupted_pods or ()) == ["a-0"]


def test_a_budget_nobody_has_looked_at_yet_allows_nothing() -> None:
    budget = decode_object({"metadata": {"name": "keep", "namespace": "default"}}, PodDisruptionBudget)
    assert budget.status.disruptions_allowed == 0
    assert budget.spec.selector is None
