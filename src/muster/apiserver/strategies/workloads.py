"""Workload (scheduling.k8s.io): a tree of templates that groups are made from (KEP-4671, KEP-6012)."""

from collections.abc import Iterator
from typing import Any

from muster.apiserver.kinds import Cause, Cluster, Object
from muster.apiserver.strategies.base import BaseStrategy
from muster.apiserver.strategies.fields import (
    duplicate,
    forbidden,
    invalid,
    invalid_each,
    items,
    mapping,
    required,
    text,
    too_many,
)
from muster.apiserver.strategies.groups import validate_claims
from muster.apiserver.strategies.names import long_name, path_segment, short_name
from muster.apiserver.strategies.policies import (
    drop_gated,
    validate_constraints,
    validate_mode,
    validate_policy,
    validate_priority,
    validate_unchanged,
)
from muster.apiserver.strategies.unions import validate_union

TEMPLATES_MOST = 8
LEVELS_MOST = 4
LEAVES, INNER = "podGroupTemplates", "compositePodGroupTemplates"
_FROZEN = (
    "schedulingConstraints",
    "resourceClaims",
    "disruptionMode",
    "priorityClassName",
    "priority",
    "preemptionPolicy",
)


class WorkloadStrategy(BaseStrategy):
    """Created whole; afterwards only counts change."""

    def prepare_create(self, obj: Object, cluster: Cluster) -> None:
        super().prepare_create(obj, cluster)
        _drop_gated_tree(obj["spec"], None, cluster)

    def prepare_update(self, obj: Object, old: Object, sub: str, cluster: Cluster) -> None:
        super().prepare_update(obj, old, sub, cluster)
        _drop_gated_tree(obj["spec"], old["spec"], cluster)

    def validate_object(self, obj: Object, cluster: Cluster) -> list[Cause]:
        spec = obj["spec"]
        found = _validate_tree(spec)
        found += validate_union("spec", spec, (LEAVES, INNER))
        if spec.get("controllerRef") is not None:
            found += _validate_controller("spec.controllerRef", mapping(spec, "controllerRef"))
        return found + _validate_templates("spec", spec)

    def validate_change(self, obj: Object, old: Object, cluster: Cluster) -> list[Cause]:
        spec, old_spec = obj["spec"], old["spec"]
        found = _validate_tree(spec)
        if spec != old_spec:
            found += validate_union("spec", spec, (LEAVES, INNER))
        found += validate_unchanged("spec", spec, old_spec, "controllerRef")
        return found + _validate_template_changes("spec", spec, old_spec)


def _drop_gated_tree(holder: Object, old: Object | None, cluster: Cluster) -> None:
    drop_gated(holder, old, cluster)
    for key in (LEAVES, INNER):
        stored = {text(t, "name"): t for t in items(old or {}, key)}
        for template in items(holder, key):
            _drop_gated_tree(template, stored.get(text(template, "name")), cluster)


def _validate_controller(path: str, reference: Object) -> list[Cause]:
    group = text(reference, "apiGroup")
    found = invalid_each(f"{path}.apiGroup", group, long_name(group)) if group else []
    for key in ("kind", "name"):
        value, where = text(reference, key), f"{path}.{key}"
        found += invalid_each(where, value, path_segment(value)) if value else [required(where)]
    return found


def _validate_tree(spec: Object) -> list[Cause]:
    """What concerns the tree as a whole: names, depth, children, one priority."""
    return _validate_names(spec) + _validate_shape("spec", spec, level=1) + _validate_one_priority(spec)


def _templates(path: str, holder: Object) -> Iterator[tuple[str, str, Object]]:
    """The templates right under a holder with their paths, inner ones first."""
    for key in (INNER, LEAVES):
        for index, template in enumerate(items(holder, key)):
            yield f"{path}.{key}[{index}]", key, template


def _validate_names(spec: Object) -> list[Cause]:
    """A name is unique in the whole tree; twins in one list are reported there."""
    found: list[Cause] = []
    seen: set[str] = set()

    def visit(path: str, holder: Object) -> None:
        for key in (INNER, LEAVES):
            here: set[str] = set()
            for index, template in enumerate(items(holder, key)):
                where, name = f"{path}.{key}[{index}]", text(template, "name")
                if name and name in seen and name not in here:
                    found.append(duplicate(f"{where}.name", name))
                here.add(name)
                seen.add(name)
                visit(where, template)

    visit("spec", spec)
    return found


def _validate_shape(path: str, holder: Object, *, level: int) -> list[Cause]:
    found: list[Cause] = []
    for where, key, template in _templates(path, holder):
        if key == LEAVES:
            continue
        if level == 1 and _depth(template) > LEVELS_MOST:
            children = [_as_go(child, inner=True) for child in items(template, INNER)]
            found.append(invalid(where, children, f"maximum template hierarchy depth is {LEVELS_MOST}"))
        if not items(template, LEAVES) and not items(template, INNER):
            detail = "must have at least one child PodGroupTemplate or CompositePodGroupTemplate"
            found.append(invalid(where, text(template, "name"), detail))
        found += _validate_shape(where, template, level=level + 1)
    return found


