"""PodDisruptionBudget as the scheduler reads it (policy/v1)."""

from msgspec import Struct

from muster.api.core import LabelSelector
from muster.api.meta import Int32, ObjectMeta


class PodDisruptionBudgetSpec(Struct, frozen=True, rename="camel"):
    selector: LabelSelector | None = None


class PodDisruptionBudgetStatus(Struct, frozen=True, rename="camel"):
    disruptions_allowed: Int32 = 0
    disrupted_pods: dict[str, object] | None = None


class PodDisruptionBudget(Struct, frozen=True, rename="camel"):
    metadata: ObjectMeta
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()
