"""Pod and Node as the scheduler reads them (core/v1), decoded by msgspec straight from the API's JSON.

Only fields that decide where a pod may go, or that Muster writes about, are typed; what a pod may ask
for and Muster does not yet honour is kept as presence (`list[object]`) so that it can be refused by name.
Quantities stay text here; `api/quantity.py` turns them into integers of a base unit.
"""

from msgspec import Struct, field
from msgspec.structs import replace

from muster.api.meta import Condition, Int32, Int64, ObjectMeta

Quantities = dict[str, str | int | float]


class ResourceRequirements(Struct, frozen=True, rename="camel"):
    requests: Quantities | None = None
    limits: Quantities | None = None
    claims: list[object] | None = None


class ContainerPort(Struct, frozen=True, gc=False, rename="camel"):
    container_port: Int32 = 0
    host_port: Int32 = 0
    host_ip: str = field(name="hostIP", default="")
    protocol: str = "TCP"


class Container(Struct, frozen=True, rename="camel"):
    name: str = ""
    image: str = ""
    resources: ResourceRequirements | None = None
    ports: list[ContainerPort] | None = None
    restart_policy: str | None = None


class LabelSelectorRequirement(Struct, frozen=True, rename="camel"):
    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class LabelSelector(Struct, frozen=True, rename="camel"):
    match_labels: dict[str, str] | None = None
    match_expressions: list[LabelSelectorRequirement] | None = None


class NodeSelectorTerm(Struct, frozen=True, rename="camel"):
    match_expressions: list[LabelSelectorRequirement] | None = None
    match_fields: list[LabelSelectorRequirement] | None = None


class NodeSelector(Struct, frozen=True, rename="camel"):
    node_selector_terms: list[NodeSelectorTerm] | None = None


class PreferredSchedulingTerm(Struct, frozen=True, rename="camel"):
    weight: Int32 = 0
    preference: NodeSelectorTerm | None = None


class NodeAffinity(Struct, frozen=True, rename="camel"):
    required: NodeSelector | None = field(name="requiredDuringSchedulingIgnoredDuringExecution", default=None)
    preferred: list[PreferredSchedulingTerm] | None = field(
        name="preferredDuringSchedulingIgnoredDuringExecution", default=None
    )


class PodAffinityTerm(Struct, frozen=True, rename="camel"):
    topology_key: str = ""
    label_selector: LabelSelector | None = None
    namespaces: list[str] | None = None
    namespace_selector: LabelSelector | None = None
    match_label_keys: list[str] | None = None
    mismatch_label_keys: list[str] | None = None


class WeightedPodAffinityTerm(Struct, frozen=True, rename="camel"):
    weight: Int32 = 0
    pod_affinity_term: PodAffinityTerm | None = None


class PodAffinity(Struct, frozen=True, rename="camel"):
    """Serves podAffinity and podAntiAffinity alike: they have one shape."""

    required: list[PodAffinityTerm] | None = field(
        name="requiredDuringSchedulingIgnoredDuringExecution", default=None
    )
    preferred: list[WeightedPodAffinityTerm] | None = field(
        name="preferredDuringSchedulingIgnoredDuringExecution", default=None
    )


class Affinity(Struct, frozen=True, rename="camel"):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class Toleration(Struct, frozen=True, gc=False, rename="camel"):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: Int64 | None = None


class TopologySpreadConstraint(Struct, frozen=True, rename="camel"):
    max_skew: Int32 = 1
    topology_key: str = ""
    when_unsatisfiable: str = "DoNotSchedule"
    label_selector: LabelSelector | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: list[str] | None = None


class SchedulingGate(Struct, frozen=True, gc=False):
    name: str = ""


class SchedulingGroup(Struct, frozen=True, gc=False, rename="camel"):
    pod_group_name: str | None = None


