"""The one mutable picture of the cluster: nodes, and pods with the room they take.

In come API objects as they are seen and what the scheduler assumes; out come descriptions of what changed,
and frozen snapshots.  Changed only inside `Scheduler.handle`.  Next: `snapshot.py`.
"""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, TypeVar

import numpy as np

from muster.api.core import Node, Pod
from muster.api.meta import is_older, version_number
from muster.api.quantity import INT64_MAX
from muster.cluster.axes import add_saturating
from muster.cluster.changes import NodeChange, PodChange
from muster.cluster.devices import DeviceBook
from muster.cluster.gpu_annotations import GPU, milli_of
from muster.cluster.gpu_slots import GpuTable
from muster.cluster.images import NO_IMAGES, NodeImages, images_of
from muster.cluster.pod_records import PodKey, PodRecord, amounts_in, key_of
from muster.cluster.pod_rules import has_pod_rules, label_keys_read
from muster.cluster.pod_table import PodTable
from muster.cluster.requests import Amounts, host_ports, pod_requests
from muster.cluster.row_pods import PodsByRow
from muster.cluster.snapshot import NodeColumns, PlacedPods, RowHistory, Snapshot
from muster.cluster.tables import NodeTable, allocatable_of
from muster.cluster.topology import NodeLabels, NodeTaints
from muster.cluster.volumes import VolumeBook

GONE_REMEMBERED = 4096  # pods, and nodes, that are gone: half a megabyte
_V = TypeVar("_V")
_Array = TypeVar("_Array", bound=np.ndarray[Any, Any])


