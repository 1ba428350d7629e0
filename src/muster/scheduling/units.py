"""Who could be driven out, in units: running pods weaker than a preemptor, up the trees of their groups.

A group with disruption mode `all` goes as a whole, the highest such group of a tree with everything below;
any other pod goes alone (KEP-5710).  Units are kept from one preemption to the next, by tree and by priority:
only trees in which something has changed are looked at again.  In come the members and a snapshot; next:
`preemption.py`.
"""

from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter, itemgetter
from typing import NamedTuple

from msgspec.structs import replace

from muster.api.core import Pod
from muster.api.times import format_seconds, parse_seconds
from muster.cluster.snapshot import Snapshot
from muster.framework.groups import PodKey
from muster.placement.victims import Importance, Unit
from muster.scheduling.members import Cast, EntityKey, Members, Stage

YOUNG_S = 60.0  # so long after a pod was made its group may still be on its way to us
OVERDUE_S = 60.0  # so long after its grace a pod that will not go is not counted on any more


class Victim(NamedTuple):
    """A pod asked to leave, for whom, and when by our own clock: the server may have another."""

    entity: EntityKey
    key: PodKey
    asked_s: float = 0.0


def is_overdue(pod: Pod, now_s: float) -> bool:
    """Whether a pod should have been gone for a while: its node is dead, or a finalizer holds it."""
    due = pod.metadata.deletion_timestamp
    return due is not None and now_s > parse_seconds(due) + OVERDUE_S


_Ranked = tuple[Importance, Unit]
_key_of = attrgetter("key")


