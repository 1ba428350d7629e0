"""Who holds what: the room of running groups and lone pods, as the explanation of a shortage wants it.

What a group holds is reckoned again only when a member of it came or went.  In come the members and a
snapshot; next: `reasons.py`.
"""

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from muster.base.arrays import Int64
from muster.cluster.snapshot import Snapshot
from muster.placement.relief import RunningGroup
from muster.scheduling.members import Cast, EntityKey, Member, Members, Stage

_HELD_FOR_EVER = ("DaemonSet", "Node")  # pods of these owners do not end


class _Held:
    """What one entity holds, at one state of its members and of the nodes' rows."""

    __slots__ = ("by_node", "group", "row_of_node", "version", "width")

    def __init__(self, version: int, width: int, by_node: dict[str, Int64]) -> None:
        self.version = version
        self.width = width
        self.by_node = by_node
        self.row_of_node: Mapping[str, int] | None = None
        self.group: RunningGroup | None = None


class Holders:
    """Remembers what each entity holds."""

    def __init__(self) -> None:
        self._held: dict[EntityKey, _Held] = {}
        self._all: tuple[int, Mapping[str, int], list[RunningGroup]] | None = None

    def running(self, members: Members, snapshot: Snapshot) -> list[RunningGroup]:
        """Everyone whose end would free something."""
        rows = snapshot.row_of_node
        if self._all is not None and self._all[0] == members.placed_version and self._all[1] is rows:
            return self._all[2]
        casts = members.casts()
        for entity in [entity for entity in self._held if entity not in casts]:
            del self._held[entity]
        found = []
        for entity, cast in casts.items():
            if not cast.is_holding:
                self._held.pop(entity, None)
                continue
            group = self._running(entity, cast, snapshot)
            if group is not None:
                found.append(group)
        self._all = (members.placed_version, rows, found)
        return found

    def _running(self, entity: EntityKey, cast: Cast, snapshot: Snapshot) -> RunningGroup | None:
        width = len(snapshot.axis.names)
        held = self._held.get(entity)
        if held is None or held.version != cast.version or held.width != width:
            held = self._held[entity] = _Held(cast.version, width, _by_node(cast, snapshot))
        if held.row_of_node is not snapshot.row_of_node:
            held.row_of_node = snapshot.row_of_node
            held.group = _in_rows(_name_of(entity), held.by_node, snapshot.row_of_node)
        return held.group


def without(names: Iterable[str], members: Members, snapshot: Snapshot) -> Snapshot:
    """A fork of the snapshot after the end of these groups and lone pods, named as `running` names them."""
    ended, fork = set(names), snapshot.fork()
    for entity, cast in members.casts().items():
        if cast.is_holding and _name_of(entity) in ended:
            for member in _ending(cast):
                row = snapshot.row_of_node.get(member.node_name, -1)
                if row >= 0 and any(
                    each.metadata.uid == member.pod.metadata.uid for each in snapshot.pods_on(row)
                ):
                    fork.remove(member.pod, row)
    return fork


def _name_of(entity: EntityKey) -> str:
    return str(entity.key) if entity.kind == "podgroup" else f"pod {entity.key}"


def _ending(cast: Cast) -> Iterator[Member]:
    """Placed members that go when their work is done."""
    for member in cast.of(Stage.BOUND, Stage.ASSUMED):
        if not any(owner.kind in _HELD_FOR_EVER for owner in member.pod.metadata.owner_references or ()):
            yield member


def _in_rows(name: str, by_node: Mapping[str, Int64], row_of_node: Mapping[str, int]) -> RunningGroup | None:
    """By rows, ascending; None when none of the nodes is known."""
    known = sorted((row_of_node[node], node) for node in by_node if node in row_of_node)
    if not known:
        return None
    rows = np.array([row for row, _ in known], dtype=np.int32)
    return RunningGroup(name, rows, np.array([by_node[node] for _, node in known], dtype=np.int64))


def _by_node(cast: Cast, snapshot: Snapshot) -> dict[str, Int64]:
    by_node: dict[str, Int64] = {}
    for member in _ending(cast):
        request = snapshot.request_of(member.pod)
        held = by_node.get(member.node_name)
        by_node[member.node_name] = request if held is None else held + request
    return by_node
