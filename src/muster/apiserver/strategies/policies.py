"""Parts that groups, their templates and gang Jobs have in common (KEP-4671, 5732, 5710, 6012).

Each function takes the path for errors and the part, and for updates the stored part (None at creation):
declarative validation looks only at what has changed.
"""

from muster.apiserver.kinds import Cause, Cluster, Object
from muster.apiserver.strategies.fields import (
    IMMUTABLE,
    invalid,
    invalid_each,
    items,
    mapping,
    not_supported,
    required,
    text,
    too_many,
)
from muster.apiserver.strategies.names import label_key, long_name
from muster.apiserver.strategies.unions import validate_kept, validate_union

HIGHEST_USER_PRIORITY = 1_000_000_000
PREEMPTION_POLICIES = ("Never", "PreemptLowerPriority")
MODES = ("single", "all")
_AT_LEAST_1 = "must be greater than or equal to 1"


def validate_count(path: str, value: object, *, zero_is_absent: bool) -> list[Cause]:
    """`minCount` and its like: at least 1."""
    if zero_is_absent and not value:
        return [required(path)]
    if isinstance(value, int) and value < 1:
        return [invalid(path, value, _AT_LEAST_1)]
    return []


def validate_policy(path: str, policy: Object, old: Object | None, *, count: str) -> list[Cause]:
    """A basic or gang policy whose kind stays; `count` names the gang's number, which may change."""
    if policy == old:
        return []
    found = validate_union(path, policy, ("basic", "gang"))
    if old is not None:
        if policy.get("basic") != old.get("basic"):
            found.append(invalid(f"{path}.basic", None, IMMUTABLE))
        kept = validate_kept(f"{path}.gang", policy.get("gang"), old.get("gang"))
        if kept:
            return found + kept
    gang = policy.get("gang")
    if gang is not None:
        found += validate_count(f"{path}.gang.{count}", gang.get(count), zero_is_absent=True)
    return found


def validate_constraints(path: str, constraints: Object | None) -> list[Cause]:
    """At most one topology term, whose key is a label key."""
    terms = items(constraints or {}, "topology")
    if len(terms) > 1:
        return [too_many(f"{path}.topology", len(terms), 1)]
    found: list[Cause] = []
    for index, term in enumerate(terms):
        key, where = text(term, "key"), f"{path}.topology[{index}].key"
        found += invalid_each(where, key, label_key(key)) if key else [required(where)]
    return found


def validate_mode(path: str, mode: Object | None) -> list[Cause]:
    """`single` or `all`."""
    return [] if mode is None else validate_union(path, mode, MODES)


def validate_priority(path: str, spec: Object) -> list[Cause]:
    """`priorityClassName`, `priority` and `preemptionPolicy` of a group or template."""
    found: list[Cause] = []
    name, priority, policy = (
        text(spec, "priorityClassName"),
        spec.get("priority"),
        spec.get("preemptionPolicy"),
    )
    if name:
        found += invalid_each(f"{path}.priorityClassName", name, long_name(name))
    if isinstance(priority, int) and priority > HIGHEST_USER_PRIORITY:
        detail = f"must be less than or equal to {HIGHEST_USER_PRIORITY}"
        found.append(invalid(f"{path}.priority", priority, detail))
    if policy is not None and policy not in PREEMPTION_POLICIES:
        found.append(not_supported(f"{path}.preemptionPolicy", policy, PREEMPTION_POLICIES))
    return found


def validate_unchanged(path: str, spec: Object, old: Object, *keys: str) -> list[Cause]:
    """One error for each of the fields that differs from what is stored."""
    return [
        invalid(f"{path}.{key}", None, IMMUTABLE)
        for key in keys
        if _meant(spec.get(key)) != _meant(old.get(key))
    ]


def _meant(value: object) -> object:
    """A value as Go compares it: nothing, null and what is empty are one; a number is itself, zero too."""
    return value if isinstance(value, int) else value or None


# Field of a group or template → the gate that it needs.
GATED_FIELDS = (
    ("schedulingConstraints", "TopologyAwareWorkloadScheduling"),
    ("resourceClaims", "DRAWorkloadResourceClaims"),
    ("parentCompositePodGroupName", "CompositePodGroup"),
    ("compositePodGroupTemplates", "CompositePodGroup"),
    ("preemptionPolicy", "PodGroupPreemptionPolicy"),
)


def drop_gated(spec: Object, old: Object | None, cluster: Cluster) -> None:
    """Clear fields whose gate is off, unless the stored object uses them already."""
    for key, gate in GATED_FIELDS:
        if spec.get(key) is not None and gate not in cluster.gates and not (old or {}).get(key):
            _clear(spec, key)


def _clear(spec: Object, key: str) -> None:
    if key == "schedulingConstraints" and "name" in spec:
        spec[key] = None  # a template prints it even when there is none
    else:
        del spec[key]


def policy_name(obj: Object) -> str:
    """The cell of the tables: Gang or Basic."""
    policy = mapping(mapping(obj, "spec"), "schedulingPolicy")
    return "Gang" if policy.get("gang") is not None else "Basic"
