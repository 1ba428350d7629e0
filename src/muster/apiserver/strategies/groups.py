"""PodGroup and CompositePodGroup (scheduling.k8s.io): one shape, two unions (KEP-4671, KEP-6012)."""

from typing import Any, ClassVar

from muster.apiserver.kinds import Cause, Cluster, Object
from muster.apiserver.strategies.base import BaseStrategy
from muster.apiserver.strategies.conditions import validate_conditions
from muster.apiserver.strategies.fields import (
    IMMUTABLE,
    invalid,
    invalid_each,
    items,
    mapping,
    required,
    text,
    too_many,
)
from muster.apiserver.strategies.names import long_name, short_name
from muster.apiserver.strategies.policies import (
    drop_gated,
    policy_name,
    validate_constraints,
    validate_mode,
    validate_policy,
    validate_priority,
    validate_unchanged,
)
from muster.apiserver.strategies.printing import NONE, Column, age, column
from muster.apiserver.strategies.priority import admit_priority
from muster.apiserver.strategies.unions import validate_union

PROTECTION = "scheduling.k8s.io/podgroup-protection"
CLAIMS_MOST = 4
_GROUP = "scheduling.k8s.io"
_FROZEN = ("parentCompositePodGroupName", "workloadRef")
_FROZEN_AFTER_POLICY = (
    "schedulingConstraints",
    "resourceClaims",
    "disruptionMode",
    "priorityClassName",
    "priority",
    "preemptionPolicy",
)


class GroupStrategy(BaseStrategy):
    """What both kinds of group share."""

    has_status = True
    resource: ClassVar[str]
    count: ClassVar[str]
    needs_workload: ClassVar[bool] = False
    frozen_policy: ClassVar[bool] = False

    def default(self, obj: Object, cluster: Cluster) -> None:
        if obj["spec"].get("disruptionMode") is None:
            obj["spec"]["disruptionMode"] = {"single": {}}
        if "PodGroupPreemptionPolicy" in cluster.gates and obj["spec"].get("preemptionPolicy") is None:
            obj["spec"]["preemptionPolicy"] = "PreemptLowerPriority"

    def prepare_create(self, obj: Object, cluster: Cluster) -> None:
        super().prepare_create(obj, cluster)
        drop_gated(obj["spec"], None, cluster)

    def prepare_update(self, obj: Object, old: Object, sub: str, cluster: Cluster) -> None:
        super().prepare_update(obj, old, sub, cluster)
        if not sub:
            drop_gated(obj["spec"], old["spec"], cluster)
            if old["spec"].get("preemptionPolicy") is None:  # stored while the gate was off
                obj["spec"].pop("preemptionPolicy", None)

    def admit_create(self, obj: Object, cluster: Cluster) -> None:
        admit_priority(obj, cluster, resource=self.resource, group=_GROUP)

    def validate_object(self, obj: Object, cluster: Cluster) -> list[Cause]:
        spec = obj["spec"]
        return (
            self._validate_parent(spec)
            + validate_policy(
                "spec.schedulingPolicy", mapping(spec, "schedulingPolicy"), None, count=self.count
            )
            + validate_constraints("spec.schedulingConstraints", spec.get("schedulingConstraints"))
            + validate_claims("spec.resourceClaims", items(spec, "resourceClaims"))
            + validate_mode("spec.disruptionMode", spec.get("disruptionMode"))
            + validate_priority("spec", spec)
        )

    def _validate_parent(self, spec: Object) -> list[Cause]:
        found: list[Cause] = []
        parent, reference = text(spec, "parentCompositePodGroupName"), spec.get("workloadRef")
        if reference is None and parent and not self.needs_workload:
            detail = "must be set when parentCompositePodGroupName is set"
            found.append(required("spec.workloadRef", detail))
        if "parentCompositePodGroupName" in spec:
            where = "spec.parentCompositePodGroupName"
            found += invalid_each(where, parent, long_name(parent))
        if reference is None:
            return [*found, required("spec.workloadRef")] if self.needs_workload else found
        for key, rule in (("workloadName", long_name), ("templateName", short_name)):
            name, where = text(reference, key), f"spec.workloadRef.{key}"
            found += invalid_each(where, name, rule(name)) if name else [required(where)]
        return found

    def validate_change(self, obj: Object, old: Object, cluster: Cluster) -> list[Cause]:
        spec, old_spec = obj["spec"], old["spec"]
        policy, old_policy = mapping(spec, "schedulingPolicy"), mapping(old_spec, "schedulingPolicy")
        if self.frozen_policy:
            changed = policy != old_policy
            of_policy = [invalid("spec.schedulingPolicy", None, IMMUTABLE)] if changed else []
        else:
            of_policy = validate_policy("spec.schedulingPolicy", policy, old_policy, count=self.count)
        return (
            validate_unchanged("spec", spec, old_spec, *_FROZEN)
            + of_policy
            + validate_unchanged("spec", spec, old_spec, *_FROZEN_AFTER_POLICY)
        )

    def validate_status(self, obj: Object, old: Object) -> list[Cause]:
        return validate_conditions("status.conditions", items(mapping(obj, "status"), "conditions"))


