"""Validation of where a pod wants to be: selectors, affinity, tolerations, spread, gates."""

from collections import Counter

from muster.apiserver.kinds import Cause, Object
from muster.apiserver.strategies.fields import (
    duplicate,
    forbidden,
    invalid,
    invalid_each,
    items,
    mapping,
    not_supported,
    required,
    text,
)
from muster.apiserver.strategies.metadata import validate_labels
from muster.apiserver.strategies.names import dns_label, dns_subdomain, label_key, label_value
from muster.apiserver.strategies.selectors import validate_selector

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_NOT_AN_OPERATOR = "not a valid selector operator"
_POLICIES = ("Honor", "Ignore")
_UNSATISFIABLE = ("DoNotSchedule", "ScheduleAnyway")


def validate_node_selector(path: str, selector: Object) -> list[Cause]:
    """`nodeSelector`: labels that the node must have."""
    return validate_labels(path, selector)


def validate_affinity(path: str, affinity: Object | None) -> list[Cause]:
    """Node and pod affinity, and what pods it avoids."""
    if affinity is None:
        return []
    found: list[Cause] = []
    node = affinity.get("nodeAffinity")
    if isinstance(node, dict):
        found += _validate_node_affinity(f"{path}.nodeAffinity", node)
    for key in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(key)
        if isinstance(terms, dict):
            found += _validate_pod_affinity(f"{path}.{key}", terms)
    return found


def _validate_node_affinity(path: str, affinity: Object) -> list[Cause]:
    found: list[Cause] = []
    wanted = affinity.get(REQUIRED)
    if isinstance(wanted, dict):
        found += validate_selector_terms(f"{path}.{REQUIRED}", wanted)
    for index, term in enumerate(items(affinity, PREFERRED)):
        here = f"{path}.{PREFERRED}[{index}]"
        found += _validate_weight(here, term)
        found += _validate_node_term(f"{here}.preference", mapping(term, "preference"))
    return found


def validate_selector_terms(path: str, selector: Object) -> list[Cause]:
    """A core/v1 NodeSelector: at least one term."""
    here, terms = f"{path}.nodeSelectorTerms", items(selector, "nodeSelectorTerms")
    found = [] if terms else [required(here, "must have at least one node selector term")]
    for index, term in enumerate(terms):
        found += _validate_node_term(f"{here}[{index}]", term)
    return found


def _validate_weight(path: str, term: Object) -> list[Cause]:
    weight = term.get("weight") or 0
    return [] if 1 <= weight <= 100 else [invalid(f"{path}.weight", weight, "must be in the range 1-100")]


def _validate_node_term(path: str, term: Object) -> list[Cause]:
    found: list[Cause] = []
    for index, requirement in enumerate(items(term, "matchExpressions")):
        found += _validate_requirement(f"{path}.matchExpressions[{index}]", requirement)
    for index, requirement in enumerate(items(term, "matchFields")):
        found += _validate_field(f"{path}.matchFields[{index}]", requirement)
    return found


def _validate_requirement(path: str, requirement: Object) -> list[Cause]:
    key, operator = text(requirement, "key"), text(requirement, "operator")
    values = items(requirement, "values")
    found: list[Cause] = []
    if operator in ("In", "NotIn"):
        if not values:
            detail = "must be specified when `operator` is 'In' or 'NotIn'"
            found.append(required(f"{path}.values", detail))
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            found.append(forbidden(f"{path}.values", detail))
    elif operator in ("Gt", "Lt"):
        if len(values) != 1:
            detail = "must be specified single value when `operator` is 'Lt' or 'Gt'"
            found.append(required(f"{path}.values", detail))
    else:
        found.append(invalid(f"{path}.operator", operator, _NOT_AN_OPERATOR))
    found += invalid_each(f"{path}.key", key, label_key(key))
    for index, value in enumerate(values):
        found += invalid_each(f"{path}.values[{index}]", value, label_value(str(value)))
    return found


def _validate_field(path: str, requirement: Object) -> list[Cause]:
    key, operator = text(requirement, "key"), text(requirement, "operator")
    values = items(requirement, "values")
    found: list[Cause] = []
    if operator not in ("In", "NotIn"):
        found.append(invalid(f"{path}.operator", operator, _NOT_AN_OPERATOR))
    elif len(values) != 1:
        detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        found.append(required(f"{path}.values", detail))
    if key != "metadata.name":
        return [*found, invalid(f"{path}.key", key, "not a valid field selector key")]
    for index, value in enumerate(values):
        found += invalid_each(f"{path}.values[{index}]", value, dns_subdomain(str(value)))
    return found


