"""Label selectors of the API matched against labels.

In come `metav1.LabelSelector` objects as plain dicts; out goes a yes or no.
"""

from collections.abc import Mapping
from typing import Any


def matches(selector: Mapping[str, Any] | None, labels: Mapping[str, str] | None) -> bool:
    """Whether the labels meet the selector: none selects nothing, an empty one everything."""
    if selector is None:
        return False
    have = labels or {}
    wanted = selector.get("matchLabels") or {}
    if any(have.get(key) != value for key, value in wanted.items()):
        return False
    return all(_meets(requirement, have) for requirement in selector.get("matchExpressions") or ())


def _meets(requirement: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    key, operator = requirement.get("key", ""), requirement.get("operator")
    values = requirement.get("values") or ()
    if operator == "In":
        return key in labels and labels[key] in values
    if operator == "NotIn":
        return key not in labels or labels[key] not in values
    if operator == "Exists":
        return key in labels
    return operator == "DoesNotExist" and key not in labels