class PodGroupStrategy(GroupStrategy):
    """A leaf: it owns pods, and is protected while it has some."""

    resource = "podgroups"
    count = "minCount"

    def admit_create(self, obj: Object, cluster: Cluster) -> None:
        super().admit_create(obj, cluster)
        finalizers = obj["metadata"].setdefault("finalizers", [])
        if "GenericWorkload" in cluster.gates and PROTECTION not in finalizers:
            finalizers.append(PROTECTION)

    def validate_status(self, obj: Object, old: Object) -> list[Cause]:
        found = super().validate_status(obj, old)
        known = {claim.get("name") for claim in items(obj["spec"], "resourceClaims")}
        statuses = items(mapping(obj, "status"), "resourceClaimStatuses")
        if len(statuses) > CLAIMS_MOST:
            found.append(too_many("status.resourceClaimStatuses", len(statuses), CLAIMS_MOST))
        detail = "must match the name of an entry in `spec.resourceClaims`"
        found += [
            invalid(f"status.resourceClaimStatuses[{index}].name", status.get("name"), detail)
            for index, status in enumerate(statuses)
            if status.get("name") not in known
        ]
        return found

    def prepare_update(self, obj: Object, old: Object, sub: str, cluster: Cluster) -> None:
        super().prepare_update(obj, old, sub, cluster)
        used = mapping(old, "status").get("resourceClaimStatuses")
        if sub == "status" and "DRAWorkloadResourceClaims" not in cluster.gates and not used:
            mapping(obj, "status").pop("resourceClaimStatuses", None)

    def columns(self) -> tuple[Column, ...]:
        return tuple(column(name) for name in ("Name", "Policy", "Workload", "Status", "Age"))

    def cells(self, obj: Object, cluster: Cluster) -> list[Any]:
        return [
            obj["metadata"]["name"],
            policy_name(obj),
            workload_name(obj),
            group_status(obj),
            age(obj, cluster.now_s),
        ]


class CompositePodGroupStrategy(GroupStrategy):
    """An inner node: it owns groups."""

    resource = "compositepodgroups"
    count = "minGroupCount"
    needs_workload = True
    frozen_policy = True

    def columns(self) -> tuple[Column, ...]:
        return tuple(column(name) for name in ("Name", "Policy", "Workload", "Age"))

    def cells(self, obj: Object, cluster: Cluster) -> list[Any]:
        return [obj["metadata"]["name"], policy_name(obj), workload_name(obj), age(obj, cluster.now_s)]


def validate_claims(path: str, claims: list[Object]) -> list[Cause]:
    """Resource claims of a group: named, each by one reference."""
    if len(claims) > CLAIMS_MOST:
        return [too_many(path, len(claims), CLAIMS_MOST)]
    found: list[Cause] = []
    for index, claim in enumerate(claims):
        here, name = f"{path}[{index}]", text(claim, "name")
        found += validate_union(here, claim, ("resourceClaimName", "resourceClaimTemplateName"))
        found += invalid_each(f"{here}.name", name, short_name(name)) if name else [required(f"{here}.name")]
    return found


def workload_name(obj: Object) -> str:
    """The cell that names the Workload a group was made from."""
    return text(mapping(obj["spec"], "workloadRef"), "workloadName") or NONE


def group_status(obj: Object) -> str:
    """The cell that sums the conditions up, first that fits."""
    conditions = {c.get("type"): c for c in items(mapping(obj, "status"), "conditions")}
    if disrupted := conditions.get("DisruptionTarget"):
        return text(disrupted, "reason")
    if scheduled := conditions.get("PodGroupInitiallyScheduled"):
        return "Scheduled" if scheduled.get("status") == "True" else "Unschedulable"
    return "Pending"
