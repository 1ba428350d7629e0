"""The frozen columns that one cycle decides on, and forks of them for trial placements.

A snapshot is taken once per cycle; its arrays refuse writes.  `fork()` copies only what placing a pod
changes and shares the rest; throwing a fork away is the rollback.
Axes: N node rows (rows of deleted nodes stay and are marked dead), R resources.
"""

from collections.abc import Mapping

from muster.api.core import Node, Pod
from muster.base.arrays import Bool, Int32, Int64
from muster.cluster.axes import ResourceAxis


class Snapshot:
    """Read-only cluster state for one cycle.

    Shapes   live [N]; allocatable, requested [N, R]; unschedulable [N].
    Units    base units of the resource axis (milli-CPU, bytes, devices; "pods" counts pods).
    """

    axis: ResourceAxis
    node_names: tuple[str, ...]
    nodes: tuple[Node | None, ...]  # the API object per row; None where dead
    row_of_node: Mapping[str, int]
    live: Bool
    allocatable: Int64
    requested: Int64
    unschedulable: Bool

    @property
    def free(self) -> Int64:
        """[N, R] allocatable − requested; may be negative on an overcommitted node."""
        raise NotImplementedError

    def live_rows(self) -> Int32:
        """Rows of nodes that exist, ascending."""
        raise NotImplementedError

    def request_of(self, pod: Pod) -> Int64:
        """[R] what the pod takes (init containers, sidecars, overhead, pod-level resources; 1 of "pods")."""
        raise NotImplementedError

    def pods_on(self, row: int) -> tuple[Pod, ...]:
        """Pods that count as placed on this row, assumed ones and those placed on this fork included."""
        raise NotImplementedError

    def fork(self) -> "Snapshot":
        """A trial copy on which `place` may be called; the original never changes."""
        raise NotImplementedError

    def place(self, pod: Pod, row: int) -> None:
        """Count `pod` as placed on `row` of this fork.  Raises ValueError on the frozen original."""
        raise NotImplementedError

    def place_many(self, pods: tuple[Pod, ...], rows: Int32) -> None:
        """Place pods of one shape at once.  Shapes: rows [len(pods)]."""
        raise NotImplementedError
