"""Who belongs to which group, and how far each pod has come.

The scheduler feeds every pod and group it sees; the queue and the cycle ask for a group's waiting and placed
members.  Groups may stand in a tree (KEP-6012): what is queued is the root.  Rooms on nodes are
`cluster/state.py`'s; here are only names and stages.  Next: `queue.py`.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from enum import IntEnum, auto
from typing import NamedTuple

from muster.api.core import Pod
from muster.framework.groups import Group, GroupKey, ObjectKey, PodKey, UnsupportedField
from muster.placement.shapes import ShapeKey, shape_key
from muster.scheduling.tally import Tally

CHANGED_MIN = 1024  # so many changes are remembered though there are fewer entities


class EntityKey(NamedTuple):
    """What the queue holds: a root group or a lone pod."""

    kind: str  # "podgroup", "compositepodgroup" or "pod", as the metric label `type` says it
    key: ObjectKey

    def __str__(self) -> str:
        return str(self.key)


def group_entity(key: GroupKey) -> EntityKey:
    """The entity of a group."""
    return EntityKey("podgroup", key)


def composite_entity(key: GroupKey) -> EntityKey:
    """The entity of a composite group."""
    return EntityKey("compositepodgroup", key)


def entity_of(group: Group) -> EntityKey:
    """The entity of a group of either kind."""
    return composite_entity(group.key) if group.is_composite else group_entity(group.key)


class Stage(IntEnum):
    """How far a pod has come."""

    WAITING = auto()  # ours to place
    LEAVING = auto()  # not placed and being deleted: nobody will place it
    FOREIGN = auto()  # not placed, another scheduler's
    ASSUMED = auto()  # its binding is on the wire
    BOUND = auto()
    SUCCEEDED = auto()
    FAILED = auto()


class Member:
    """One pod with its stage; `arrival` counts pods in the order in which they were first seen."""

    __slots__ = ("_shape", "arrival", "entity", "group", "key", "node_name", "pod", "stage")

    def __init__(self, pod: Pod, group: GroupKey | None, stage: Stage, arrival: int) -> None:
        self.key: PodKey = ObjectKey(pod.metadata.namespace, pod.metadata.name)
        self.see(pod, group)
        self.stage = stage
        self.arrival = arrival
        self.node_name = pod.spec.node_name
        self._shape: tuple[Pod, bool, frozenset[str], ShapeKey] | None = None

    def shape(self, *, metadata: bool, labels: frozenset[str] = frozenset()) -> ShapeKey:
        """The pod's shape, reckoned once for each state of the pod and each set of labels that rules read."""
        known = self._shape
        if known is None or known[0] is not self.pod or known[1:3] != (metadata, labels):
            key = shape_key(self.pod, metadata=metadata, labels=labels)
            known = self._shape = (self.pod, metadata, labels, key)
        return known[3]

    def see(self, pod: Pod, group: GroupKey | None) -> None:
        """The pod as it is now; `entity` is what it is queued under."""
        self.pod = pod
        self.group = group
        self.entity = group_entity(group) if group is not None else EntityKey("pod", self.key)

    @property
    def order(self) -> tuple[str, int]:
        """Members are tried in the order of their creation; of one second, in the order seen."""
        return (self.pod.metadata.creation_timestamp or "", self.arrival)


class Idle(NamedTuple):
    """What stands on a member and says nothing there; `waited`: it was seen on a pod that waits."""

    member: Member
    fields: tuple[UnsupportedField, ...]
    waited: bool


