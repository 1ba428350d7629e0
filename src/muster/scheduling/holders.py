"""Who holds what: the room of running groups and lone pods, as the explanation of a shortage wants it.

What a group holds is reckoned again only when a member of it came or went.  In come the members and a
snapshot; next: `reasons.py`.
"""

import numpy as np

from muster.base.arrays import Int64
from muster.cluster.snapshot import Snapshot
from muster.placement.relief import RunningGroup
from muster.scheduling.members import Cast, EntityKey, Members, Stage

_HELD_FOR_EVER = ("DaemonSet", "Node")  # pods of these owners do not end


class _Held:
    """What one entity holds per node name, at one state of its members."""

    __slots__ = ("node_names", "requests", "version", "width")

    def __init__(self, version: int, width: int, by_node: dict[str, Int64]) -> None:
        self.version = version
        self.width = width
        self.node_names = tuple(sorted(by_node))
        self.requests = [by_node[name] for name in self.node_names]


class Holders:
    """Remembers what each entity holds."""

    def __init__(self) -> None:
        self._held: dict[EntityKey, _Held] = {}

    def running(self, members: Members, snapshot: Snapshot) -> list[RunningGroup]:
        """Everyone whose end would free something, in order of kind and name."""
        found = []
        casts = members.casts()
        for gone in [entity for entity in self._held if entity not in casts]:
            del self._held[gone]
        for entity, cast in casts.items():
            if not cast.stages[Stage.BOUND] and not cast.stages[Stage.ASSUMED]:
                self._held.pop(entity, None)
                continue
            group = self._running(entity, cast, snapshot)
            if group is not None:
                found.append(group)
        return found

    def _running(self, entity: EntityKey, cast: Cast, snapshot: Snapshot) -> RunningGroup | None:
        width = len(snapshot.axis.names)
        held = self._held.get(entity)
        if held is None or held.version != cast.version or held.width != width:
            held = self._held[entity] = _Held(cast.version, width, _by_node(cast, snapshot))
        rows = [snapshot.row_of_node.get(name) for name in held.node_names]
        known = [(row, request) for row, request in zip(rows, held.requests, strict=True) if row is not None]
        if not known:
            return None
        known.sort(key=lambda pair: pair[0])
        name = str(entity.key) if entity.kind == "podgroup" else f"pod {entity.key}"
        return RunningGroup(
            name,
            np.array([row for row, _ in known], dtype=np.int32),
            np.array([request for _, request in known], dtype=np.int64),
        )


def _by_node(cast: Cast, snapshot: Snapshot) -> dict[str, Int64]:
    by_node: dict[str, Int64] = {}
    for member in cast.of(Stage.BOUND, Stage.ASSUMED):
        if any(owner.kind in _HELD_FOR_EVER for owner in member.pod.metadata.owner_references or ()):
            continue
        request = snapshot.request_of(member.pod)
        held = by_node.get(member.node_name)
        by_node[member.node_name] = request if held is None else held + request
    return by_node
