"""What the groups of a cluster hold, what they still need, and which of them block each other.

In come nodes, pods and pod groups as an API server gives them; out comes plain data that `muster demo` and
`muster explain` show.  Pure: whoever fetched the objects decides what to do about the answer.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from muster.api.core import Pod
from muster.api.quantity import format_amount
from muster.base.arrays import Int64
from muster.cluster.axes import PODS
from muster.cluster.snapshot import Snapshot
from muster.cluster.state import ClusterState
from muster.dialects.native import decode_group, decode_node, decode_pod, group_key_of, idle_on
from muster.framework.groups import Group, GroupKey, UnsupportedField, annotation_path
from muster.placement.deadlock import find_stuck

Object = dict[str, Any]


class GroupPicture(Struct, frozen=True):
    """One group as it stands.

    `needed` is the least number of members it can run with: `minCount` of a gang, and for a basic group all
    members that exist.  `nodes` maps the names of placed members to their nodes.  `held` and `wanted` are
    amounts by resource in base units; `wanted` is what is missing to run.  `ignored` says which annotations
    of its members say nothing where they stand.
    """

    group: Group
    needed: int
    members: int
    placed: int
    succeeded: int
    failed: int
    nodes: Mapping[str, str]
    waiting: tuple[str, ...]
    held: Mapping[str, int]
    wanted: Mapping[str, int]
    stuck: bool
    ignored: tuple[str, ...] = ()

    @property
    def can_run(self) -> bool:
        """Whether enough members have a node, or are done, for the group to do its work."""
        return self.members > 0 and self.placed + self.succeeded >= self.needed

    @property
    def ended(self) -> bool:
        """Whether all of its members are done."""
        return self.members > 0 and self.succeeded + self.failed == self.members


class Picture(Struct, frozen=True):
    """The cluster as it stands: groups by key, and of each resource what there is and what is taken."""

    groups: Mapping[GroupKey, GroupPicture]
    node_names: tuple[str, ...]
    allocatable: Mapping[str, int]
    requested: Mapping[str, int]

    @property
    def deadlocked(self) -> tuple[GroupPicture, ...]:
        """Groups that hold something, cannot run, and could not even if every group that can run ended."""
        return tuple(group for group in self.groups.values() if group.stuck and group.placed)

    def free(self, resource: str) -> int:
        """What is left of a resource on all nodes together."""
        return self.allocatable.get(resource, 0) - self.requested.get(resource, 0)

    def explain_deadlock(self) -> str:
        """Say who holds what and who needs what, or nothing where there is no deadlock."""
        blocked = self.deadlocked
        wanted = sorted({name for entry in blocked for name in entry.wanted})
        scarce = [
            n for n in wanted if any(entry.wanted.get(n, 0) > self.free(n) for entry in blocked)
        ] or wanted
        parts = [
            f"{entry.group.key} holds {write_amounts(entry.held, scarce)} "
            f"and needs {write_amounts(entry.wanted, scarce)} more"
            for entry in blocked
        ]
        if not parts:
            return ""
        free = ", ".join(
            f"{format_amount(n, self.free(n))} of {format_amount(n, self.allocatable[n])} {n}" for n in scarce
        )
        return (
            f"deadlock: {'; '.join(parts)}; free: {free}; none of them gives anything back before it has run"
        )


class _Members:
    """The pods of one group, sorted by what became of them."""

    def __init__(self, pods: Sequence[Pod]) -> None:
        self.all = sorted(pods, key=lambda pod: natural_order(pod.metadata.name))
        self.placed = [pod for pod in self.all if pod.spec.node_name and not pod.is_terminal]
        self.waiting = [pod for pod in self.all if not pod.spec.node_name and not pod.is_terminal]
        self.succeeded = sum(pod.status.phase == "Succeeded" for pod in self.all)
        self.failed = sum(pod.status.phase == "Failed" for pod in self.all)

    def needed(self, group: Group) -> int:
        return len(self.all) - self.failed if group.min_count is None else group.min_count

    def wanted(self, group: Group) -> list[Pod]:
        """The waiting members that are missing to run, first in order of name."""
        missing = self.needed(group) - len(self.placed) - self.succeeded
        return self.waiting[: max(missing, 0)]


def take_picture(nodes: Iterable[Object], pods: Iterable[Object], groups: Iterable[Object]) -> Picture:
    """Make the picture out of API objects; ended pods hold nothing, unschedulable nodes have no room."""
    state = ClusterState()
    for node in nodes:
        state.apply_node(decode_node(node))
    members: dict[GroupKey, list[Pod]] = {}
    for entry in pods:
        pod = decode_pod(entry)
        state.apply_pod(pod)
        key = group_key_of(pod)
        if key is not None:
            members.setdefault(key, []).append(pod)
    snapshot = state.snapshot()
    found = {group.key: group for group in map(decode_group, groups)}
    sorted_members = {key: _Members(members.get(key, ())) for key in sorted(found)}
    stuck = _find_stuck(snapshot, found, sorted_members)
    return Picture(
        groups={
            key: _picture_of(found[key], entry, snapshot, stuck=key in stuck)
            for key, entry in sorted_members.items()
        },
        node_names=tuple(
            sorted((snapshot.node_names[row] for row in snapshot.live_rows()), key=natural_order)
        ),
        allocatable=_totals(snapshot, snapshot.allocatable),
        requested=_totals(snapshot, snapshot.requested),
    )


def natural_order(name: str) -> tuple[tuple[int, str], ...]:
    """Sort key that puts n2 before n10."""
    parts: list[tuple[int, str]] = []
    digits = ""
    for character in name + "\0":
        if character.isascii() and character.isdigit():
            digits += character
            continue
        if digits:
            parts.append((int(digits), ""))
            digits = ""
        parts.append((-1, character))
    return tuple(parts)


def _find_stuck(
    snapshot: Snapshot, groups: Mapping[GroupKey, Group], members: Mapping[GroupKey, _Members]
) -> set[GroupKey]:
    """Ask the arithmetic; whoever belongs to no group may end, so what it holds counts as free."""
    free = snapshot.allocatable.copy()
    held = np.zeros((len(members), *free.shape), dtype=np.int64)
    wanted: list[Int64] = []
    for index, (key, entry) in enumerate(members.items()):
        for pod in entry.placed:
            row = snapshot.row_of_node.get(pod.spec.node_name)
            if row is not None:
                held[index, row] += snapshot.request_of(pod)
        rows = [snapshot.request_of(pod) for pod in entry.wanted(groups[key])]
        wanted.append(np.array(rows, dtype=np.int64).reshape(len(rows), free.shape[1]))
    free -= held.sum(axis=0)
    closed = ~snapshot.live | snapshot.unschedulable
    free[closed] = 0
    held[:, closed] = 0
    return {key for key, is_stuck in zip(members, find_stuck(free, held, wanted), strict=True) if is_stuck}


def _picture_of(group: Group, members: _Members, snapshot: Snapshot, *, stuck: bool) -> GroupPicture:
    return GroupPicture(
        group=group,
        needed=members.needed(group),
        members=len(members.all),
        placed=len(members.placed),
        succeeded=members.succeeded,
        failed=members.failed,
        nodes={pod.metadata.name: pod.spec.node_name for pod in members.placed},
        waiting=tuple(pod.metadata.name for pod in members.waiting),
        held=_sum(snapshot, members.placed),
        wanted=_sum(snapshot, members.wanted(group)),
        stuck=stuck,
        ignored=_ignored(group, members.all),
    )


def _ignored(group: Group, pods: Sequence[Pod]) -> tuple[str, ...]:
    """Each annotation that says nothing on the pods, how many carry it, and where it belongs."""
    found: dict[UnsupportedField, list[str]] = {}
    for pod in pods:
        for field in idle_on(pod):
            if field.path != annotation_path(group.rank_key):
                found.setdefault(field, []).append(pod.metadata.name)
    return tuple(
        f"{field.path} of {len(names)} of {len(pods)} pods, for example {names[0]}: {field.why}"
        for field, names in found.items()
    )


def write_amounts(amounts: Mapping[str, int], resources: Iterable[str] | None = None) -> str:
    """Write amounts as a user would ("6 nvidia.com/gpu and 1500m cpu"), all or only these resources."""
    chosen = [name for name in (amounts if resources is None else resources) if amounts.get(name)]
    return " and ".join(f"{format_amount(name, amounts[name])} {name}" for name in chosen) or "nothing"


def _sum(snapshot: Snapshot, pods: Sequence[Pod]) -> dict[str, int]:
    total = sum((snapshot.request_of(pod) for pod in pods), snapshot.axis.row({}))
    names = zip(snapshot.axis.names, total.tolist(), strict=True)
    return {name: amount for name, amount in names if amount and name != PODS}


def _totals(snapshot: Snapshot, amounts: Int64) -> dict[str, int]:
    total = amounts[snapshot.live].sum(axis=0)
    return dict(zip(snapshot.axis.names, total.tolist(), strict=True))
