"""Rules that devices, requests and allocations share: names, selectors, taints, tolerations."""

import re
from collections.abc import Callable, Iterable
from typing import Any

from muster.api.times import format_seconds
from muster.apiserver.expressions.compiling import compile_fault
from muster.apiserver.kinds import Cause, Cluster, Object
from muster.apiserver.strategies.fields import (
    duplicate,
    invalid,
    invalid_each,
    items,
    not_supported,
    required,
    text,
    too_long,
    too_many,
)
from muster.apiserver.strategies.names import dns_label, dns_subdomain, label_key, label_value
from muster.apiserver.strategies.storage import validate_driver_name

EXPRESSION_BYTES_MAX = 10 * 1024
PARAMETER_BYTES_MAX = 10 * 1024
SELECTORS_MAX = 32
CONFIGS_MAX = 32
NAMES_MAX = 32
_EFFECTS = ("NoExecute", "NoSchedule", "None")
_OPERATORS = ("Equal", "Exists")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_IDENTIFIER_TEXT = (
    "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric "
    "characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is "
    "'[A-Za-z_][A-Za-z0-9_]*')"
)
_IDENTIFIER_MAX, _DOMAIN_MAX = 32, 63
_ONE_OF = "one of: `"
_DECLARED = re.compile(
    r"\.tolerations\[\d+\]\.key$|(Attribute|\.results\[\d+\]\.(driver|pool)|\.opaque\.driver)$"
)
Rule = Callable[[str, Any], list[Cause]]


def each(
    path: str,
    values: list[Any],
    rule: Rule,
    *,
    most: int | None = None,
    key: Callable[[Any], object] | None = None,
    shows_key: bool = False,
) -> list[Cause]:
    """Every value by a rule, at most so many, no two with the same key (all that `shows_key` tells)."""
    found = [too_many(path, len(values), most)] if most is not None and len(values) > most else []
    seen: set[object] = set()
    for index, value in enumerate(values):
        here = f"{path}[{index}]"
        if key is not None and key(value) in seen:
            found.append(duplicate(here, key(value) if shows_key or isinstance(value, str) else value))
        if key is not None:
            seen.add(key(value))
        found += rule(here, value)
    return found


def declared_last(found: list[Cause]) -> list[Cause]:
    """The errors in stock's order: those of rules that it declares come after those it writes by hand."""
    return sorted(found, key=_is_declared)


def _is_declared(cause: Cause) -> bool:
    if cause.type in ("FieldValueDuplicate", "FieldValueNotSupported"):
        return True
    return bool(_DECLARED.search(cause.field)) or _ONE_OF in cause.message


def named(value: Any) -> str:
    """The name of an item of a list that has names."""
    return text(value, "name")


def validate_label(path: str, name: str) -> list[Cause]:
    """The name of a device, request or counter."""
    return invalid_each(path, name, dns_label(name))


def validate_pool_name(path: str, name: str) -> list[Cause]:
    """Subdomains with slashes between them."""
    if not name:
        return [required(path)]
    found = [too_long(path, 253)] if len(name) > 253 else []
    for part in name.split("/"):
        found += invalid_each(path, part, dns_subdomain(part))
    return found


def validate_qualified(path: str, name: str) -> list[Cause]:
    """The name of an attribute or capacity: `domain/identifier`, or an identifier of the driver's own."""
    if not name:
        return [required(path)]
    domain, slash, identifier = name.rpartition("/")
    found: list[Cause] = []
    if slash and not domain:
        found.append(required(path, "the domain must not be empty"))
    elif slash:
        if len(domain) > _DOMAIN_MAX:
            found.append(too_long(path, _DOMAIN_MAX))
        found += invalid_each(path, domain, dns_subdomain(domain))
    if not identifier:
        return [*found, required(path, "the name must not be empty")]
    if len(identifier) > _IDENTIFIER_MAX:
        found.append(too_long(path, _IDENTIFIER_MAX))
    if not _IDENTIFIER.fullmatch(identifier):
        found.append(invalid(path, identifier, _IDENTIFIER_TEXT))
    return found


def validate_fully_qualified(path: str, name: str) -> list[Cause]:
    """An attribute as constraints name it: with its domain."""
    if name and "/" not in name:
        why = "a fully qualified name must be a domain and a name separated by a slash"
        return [invalid(path, name, why)]
    return validate_qualified(path, name)