class Units:
    """The units of all trees, by priority, kept as the members change."""

    def __init__(self, members: Members) -> None:
        self._members = members
        self._ranked: dict[int, list[_Ranked]] = {}  # by priority, the most important first
        self._stale: dict[int, set[int]] = {}  # by priority, ids of units that are no more
        self._of_root: dict[EntityKey, list[_Ranked]] = {}
        self._roots: dict[EntityKey, EntityKey] = {}  # under which each entity was found
        self._entities: dict[EntityKey, list[EntityKey]] = {}  # found under each root
        self._passing: set[EntityKey] = set()  # roots whose units depend on the time
        self._asked: dict[str, Victim] = {}  # by uid, as of the last time
        self._rows: Mapping[str, int] = {}

    def find_weaker(
        self,
        snapshot: Snapshot,
        *,
        priority: int,
        root: EntityKey,
        asked: Mapping[str, Victim],
        now_s: float,
    ) -> tuple[Unit, ...]:
        """Units of lower priority outside the tree of `root`, the most important first.

        `asked`: pods by uid whose deletion has been asked for, though they do not show it yet.  Pods that are
        overdue are in no unit, nor are young ones of a group that has not been seen: it may say that they go
        together.
        """
        return tuple(self._weaker(snapshot, priority, root, asked, now_s))

    def has_weaker(
        self,
        snapshot: Snapshot,
        *,
        priority: int,
        root: EntityKey,
        asked: Mapping[str, Victim],
        now_s: float,
    ) -> bool:
        """Whether `find_weaker` would find any."""
        return next(self._weaker(snapshot, priority, root, asked, now_s), None) is not None

    def _weaker(
        self, snapshot: Snapshot, priority: int, root: EntityKey, asked: Mapping[str, Victim], now_s: float
    ) -> Iterator[Unit]:
        self._refresh(snapshot, asked, now_s)
        own = {id(unit) for _, unit in self._of_root.get(root, ())}
        for level in sorted((level for level in self._ranked if level < priority), reverse=True):
            for _, unit in self._sorted(level):
                if id(unit) not in own:
                    yield unit

    def _sorted(self, level: int) -> list[_Ranked]:
        """Units of one priority in order; what has been added since stands at the end until now."""
        ranked, stale = self._ranked[level], self._stale.pop(level, None)
        if stale is not None:
            ranked = [pair for pair in ranked if id(pair[1]) not in stale]
            ranked.sort(key=itemgetter(0))  # nearly sorted already
            self._ranked[level] = ranked
        return ranked

    def _refresh(self, snapshot: Snapshot, asked: Mapping[str, Victim], now_s: float) -> None:
        """Look again at the trees in which something may be otherwise than at the last time."""
        changed = self._members.take_changed()
        if snapshot.row_of_node is not self._rows:
            if snapshot.row_of_node != self._rows:
                changed = None  # nodes have come or gone
            self._rows = snapshot.row_of_node
        if changed is None:
            for known in list(self._of_root):
                self._drop(known)
            self._roots.clear()
            self._entities.clear()
            self._passing.clear()
            changed = set(self._members.casts())
        changed |= self._newly_asked(asked)
        if not (changed or self._passing):
            return
        lone = {entity for entity in changed | self._passing if entity.kind == "pod"}
        self._look_at_pods(sorted(lone, key=_key_of), asked, now_s)
        grouped = [entity for entity in changed if entity.kind != "pod" and self._may_be_in_a_unit(entity)]
        roots = {self._members.root_of(entity) for entity in grouped}
        roots |= {self._roots[entity] for entity in grouped if entity in self._roots}
        for root in sorted(filter(self._may_have_units, roots | (self._passing - lone))):
            self._look_at_tree(root, asked, now_s)

    def _may_be_in_a_unit(self, entity: EntityKey) -> bool:
        """Whether it runs, is above others or was in a unit: of 10,000 gangs that just came none does."""
        cast = self._members.casts().get(entity)
        if cast is not None and (cast.is_holding or cast.is_composite):
            return True
        return entity in self._roots

    def _may_have_units(self, root: EntityKey) -> bool:
        """Whether something runs below it, or did; of 10,000 gangs that wait nothing does."""
        cast = self._members.cast(root)
        return cast.is_composite or cast.is_holding or root in self._entities

    def _newly_asked(self, asked: Mapping[str, Victim]) -> set[EntityKey]:
        """Entities of those who are asked to leave since the last time, or are not asked any more."""
        victims = [(asked.get(uid) or self._asked[uid]).key for uid in asked.keys() ^ self._asked.keys()]
        self._asked = dict(asked)
        return {member.entity for key in victims if (member := self._members.find(key)) is not None}

    def _look_at_pods(self, entities: Iterable[EntityKey], asked: Mapping[str, Victim], now_s: float) -> None:
        """Make the units of lone pods anew: the trees of most pods of most clusters, so the short way.

        Of 4,000 pods that are new at the first preemption it takes 10 ms, the walk of their trees 27.
        """
        casts, rows = self._members.casts(), self._rows
        for entity in entities:
            if entity in self._of_root:
                self._drop(entity)
            self._passing.discard(entity)
            cast = casts.get(entity)
            if cast is None or not cast.is_holding:
                continue
            running, is_passing = _running(cast, rows, asked, now_s)
            if is_passing:
                self._passing.add(entity)
            for pod, row in running:
                unit = _unit_of(pod, row, pod.spec.priority or 0)
                self._of_root[entity] = [self._rank(unit)]

    def _look_at_tree(self, root: EntityKey, asked: Mapping[str, Victim], now_s: float) -> None:
        """Make the units of one tree of groups anew."""
        self._drop(root)
        for entity in self._entities.pop(root, ()):
            if self._roots.get(entity) == root:
                del self._roots[entity]
        self._passing.discard(root)
        tree = _Tree(self._members, self._rows, asked, now_s)
        if self._members.root_of(root) == root:  # else it has become part of another tree
            tree.visit(root)
        if tree.entities:
            self._entities[root] = tree.entities
            self._roots.update(dict.fromkeys(tree.entities, root))
        if tree.is_passing:
            self._passing.add(root)
        self._keep(root, tree.units())

    def _keep(self, root: EntityKey, units: Iterable[Unit]) -> None:
        """These are the units of the root from now on; there are none of it yet."""
        pairs = [self._rank(unit) for unit in units]
        if pairs:
            self._of_root[root] = pairs

    def _rank(self, unit: Unit) -> _Ranked:
        """Put the unit among those of its priority, which are sorted when they are asked for."""
        level, pair = unit.priority, (unit.importance, unit)
        if level not in self._stale:
            self._ranked.setdefault(level, [])
            self._stale[level] = set()
        self._ranked[level].append(pair)
        return pair

    def _drop(self, root: EntityKey) -> None:
        for _, unit in self._of_root.pop(root, ()):
            level = unit.priority
            self._stale.setdefault(level, set()).add(id(unit))
            if 2 * len(self._stale[level]) > len(self._ranked[level]):
                self._sorted(level)  # nobody may ever ask for this priority


