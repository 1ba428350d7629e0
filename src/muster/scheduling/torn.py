"""Gangs under way of which a preemption would take a part: they go whole, for half of one is of no use.

What is left of a gang (or tree) that has not started is released when somebody more important takes members
of it.  So nobody may count on those that stay: where a preemption would tear one, its preemptor must find
room as well when all of it is gone.  In come victims; next: `preemption.py`, which has them leave.
"""

import math
from collections.abc import Iterable
from operator import attrgetter

from msgspec.structs import replace

from muster.api.core import Pod
from muster.framework.groups import ObjectKey
from muster.framework.ports import Effect
from muster.placement.victims import Unit
from muster.scheduling.books import Books
from muster.scheduling.gangs import RELEASE
from muster.scheduling.members import EntityKey, Stage, group_entity
from muster.scheduling.standing import has_started
from muster.scheduling.transaction import end_gang


def tears(books: Books, victims: Iterable[Unit]) -> bool:
    """Whether a gang under way would lose some of its members to this and keep others."""
    pods = [pod for unit in victims for pod, _ in unit.pods]
    going = {pod.metadata.uid for pod in pods}
    torn = {entity for pod in pods for entity in _not_started_with(books, pod)}
    return any(
        member.pod.metadata.uid not in going
        for entity in torn
        for member in books.members.cast(entity).of(Stage.ASSUMED, Stage.BOUND)
    )


def as_wholes(books: Books, units: Iterable[Unit]) -> tuple[Unit, ...]:
    """The same with all there is of a gang under way in one unit, the most important first."""
    parts: dict[tuple[EntityKey, ...], list[Unit]] = {}
    others: list[Unit] = []
    for unit in units:
        gang = _not_started_with(books, unit.pods[0][0])
        (parts.setdefault(gang, []) if gang else others).append(unit)
    wholes = [
        Unit(
            str(gang[0]),
            max(part.priority for part in found),
            tuple(pair for part in found for pair in part.pods),
            True,
            min(part.start_s for part in found),
        )
        for gang, found in parts.items()
    ]
    return tuple(sorted((*others, *wholes), key=attrgetter("importance")))


def release_torn(books: Books, victims: Iterable[Pod], preemptor: EntityKey, now_s: float) -> list[Effect]:
    """Release what is left of gangs under way of which somebody more important takes members.

    Half of a gang that has not started is of no use to anybody: it goes whole, pods without a controller too.
    """
    torn: dict[EntityKey, None] = {}
    for pod in victims:
        going = _not_started_with(books, pod)
        member = books.members.find(ObjectKey(pod.metadata.namespace, pod.metadata.name))
        if member is not None and going:
            books.gangs.make(member.entity).asked[member.pod.metadata.uid] = math.inf
        torn.update(dict.fromkeys(going))
    effects: list[Effect] = []
    cause = f"{preemptor.kind} {preemptor.key}, which is more important, takes its room"
    for entity in torn:
        leaf = books.members.cast(entity)
        if leaf.group is not None and leaf.is_holding:
            group = replace(leaf.group, terms=replace(leaf.group.terms, releases_bare_pods=True))
            effects += end_gang(
                books, leaf, group, ending=RELEASE, kind="preemption", cause=cause, now_s=now_s
            )
    return effects


def _not_started_with(books: Books, pod: Pod) -> tuple[EntityKey, ...]:
    """The groups that are of no use without this pod: all of a tree that has not started, or its gang."""
    member = books.members.find(ObjectKey(pod.metadata.namespace, pod.metadata.name))
    if member is None or member.group is None:
        return ()
    tree = books.members.cast(books.members.root_of(member.entity))
    if tree.is_composite and tree.group is not None and not has_started(books, tree):
        return tuple(group_entity(leaf.group.key) for leaf in tree.leaves() if leaf.group is not None)
    leaf = books.members.cast(member.entity)
    is_gang = leaf.group is not None and leaf.group.is_gang
    return (member.entity,) if is_gang and not has_started(books, leaf) else ()