def _validate_pod_affinity(path: str, affinity: Object) -> list[Cause]:
    found: list[Cause] = []
    for index, term in enumerate(items(affinity, REQUIRED)):
        found += _validate_pod_term(f"{path}.{REQUIRED}[{index}]", term)
    for index, weighted in enumerate(items(affinity, PREFERRED)):
        here = f"{path}.{PREFERRED}[{index}]"
        found += _validate_weight(here, weighted)
        found += _validate_pod_term(f"{here}.podAffinityTerm", mapping(weighted, "podAffinityTerm"))
    return found


def _validate_pod_term(path: str, term: Object) -> list[Cause]:
    found = validate_selector(f"{path}.labelSelector", term.get("labelSelector"))
    found += validate_selector(f"{path}.namespaceSelector", term.get("namespaceSelector"))
    for name in items(term, "namespaces"):
        found += invalid_each(f"{path}.namespace", name, dns_label(str(name)))
    found += _validate_keys(path, "matchLabelKeys", term)
    found += _validate_keys(path, "mismatchLabelKeys", term)
    found += _validate_keys_apart(path, term)
    avoided = set(items(term, "mismatchLabelKeys"))
    found += [
        invalid(f"{path}.matchLabelKeys[{index}]", key, "exists in both matchLabelKeys and mismatchLabelKeys")
        for index, key in enumerate(items(term, "matchLabelKeys"))
        if key in avoided
    ]
    return found + _validate_topology_key(path, text(term, "topologyKey"))


def _validate_keys(path: str, field: str, term: Object) -> list[Cause]:
    keys = items(term, field)
    if keys and term.get("labelSelector") is None:
        return [forbidden(f"{path}.{field}", "must not be specified when labelSelector is not set")]
    found: list[Cause] = []
    for index, key in enumerate(keys):
        found += invalid_each(f"{path}.{field}[{index}]", key, label_key(str(key)))
    return found


def _validate_keys_apart(path: str, term: Object) -> list[Cause]:
    """A key is matched by the pod's own value or by the selector; what merging added does not count."""
    selector = mapping(term, "labelSelector")
    merged: set[str] = set()
    selected = set(mapping(selector, "matchLabels"))
    for requirement in items(selector, "matchExpressions"):
        key = text(requirement, "key")
        own = requirement.get("operator") == "In" and len(items(requirement, "values")) == 1
        if own and key not in merged:
            merged.add(key)
        else:
            selected.add(key)
    return [
        invalid(f"{path}[{index}]", key, "exists in both matchLabelKeys and labelSelector")
        for index, key in enumerate(items(term, "matchLabelKeys"))
        if key in selected
    ]


def _validate_topology_key(path: str, key: str) -> list[Cause]:
    found = [] if key else [required(f"{path}.topologyKey", "can not be empty")]
    return found + invalid_each(f"{path}.topologyKey", key, label_key(key))


def validate_tolerations(path: str, tolerations: list[Object]) -> list[Cause]:
    """What taints a pod can live with."""
    found: list[Cause] = []
    for index, toleration in enumerate(tolerations):
        found += _validate_toleration(f"{path}[{index}]", toleration)
    return found


def _validate_toleration(path: str, toleration: Object) -> list[Cause]:
    key, operator = text(toleration, "key"), text(toleration, "operator")
    value, effect = text(toleration, "value"), text(toleration, "effect")
    found: list[Cause] = invalid_each(f"{path}.key", key, label_key(key)) if key else []
    if not key and operator != "Exists":
        detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        found.append(invalid(f"{path}.operator", operator, detail))
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        found.append(invalid(f"{path}.effect", effect, detail))
    if operator in ("", "Equal"):
        found += invalid_each(f"{path}.operator", value, label_value(value))
    elif operator == "Exists":
        if value:
            found.append(
                invalid(f"{path}.operator", value, "value must be empty when `operator` is 'Exists'")
            )
    elif operator in ("Lt", "Gt"):
        found.append(not_supported(f"{path}.operator", operator, ("Equal", "Exists", "Lt", "Gt")))
    else:
        found.append(not_supported(f"{path}.operator", operator, ("Equal", "Exists")))
    if effect and effect not in EFFECTS:
        found.append(not_supported(f"{path}.effect", effect, EFFECTS))
    return found


