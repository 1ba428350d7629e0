"""The frozen columns that one cycle decides on, and forks of them for trial placements.

A snapshot is taken once per cycle (`ClusterState.snapshot`); its arrays refuse writes.  `fork()` copies only
what placing a pod changes and shares the rest; throwing a fork away is the rollback.
Axes: N node rows (rows of deleted nodes stay and are marked dead), R resources.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from muster.api.core import Node, Pod
from muster.api.quantity import INT64_MAX
from muster.base.arrays import Bool, Int32, Int64, pick
from muster.cluster.axes import ResourceAxis, add_saturating, multiply_saturating
from muster.cluster.devices import NO_DEVICES, Devices
from muster.cluster.gpu_annotations import GPU, milli_of
from muster.cluster.gpu_slots import GpuSlots, GpuTable, slots_of
from muster.cluster.images import NodeImages
from muster.cluster.pod_rules import NamespaceLabels, has_pod_rules, label_keys_read
from muster.cluster.pod_table import PodColumns, PodTable
from muster.cluster.requests import Amounts, HostPort, host_ports, pod_requests
from muster.cluster.topology import NodeLabels, NodeTaints
from muster.cluster.volumes import NO_VOLUMES, Volumes

Value = TypeVar("Value")
ASKED_MAX = 20_000  # pods whose requests one snapshot remembers; more are reckoned anew


class NodeColumns(NamedTuple):
    """What placing a pod does not change; shared by all snapshots until a node changes.

    Shapes   live, unschedulable [N]; live_rows [live ones]; allocatable [N, R].
    """

    axis: ResourceAxis
    node_names: tuple[str, ...]
    nodes: tuple[Node | None, ...]
    row_of_node: Mapping[str, int]
    live: Bool
    live_rows: Int32
    allocatable: Int64
    unschedulable: Bool
    labels: NodeLabels
    taints: NodeTaints
    images: NodeImages


class RowHistory(NamedTuple):
    """Which rows changed since when, in one line of snapshots.

    `lineage` is one object for all snapshots of a state, `moment` counts them; `changed_at` [N] is the moment
    of the first snapshot that shows a row as it is now: its node, its pods, its room.  `latest` are the rows
    of the last moment, ascending.
    """

    lineage: object
    moment: int
    changed_at: Int64
    latest: Int64

    def go_on(self, count: int, rows: Int64) -> "RowHistory":
        """The next moment, in which these rows, ascending, are others; there are `count` rows now."""
        more = count - len(self.changed_at)
        changed_at = np.pad(self.changed_at, (0, more)) if more else self.changed_at.copy()
        changed_at[rows] = self.moment + 1
        changed_at.flags.writeable = False
        return RowHistory(self.lineage, self.moment + 1, changed_at, rows)

    def changed_since(self, moment: int) -> Int64:
        """Rows that are others than at that moment, ascending; not to be written."""
        if moment == self.moment - 1:  # most decisions follow one upon the other: no look at all the rows
            return self.latest
        return np.flatnonzero(self.changed_at > moment)


class PodMove(NamedTuple):
    """A pod that a fork has placed on a row (`sign` 1) or removed from it (−1)."""

    pod: Pod
    row: int
    sign: int


class PlacedPods(NamedTuple):
    """Pods by row and what is known of their rules; `columns` is None before the first rule asked.

    `have_rules`: some placed pod has affinity or anti-affinity to others.  `label_keys_read`: label keys of
    pods that rules of any known pod read, placed or not.  `gpus` is None while nobody shares any.
    `amounts_of` gives what a pod takes: of one that is placed, as the books have it already.
    """

    by_row: Sequence[tuple[Pod, ...]]
    ports_by_row: Mapping[int, tuple[HostPort, ...]]
    have_rules: bool
    label_keys_read: frozenset[str]
    namespaces: NamespaceLabels
    table: PodTable
    columns: PodColumns | None
    volumes: Volumes = NO_VOLUMES
    devices: Devices = NO_DEVICES
    gpus: GpuSlots | None = None
    gpu_table: GpuTable | None = None
    share_devices: bool = False  # some placed pod says what part of a GPU it takes
    amounts_of: Callable[[Pod], Amounts] = pod_requests


class _Asked(NamedTuple):
    """What a pod asks for; it is held so that its identity is not given to another."""

    pod: Pod
    request: Int64
    unknown: tuple[str, ...]


class Snapshot:
    """Read-only cluster state for one cycle.

    Shapes   live [N]; allocatable, requested [N, R]; unschedulable [N].
    Units    base units of the resource axis (milli-CPU, bytes, devices; "pods" counts pods).
    """

    def __init__(self, columns: NodeColumns, requested: Int64, pods: PlacedPods, history: RowHistory) -> None:
        self.axis = columns.axis
        self.node_names = columns.node_names
        self.nodes = columns.nodes  # the API object per row; None where dead
        self.row_of_node = columns.row_of_node
        self.live = columns.live
        self.allocatable = columns.allocatable
        self._requested = requested
        self.unschedulable = columns.unschedulable
        self.labels = columns.labels
        self.taints = columns.taints
        self.images = columns.images
        self.label_keys_read = pods.label_keys_read
        self.namespaces = pods.namespaces
        self.volumes = pods.volumes
        self.devices = pods.devices
        self.have_rules = pods.have_rules  # some pod here has affinity or anti-affinity to other pods
        self.history = history  # of the frozen snapshot, on its forks, too
        self.share_devices = pods.share_devices  # some pod here says what part of a GPU it takes
        self.amounts_of = pods.amounts_of  # what a pod takes; of one that is placed without reading it again
        self.is_fork = False
        self._gpus = pods.gpus
        self._columns = columns
        self._pods = pods
        self._pods_by_row = pods.by_row
        self._ports_by_row = pods.ports_by_row
        self._pod_columns = pods.columns
        # The frozen snapshot that this is a fork of; None where this is it.  Never itself: one in a ring
        # waits for the garbage collector, which kept 1,000 of them (200 MB for 5,000 nodes).
        self._origin: Snapshot | None = None
        self._owns_requested = False  # whether nobody else holds the array
        self._unbooked: list[tuple[list[int], Int64]] = []  # rows of pods placed, and what each of them takes
        self._asked: dict[int, _Asked] = {}  # by identity of the pod; shared by all forks
        self._memo: dict[Hashable, Any] = {}  # shared by all forks: values of the frozen snapshot
        self._folds: dict[Hashable, tuple[Any, int]] = {}
        self._parent: Snapshot | None = None  # the fork that this is one of, which had made
        self._inherited = 0  # so many moves
        self._moves: list[PodMove] = []
        self._pods_here: dict[int, tuple[Pod, ...]] = {}
        self._ports_here: dict[int, tuple[HostPort, ...]] = {}
        self._pods_left: dict[int, tuple[Pod, ...]] = {}  # of rows from which pods were removed on this fork

    @property
    def requested(self) -> Int64:
        """[N, R] what the pods of each row take together.

        On a fork that has placed somebody it is another array, made when it is asked for: most decisions
        place their members in one go, and then nobody asks (280 kB not copied, on 5,000 nodes).
        """
        if self._unbooked:
            self._own_requested()
        return self._requested

    @property
    def free(self) -> Int64:
        """[N, R] allocatable − requested; may be negative on an overcommitted node."""
        return self.allocatable - self.requested

    def free_at(self, rows: Int32) -> Int64:
        """[K, R] the rows of `free` asked for, without computing the others.

        Shapes   rows [K], ascending, each once.
        """
        return pick(self.allocatable, rows) - pick(self.requested, rows)

    def live_rows(self) -> Int32:
        """Rows of nodes that exist, ascending; not to be written."""
        return self._columns.live_rows

    def request_of(self, pod: Pod) -> Int64:
        """[R] what the pod takes (init containers, sidecars, overhead, pod-level resources; 1 of "pods").

        Resources that no node offers have no column; `unknown_resources` names those the pod asks for.  Not
        to be written.
        """
        return self._asked_by(pod).request

    def unknown_resources(self, pod: Pod) -> tuple[str, ...]:
        """Resources the pod asks for that no node offers and no DeviceClass backs, in order of name."""
        return self._asked_by(pod).unknown

    def _asked_by(self, pod: Pod) -> "_Asked":
        # Plugins ask for the same pod nine times a decision, and quantities are text: 60 µs together.
        asked = self._asked.get(id(pod))
        if asked is None or asked.pod is not pod:
            amounts = self.amounts_of(pod)
            request = self.axis.row(amounts)
            request.flags.writeable = False
            unknown = sorted(
                name
                for name, amount in amounts.items()
                if amount and name not in self.axis and name not in self.devices.backed
            )
            if len(self._asked) >= ASKED_MAX:  # while nothing is placed one snapshot stays for hours
                self._asked.clear()
            asked = self._asked[id(pod)] = _Asked(pod, request, tuple(unknown))
        return asked

    def pods_on(self, row: int) -> tuple[Pod, ...]:
        """Pods that count as placed on this row, assumed ones and those placed on this fork included."""
        left = self._pods_left.get(row)
        return (self._pods_by_row[row] if left is None else left) + self._pods_here.get(row, ())

    def host_ports_on(self, row: int) -> tuple[HostPort, ...]:
        """Host ports taken on this row, by the same pods."""
        return self._ports_by_row.get(row, ()) + self._ports_here.get(row, ())

    def rows_with_host_ports(self) -> tuple[int, ...]:
        """Rows where some host port is taken, ascending."""
        return tuple(sorted(self._ports_by_row.keys() | self._ports_here.keys()))

    def moves_since(self, pod: Pod, row: int) -> Sequence[PodMove]:
        """The moves of this fork from the one that placed this very pod on; the supposed one if none did."""
        for index in range(len(self._moves) - 1, -1, -1):
            if self._moves[index].pod is pod and self._moves[index].sign > 0:
                return self._moves[index:]
        return (PodMove(pod, row, 1),)

    @property
    def origin(self) -> "Snapshot":
        """The frozen snapshot that this is a fork of, or is itself."""
        return self._origin or self

    @property
    def moves(self) -> Sequence[PodMove]:
        """What was placed and removed on this fork, in order; nothing on the frozen original."""
        return self._moves

    @property
    def pod_columns(self) -> PodColumns:
        """The pods of the frozen original as columns; filled when first asked for."""
        origin = self._origin or self
        if origin._pod_columns is None:
            origin._pod_columns = origin._pods.table.columns_of(origin._pods.by_row, origin.history.moment)
        return origin._pod_columns

    @property
    def gpus(self) -> GpuSlots:
        """What is left of each GPU; reckoned when first asked for if nobody shared one before."""
        if self._gpus is None:
            origin = self._origin or self
            if origin._gpus is None:
                column = self.axis.find_column(GPU)
                counts = [0] * len(self.live) if column is None else self.allocatable[:, column].tolist()
                origin._gpus = slots_of(counts, self._pods_by_row)
                if self._pods.gpu_table is not None:
                    self._pods.gpu_table.wanted = True  # the next snapshot need not begin from nothing
            if origin is self:
                return origin._gpus
            self._gpus = origin._gpus.fork()
            for pod, row, sign in self._moves:
                self._gpus.place(pod, row) if sign > 0 else self._gpus.remove(pod, row)
        return self._gpus

    def fold(
        self,
        key: Hashable,
        build: "Callable[[Snapshot], Value]",
        step: Callable[[Value, Sequence[PodMove]], Value],
    ) -> Value:
        """A value reckoned once for the frozen original, then carried on over the moves of this fork.

        `build` sees the original; `step` gives the value after further moves and leaves the one it got as it
        is.  A key belongs to one `build` and one `step`.
        """
        known = self._folds.get(key)
        if known is None:
            if key not in self._memo:
                self._memo[key] = build(self._origin or self)
            known = (self._memo[key], 0)
        if self._parent is not None and known[1] < self._inherited == len(self._parent._moves):
            # asked of the parent, it is known to the forks after this one, too
            known = (self._parent.fold(key, build, step), self._inherited)
        value: Value = known[0]
        if known[1] < len(self._moves):
            value = step(value, self._moves[known[1] :])
            self._folds[key] = (value, len(self._moves))
        return value

    def fork(self) -> "Snapshot":
        """A trial copy on which `place` may be called; the original never changes.

        Nothing of size N is copied before something is placed: a decision makes two forks and uses one.
        """
        copy = Snapshot(self._columns, self._requested, self._pods, self.history)
        copy._unbooked = list(self._unbooked)
        self._owns_requested = False  # both copy it when they first change it
        copy.is_fork = True
        copy.have_rules, copy.label_keys_read = self.have_rules, self.label_keys_read
        copy.share_devices = self.share_devices
        copy._gpus = None if self._gpus is None else self._gpus.fork()
        copy._origin = self._origin or self
        copy._memo, copy._asked = self._memo, self._asked
        copy._folds = dict(self._folds)
        copy._parent, copy._inherited = (self if self.is_fork else None), len(self._moves)
        copy._moves = list(self._moves)
        copy._ports_by_row = self._ports_by_row
        copy._pods_here = dict(self._pods_here)
        copy._ports_here = dict(self._ports_here)
        copy._pods_left = dict(self._pods_left)
        return copy

    def with_volumes(self, volumes: Volumes) -> "Snapshot":
        """The same cluster with other volumes and claims; of a fork another with the same pods on it."""
        origin = self._origin or self
        pods = origin._pods._replace(volumes=volumes)
        copy = Snapshot(origin._columns, origin._requested, pods, origin.history)
        copy._gpus, copy._pod_columns = origin._gpus, origin._pod_columns
        if origin is self:
            return copy
        fork = copy.fork()
        for pod, row, sign in self._moves:
            fork.place(pod, row) if sign > 0 else fork.remove(pod, row)
        return fork

    def place(self, pod: Pod, row: int) -> None:
        """Count `pod` as placed on `row` of this fork.  Raises ValueError on the frozen original."""
        self._check_fork()
        self._unbooked.append(([row], self.request_of(pod)))
        self._remember(pod, row, host_ports(pod))

    def place_many(self, pods: tuple[Pod, ...], rows: Int32) -> None:
        """Place pods of one shape at once.  Shapes: rows [len(pods)]."""
        self._check_fork()
        if not pods:
            return
        where, ports = rows.tolist(), host_ports(pods[0])
        self._unbooked.append((where, self.request_of(pods[0])))
        self._note_rules(pods[0])
        for pod, row in zip(pods, where, strict=True):
            self._list(pod, row, ports)

    def remove(self, pod: Pod, row: int) -> None:
        """Count `pod` as gone from `row` of this fork.  Raises ValueError if it is not there."""
        self.remove_each((pod,), np.array([row], dtype=np.int32), self.request_of(pod)[np.newaxis])

    def place_each(self, pods: Sequence[Pod], rows: Int32, requests: Int64) -> None:
        """Place unlike pods at once.  Shapes: rows [len(pods)]; requests [len(pods), R], what each takes."""
        self._own_requested()
        limit = INT64_MAX // (2 * len(pods) + 2)  # below it no sum of them can leave the range
        if max(self._requested[rows].max(initial=0), requests.max(initial=0)) < limit:
            np.add.at(self._requested, rows, requests)
        else:
            for row, request in zip(rows.tolist(), requests, strict=True):
                self._requested[row] = add_saturating(self._requested[row], request)
        for pod, row in zip(pods, rows.tolist(), strict=True):
            self._remember(pod, row, host_ports(pod))

    def remove_each(self, pods: Sequence[Pod], rows: Int32, requests: Int64) -> None:
        """Remove pods at once; shapes as in `place_each`.  Raises ValueError if one is not there."""
        self._own_requested()
        gone: dict[int, list[Pod]] = {}
        for pod, row in zip(pods, rows.tolist(), strict=True):
            gone.setdefault(row, []).append(pod)
        touched = np.array(list(gone), dtype=np.int32)
        is_saturated = (self._requested[touched] == INT64_MAX).any(axis=1)
        for row, leaving in gone.items():
            self._drop(row, leaving)
        self._moves += [PodMove(pod, row, -1) for pod, row in zip(pods, rows.tolist(), strict=True)]
        if self._gpus is not None:
            for pod, row in zip(pods, rows.tolist(), strict=True):
                self._gpus.remove(pod, row)
        np.subtract.at(self._requested, rows, requests)
        for row in touched[is_saturated].tolist():  # what was lost to saturation cannot be subtracted back
            total = self.axis.row({})
            for other in self.pods_on(row):
                total = add_saturating(total, self.request_of(other))
            self._requested[row] = total

    def _drop(self, row: int, gone: Sequence[Pod]) -> None:
        """Take pods off the lists of a row, and their host ports with them."""
        there = self.pods_on(row)
        objects = {id(pod) for pod in gone}
        left = tuple(pod for pod in there if id(pod) not in objects)
        if len(left) + len(gone) != len(there):  # not these very objects: later states of some of them
            names = {(pod.metadata.namespace, pod.metadata.name) for pod in gone}
            left = tuple(pod for pod in there if (pod.metadata.namespace, pod.metadata.name) not in names)
            if len(left) + len(names) != len(there):
                missing = names - {(pod.metadata.namespace, pod.metadata.name) for pod in there}
                raise ValueError(f"pod {'/'.join(min(missing))} is not on row {row}")
        self._pods_left[row] = left
        self._pods_here.pop(row, None)
        if self.host_ports_on(row):
            self._ports_by_row = {key: ports for key, ports in self._ports_by_row.items() if key != row}
            self._ports_here.pop(row, None)
            if ports := tuple(port for other in left for port in host_ports(other)):
                self._ports_here[row] = ports

    def _check_fork(self) -> None:
        if not self.is_fork:
            raise ValueError("this snapshot is frozen; place on a fork() of it")

    def _own_requested(self) -> None:
        self._check_fork()
        if not self._owns_requested:
            self._requested = self._requested.copy()
            self._owns_requested = True
        unbooked, self._unbooked = self._unbooked, []
        for rows, request in unbooked:
            if len(rows) == 1:
                self._requested[rows[0]] = add_saturating(self._requested[rows[0]], request)
                continue
            counted = Counter(rows)
            where = np.fromiter(counted, np.intp, len(counted))
            counts = np.fromiter(counted.values(), np.int64, len(counted))
            asked = multiply_saturating(request, counts[:, np.newaxis])
            self._requested[where] = add_saturating(self._requested[where], asked)

    def _remember(self, pod: Pod, row: int, ports: tuple[HostPort, ...]) -> None:
        self._note_rules(pod)
        self._list(pod, row, ports)

    def _note_rules(self, pod: Pod) -> None:
        """What the pod brings along; the same for all pods of one shape."""
        if pod.metadata.annotations and milli_of(pod) is not None:
            self.share_devices = True
        if has_pod_rules(pod):
            self.have_rules = True
            self.label_keys_read |= label_keys_read(pod)

    def _list(self, pod: Pod, row: int, ports: tuple[HostPort, ...]) -> None:
        self._moves.append(PodMove(pod, row, 1))
        if self._gpus is not None:
            self._gpus.place(pod, row)
        self._pods_here[row] = (*self._pods_here.get(row, ()), pod)
        if ports:
            self._ports_here[row] = self._ports_here.get(row, ()) + ports
