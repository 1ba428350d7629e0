"""Whether labels meet a selector, a node a node selector term, and tolerations a taint.

In come the selector objects of `core.py` and plain label maps; out goes a yes or no.  These are the scalar
meanings; plugins that judge all nodes at once ask them once per distinct value (`cluster/topology.py`).
"""

import re
from collections.abc import Iterable, Mapping

from muster.api.core import (
    LabelSelector,
    LabelSelectorRequirement,
    Node,
    NodeSelectorTerm,
    Taint,
    Toleration,
)
from muster.api.quantity import INT64_MAX

_INTEGER = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)
_DECIMAL_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}", re.ASCII)


def matches_selector(selector: LabelSelector | None, labels: Mapping[str, str] | None) -> bool:
    """Whether the labels meet a label selector: None selects nothing, an empty one everything."""
    if selector is None:
        return False
    have = labels or {}
    return all(have.get(key) == value for key, value in (selector.match_labels or {}).items()) and all(
        matches_requirement(requirement, have.get(requirement.key))
        for requirement in selector.match_expressions or ()
    )


def write_selector(selector: LabelSelector | None) -> str:
    """A label selector in one line: "app=web, tier In (a, b)"; what selects all or nothing is said so."""
    if selector is None:
        return "a selector that takes nothing"
    parts = [f"{key}={value}" for key, value in (selector.match_labels or {}).items()]
    for requirement in selector.match_expressions or ():
        values = f" ({', '.join(requirement.values)})" if requirement.values else ""
        parts.append(f"{requirement.key} {requirement.operator}{values}")
    return ", ".join(parts) or "any labels"


def matches_requirement(requirement: LabelSelectorRequirement, value: str | None) -> bool:
    """Whether a label's value (None: the label is absent) meets the requirement.

    Gt and Lt compare as integers and are met by nothing else; an unknown operator is met by nothing.
    Source   k8s.io/apimachinery labels.Requirement.
    """
    operator, values = requirement.operator, requirement.values or ()
    if operator in ("NotIn", "DoesNotExist"):
        return value is None or (operator == "NotIn" and value not in values)
    if value is None:
        return False
    if operator == "In":
        return value in values
    if operator in ("Gt", "Lt") and len(values) == 1:
        left, right = _integer_of(value), _integer_of(values[0])
        return left is not None and right is not None and (left > right if operator == "Gt" else left < right)
    return operator == "Exists"


def matches_node_term(term: NodeSelectorTerm, node: Node) -> bool:
    """Whether the node meets every expression and field of the term; an empty term is met by no node."""
    expressions, fields = term.match_expressions or (), term.match_fields or ()
    if not expressions and not fields:
        return False
    labels = node.metadata.labels or {}
    return all(matches_requirement(r, labels.get(r.key)) for r in expressions) and all(
        matches_name_field(r, node.metadata.name) for r in fields
    )


def matches_name_field(requirement: LabelSelectorRequirement, node_name: str) -> bool:
    """Whether a node of this name meets a `matchFields` entry: metadata.name, In or NotIn, one value."""
    values = requirement.values or ()
    if requirement.key != "metadata.name" or len(values) != 1:
        return False
    if requirement.operator == "In":
        return node_name == values[0]
    return requirement.operator == "NotIn" and node_name != values[0]


def find_untolerated(
    taints: Iterable[Taint], tolerations: Iterable[Toleration], effects: tuple[str, ...]
) -> Taint | None:
    """The first taint with one of these effects that no toleration covers, or None."""
    known = tuple(tolerations)
    return next(
        (taint for taint in taints if taint.effect in effects and not tolerates(known, taint)),
        None,
    )


def tolerates(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    """Whether one of the tolerations covers the taint."""
    return any(_covers(toleration, taint) for toleration in tolerations)


def _covers(toleration: Toleration, taint: Taint) -> bool:
    """Empty effect and empty key are wildcards; Gt and Lt (KEP-5471) compare the taint's value as integer."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    operator = toleration.operator or "Equal"
    if operator == "Equal":
        return toleration.value == taint.value
    if operator in ("Gt", "Lt"):
        bound, value = toleration.value, taint.value
        if not (_DECIMAL_INTEGER.fullmatch(bound) and _DECIMAL_INTEGER.fullmatch(value)):
            return False
        return int(value) > int(bound) if operator == "Gt" else int(value) < int(bound)
    return operator == "Exists"


def _integer_of(text: str) -> int | None:
    if not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -INT64_MAX - 1 <= number <= INT64_MAX else None