class Cast:
    """The members of one entity by stage, and its group object if it is a group that has been seen.

    A composite has `children` in place of members of its own; what is asked of it is answered for all the
    pods below.  `parent` is the entity of the composite that its object names.  `idle_paths`: what stood on
    members and said nothing there; `untold`: what of it nobody has been told of.
    """

    __slots__ = (
        "_in_order",
        "asked",
        "children",
        "group",
        "group_arrival",
        "idle_paths",
        "is_composite",
        "parent",
        "stages",
        "tally",
        "untold",
        "version",
    )

    def __init__(self, *, is_composite: bool = False) -> None:
        self.group: Group | None = None
        self.group_arrival = 0
        self.version = 0  # raised with every member that comes or goes
        self.asked: tuple[int, Group | None, frozenset[str], Hashable] | None = None  # when so: what it asks
        self.stages: dict[Stage, dict[PodKey, Member]] = {stage: {} for stage in Stage}
        self.tally = Tally()
        self.is_composite = is_composite
        self.parent: EntityKey | None = None
        self.children: dict[EntityKey, Cast] = {}
        self.idle_paths: frozenset[str] = frozenset()
        self.untold: tuple[Idle, ...] = ()
        # Who waits, at which version: a decision asks six times, and of 1,000 members that were 3 ms.
        self._in_order: tuple[int, list[Member]] | None = None

    def leaves(self) -> Iterator["Cast"]:
        """The pod groups (or the lone pod) of the tree, in the order in which they are tried."""
        if not self.is_composite:
            yield self
            return
        seen, stack = {id(self)}, self.sorted_children()[::-1]
        while stack:
            cast = stack.pop()
            if id(cast) in seen:  # a ring, which nobody tries
                continue
            seen.add(id(cast))
            if cast.is_composite:
                stack += cast.sorted_children()[::-1]
            else:
                yield cast

    def sorted_children(self) -> list["Cast"]:
        """Groups right below: the older first, then by name."""

        def age(pair: tuple[EntityKey, Cast]) -> tuple[float, ObjectKey, str]:
            (kind, key), child = pair
            return (child.group.created_s if child.group is not None else 0.0, key, kind)

        return [child for _, child in sorted(self.children.items(), key=age)]

    def of(self, *stages: Stage) -> Iterable[Member]:
        """Members in these stages, leaf by leaf, in the order in which they came to them."""
        for leaf in self.leaves():
            for stage in stages:
                yield from leaf.stages[stage].values()

    def count(self, *stages: Stage) -> int:
        """How many members are in these stages."""
        return sum(len(leaf.stages[stage]) for leaf in self.leaves() for stage in stages)

    def waiting(self) -> list[Member]:
        """Members to place, in the order in which they are tried."""
        if self.is_composite:
            return [member for leaf in self.leaves() for member in leaf.waiting()]
        if self._in_order is None or self._in_order[0] != self.version:
            in_order = sorted(self.stages[Stage.WAITING].values(), key=lambda member: member.order)
            self._in_order = (self.version, in_order)
        return list(self._in_order[1])

    @property
    def placed_count(self) -> int:
        """Members that count as placed toward minCount: bound (dying ones too), assumed, succeeded."""
        return self.accepted_count + self.count(Stage.ASSUMED)

    @property
    def known_count(self) -> int:
        """Members that are there, placed or waiting."""
        return self.placed_count + self.count(Stage.WAITING)

    @property
    def accepted_count(self) -> int:
        """Members whose binding the API has accepted, whether they run or have succeeded."""
        return sum(len(leaf.stages[Stage.BOUND]) + leaf._succeeded_count() for leaf in self.leaves())

    @property
    def missing_count(self) -> int:
        """How many members more must be placed, at the least, for the minimum of the group (or tree)."""
        needed = self.group.needed if self.group is not None else 1
        if not self.is_composite:
            return max(0, needed - self.placed_count)
        return sum(sorted(child.missing_count for child in self.children.values())[:needed])

    def _succeeded_count(self) -> int:
        """Succeeded members; those started before this group object belonged to another of its name."""
        made_s = self.group.created_s if self.group is not None else 0.0
        pods = (member.pod for member in self.stages[Stage.SUCCEEDED].values())
        return self.tally.succeeded(made_s, pods)

    @property
    def is_holding(self) -> bool:
        """Whether some member of its own takes room."""
        return bool(self.stages[Stage.BOUND]) or bool(self.stages[Stage.ASSUMED])

    @property
    def is_empty(self) -> bool:
        return self.group is None and not self.children and not any(self.stages.values())