_GO_FIELDS = (
    "schedulingConstraints",
    "disruptionMode",
    "priorityClassName",
    "priority",
    "preemptionPolicy",
)


def _as_go(template: Object, *, inner: bool) -> Object:
    """A template as Go prints its internal struct: every field, names in capitals."""
    policy = mapping(template, "schedulingPolicy")
    gang = policy.get("gang")
    shown: Object = {
        "Name": text(template, "name"),
        "SchedulingPolicy": {"Basic": policy.get("basic"), "Gang": None if gang is None else _capitals(gang)},
    }
    for key in _GO_FIELDS:
        value = template.get(key)
        shown[_capital(key)] = _capitals(value) if isinstance(value, dict) else value
        if key == "priorityClassName":
            shown[_capital(key)] = value or ""
        if key == "schedulingConstraints" and not inner:
            shown["ResourceClaims"] = template.get("resourceClaims")
    if inner:
        for key in (LEAVES, INNER):
            shown[_capital(key)] = [_as_go(c, inner=key == INNER) for c in items(template, key)] or None
    return shown


def _capital(key: str) -> str:
    return key[0].upper() + key[1:]


def _capitals(value: Object) -> Object:
    return {_capital(key): part for key, part in value.items()}


def _depth(template: Object) -> int:
    """Levels from a composite template down, itself and what it must hold included."""
    inner = [_depth(child) for child in items(template, INNER)]
    return 1 + max(inner, default=1)


def _priorities(holder: Object) -> Iterator[tuple[str, int | None]]:
    for _, _, template in _templates("", holder):
        yield (text(template, "priorityClassName"), template.get("priority"))
        yield from _priorities(template)


def _validate_one_priority(spec: Object) -> list[Cause]:
    if len(set(_priorities(spec))) <= 1:
        return []
    if items(spec, INNER):
        detail = "all priority and priorityClassName values must be identical, detected multiple values"
    else:
        detail = "detected multiple priority configurations"
    return [invalid("spec", None, detail)]


def _validate_templates(path: str, holder: Object) -> list[Cause]:
    found: list[Cause] = []
    for key in (LEAVES, INNER):
        templates = items(holder, key)
        where = f"{path}.{key}"
        if len(templates) > TEMPLATES_MOST:
            found.append(too_many(where, len(templates), TEMPLATES_MOST))
            continue
        found += _validate_twins(where, templates)
        for index, template in enumerate(templates):
            found += _validate_template(f"{where}[{index}]", template, key)
    return found


def _validate_twins(path: str, templates: list[Object]) -> list[Cause]:
    seen: set[str] = set()
    found: list[Cause] = []
    for index, template in enumerate(templates):
        name = text(template, "name")
        if name in seen:
            found.append(duplicate(f"{path}[{index}]", template))
        seen.add(name)
    return found


def _validate_template(path: str, template: Object, key: str) -> list[Cause]:
    name = text(template, "name")
    count = "minCount" if key == LEAVES else "minGroupCount"
    found = invalid_each(f"{path}.name", name, short_name(name)) if name else [required(f"{path}.name")]
    policy = mapping(template, "schedulingPolicy")
    found += validate_policy(f"{path}.schedulingPolicy", policy, None, count=count)
    found += validate_constraints(f"{path}.schedulingConstraints", template.get("schedulingConstraints"))
    found += validate_claims(f"{path}.resourceClaims", items(template, "resourceClaims"))
    found += validate_mode(f"{path}.disruptionMode", template.get("disruptionMode"))
    found += validate_priority(path, template)
    return found + _validate_templates(path, template)


def _validate_template_changes(path: str, holder: Object, old: Object) -> list[Cause]:
    found: list[Cause] = []
    for key in (LEAVES, INNER):
        stored: dict[str, Any] = {text(t, "name"): t for t in items(old, key)}
        names = {text(t, "name") for t in items(holder, key)}
        where = f"{path}.{key}"
        if len(items(holder, key)) > TEMPLATES_MOST:
            found.append(too_many(where, len(items(holder, key)), TEMPLATES_MOST))
            continue
        found += _validate_twins(where, items(holder, key))
        for index, template in enumerate(items(holder, key)):
            here, before = f"{where}[{index}]", stored.get(text(template, "name"))
            if before is None:
                found.append(forbidden(here, "item may not be added"))
                continue
            count = "minCount" if key == LEAVES else "minGroupCount"
            policy, old_policy = mapping(template, "schedulingPolicy"), mapping(before, "schedulingPolicy")
            found += validate_policy(f"{here}.schedulingPolicy", policy, old_policy, count=count)
            found += validate_unchanged(here, template, before, *_FROZEN)
            found += _validate_template_changes(here, template, before)
        found += [forbidden(where, "item may not be removed") for name in stored if name not in names]
    return found