class ClusterState:
    """Nodes by row, pods by key, room by node."""

    def __init__(self) -> None:
        self.table = NodeTable()
        self.volumes = VolumeBook()
        self.devices = DeviceBook()
        self._records: dict[PodKey, PodRecord] = {}
        self._placed: dict[str, dict[PodKey, PodRecord]] = {}  # by node name, known or not
        self.strays: set[str] = set()  # names of nodes that do not exist, though pods are bound to them
        self._gone_pods: dict[str, None] = {}
        self._gone_nodes: dict[str, int] = {}
        self._changed_rows: set[int] = set()
        self._renewed_rows: set[int] = set()  # in all that is judged as they were: only objects are newer
        self._columns: NodeColumns | None = None
        self._labels: NodeLabels | None = None
        self._taints: NodeTaints | None = None
        self._by_row = PodsByRow()
        self._history = RowHistory(object(), 0, *np.zeros((2, 0), dtype=np.int64))
        self._frozen: Snapshot | None = None
        self._pod_table = PodTable()
        self._gpus = GpuTable()
        self._sharing_pods = 0  # placed pods that say what part of a GPU they take
        self._rule_pods = 0  # placed pods with rules about others
        self._keys_read: dict[str, int] = {}  # label key → known pods whose rules read it
        self._keys: frozenset[str] = frozenset()
        self._namespaces: dict[str, Mapping[str, str]] = {}
        self._images_by_row: list[Mapping[str, int]] = []
        self._images: NodeImages | None = None

    # ── nodes ────────────────────────────────────────────────────────────────────────────────────

    def apply_node(self, node: Node) -> NodeChange:
        """Take over a node as seen; an older version than the known one is ignored."""
        name = node.metadata.name
        old = self.node(name)
        version = version_number(node.metadata.resource_version)
        if old is not None and is_older(node.metadata, old.metadata):
            return NodeChange(old, old, stale=True)
        gone_at = self._gone_nodes.get(node.metadata.uid)
        if old is None and gone_at is not None and version is not None and version <= gone_at:
            return NodeChange(None, node, stale=True)
        self._widen_for(node)
        row = self.table.put(node)
        self._change(row)
        if old is None:
            self._recount(row)
            self.strays.discard(name)
        change = NodeChange(
            old,
            node,
            allocatable_grew=_grew(old, node),
            labels_changed=old is None or (old.metadata.labels or {}) != (node.metadata.labels or {}),
            taints_changed=old is None
            or (old.spec.taints or []) != (node.spec.taints or [])
            or old.spec.unschedulable != node.spec.unschedulable,
        )
        self._columns = None
        self._see_images(row, old, node)
        if change.labels_changed:
            self._labels = None
        if change.taints_changed:
            self._taints = None
        return change

    def remove_node(self, name: str) -> Node | None:
        """Forget a node; pods on it stay known and count again should the name come back."""
        node = self.node(name)
        if node is None:
            return None
        version = version_number(node.metadata.resource_version)
        if node.metadata.uid and version is not None:
            _remember(self._gone_nodes, node.metadata.uid, version)
        row = self.table.drop(name)
        if name in self._placed:
            self.strays.add(name)
        self._change(row)
        self._by_row.reset(row, (), ())
        self._columns = None
        self._labels = self._taints = self._images = None
        self._images_by_row[row] = NO_IMAGES
        return node

    def node(self, name: str) -> Node | None:
        """The node as last seen, or None."""
        row = self.table.row_of.get(name)
        return None if row is None else self.table.nodes[row]

    def _see_images(self, row: int, old: Node | None, node: Node) -> None:
        self._images_by_row.extend([NO_IMAGES] * (row + 1 - len(self._images_by_row)))
        if old is None or old.status.images != node.status.images:
            self._images_by_row[row] = images_of(node)
            self._images = None

    # ── namespaces ───────────────────────────────────────────────────────────────────────────────

    def apply_namespace(self, name: str, labels: Mapping[str, str]) -> bool:
        """Take over the labels of a namespace; whether they are others than before."""
        if self._namespaces.get(name) == labels:
            return False
        self._namespaces = {**self._namespaces, name: dict(labels)}  # a snapshot may hold the old one
        self._frozen = None
        return True

    def remove_namespace(self, name: str) -> None:
        """Forget the labels of a namespace."""
        self._namespaces = {known: labels for known, labels in self._namespaces.items() if known != name}
        self._frozen = None

    # ── pods ─────────────────────────────────────────────────────────────────────────────────────

    def apply_pod(self, pod: Pod) -> PodChange:
        """Take over a pod as seen: it takes room if it is on a node (bound or assumed) and has not ended.

        Older versions, and objects of a pod that has been removed, are ignored.
        """
        key = key_of(pod)
        record = self._records.get(key)
        if self._is_stale(pod, record):
            return PodChange(record.pod if record else None, record.pod if record else pod, stale=True)
        old = record.pod if record else None
        if record is not None and self._sees_assumed(record, pod):
            return PodChange(old, pod, node_name=record.node_name)
        freed_on = ""
        if record is not None and record.pod.metadata.uid != pod.metadata.uid:
            freed_on = self._discard(key, record)
            record = None
        if record is None:
            record = self._records[key] = PodRecord(pod)
        before, had, was = record.node_name, record.amounts, record.pod
        if pod.spec.node_name:
            record.assumed = record.confirmed = False
        node_name = pod.spec.node_name or (before if record.assumed else "")
        self._release(key, record)
        record.pod = pod
        self._note_keys(record, label_keys_read(pod))
        if pod.metadata.annotations and milli_of(pod) is not None:
            self._keep_gpus()
        if node_name and not pod.is_terminal:
            self._take(key, record, node_name)
        else:
            record.assumed = record.confirmed = False
        if record.node_name != before:
            record.devices = ()
        if before and (record.node_name != before or _is_less(record.amounts, had)):
            freed_on = before
        assigned = bool(record.node_name) and record.node_name != before
        relabeled = bool(before) and record.node_name == before and _looks_other(was, pod)
        return PodChange(
            old,
            pod,
            freed=bool(freed_on),
            assigned=assigned,
            relabeled=relabeled,
            node_name=freed_on or record.node_name,
        )

    def _sees_assumed(self, record: PodRecord, pod: Pod) -> bool:
        """Take over a pod that was bound where it is assumed, if that is all that is new: its row stays so.

        Of the rows that had changed between two small gangs half were such.
        """
        is_there = record.assumed and record.node_name == pod.spec.node_name
        if not is_there or record.pod.metadata.uid != pod.metadata.uid or not pod.is_just_bound(record.pod):
            return False
        row = self.table.row_of.get(record.node_name)
        if row is not None:
            self._by_row.swap(row, record.pod, pod)
            self._renewed_rows.add(row)
        record.pod = pod
        record.assumed = record.confirmed = False
        return True

    def remove_pod(self, key: PodKey, uid: str) -> PodChange | None:
        """Forget a pod that is gone; None if this very pod is not known.  Its uid never comes back."""
        if uid:
            _remember(self._gone_pods, uid, None)
        record = self._records.get(key)
        if record is None or (uid and record.pod.metadata.uid != uid):
            return None
        freed_on = self._discard(key, record)
        return PodChange(record.pod, record.pod, freed=bool(freed_on), node_name=freed_on)

    def assume(self, pod: Pod, node_name: str, devices: tuple[int, ...] = ()) -> None:
        """Count the pod as placed before the API agrees, on these GPUs.

        Raises ValueError if it is bound elsewhere.
        """
        key = key_of(pod)
        record = self._records.get(key)
        if record is not None and record.pod.metadata.uid != pod.metadata.uid:
            self._discard(key, record)
            record = None
        if record is None:
            record = self._records[key] = PodRecord(pod)
            self._note_keys(record, label_keys_read(pod))
        if record.pod.spec.node_name:
            raise ValueError(f"pod {key[0]}/{key[1]} is bound to {record.pod.spec.node_name} already")
        self._release(key, record)
        record.assumed, record.confirmed, record.devices = True, False, devices
        self._take(key, record, node_name)

    def confirm(self, key: PodKey, uid: str) -> None:
        """The bind was accepted: the assumption stands until the watch shows it or the pod is gone."""
        record = self._records.get(key)
        if record is not None and record.assumed and record.pod.metadata.uid == uid:
            record.confirmed = True

    def forget(self, key: PodKey, uid: str) -> None:
        """The bind was refused: the room assumed is free again.  A confirmed or bound pod is left alone."""
        record = self._records.get(key)
        if record is None or record.pod.metadata.uid != uid:
            return
        if record.assumed and not record.confirmed:
            self._release(key, record)
            record.assumed = record.confirmed = False

    def pod(self, key: PodKey) -> Pod | None:
        """The pod as last seen, placed or not, or None."""
        record = self._records.get(key)
        return None if record is None else record.pod

    def node_of(self, key: PodKey) -> str | None:
        """Where the pod counts as placed, bound or assumed; None if nowhere (or ended)."""
        record = self._records.get(key)
        return record.node_name or None if record is not None else None

    def pods_on(self, node_name: str) -> list[Pod]:
        """Pods that count as placed on this node, whether it is known or not."""
        return [record.pod for record in self._placed.get(node_name, {}).values()]

    def devices_of(self, key: PodKey) -> tuple[int, ...]:
        """The GPUs that were assumed with the pod's place."""
        record = self._records.get(key)
        return () if record is None else record.devices

    def is_assumed(self, key: PodKey) -> bool:
        """Whether the pod's place is ours alone: no watch has shown it bound yet."""
        record = self._records.get(key)
        return record is not None and record.assumed

    @property
    def label_keys_read(self) -> frozenset[str]:
        """Label keys of pods that rules of any known pod about other pods read."""
        return self._keys

    def pods_placed(self) -> Iterable[tuple[str, Pod]]:
        """Every pod that takes room, with its node's name, known nodes or not."""
        for node_name, records in self._placed.items():
            for record in records.values():
                yield node_name, record.pod

    # ── snapshots ────────────────────────────────────────────────────────────────────────────────

    def snapshot(self) -> Snapshot:
        """The state now, frozen: the same object until something changes; only changed rows are rebuilt."""
        known, volumes, devices = self._frozen, self.volumes.freeze(), self.devices.freeze()
        if known is not None and known.volumes is volumes and known.devices is devices:
            return known
        count = len(self.table)
        if devices.backed.keys() != self.table.backed:
            self.table.back(frozenset(devices.backed))
            self._columns = None
            self._changed_rows.update(self.table.row_of.values())
        if self._columns is None:
            self._columns = self._build_columns()
        if self._gpus.wanted:
            self._keep_gpus()
        changed = np.fromiter(sorted(self._changed_rows), np.int64, len(self._changed_rows))
        self._history = self._history.go_on(count, changed)
        for row in self._changed_rows if self._gpus.active else ():
            held = ((record.pod, record.devices) for record in self._records_on(row))
            self._gpus.put(row, self.table.own_count(row, GPU), held)
        self._frozen = Snapshot(
            self._columns,
            self.table.freeze_requested(changed),
            self._placed_pods(count),
            self._history,
        )
        self._changed_rows.clear()
        return self._frozen

    def _build_columns(self) -> NodeColumns:
        table, count = self.table, len(self.table)
        nodes = tuple(table.nodes)
        if self._labels is None:
            self._labels = NodeLabels(nodes)
        if self._taints is None:
            self._taints = NodeTaints(nodes)
        if self._images is None:
            self._images = NodeImages(tuple(self._images_by_row))
        return NodeColumns(
            axis=table.axis,
            node_names=tuple(table.names),
            nodes=nodes,
            row_of_node=dict(table.row_of),
            live=_frozen_copy(table.live[:count]),
            live_rows=_frozen_copy(np.flatnonzero(table.live[:count]).astype(np.int32)),
            allocatable=_frozen_copy(table.allocatable[:count]),
            unschedulable=_frozen_copy(table.unschedulable[:count]),
            labels=self._labels,
            taints=self._taints,
            images=self._images,
        )

    def _placed_pods(self, count: int) -> PlacedPods:
        by_row, ports_by_row = self._by_row.freeze(count)
        self._pod_table.follow(self._changed_rows | self._renewed_rows, by_row, self._history.moment)
        self._renewed_rows.clear()
        return PlacedPods(
            by_row=by_row,
            ports_by_row=ports_by_row,
            have_rules=self._rule_pods > 0,
            label_keys_read=self._keys,
            namespaces=self._namespaces,
            table=self._pod_table,
            columns=self._pod_table.freeze() if self._pod_table.active else None,
            volumes=self.volumes.freeze(),
            devices=self.devices.freeze(),
            gpus=self._gpus.freeze(len(by_row)) if self._gpus.active else None,
            gpu_table=self._gpus,
            share_devices=self._sharing_pods > 0,
            amounts_of=partial(amounts_in, self._records),
        )

    # ── room ─────────────────────────────────────────────────────────────────────────────────────

    def _change(self, row: int) -> None:
        """The row is another; the snapshot is let go, so that pods that are gone go one by one, too.

        Where 450 rows had changed, freeing them all when the next one was taken cost 0.7 ms of the decision.
        """
        self._changed_rows.add(row)
        self._frozen = None

    def _take(self, key: PodKey, record: PodRecord, node_name: str) -> None:
        record.node_name = node_name
        record.amounts = pod_requests(record.pod)
        record.ports = host_ports(record.pod)
        self._rule_pods += has_pod_rules(record.pod)
        self._sharing_pods += milli_of(record.pod) is not None
        self._placed.setdefault(node_name, {})[key] = record
        row = self.table.row_of.get(node_name)
        if row is None:
            self.strays.add(node_name)
        else:
            request = self.table.axis.row(record.amounts)
            self.table.requested[row] = add_saturating(self.table.requested[row], request)
            self._change(row)
            self._by_row.add(row, record.pod, record.ports)

    def _release(self, key: PodKey, record: PodRecord) -> None:
        node_name = record.node_name
        if not node_name:
            return
        record.node_name = ""
        self._rule_pods -= has_pod_rules(record.pod)
        self._sharing_pods -= milli_of(record.pod) is not None
        here = self._placed[node_name]
        del here[key]
        if not here:
            del self._placed[node_name]
            self.strays.discard(node_name)
        row = self.table.row_of.get(node_name)
        if row is None:
            return
        requested = self.table.requested[row]
        if (requested == INT64_MAX).any():  # what was lost to saturation cannot be subtracted back
            self._recount(row)
        else:
            self._change(row)
            requested -= self.table.axis.row(record.amounts)
            self._by_row.remove(row, record.pod)
            if record.ports:
                self._by_row.take_ports(row, (port for other in here.values() for port in other.ports))

    def _recount(self, row: int) -> None:
        """Add the row up from its pods."""
        total = self.table.axis.row({})
        records = self._records_on(row)
        for record in records:
            total = add_saturating(total, self.table.axis.row(record.amounts))
        self.table.requested[row] = total
        ports = tuple(port for record in records for port in record.ports)
        self._by_row.reset(row, tuple(record.pod for record in records), ports)
        self._change(row)

    def _keep_gpus(self) -> None:
        """Somebody shares GPUs: from now on every row has its slots."""
        if not self._gpus.active:
            self._gpus.active = True
            self._changed_rows.update(self.table.row_of.values())
            self._frozen = None

    def _records_on(self, row: int) -> list[PodRecord]:
        if not self.table.live[row]:
            return []
        return list(self._placed.get(self.table.names[row], {}).values())

    def _widen_for(self, node: Node) -> None:
        axis = self.table.axis.with_names(allocatable_of(node))
        if axis is not self.table.axis:
            self.table.widen(axis)
            for row in self.table.row_of.values():
                self._recount(row)

    def _discard(self, key: PodKey, record: PodRecord) -> str:
        """Drop a record; returns the node that has more room now, or ""."""
        node_name = record.node_name
        self._release(key, record)
        self._note_keys(record, frozenset())
        del self._records[key]
        if record.pod.metadata.uid:
            _remember(self._gone_pods, record.pod.metadata.uid, None)
        return node_name

    def _note_keys(self, record: PodRecord, keys: frozenset[str]) -> None:
        """Count which label keys rules read; rules of pods that wait count too: they may be placed next."""
        if keys == record.keys_read:
            return
        for key in keys - record.keys_read:
            self._keys_read[key] = self._keys_read.get(key, 0) + 1
        for key in record.keys_read - keys:
            self._keys_read[key] -= 1
            if not self._keys_read[key]:
                del self._keys_read[key]
        record.keys_read = keys
        if self._keys != self._keys_read.keys():
            self._keys = frozenset(self._keys_read)
            self._frozen = None

    def _is_stale(self, pod: Pod, record: PodRecord | None) -> bool:
        if pod.metadata.uid in self._gone_pods:
            return True
        return record is not None and is_older(pod.metadata, record.pod.metadata)


def _grew(old: Node | None, new: Node) -> bool:
    before = {} if old is None else allocatable_of(old)
    return any(amount > before.get(name, 0) for name, amount in allocatable_of(new).items())


def _is_less(amounts: Amounts, had: Amounts) -> bool:
    return any(amounts.get(name, 0) < amount for name, amount in had.items())


def _looks_other(was: Pod, now: Pod) -> bool:
    """Whether rules about other pods may see the pod otherwise: its labels, and whether it is going."""
    return (was.metadata.labels or {}) != (now.metadata.labels or {}) or (
        was.is_terminating != now.is_terminating
    )


def _remember(memory: dict[str, _V], key: str, value: _V) -> None:
    """Note down, forgetting the oldest of very many."""
    memory[key] = value
    if len(memory) > GONE_REMEMBERED:
        del memory[next(iter(memory))]


def _frozen_copy(array: _Array) -> _Array:
    copy = array.copy()
    copy.flags.writeable = False
    return copy
