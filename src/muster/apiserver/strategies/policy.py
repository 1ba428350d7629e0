"""PodDisruptionBudget (policy/v1).  What a budget means for an eviction is in `pod_verbs.py`."""

import re
from typing import Any

from muster.apiserver.kinds import Cause, Cluster, Object
from muster.apiserver.strategies.base import BaseStrategy
from muster.apiserver.strategies.conditions import validate_conditions
from muster.apiserver.strategies.fields import (
    AT_LEAST_0,
    at_least_0,
    invalid,
    items,
    mapping,
    not_supported,
)
from muster.apiserver.strategies.printing import Column, age, column
from muster.apiserver.strategies.selectors import validate_selector

_PERCENT = re.compile(r"[0-9]+%")
_PERCENT_TEXT = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex "
    f"used for validation is '{_PERCENT.pattern}')"
)
_UNHEALTHY_POLICIES = ("AlwaysAllow", "IfHealthyBudget")
_COUNTERS = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")


class BudgetStrategy(BaseStrategy):
    """At most one bound; the status is the disruption controller's."""

    has_status = True
    has_generation = True

    def prepare_create(self, obj: Object, cluster: Cluster) -> None:
        super().prepare_create(obj, cluster)
        obj["status"] = dict.fromkeys(_COUNTERS, 0)

    def validate_object(self, obj: Object, cluster: Cluster) -> list[Cause]:
        spec = obj["spec"]
        least, most, policy = (
            spec.get("minAvailable"),
            spec.get("maxUnavailable"),
            spec.get("unhealthyPodEvictionPolicy"),
        )
        found: list[Cause] = []
        if least is not None and most is not None:
            found.append(invalid("spec", spec, "minAvailable and maxUnavailable cannot be both set"))
        found += _validate_bound("spec.minAvailable", least)
        found += _validate_bound("spec.maxUnavailable", most)
        found += validate_selector("spec.selector", spec.get("selector"))
        if policy is not None and policy not in _UNHEALTHY_POLICIES:
            found.append(not_supported("spec.unhealthyPodEvictionPolicy", policy, _UNHEALTHY_POLICIES))
        return found

    def validate_status(self, obj: Object, old: Object) -> list[Cause]:
        status = mapping(obj, "status")
        found = validate_conditions("status.conditions", items(status, "conditions"))
        for key in _COUNTERS:
            found += at_least_0(f"status.{key}", status.get(key))
        return found

    def columns(self) -> tuple[Column, ...]:
        return (
            column("Name"),
            column("Min Available"),
            column("Max Unavailable"),
            column("Allowed Disruptions", "integer"),
            column("Age"),
        )

    def cells(self, obj: Object, cluster: Cluster) -> list[Any]:
        spec, status = mapping(obj, "spec"), mapping(obj, "status")
        bounds = [spec.get(key) for key in ("minAvailable", "maxUnavailable")]
        return [
            obj["metadata"]["name"],
            *("N/A" if bound is None else str(bound) for bound in bounds),
            status.get("disruptionsAllowed", 0),
            age(obj, cluster.now_s),
        ]


def _validate_bound(path: str, bound: object) -> list[Cause]:
    if isinstance(bound, int):
        return [invalid(path, bound, AT_LEAST_0)] if bound < 0 else []
    if not isinstance(bound, str):
        return []
    if not _PERCENT.fullmatch(bound):
        return [invalid(path, bound, _PERCENT_TEXT)]
    digits = bound[:-1].lstrip("0")
    if len(digits) > 3 or int(digits or "0") > 100:
        return [invalid(path, bound, "must not be greater than 100%")]
    return []
