"""What a change of the cluster's state amounts to: the answers of `ClusterState` to what it is shown."""

from msgspec import Struct

from muster.api.core import Node, Pod


class NodeChange(Struct, frozen=True):
    """What an observed node changed; `stale` means it was older than what is known and changed nothing."""

    old: Node | None
    new: Node
    allocatable_grew: bool = False
    labels_changed: bool = False
    taints_changed: bool = False  # spec.unschedulable too
    stale: bool = False


class PodChange(Struct, frozen=True):
    """What an observed (or removed) pod changed.

    `old` is the object known before under this key (of another uid, if the pod was replaced); `new` the
    object known now (last known, if removed).  `freed`: some node has more room than before.  `assigned`:
    the pod now takes room that nobody here had assumed for it.  `relabeled`: it stays where it is, but rules
    about other pods may see it otherwise (labels; its deletion).  `node_name`: where that was.
    """

    old: Pod | None
    new: Pod
    freed: bool = False
    assigned: bool = False
    relabeled: bool = False
    node_name: str = ""
    stale: bool = False