class _Tree:
    """What is running below one root, gathered into units.

    `is_passing`: another time would make other units of it.
    """

    def __init__(
        self, members: Members, rows: Mapping[str, int], asked: Mapping[str, Victim], now_s: float
    ) -> None:
        self.entities: list[EntityKey] = []
        self.is_passing = False
        self._members = members
        self._rows = rows
        self._asked = asked
        self._now_s = now_s
        self._alone: list[Unit] = []
        self._wholes: dict[EntityKey, list[tuple[Pod, int]]] = {}
        self._priorities: dict[EntityKey, int] = {}

    def visit(self, entity: EntityKey, anchor: EntityKey | None = None, *, is_known: bool = True) -> None:
        """Gather what runs in this entity and below; `anchor`: the group above that goes as a whole."""
        cast = self._members.casts().get(entity)
        if cast is None or entity in self.entities[:1]:  # a ring ends where it began
            return
        self.entities.append(entity)
        if anchor is None and cast.group is not None and cast.group.disruption_mode == "all":
            anchor = entity
            self._priorities[anchor] = cast.group.priority
        is_known = is_known and (cast.group is not None or entity.kind == "pod")
        if cast.is_holding:
            self._gather(entity, cast, anchor, is_known=is_known)
        for child in cast.children:
            self.visit(child, anchor, is_known=is_known)

    def _gather(self, entity: EntityKey, cast: Cast, anchor: EntityKey | None, *, is_known: bool) -> None:
        running, is_passing = _running(cast, self._rows, self._asked, self._now_s)
        self.is_passing = self.is_passing or is_passing
        if not is_known:
            grown = [(pod, row) for pod, row in running if not _is_young(pod, self._now_s)]
            self.is_passing = self.is_passing or len(grown) < len(running)
            running = grown
        if anchor is not None:
            self._wholes.setdefault(anchor, []).extend(running)
            return
        for pod, row in running:
            own = cast.group.priority if cast.group is not None else pod.spec.priority or 0
            self._alone.append(_unit_of(pod, row, own, is_group=True))

    def units(self) -> list[Unit]:
        """What has been gathered."""
        return self._alone + [
            Unit(str(entity), self._priorities[entity], tuple(pods), True, min(map(_started_of, pods)))
            for entity, pods in self._wholes.items()
            if pods
        ]


def _running(
    cast: Cast, rows: Mapping[str, int], asked: Mapping[str, Victim], now_s: float
) -> tuple[list[tuple[Pod, int]], bool]:
    """Who of a cast's own takes room, each with its row; and whether that depends on the time."""
    found: list[tuple[Pod, int]] = []
    is_passing = False
    for stage in (Stage.BOUND, Stage.ASSUMED):
        for member in cast.stages[stage].values():
            pod = member.pod
            if pod.is_terminating:
                is_passing = True
                if is_overdue(pod, now_s):
                    continue
            elif (victim := asked.get(pod.metadata.uid)) is not None:
                metadata = replace(pod.metadata, deletion_timestamp=format_seconds(victim.asked_s))
                pod = replace(pod, metadata=metadata)
            found.append((pod, rows.get(member.node_name, -1)))
    return found, is_passing


def _unit_of(pod: Pod, row: int, priority: int, *, is_group: bool = False) -> Unit:
    """A pod that goes alone; `is_group`: as a member of a group."""
    name = f"{pod.metadata.namespace}/{pod.metadata.name}"
    return Unit(name, priority, ((pod, row),), is_group, _started(pod))


def _is_young(pod: Pod, now_s: float) -> bool:
    made = pod.metadata.creation_timestamp
    return made is not None and now_s - parse_seconds(made) < YOUNG_S


def _started_of(pair: tuple[Pod, int]) -> float:
    return _started(pair[0])


def _started(pod: Pod) -> float:
    return float("inf") if pod.status.start_time is None else parse_seconds(pod.status.start_time)