def validate_spread(path: str, constraints: list[Object]) -> list[Cause]:
    """Topology spread constraints: one for each key and way."""
    found: list[Cause] = []
    left = Counter(map(_key_and_way, constraints))
    for index, constraint in enumerate(constraints):
        here, pair = f"{path}[{index}]", _key_and_way(constraint)
        found += _validate_constraint(here, constraint)
        left[pair] -= 1
        if left[pair]:  # stock blames the first of two
            shown = f"{{{pair[0]}, {pair[1]}}}"
            found.append(duplicate(f"{here}.{{topologyKey, whenUnsatisfiable}}", shown))
        found += _validate_domains(f"{here}.minDomains", constraint)
        for key in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            policy = constraint.get(key)
            if policy is not None and policy not in _POLICIES:
                found.append(not_supported(f"{here}.{key}", policy, _POLICIES))
        found += _validate_keys(here, "matchLabelKeys", constraint)
        found += _validate_keys_apart(here, constraint)
        found += validate_selector(f"{here}.labelSelector", constraint.get("labelSelector"))
    return found


def _key_and_way(constraint: Object) -> tuple[str, str]:
    return text(constraint, "topologyKey"), text(constraint, "whenUnsatisfiable")


def _validate_constraint(path: str, constraint: Object) -> list[Cause]:
    skew, when = constraint.get("maxSkew") or 0, text(constraint, "whenUnsatisfiable")
    found: list[Cause] = []
    if skew <= 0:
        found.append(invalid(f"{path}.maxSkew", skew, "must be greater than zero"))
    key = text(constraint, "topologyKey")
    if not key:
        found.append(required(f"{path}.topologyKey", "can not be empty"))
    else:
        found += invalid_each(f"{path}.topologyKey", key, label_key(key))
    if when not in _UNSATISFIABLE:
        found.append(not_supported(f"{path}.whenUnsatisfiable", when, _UNSATISFIABLE))
    return found


def _validate_domains(path: str, constraint: Object) -> list[Cause]:
    least, when = constraint.get("minDomains"), text(constraint, "whenUnsatisfiable")
    if least is None:
        return []
    found = [] if least > 0 else [invalid(path, least, "must be greater than zero")]
    if when != "DoNotSchedule":
        detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {when}"
        found.append(invalid(path, least, detail))
    return found


def validate_gates(path: str, gates: list[Object]) -> list[Cause]:
    """Scheduling gates: qualified names, each once."""
    found: list[Cause] = []
    seen: set[str] = set()
    for index, gate in enumerate(gates):
        name = text(gate, "name")
        found += invalid_each(f"{path}[{index}]", name, label_key(name))
        if name in seen:
            found.append(duplicate(f"{path}[{index}]", name))
        seen.add(name)
    return found


def merge_label_keys(spec: Object, labels: Object) -> None:
    """`matchLabelKeys` and `mismatchLabelKeys` become terms of the selector, with the pod's own values."""
    affinity = mapping(spec, "affinity")
    for key in ("podAffinity", "podAntiAffinity"):
        terms = [*items(mapping(affinity, key), REQUIRED)]
        terms += [mapping(term, "podAffinityTerm") for term in items(mapping(affinity, key), PREFERRED)]
        for term in terms:
            _merge_keys(term, "matchLabelKeys", "In", labels)
            _merge_keys(term, "mismatchLabelKeys", "NotIn", labels)
    for constraint in items(spec, "topologySpreadConstraints"):
        _merge_keys(constraint, "matchLabelKeys", "In", labels)


def _merge_keys(term: Object, field: str, operator: str, labels: Object) -> None:
    selector = term.get("labelSelector")
    if not isinstance(selector, dict):
        return
    added = [
        {"key": key, "operator": operator, "values": [labels[key]]}
        for key in items(term, field)
        if key in labels
    ]
    if added:
        selector["matchExpressions"] = [*items(selector, "matchExpressions"), *added]