class Seen(NamedTuple):
    """What a sighting changed: the stage before (None: no such pod) and after, and the object before."""

    member: Member
    before: Stage | None
    after: Stage
    old_pod: Pod | None

    @property
    def asks_anew(self) -> bool:
        """Whether its spec, its labels or its claims' names changed; the rest places nobody."""
        return self.old_pod is not None and not self.member.pod.asks_as(self.old_pod)


class Members:
    """All pods and groups, by entity."""

    def __init__(self, scheduler_names: frozenset[str]) -> None:
        self._ours = scheduler_names
        self._members: dict[PodKey, Member] = {}
        self._casts: dict[EntityKey, Cast] = {}
        self._arrivals = 0
        self.holders_version = 0  # raised when an entity begins or ends to take room
        self.placed_version = 0  # raised with every member that begins or ends to take room
        self._changed: set[EntityKey] | None = set()  # since last asked; None: too many to count

    def find(self, key: PodKey) -> Member | None:
        """The pod of this name."""
        return self._members.get(key)

    def cast(self, entity: EntityKey) -> Cast:
        """The members of an entity; an empty cast when nothing is known of it."""
        return self._casts.get(entity) or Cast()

    def find_group(self, key: GroupKey) -> Group | None:
        """The pod group object, None while it has not been seen."""
        return self.cast(group_entity(key)).group

    def find_composite(self, key: GroupKey) -> Group | None:
        """The composite group object, None while it has not been seen."""
        return self.cast(composite_entity(key)).group

    def root_of(self, entity: EntityKey) -> EntityKey:
        """What is queued for this entity: itself, or the topmost group that it names as an ancestor.

        The root may be a composite that has not been seen.  Of a ring it is the first by name.
        """
        path = [entity]
        while (parent := self.cast(path[-1]).parent) is not None:
            if parent in path:
                return min(path[path.index(parent) :])
            path.append(parent)
        return path[-1]

    def is_ours(self, pod: Pod) -> bool:
        """Whether this scheduler places pods of that name."""
        return pod.spec.scheduler_name in self._ours

    def casts(self) -> Mapping[EntityKey, Cast]:
        """Everything known; not to be changed."""
        return self._casts

    def take_changed(self) -> set[EntityKey] | None:
        """Entities of which a placed member or the group object has changed since last asked; None: any."""
        changed, self._changed = self._changed, set()
        return changed

    def _note(self, entity: EntityKey) -> None:
        if self._changed is not None:
            self._changed.add(entity)
            if len(self._changed) > len(self._casts) + CHANGED_MIN:
                self._changed = None

    def see_pod(self, pod: Pod, group: GroupKey | None) -> Seen:
        """Take note of a pod as it is now.

        An assumed pod stays assumed, and an accepted one bound, while the object does not say otherwise: what
        the watch tells may be older than what a binding's answer told.
        """
        key = ObjectKey(pod.metadata.namespace, pod.metadata.name)
        member = self._members.get(key)
        if member is None:
            self._arrivals += 1
            member = Member(pod, group, self._stage_of(pod), self._arrivals)
            self._members[key] = member
            self._enter(member)
            return Seen(member, None, member.stage, None)
        before, old_pod, left = member.stage, member.pod, member.entity
        self._exit(member)
        member.see(pod, group)
        member.stage = self._stage_of(pod)
        if pod.spec.node_name:
            member.node_name = pod.spec.node_name
        elif before in (Stage.ASSUMED, Stage.BOUND) and not pod.is_terminal:
            member.stage = before
        self._enter(member)
        if left != member.entity:
            self._drop_if_empty(left, self._casts[left])
        return Seen(member, before, member.stage, old_pod)

    def lose_pod(self, key: PodKey) -> Member | None:
        """Forget a pod; its last state, None when it was not known."""
        member = self._members.pop(key, None)
        if member is not None:
            self._exit(member)
            self._drop_if_empty(member.entity, self._casts[member.entity])
        return member

    def assume(self, member: Member, node_name: str) -> None:
        """Count a member as placed while its binding is on the wire."""
        self._move(member, Stage.ASSUMED)
        member.node_name = node_name

    def accept(self, member: Member) -> None:
        """Its binding has been accepted."""
        self._move(member, Stage.BOUND)

    def forget(self, member: Member) -> None:
        """Its binding came to nothing: it is where its object says it is."""
        self._move(member, self._stage_of(member.pod))
        member.node_name = member.pod.spec.node_name

    def see_group(self, group: Group) -> Group | None:
        """Take note of a group object of either kind; the object known before."""
        entity = entity_of(group)
        cast = self._casts.get(entity)
        if cast is None:
            cast = self._casts[entity] = Cast(is_composite=group.is_composite)
        before, cast.group = cast.group, group
        self._note(entity)
        parent = composite_entity(group.parent) if group.parent is not None else None
        if parent != cast.parent:
            self._unlink(entity, cast)
            self._link(entity, cast, parent)
        if before is None or before.uid != group.uid:
            self._arrivals += 1
            cast.group_arrival = self._arrivals
        return before

    def lose_group(self, entity: EntityKey) -> Group | None:
        """Forget a group object; its members and children stay known.  The object known before."""
        cast = self._casts.get(entity)
        if cast is None:
            return None
        before, cast.group = cast.group, None
        self._note(entity)
        self._unlink(entity, cast)
        self._drop_if_empty(entity, cast)
        return before

    def _link(self, entity: EntityKey, cast: Cast, parent: EntityKey | None) -> None:
        """Hang it under its parent, which need not have been seen."""
        if parent is None:
            return
        above = self._casts.get(parent)
        if above is None:
            above = self._casts[parent] = Cast(is_composite=True)
        above.children[entity] = cast
        cast.parent = parent

    def _unlink(self, entity: EntityKey, cast: Cast) -> None:
        if cast.parent is None:
            return
        parent, cast.parent = cast.parent, None
        above = self._casts[parent]
        del above.children[entity]
        self._drop_if_empty(parent, above)

    def _stage_of(self, pod: Pod) -> Stage:
        if pod.status.phase == "Succeeded":
            return Stage.SUCCEEDED
        if pod.status.phase == "Failed":
            return Stage.FAILED
        if pod.spec.node_name:
            return Stage.BOUND
        if not self.is_ours(pod):
            return Stage.FOREIGN
        return Stage.LEAVING if pod.is_terminating else Stage.WAITING

    def _move(self, member: Member, stage: Stage) -> None:
        self._exit(member)
        member.stage = stage
        self._enter(member)

    def _enter(self, member: Member) -> None:
        cast = self._casts.get(member.entity)
        if cast is None:
            cast = self._casts[member.entity] = Cast()
        was_holding = cast.is_holding
        cast.stages[member.stage][member.key] = member
        cast.version += 1
        self.holders_version += cast.is_holding != was_holding
        self._count(cast, member, 1)

    def _exit(self, member: Member) -> None:
        cast = self._casts[member.entity]
        was_holding = cast.is_holding
        del cast.stages[member.stage][member.key]
        cast.version += 1
        self.holders_version += cast.is_holding != was_holding
        self._count(cast, member, -1)

    def _count(self, cast: Cast, member: Member, by: int) -> None:
        """A member has come to its stage (`by` 1) or leaves it (-1)."""
        if member.stage is Stage.BOUND:
            cast.tally.count_bound(member.pod, by)
        elif member.stage is Stage.SUCCEEDED:
            cast.tally.count_succeeded(member.pod, by)
        if member.stage in (Stage.BOUND, Stage.ASSUMED):
            self.placed_version += 1
            self._note(member.entity)

    def _drop_if_empty(self, entity: EntityKey, cast: Cast) -> None:
        if cast.is_empty:
            del self._casts[entity]
