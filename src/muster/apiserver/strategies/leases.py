"""Lease (coordination.k8s.io): who leads, since when."""

from typing import Any

from muster.apiserver.kinds import Cause, Cluster, Object
from muster.apiserver.strategies.base import BaseStrategy
from muster.apiserver.strategies.fields import AT_LEAST_0, invalid, mapping, required, text
from muster.apiserver.strategies.printing import Column, age, column


class LeaseStrategy(BaseStrategy):
    """Counts must make sense; the holder is free text."""

    def prepare_create(self, obj: Object, cluster: Cluster) -> None:
        super().prepare_create(obj, cluster)
        _drop_coordinated(obj["spec"], {})

    def prepare_update(self, obj: Object, old: Object, sub: str, cluster: Cluster) -> None:
        super().prepare_update(obj, old, sub, cluster)
        _drop_coordinated(obj["spec"], old["spec"])

    def validate_object(self, obj: Object, cluster: Cluster) -> list[Cause]:
        spec = mapping(obj, "spec")
        found: list[Cause] = []
        length, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
        if length is not None and length <= 0:
            found.append(invalid("spec.leaseDurationSeconds", length, "must be greater than 0"))
        if transitions is not None and transitions < 0:
            found.append(invalid("spec.leaseTransitions", transitions, AT_LEAST_0))
        if spec.get("preferredHolder") and not text(spec, "strategy"):
            detail = "must be specified when `preferredHolder` is specified"
            found.append(required("spec.strategy", detail))
        return found

    def columns(self) -> tuple[Column, ...]:
        return (column("Name"), column("Holder"), column("Age"))

    def cells(self, obj: Object, cluster: Cluster) -> list[Any]:
        holder = text(mapping(obj, "spec"), "holderIdentity")
        return [obj["metadata"]["name"], holder, age(obj, cluster.now_s)]


def _drop_coordinated(spec: Object, old: Object) -> None:
    """Coordinated leader election is off: its fields are dropped unless they are in use."""
    for key in ("strategy", "preferredHolder"):
        if old.get(key) is None:
            spec.pop(key, None)
