"""Cluster events as the queue sees them, and the hints by which plugins say which could help."""

from collections.abc import Callable
from enum import Enum, auto

from msgspec import Struct

from muster.api.core import Node, Pod
from muster.api.devices import DeviceObject
from muster.api.storage import StorageObject
from muster.framework.groups import Group, GroupKey


class Change(Enum):
    """What happened, as finely as a hint can use it."""

    NODE_ADDED = auto()
    NODE_ALLOCATABLE_GREW = auto()
    NODE_LABELS_CHANGED = auto()
    NODE_TAINTS_CHANGED = auto()  # spec.unschedulable too
    NODE_REMOVED = auto()
    NAMESPACE_CHANGED = auto()  # its labels; also the first time it is seen
    POD_FREED = auto()  # an assigned pod went away, ended, or asks for less
    POD_ASSIGNED = auto()  # a pod came to a node, ours by assumption included
    POD_RELABELED = auto()  # labels of an assigned pod changed, or its deletion was asked for
    POD_ADDED = auto()  # an unscheduled member appeared
    POD_UPDATED = auto()  # an unscheduled member changed (gates, labels, requests)
    POD_REMOVED = auto()  # an unscheduled member went away
    STORAGE_CHANGED = auto()  # a volume, claim, class, or what nodes and provisioners say of theirs; or gone
    DEVICES_CHANGED = auto()  # a slice, a class or a claim; or gone
    RESOURCE_BACKED = auto()  # a class of devices was seen; some back a resource that nodes do not offer
    GROUP_ADDED = auto()
    GROUP_CHANGED = auto()


class ClusterEvent(Struct, frozen=True):
    """One change with the objects it is about (after; `old_node` before, where a hint may compare).

    POD_FREED comes with the pod as it was and the node that has more room.  Changes of unscheduled pods and
    of groups are told only to the entity they are about, and always wake it: no rule is asked.  `backed`:
    with a node, the extended resources in place of which it may give devices.
    """

    change: Change
    node: Node | None = None
    old_node: Node | None = None
    pod: Pod | None = None
    group_key: GroupKey | None = None
    storage: StorageObject | None = None
    devices: DeviceObject | None = None
    old_group: Group | None = None
    group: Group | None = None
    backed: frozenset[str] = frozenset()


class Hint(Enum):
    """What a rule answers."""

    SKIP = auto()
    QUEUE = auto()


class Rejected(Struct, frozen=True):
    """Who was rejected: the root's key (None for a lone pod), its group object, and its waiting pods."""

    key: GroupKey | None
    group: Group | None
    pods: tuple[Pod, ...]


class HintRule(Struct, frozen=True):
    """For events with this change, ask `helps`; without it every such event may help."""

    change: Change
    helps: Callable[[Rejected, ClusterEvent], Hint] | None = None


def opens(rejected: Rejected, event: ClusterEvent, allows: Callable[[Pod, Node], bool]) -> Hint:
    """Queue where the event's node lets some waiting pod in by this rule, and did not before."""
    node, old_node = event.node, event.old_node
    if node is None:
        return Hint.QUEUE
    for pod in rejected.pods:
        if allows(pod, node) and not (old_node is not None and allows(pod, old_node)):
            return Hint.QUEUE
    return Hint.SKIP