class PodClaim(Struct, frozen=True, rename="camel"):
    """How a pod names a claim for devices: one that exists, or one made for it from a template."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodClaimStatus(Struct, frozen=True, rename="camel"):
    """Which claim was made for what the pod calls `name`."""

    name: str = ""
    resource_claim_name: str | None = None


class PodSpec(Struct, frozen=True, rename="camel"):
    node_name: str = ""
    scheduler_name: str = "default-scheduler"
    priority: Int32 | None = None
    preemption_policy: str | None = None
    scheduling_group: SchedulingGroup | None = None
    scheduling_gates: list[SchedulingGate] | None = None
    containers: list[Container] = []
    init_containers: list[Container] | None = None
    overhead: Quantities | None = None
    resources: ResourceRequirements | None = None
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: list[Toleration] | None = None
    topology_spread_constraints: list[TopologySpreadConstraint] | None = None
    volumes: list[dict[str, object]] | None = None
    resource_claims: list[PodClaim] | None = None
    termination_grace_period_seconds: Int64 | None = None
    host_network: bool = False


class ContainerStatus(Struct, frozen=True, rename="camel"):
    name: str = ""
    resources: ResourceRequirements | None = None
    allocated_resources: Quantities | None = None


class ExtendedResourceRequest(Struct, frozen=True, rename="camel"):
    """Which request of the claim is for an extended resource of a container."""

    container_name: str = ""
    resource_name: str = ""
    request_name: str = ""


class ExtendedResourceClaimStatus(Struct, frozen=True, rename="camel"):
    """The claim that was made in place of the pod's extended resources."""

    request_mappings: list[ExtendedResourceRequest] | None = None
    resource_claim_name: str = ""


class PodStatus(Struct, frozen=True, rename="camel"):
    phase: str = "Pending"
    reason: str = ""
    conditions: list[Condition] | None = None
    nominated_node_name: str = ""
    start_time: str | None = None
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None
    resize: str | None = None
    resources: ResourceRequirements | None = None
    allocated_resources: Quantities | None = None
    resource_claim_statuses: list[PodClaimStatus] | None = None
    extended_resource_claim_status: ExtendedResourceClaimStatus | None = None


class Pod(Struct, frozen=True, rename="camel"):
    """A pod, as far as it decides where it may go and what Muster says about it."""

    metadata: ObjectMeta
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def is_terminal(self) -> bool:
        """Whether it has ended: Succeeded or Failed."""
        return self.status.phase in ("Succeeded", "Failed")

    @property
    def is_terminating(self) -> bool:
        """Whether its deletion has been asked for."""
        return self.metadata.deletion_timestamp is not None

    def is_all_but_version(self, other: "Pod") -> bool:
        """Whether the two are equal in everything that is read here, save the resourceVersion."""
        if self.spec != other.spec or self.status != other.status:
            return False
        return replace(self.metadata, resource_version=other.metadata.resource_version) == other.metadata

    def asks_as(self, other: "Pod") -> bool:
        """Whether it asks for what `other`, its earlier self, asked for; whether it is bound is no matter."""
        if self.metadata.labels != other.metadata.labels:
            return False
        if self.status.resource_claim_statuses != other.status.resource_claim_statuses:
            return False
        before, now = other.spec, self.spec
        if now.node_name and not before.node_name:
            before = replace(before, node_name=now.node_name)
        return now == before

    def is_just_bound(self, other: "Pod") -> bool:
        """Whether it is `other`, which was on no node, bound since and in nothing else another: of all that
        is read here only node, version and the condition PodScheduled differ."""
        meta, before, now = other.metadata, other.status, self.status
        return (
            bool(self.spec.node_name)
            and not other.spec.node_name
            and self.asks_as(other)
            and replace(now, conditions=before.conditions) == before
            and _but_scheduled(now.conditions) == _but_scheduled(before.conditions)
            and replace(
                meta, resource_version=self.metadata.resource_version, generation=self.metadata.generation
            )
            == self.metadata
        )

    def find_condition(self, type_: str) -> Condition | None:
        """The condition of this type, if the pod has one."""
        return next((c for c in self.status.conditions or () if c.type == type_), None)


def _but_scheduled(conditions: list[Condition] | None) -> list[Condition]:
    return [condition for condition in conditions or () if condition.type != "PodScheduled"]


class Namespace(Struct, frozen=True):
    """A namespace: rules about pods of other namespaces read its labels."""

    metadata: ObjectMeta


class Taint(Struct, frozen=True, gc=False, rename="camel"):
    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: str | None = None


class NodeSpec(Struct, frozen=True, rename="camel"):
    unschedulable: bool = False
    taints: list[Taint] | None = None


class ContainerImage(Struct, frozen=True, rename="camel"):
    names: list[str] | None = None
    size_bytes: Int64 = 0


class NodeStatus(Struct, frozen=True, rename="camel"):
    capacity: Quantities | None = None
    allocatable: Quantities | None = None
    conditions: list[Condition] | None = None
    images: list[ContainerImage] | None = None


class Node(Struct, frozen=True, rename="camel"):
    metadata: ObjectMeta
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()
