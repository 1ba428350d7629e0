"""The kinds that the embedded API server serves: one row each.  To serve another kind, add a row here."""

from muster.apiserver.kinds import Handler, Kind, Object, Subresource
from muster.apiserver.strategies.base import BaseStrategy, fields_with
from muster.apiserver.strategies.configmaps import ConfigMapStrategy
from muster.apiserver.strategies.device_claims import (
    DeviceClassStrategy,
    ResourceClaimStrategy,
    ResourceClaimTemplateStrategy,
)
from muster.apiserver.strategies.device_slices import ResourceSliceStrategy
from muster.apiserver.strategies.device_taints import DeviceTaintRuleStrategy
from muster.apiserver.strategies.events import (
    EventStrategy,
    NewEventStrategy,
    event_field,
    from_new,
    to_new,
)
from muster.apiserver.strategies.groups import CompositePodGroupStrategy, PodGroupStrategy
from muster.apiserver.strategies.jobs import ORPHANS, JobStrategy
from muster.apiserver.strategies.leases import LeaseStrategy
from muster.apiserver.strategies.namespaces import NamespaceStrategy, initial_namespaces
from muster.apiserver.strategies.nodes import NodeStrategy
from muster.apiserver.strategies.pod_verbs import bind, bind_by_body, evict, read_log
from muster.apiserver.strategies.pods import PodStrategy, pod_grace_s
from muster.apiserver.strategies.policy import BudgetStrategy
from muster.apiserver.strategies.priority import CLASSES, PriorityClassStrategy, system_classes
from muster.apiserver.strategies.reviews import review_access, review_rules, review_self
from muster.apiserver.strategies.runtime_classes import RuntimeClassStrategy
from muster.apiserver.strategies.storage import (
    CSIDriverStrategy,
    CSINodeStrategy,
    CSIStorageCapacityStrategy,
    StorageClassStrategy,
    VolumeAttachmentStrategy,
)
from muster.apiserver.strategies.volumes import PersistentVolumeClaimStrategy, PersistentVolumeStrategy
from muster.apiserver.strategies.workloads import WorkloadStrategy

SCHEDULING = "scheduling.k8s.io"
STORAGE = "storage.k8s.io"
RESOURCE = "resource.k8s.io"
_CORE_UNKNOWN_FIELD = "field label not supported: {field}"
_WRITTEN = ("get", "patch", "update")
_STATUS = Subresource("status", _WRITTEN)
_NO_COLLECTION = ("create", "delete", "get", "list", "patch", "update", "watch")
_ABOUT = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")


def _asked_only(group: str, kind: str, handler: Handler) -> Kind:
    """A kind that is only created and never stored: a question."""
    return Kind(
        group=group,
        versions=("v1",),
        kind=kind,
        resource=f"{kind.lower()}s",
        singular=kind.lower(),
        namespaced=False,
        strategy=BaseStrategy(),
        verbs=("create",),
        handler=handler,
    )


