"""Units found by walking all there is, as before they were kept: the oracle of `test_units.py`."""

from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from muster.api.core import Pod
from muster.api.times import format_seconds, parse_seconds
from muster.cluster.snapshot import Snapshot
from muster.framework.groups import Group
from muster.placement.victims import Unit
from muster.scheduling.members import Cast, EntityKey, Members, Stage
from muster.scheduling.units import YOUNG_S, Victim, is_overdue


def find_weaker(
    members: Members,
    snapshot: Snapshot,
    *,
    priority: int,
    root: EntityKey,
    asked: Mapping[str, Victim],
    now_s: float,
) -> tuple[Unit, ...]:
    """Units of lower priority outside the tree of `root`, the most important first.

    `asked`: by uid, pods whose deletion has been asked for, though they do not show it yet.  Pods that are
    overdue are in no unit, nor are young ones of a group that has not been seen: it may say that they go
    together.
    """
    wholes: dict[EntityKey, list[tuple[Pod, int]]] = {}
    priorities: dict[EntityKey, int] = {}
    units: list[Unit] = []
    for entity, cast in members.casts().items():
        if not cast.is_holding:
            continue
        anchor, is_known = _anchor_of(members, entity)
        running = list(_running(cast, snapshot, asked, now_s))
        if not is_known:
            running = [(pod, row) for pod, row in running if not _is_young(pod, now_s)]
        if anchor is not None and anchor[1].priority < priority and members.root_of(entity) != root:
            wholes.setdefault(anchor[0], []).extend(running)
            priorities[anchor[0]] = anchor[1].priority
        elif anchor is None and (cast.group is None or cast.group.priority < priority):
            units += _alone(members, entity, cast, running, priority, root)
    units += [
        Unit(str(entity), priorities[entity], tuple(pods), True, min(_started(pod) for pod, _ in pods))
        for entity, pods in wholes.items()
        if pods
    ]
    return tuple(sorted(units, key=lambda unit: unit.importance))


def _alone(
    members: Members,
    entity: EntityKey,
    cast: Cast,
    running: Iterable[tuple[Pod, int]],
    priority: int,
    root: EntityKey,
) -> list[Unit]:
    """Units of one pod each; a member of a group counts with the group's priority."""
    units = []
    for pod, row in running:
        own = cast.group.priority if cast.group is not None else pod.spec.priority or 0
        if own < priority:
            name = f"{pod.metadata.namespace}/{pod.metadata.name}"
            units.append(Unit(name, own, ((pod, row),), entity.kind != "pod", _started(pod)))
    return units if units and members.root_of(entity) != root else []


def _anchor_of(members: Members, entity: EntityKey) -> tuple[tuple[EntityKey, Group] | None, bool]:
    """The highest group above (or at) this one that goes as a whole, and whether all above it are known."""
    found: tuple[EntityKey, Group] | None = None
    is_known = True
    seen: set[EntityKey] = set()
    here: EntityKey | None = entity
    while here is not None and here not in seen:
        seen.add(here)
        above = members.cast(here)
        if above.group is not None and above.group.disruption_mode == "all":
            found = (here, above.group)
        is_known = is_known and (above.group is not None or here.kind == "pod")
        here = above.parent
    return found, is_known


def _is_young(pod: Pod, now_s: float) -> bool:
    made = pod.metadata.creation_timestamp
    return made is not None and now_s - parse_seconds(made) < YOUNG_S


def _running(
    cast: Cast, snapshot: Snapshot, asked: Mapping[str, Victim], now_s: float
) -> Iterator[tuple[Pod, int]]:
    for stage in (Stage.BOUND, Stage.ASSUMED):
        for member in cast.stages[stage].values():
            pod = member.pod
            if is_overdue(pod, now_s):
                continue
            if pod.metadata.uid in asked and not pod.is_terminating:
                asked_s = asked[pod.metadata.uid].asked_s
                metadata = replace(pod.metadata, deletion_timestamp=format_seconds(asked_s))
                pod = replace(pod, metadata=metadata)
            yield pod, snapshot.row_of_node.get(member.node_name, -1)


def _started(pod: Pod) -> float:
    return float("inf") if pod.status.start_time is None else parse_seconds(pod.status.start_time)
