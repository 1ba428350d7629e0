"""DeviceTaintRule (resource.k8s.io/v1): a taint that an administrator puts on devices."""

from typing import Any

from muster.api.times import format_seconds
from muster.apiserver.kinds import Cause, Cluster, Object
from muster.apiserver.strategies.base import BaseStrategy
from muster.apiserver.strategies.conditions import validate_conditions
from muster.apiserver.strategies.device_rules import (
    declared_last,
    stamp_taint,
    validate_label,
    validate_pool_name,
    validate_taint,
)
from muster.apiserver.strategies.fields import items, mapping, text, too_many
from muster.apiserver.strategies.printing import Column, age, column, since
from muster.apiserver.strategies.storage import validate_driver_name

_CONDITIONS_MAX = 8
_SELECTED_BY = {"driver": validate_driver_name, "pool": validate_pool_name, "device": validate_label}


class DeviceTaintRuleStrategy(BaseStrategy):
    """One taint for all devices that a selector names; the status is that of evictions."""

    namespaced = False
    has_status = True
    has_generation = True

    def default(self, obj: Object, cluster: Cluster) -> None:
        stamp_taint(mapping(mapping(obj, "spec"), "taint"), cluster)

    def prepare_update(self, obj: Object, old: Object, sub: str, cluster: Cluster) -> None:
        taint, before = mapping(mapping(obj, "spec"), "taint"), mapping(mapping(old, "spec"), "taint")
        is_other = taint.get("effect") != before.get("effect")
        if not sub and is_other and taint.get("timeAdded") == before.get("timeAdded"):
            taint["timeAdded"] = format_seconds(cluster.now_s)
        super().prepare_update(obj, old, sub, cluster)

    def validate_object(self, obj: Object, cluster: Cluster) -> list[Cause]:
        spec = mapping(obj, "spec")
        selector = mapping(spec, "deviceSelector")
        found: list[Cause] = []
        for key, rule in _SELECTED_BY.items():
            if selector.get(key) is not None:
                found += rule(f"spec.deviceSelector.{key}", text(selector, key))
        return declared_last(found + validate_taint("spec.taint", mapping(spec, "taint")))

    def validate_status(self, obj: Object, old: Object) -> list[Cause]:
        conditions = items(mapping(obj, "status"), "conditions")
        found = validate_conditions("status.conditions", conditions)
        if len(conditions) > _CONDITIONS_MAX:
            found.append(too_many("status.conditions", len(conditions), _CONDITIONS_MAX))
        return found

    def columns(self) -> tuple[Column, ...]:
        return tuple(column(name) for name in ("Name", "Key", "Value", "Effect", "TimeAdded", "Age"))

    def cells(self, obj: Object, cluster: Cluster) -> list[Any]:
        taint = mapping(mapping(obj, "spec"), "taint")
        words = [text(taint, key) for key in ("key", "value", "effect")]
        added = since(taint.get("timeAdded"), cluster.now_s) if taint.get("timeAdded") else ""
        return [obj["metadata"]["name"], *words, added, age(obj, cluster.now_s)]