_CORE = (
    Kind(
        group="",
        versions=("v1",),
        kind="Binding",
        resource="bindings",
        singular="binding",
        namespaced=True,
        strategy=BaseStrategy(),
        verbs=("create",),
        handler=bind_by_body,
    ),
    Kind(
        group="",
        versions=("v1",),
        kind="ConfigMap",
        resource="configmaps",
        singular="configmap",
        namespaced=True,
        strategy=ConfigMapStrategy(),
        short_names=("cm",),
    ),
    Kind(
        group="",
        versions=("v1",),
        kind="Event",
        resource="events",
        singular="event",
        namespaced=True,
        strategy=EventStrategy(),
        short_names=("ev",),
        field_selectors=(
            *(f"involvedObject.{key}" for key in _ABOUT),
            *("reason", "reportingComponent", "source", "type"),
        ),
        field_value=event_field,
        unknown_field=_CORE_UNKNOWN_FIELD,
        create_on_update=True,
    ),
    Kind(
        group="",
        versions=("v1",),
        kind="Namespace",
        resource="namespaces",
        singular="namespace",
        namespaced=False,
        strategy=NamespaceStrategy(),
        subresources=(_STATUS, Subresource("finalize", ("update",))),
        short_names=("ns",),
        verbs=_NO_COLLECTION,
        field_selectors=("status.phase",),
        unknown_field=_CORE_UNKNOWN_FIELD,
        returns_deleted=True,
    ),
    Kind(
        group="",
        versions=("v1",),
        kind="Node",
        resource="nodes",
        singular="node",
        namespaced=False,
        strategy=NodeStrategy(),
        subresources=(_STATUS,),
        short_names=("no",),
        field_selectors=("spec.unschedulable",),
        field_value=fields_with({"spec.unschedulable": "false"}),
        unknown_field=_CORE_UNKNOWN_FIELD,
    ),
    Kind(
        group="",
        versions=("v1",),
        kind="Pod",
        resource="pods",
        singular="pod",
        namespaced=True,
        strategy=PodStrategy(),
        subresources=(
            Subresource("binding", ("create",), kind="Binding", handler=bind),
            Subresource("ephemeralcontainers", _WRITTEN),
            Subresource(
                "eviction",
                ("create",),
                kind="Eviction",
                group="policy",
                version="v1",
                older=("v1beta1",),
                handler=evict,
            ),
            Subresource("log", ("get",), handler=read_log),
            Subresource("resize", _WRITTEN),
            _STATUS,
        ),
        short_names=("po",),
        categories=("all",),
        field_selectors=(
            *("spec.hostNetwork", "spec.nodeName", "spec.restartPolicy", "spec.schedulerName"),
            *("spec.serviceAccountName", "status.nominatedNodeName", "status.phase"),
            *("status.podIP", "status.podIPs"),
        ),
        field_value=fields_with({"spec.hostNetwork": "false"}),
        unknown_field=_CORE_UNKNOWN_FIELD,
        has_generation=True,
        grace_s=pod_grace_s,
        returns_deleted=True,
    ),
)
_GROUPS = (
    Kind(
        group=SCHEDULING,
        versions=("v1beta1", "v1alpha3"),
        kind="PodGroup",
        resource="podgroups",
        singular="podgroup",
        namespaced=True,
        strategy=PodGroupStrategy(),
        unconditional_update=False,
        subresources=(_STATUS,),
    ),
    Kind(
        group=SCHEDULING,
        versions=("v1alpha3",),
        kind="CompositePodGroup",
        resource="compositepodgroups",
        singular="compositepodgroup",
        namespaced=True,
        strategy=CompositePodGroupStrategy(),
        unconditional_update=False,
        subresources=(_STATUS,),
    ),
    Kind(
        group=SCHEDULING,
        versions=("v1beta1", "v1alpha3"),
        kind="Workload",
        resource="workloads",
        singular="workload",
        namespaced=True,
        strategy=WorkloadStrategy(),
        unconditional_update=False,
    ),
    Kind(
        group=SCHEDULING,
        versions=("v1",),
        kind="PriorityClass",
        resource="priorityclasses",
        singular="priorityclass",
        namespaced=False,
        strategy=PriorityClassStrategy(),
        short_names=("pc",),
        has_generation=True,
    ),
)
_OTHERS = (
    Kind(
        group="batch",
        versions=("v1",),
        kind="Job",
        resource="jobs",
        singular="job",
        namespaced=True,
        strategy=JobStrategy(),
        subresources=(_STATUS,),
        categories=("all",),
        field_selectors=("status.successful",),
        field_value=lambda job, path: str((job.get("status") or {}).get("succeeded") or 0),
        unknown_field='field label "{field}" not supported for Job',
        has_generation=True,
        default_propagation="Orphan",
        default_warning=ORPHANS,
    ),
    Kind(
        group="node.k8s.io",
        versions=("v1",),
        kind="RuntimeClass",
        resource="runtimeclasses",
        singular="runtimeclass",
        namespaced=False,
        strategy=RuntimeClassStrategy(),
    ),
    Kind(
        group="coordination.k8s.io",
        versions=("v1",),
        kind="Lease",
        resource="leases",
        singular="lease",
        namespaced=True,
        strategy=LeaseStrategy(),
        unconditional_update=False,
        create_on_update=True,
    ),
    Kind(
        group="events.k8s.io",
        versions=("v1",),
        kind="Event",
        resource="events",
        singular="event",
        namespaced=True,
        strategy=NewEventStrategy(),
        short_names=("ev",),
        field_selectors=(
            *(f"regarding.{key}" for key in _ABOUT),
            *("reason", "reportingController", "type"),
        ),
        unknown_field=_CORE_UNKNOWN_FIELD,
        create_on_update=True,
        stored_as="events",
        to_view=to_new,
        from_view=from_new,
    ),
    Kind(
        group="policy",
        versions=("v1",),
        kind="PodDisruptionBudget",
        resource="poddisruptionbudgets",
        singular="poddisruptionbudget",
        namespaced=True,
        strategy=BudgetStrategy(),
        unconditional_update=False,
        subresources=(_STATUS,),
        short_names=("pdb",),
        has_generation=True,
    ),
)
_STORAGE = (
    Kind(
        group="",
        versions=("v1",),
        kind="PersistentVolume",
        resource="persistentvolumes",
        singular="persistentvolume",
        namespaced=False,
        strategy=PersistentVolumeStrategy(),
        subresources=(_STATUS,),
        short_names=("pv",),
        unknown_field=_CORE_UNKNOWN_FIELD,
        returns_deleted=True,
    ),
    Kind(
        group="",
        versions=("v1",),
        kind="PersistentVolumeClaim",
        resource="persistentvolumeclaims",
        singular="persistentvolumeclaim",
        namespaced=True,
        strategy=PersistentVolumeClaimStrategy(),
        subresources=(_STATUS,),
        short_names=("pvc",),
        unknown_field=_CORE_UNKNOWN_FIELD,
        returns_deleted=True,
    ),
    Kind(
        group=STORAGE,
        versions=("v1",),
        kind="StorageClass",
        resource="storageclasses",
        singular="storageclass",
        namespaced=False,
        strategy=StorageClassStrategy(),
        short_names=("sc",),
        returns_deleted=True,
    ),
    Kind(
        group=STORAGE,
        versions=("v1",),
        kind="CSINode",
        resource="csinodes",
        singular="csinode",
        namespaced=False,
        strategy=CSINodeStrategy(),
        returns_deleted=True,
    ),
    Kind(
        group=STORAGE,
        versions=("v1",),
        kind="CSIDriver",
        resource="csidrivers",
        singular="csidriver",
        namespaced=False,
        strategy=CSIDriverStrategy(),
        has_generation=True,
        returns_deleted=True,
    ),
    Kind(
        group=STORAGE,
        versions=("v1",),
        kind="VolumeAttachment",
        resource="volumeattachments",
        singular="volumeattachment",
        namespaced=False,
        strategy=VolumeAttachmentStrategy(),
        subresources=(_STATUS,),
        unconditional_update=False,
        returns_deleted=True,
    ),
    Kind(
        group=STORAGE,
        versions=("v1",),
        kind="CSIStorageCapacity",
        resource="csistoragecapacities",
        singular="csistoragecapacity",
        namespaced=True,
        strategy=CSIStorageCapacityStrategy(),
        has_generation=True,
    ),
)
_DEVICES = (
    Kind(
        group=RESOURCE,
        versions=("v1",),
        kind="DeviceClass",
        resource="deviceclasses",
        singular="deviceclass",
        namespaced=False,
        strategy=DeviceClassStrategy(),
        has_generation=True,
        returns_deleted=True,
    ),
    Kind(
        group=RESOURCE,
        versions=("v1",),
        kind="DeviceTaintRule",
        resource="devicetaintrules",
        singular="devicetaintrule",
        namespaced=False,
        strategy=DeviceTaintRuleStrategy(),
        subresources=(_STATUS,),
        has_generation=True,
        unconditional_update=False,
    ),
    Kind(
        group=RESOURCE,
        versions=("v1",),
        kind="ResourceClaim",
        resource="resourceclaims",
        singular="resourceclaim",
        namespaced=True,
        strategy=ResourceClaimStrategy(),
        subresources=(_STATUS,),
        returns_deleted=True,
    ),
    Kind(
        group=RESOURCE,
        versions=("v1",),
        kind="ResourceClaimTemplate",
        resource="resourceclaimtemplates",
        singular="resourceclaimtemplate",
        namespaced=True,
        strategy=ResourceClaimTemplateStrategy(),
        returns_deleted=True,
    ),
    Kind(
        group=RESOURCE,
        versions=("v1",),
        kind="ResourceSlice",
        resource="resourceslices",
        singular="resourceslice",
        namespaced=False,
        strategy=ResourceSliceStrategy(),
        field_selectors=("spec.driver", "spec.nodeName"),
        has_generation=True,
        returns_deleted=True,
    ),
)
_QUESTIONS = (
    _asked_only("authentication.k8s.io", "SelfSubjectReview", review_self),
    _asked_only("authorization.k8s.io", "SelfSubjectAccessReview", review_access),
    _asked_only("authorization.k8s.io", "SelfSubjectRulesReview", review_rules),
)

KINDS: tuple[Kind, ...] = (*_CORE, *_GROUPS, *_OTHERS, *_STORAGE, *_DEVICES, *_QUESTIONS)


def initial_objects() -> list[tuple[str, Object]]:
    """What a new cluster has: the name of the row, and the object to create."""
    return [("namespaces", obj) for obj in initial_namespaces()] + [
        (CLASSES, obj) for obj in system_classes()
    ]
