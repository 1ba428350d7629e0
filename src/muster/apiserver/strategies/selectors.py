"""Label selectors inside objects: what is wrong with one, and whether it selects some labels."""

from collections.abc import Mapping

import msgspec

from muster.api.core import LabelSelector
from muster.api.selectors import matches_selector
from muster.apiserver.kinds import Cause, Object
from muster.apiserver.strategies.fields import (
    forbidden,
    invalid,
    invalid_each,
    items,
    mapping,
    required,
    text,
)
from muster.apiserver.strategies.names import label_key, label_value

_WITH_VALUES, _WITHOUT_VALUES = ("In", "NotIn"), ("Exists", "DoesNotExist")


def validate_selector(path: str, selector: Object | None) -> list[Cause]:
    """A selector as objects hold it; None is no error."""
    found: list[Cause] = []
    labels = mapping(selector or {}, "matchLabels")
    for key, value in labels.items():
        found += invalid_each(f"{path}.matchLabels", key, label_key(key))
        found += invalid_each(f"{path}.matchLabels", value, label_value(str(value)))
    for index, term in enumerate(items(selector or {}, "matchExpressions")):
        found += _validate_term(f"{path}.matchExpressions[{index}]", term)
    return found


def _validate_term(path: str, term: Object) -> list[Cause]:
    operator, values, key = text(term, "operator"), items(term, "values"), text(term, "key")
    found: list[Cause] = []
    if operator in _WITH_VALUES:
        if not values:
            detail = "must be specified when `operator` is 'In' or 'NotIn'"
            found.append(required(f"{path}.values", detail))
    elif operator in _WITHOUT_VALUES:
        if values:
            detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            found.append(forbidden(f"{path}.values", detail))
    else:
        found.append(invalid(f"{path}.operator", operator, "not a valid selector operator"))
    found += invalid_each(f"{path}.key", key, label_key(key))
    for index, value in enumerate(values):
        found += invalid_each(f"{path}.values[{index}]", value, label_value(str(value)))
    return found


def selects(selector: Object | None, labels: Mapping[str, str]) -> bool:
    """Whether a selector picks these labels: None picks nothing, an empty one everything."""
    typed = None if selector is None else msgspec.convert(selector, LabelSelector)
    return matches_selector(typed, labels)


def selector_text(selector: Object | None) -> str:
    """A selector in one line, as tables show it."""
    terms = [f"{key}={value}" for key, value in sorted(mapping(selector or {}, "matchLabels").items())]
    for term in sorted(items(selector or {}, "matchExpressions"), key=lambda t: text(t, "key")):
        key, operator, values = text(term, "key"), text(term, "operator"), sorted(items(term, "values"))
        if operator == "Exists":
            terms.append(key)
        elif operator == "DoesNotExist":
            terms.append(f"!{key}")
        else:
            terms.append(f"{key} {operator.lower()} ({','.join(values)})")
    return ",".join(terms)
