"""The kinds of objects that a scheduler watches, and the events that it makes of them.

`without` says what is missing where a kind is not served or may not be read; a kind that has none must be.
Next: `watch.py`, which lists and watches one of them.
"""

from typing import Any

from muster.api.core import Namespace, Node, Pod
from muster.api.devices import DeviceObject, DeviceTaintRule
from muster.api.policy import PodDisruptionBudget
from muster.api.scheduling import CompositePodGroup, PodGroup
from muster.api.storage import StorageObject, VolumeAttachment
from muster.dialects.native import (
    DEVICE_KINDS,
    STORAGE_KINDS,
    budget_of,
    composite_of,
    group_of,
    seen_pod,
)
from muster.framework.ports import (
    CompositeGone,
    CompositeSeen,
    DevicesGone,
    DevicesSeen,
    GroupGone,
    GroupSeen,
    NamespaceGone,
    NamespaceSeen,
    NodeGone,
    NodeSeen,
    PdbGone,
    PdbSeen,
    PodGone,
    StorageGone,
    StorageSeen,
)
from muster.runtime.watch import WatchedKind

PODS = WatchedKind(
    "pods",
    "/api/v1/pods",
    Pod,
    seen_pod,
    lambda key, uid: PodGone(key, uid),
    # Of a pod that waits every version is told, for its binding names it.
    is_no_news=lambda told, now: bool(told.spec.node_name) and now.is_all_but_version(told),
)
NODES = WatchedKind("nodes", "/api/v1/nodes", Node, NodeSeen, lambda key, uid: NodeGone(key.name))
NAMESPACES = WatchedKind(
    "namespaces",
    "/api/v1/namespaces",
    Namespace,
    lambda found: NamespaceSeen(found.metadata.name, found.metadata.labels or {}),
    lambda key, uid: NamespaceGone(key.name),
    without="rules with a namespace selector know namespaces by name only",
)
GROUPS = WatchedKind(
    "podgroups",
    "/apis/scheduling.k8s.io/v1beta1/podgroups",
    PodGroup,
    lambda pod_group: GroupSeen(group_of(pod_group)),
    lambda key, uid: GroupGone(key, uid),
)
COMPOSITES = WatchedKind(
    "compositepodgroups",
    "/apis/scheduling.k8s.io/v1alpha3/compositepodgroups",
    CompositePodGroup,
    lambda composite: CompositeSeen(composite_of(composite)),
    lambda key, uid: CompositeGone(key, uid),
    without="pod groups that name a composite group wait for it",
)
BUDGETS = WatchedKind(
    "poddisruptionbudgets",
    "/apis/policy/v1/poddisruptionbudgets",
    PodDisruptionBudget,
    lambda pdb: PdbSeen(budget_of(pdb)),
    lambda key, uid: PdbGone(key, uid),
    without="preemption does not heed disruption budgets",
)


_WITHOUT: dict[type[StorageObject | DeviceObject], str] = {
    VolumeAttachment: "volumes that nodes still have attached after their pods went do not count",
    DeviceTaintRule: "taints that rules put on devices are not known",
}


def _storage_kind(resource: str, kind: type[StorageObject]) -> WatchedKind[Any]:
    """A kind of volumes, claims, or of what says how volumes come to be."""
    root = "/api/v1" if resource.startswith("persistent") else "/apis/storage.k8s.io/v1"
    return WatchedKind(
        resource,
        f"{root}/{resource}",
        kind,
        StorageSeen,
        lambda key, uid: StorageGone(kind, key, uid),
        without=_WITHOUT.get(kind, "pods whose volumes depend on them wait"),
    )


def _device_kind(resource: str, kind: type[DeviceObject]) -> WatchedKind[Any]:
    """Devices, classes and taints of them, and claims for some."""
    return WatchedKind(
        resource,
        f"/apis/resource.k8s.io/v1/{resource}",
        kind,
        DevicesSeen,
        lambda key, uid: DevicesGone(kind, key, uid),
        without=_WITHOUT.get(kind, "pods that claim devices wait"),
    )


DEVICES = tuple(_device_kind(resource, kind) for resource, kind in DEVICE_KINDS.items())
STORAGE = tuple(_storage_kind(resource, kind) for resource, kind in STORAGE_KINDS.items())
KINDS: tuple[WatchedKind[Any], ...] = (
    NAMESPACES,
    NODES,
    *STORAGE,
    *DEVICES,
    BUDGETS,
    COMPOSITES,
    GROUPS,
    PODS,
)
