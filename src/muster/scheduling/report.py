"""What is pending and why, where it is, and who holds what: plain data for cli, metrics and the simulator's
checkers.

Every pending entity (one with members to place) is in exactly one place; `arriving` are those that changed
since the last cycle and have not been looked at.
"""

from msgspec import Struct

from muster.framework.groups import ObjectKey
from muster.scheduling.books import Books
from muster.scheduling.members import Cast, EntityKey, Stage
from muster.scheduling.queue import Place
from muster.scheduling.waiting import find_wait

ARRIVING = "arriving"
PLACES = (*(place.value for place in Place), ARRIVING)


class Pending(Struct, frozen=True):
    """One entity with members to place.

    `kind` is podgroup, compositepodgroup or pod; `groups` are the pod groups in it; `place` one of `PLACES`;
    `reason` a word, `message` a sentence; `retry_at_s` when it is tried again if nothing helps it before.
    """

    kind: str
    key: ObjectKey
    place: str
    priority: int
    waiting: tuple[ObjectKey, ...]
    reason: str = ""
    message: str = ""
    attempts: int = 0
    queued_s: float = 0.0
    since_s: float = 0.0
    retry_at_s: float | None = None
    groups: tuple[ObjectKey, ...] = ()


class GroupCount(Struct, frozen=True):
    """How far a group is: members by stage, and what it needs (None: its object has not been seen)."""

    key: ObjectKey
    needed: int | None
    is_gang: bool
    stages: dict[str, int]
    nodes: dict[str, int]  # node name → placed members there

    @property
    def placed(self) -> int:
        """Members that count toward the minimum."""
        return sum(self.stages[stage] for stage in ("bound", "assumed", "succeeded"))


class OnTheWire(Struct, frozen=True):
    """A binding that has been asked for."""

    key: ObjectKey
    uid: str
    node_name: str
    since_s: float
    unknown: bool


class InPreparation(Struct, frozen=True):
    """A member that is placed and waits for volumes or claims, its own or others' of its gang."""

    key: ObjectKey
    uid: str
    node_name: str
    since_s: float


class Report(Struct, frozen=True):
    """The scheduler's state at one moment."""

    synced: bool
    pending: tuple[Pending, ...]
    groups: tuple[GroupCount, ...]
    bindings: tuple[OnTheWire, ...]
    preparations: tuple[InPreparation, ...]
    queued: dict[tuple[str, str], int]  # (place, kind) → entities
    pending_pods: dict[str, int]  # place → pods
    incoming: dict[tuple[str, str, str], int]  # (place, event, kind) → entities that ever came

    def find(self, key: ObjectKey) -> Pending | None:
        """The pending entity that this pod group is in, or that has this name; a group before a lone pod."""
        return next(
            (each for each in self.pending if key in each.groups),
            next((each for each in self.pending if each.key == key), None),
        )


def make_report(books: Books) -> Report:
    """Put the books into plain data, in order of kind and name."""
    pending = []
    groups = []
    for entity, cast in sorted(books.members.casts().items()):
        if cast.count(Stage.WAITING) and books.members.root_of(entity) == entity:
            pending.append(_pending(books, entity, cast))
        if entity.kind == "podgroup":
            groups.append(_count(entity, cast))
    queued: dict[tuple[str, str], int] = {}
    pods: dict[str, int] = {}
    for one in pending:
        queued[one.place, one.kind] = queued.get((one.place, one.kind), 0) + 1
        pods[one.place] = pods.get(one.place, 0) + len(one.waiting)
    return Report(
        synced=books.synced,
        pending=tuple(pending),
        groups=tuple(groups),
        bindings=tuple(
            OnTheWire(binding.key, binding.uid, binding.node_name, binding.since_s, binding.unknown)
            for binding in books.inflight
        ),
        preparations=tuple(
            InPreparation(each.key, each.uid, each.node_name, each.since_s) for each in books.preparations
        ),
        queued=queued,
        pending_pods=pods,
        incoming=dict(books.queue.incoming),
    )


def _pending(books: Books, entity: EntityKey, cast: Cast) -> Pending:
    entry = books.queue.find(entity)
    waiting = tuple(member.key for member in cast.waiting())
    groups = tuple(leaf.group.key for leaf in cast.leaves() if leaf.group is not None)
    wait = find_wait(books, entity)
    reason, message = wait or ("", "")
    if entry is None:
        return Pending(
            entity.kind, entity.key, ARRIVING, 0, waiting, reason=reason, message=message, groups=groups
        )
    return Pending(
        kind=entity.kind,
        key=entity.key,
        place=entry.place.value,
        priority=entry.priority,
        waiting=waiting,
        reason=reason,
        message=message,
        attempts=entry.attempts,
        queued_s=entry.queued_s,
        since_s=entry.since_s,
        retry_at_s=entry.due_s,
        groups=groups,
    )


def _count(entity: EntityKey, cast: Cast) -> GroupCount:
    stages = {stage.name.lower(): len(members) for stage, members in cast.stages.items()}
    nodes: dict[str, int] = {}
    for member in cast.of(Stage.BOUND, Stage.ASSUMED):
        nodes[member.node_name] = nodes.get(member.node_name, 0) + 1
    return GroupCount(
        key=entity.key,
        needed=cast.group.needed if cast.group is not None else None,
        is_gang=cast.group is not None and cast.group.is_gang,
        stages=stages,
        nodes=dict(sorted(nodes.items())),
    )
