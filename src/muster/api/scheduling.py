"""PodGroup, Workload and PriorityClass as the scheduler and the command line read them (scheduling.k8s.io).

Typed views like those of `core.py`: what the scheduler does not honour yet is kept as presence, to be
refused by name.  Next: `dialects/native.py` makes groups of them.
"""

from msgspec import Struct

from muster.api.core import PodClaim
from muster.api.meta import Condition, Int32, ObjectMeta


class GangPolicy(Struct, frozen=True, gc=False, rename="camel"):
    min_count: Int32 = 1


class PodGroupSchedulingPolicy(Struct, frozen=True, rename="camel"):
    """Exactly one of the two is set."""

    basic: dict[str, object] | None = None
    gang: GangPolicy | None = None


class TopologyConstraint(Struct, frozen=True, gc=False, rename="camel"):
    key: str = ""


class SchedulingConstraints(Struct, frozen=True, rename="camel"):
    topology: list[TopologyConstraint] | None = None


class DisruptionMode(Struct, frozen=True, rename="camel"):
    """Exactly one of the two is set."""

    single: dict[str, object] | None = None
    all: dict[str, object] | None = None


class WorkloadReference(Struct, frozen=True, gc=False, rename="camel"):
    workload_name: str = ""
    template_name: str = ""


class PodGroupSpec(Struct, frozen=True, rename="camel"):
    parent_composite_pod_group_name: str | None = None
    workload_ref: WorkloadReference | None = None
    scheduling_policy: PodGroupSchedulingPolicy = PodGroupSchedulingPolicy()
    scheduling_constraints: SchedulingConstraints | None = None
    resource_claims: list[PodClaim] | None = None
    disruption_mode: DisruptionMode | None = None
    priority_class_name: str | None = None
    priority: Int32 | None = None
    preemption_policy: str | None = None


class PodGroupStatus(Struct, frozen=True, rename="camel"):
    conditions: list[Condition] | None = None


class PodGroup(Struct, frozen=True, rename="camel"):
    metadata: ObjectMeta
    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()


class CompositeGangPolicy(Struct, frozen=True, gc=False, rename="camel"):
    min_group_count: Int32 = 1


class CompositePodGroupSchedulingPolicy(Struct, frozen=True, rename="camel"):
    """Exactly one of the two is set."""

    basic: dict[str, object] | None = None
    gang: CompositeGangPolicy | None = None


class CompositePodGroupSpec(Struct, frozen=True, rename="camel"):
    parent_composite_pod_group_name: str | None = None
    workload_ref: WorkloadReference | None = None
    scheduling_policy: CompositePodGroupSchedulingPolicy = CompositePodGroupSchedulingPolicy()
    scheduling_constraints: SchedulingConstraints | None = None
    disruption_mode: DisruptionMode | None = None
    priority_class_name: str | None = None
    priority: Int32 | None = None
    preemption_policy: str | None = None


class CompositePodGroup(Struct, frozen=True, rename="camel"):
    metadata: ObjectMeta
    spec: CompositePodGroupSpec = CompositePodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()


class PodGroupTemplate(Struct, frozen=True, rename="camel"):
    name: str = ""
    scheduling_policy: PodGroupSchedulingPolicy = PodGroupSchedulingPolicy()
    scheduling_constraints: SchedulingConstraints | None = None
    resource_claims: list[object] | None = None
    disruption_mode: DisruptionMode | None = None
    priority_class_name: str | None = None


class TypedReference(Struct, frozen=True, gc=False, rename="camel"):
    api_group: str = ""
    kind: str = ""
    name: str = ""


class WorkloadSpec(Struct, frozen=True, rename="camel"):
    controller_ref: TypedReference | None = None
    pod_group_templates: list[PodGroupTemplate] | None = None
    composite_pod_group_templates: list[dict[str, object]] | None = None


class Workload(Struct, frozen=True, rename="camel"):
    metadata: ObjectMeta
    spec: WorkloadSpec = WorkloadSpec()


class PriorityClass(Struct, frozen=True, rename="camel"):
    metadata: ObjectMeta
    value: Int32 = 0
    global_default: bool = False
    preemption_policy: str = "PreemptLowerPriority"
    description: str = ""