def validate_selectors(path: str, selectors: list[Any], *, stored: bool = False) -> list[Cause]:
    """CEL expressions that say yes or no of a device; those already stored were read before."""

    def rule(here: str, selector: Any) -> list[Cause]:
        cel = selector.get("cel")
        if not isinstance(cel, dict):
            return [required(f"{here}.cel")]
        return [] if stored else validate_expression(f"{here}.cel.expression", text(cel, "expression"))

    return each(path, selectors, rule, most=SELECTORS_MAX)


def validate_expression(path: str, expression: str, *, is_derived: bool = False) -> list[Cause]:
    """A CEL expression: not too long, and what stock can compile."""
    if len(expression.encode()) > EXPRESSION_BYTES_MAX:
        return [too_long(path, EXPRESSION_BYTES_MAX)]
    fault = compile_fault(expression, is_derived=is_derived)
    return [] if fault is None else [invalid(path, expression, fault)]


def stamp_taint(taint: Any, cluster: Cluster) -> None:
    """A taint that does not say since when it is there is there from now on."""
    if taint and taint.get("timeAdded") is None:
        taint["timeAdded"] = format_seconds(cluster.now_s)


def validate_taint(path: str, taint: Any) -> list[Cause]:
    """What keeps requests without a toleration off a device."""
    key, value, effect = text(taint, "key"), text(taint, "value"), text(taint, "effect")
    found = invalid_each(f"{path}.key", key, label_key(key))
    found += invalid_each(f"{path}.value", value, label_value(value))
    if not effect:
        found.append(required(f"{path}.effect"))
    elif effect not in _EFFECTS:
        found.append(not_supported(f"{path}.effect", effect, _EFFECTS))
    return found


def validate_toleration(path: str, toleration: Any) -> list[Cause]:
    """Which taints of a device a request bears."""
    key, value = text(toleration, "key"), text(toleration, "value")
    operator, effect = text(toleration, "operator"), text(toleration, "effect")
    found = invalid_each(f"{path}.key", key, label_key(key)) if key else []
    if operator == "Exists" and value:
        found.append(invalid(f"{path}.value", value, "must be empty for operator `Exists`"))
    elif operator == "Equal":
        found += invalid_each(f"{path}.value", value, label_value(value))
    elif operator not in _OPERATORS:
        where = f"{path}.operator"
        found.append(not_supported(where, operator, _OPERATORS) if operator else required(where))
    if effect and effect not in _EFFECTS:
        found.append(not_supported(f"{path}.effect", effect, _EFFECTS))
    return found


def validate_opaque(path: str, config: Any) -> list[Cause]:
    """Parameters for a driver; nobody else reads them."""
    opaque = config.get("opaque")
    if not isinstance(opaque, dict):
        return [required(f"{path}.opaque")]
    found = validate_driver_name(f"{path}.opaque.driver", text(opaque, "driver"))
    return found if opaque.get("parameters") is not None else [*found, required(f"{path}.opaque.parameters")]


def validate_binding_conditions(path: str, owner: Object) -> list[Cause]:
    """Conditions a device must have before a pod is bound, and those that say it never will."""
    wanted, failing = items(owner, "bindingConditions"), items(owner, "bindingFailureConditions")
    found: list[Cause] = []
    for name, values in (("bindingConditions", wanted), ("bindingFailureConditions", failing)):
        found += each(f"{path}.{name}", values, _validate_condition, most=4, key=str)
    for index, value in enumerate(failing):
        if value in wanted:
            why = "bindingFailureConditions must not overlap with bindingConditions"
            found.append(invalid(f"{path}.bindingFailureConditions[{index}]", value, why))
    return found + _validate_pair(path, wanted, failing)


def _validate_pair(path: str, wanted: Iterable[Any], failing: Iterable[Any]) -> list[Cause]:
    if failing and not wanted:
        why = "bindingConditions are required to use bindingFailureConditions"
        return [invalid(f"{path}.bindingConditions", wanted, why)]
    if wanted and not failing:
        why = "bindingFailureConditions are required to use bindingConditions"
        return [invalid(f"{path}.bindingFailureConditions", failing, why)]
    return []


def _validate_condition(path: str, value: Any) -> list[Cause]:
    return invalid_each(path, value, label_key(str(value)))
