"""What a pending entity waits for, and saying so on its objects.

Stock shows nothing on a group that is not tried.  Here a PodGroup whose minimum is not placed carries the
condition `muster.dev/Waiting`, and up to ten of its gated members PodScheduled=False/NotReadyForScheduling.
In comes an entity whose time to speak has come; out go patches, or nothing where nothing is new.
"""

from typing import NamedTuple

from muster.api.meta import Condition
from muster.framework.groups import Group
from muster.framework.ports import Effect
from muster.scheduling.books import Books
from muster.scheduling.conditions import INITIALLY_SCHEDULED, WAITING, WHOLE, shorten
from muster.scheduling.contradictions import find_contradiction, find_split
from muster.scheduling.members import Cast, EntityKey, Stage, group_entity
from muster.scheduling.metrics import GANGS_STARTED
from muster.scheduling.preparation import describe
from muster.scheduling.queue import Place
from muster.scheduling.standing import count, says_started, tree_has_started
from muster.scheduling.whole import say_counts, whole_condition

NOT_READY = "NotReadyForScheduling"
NOT_READY_MEMBERS_MAX = 10
GROUP_MISSING = "GroupMissing"

# While so many bindings are on the wire, who waits only for those, or for a turn, is not written about: of
# 1,000 gangs of three that came at once, 744 were told so, a write each, and all were bound seconds later.
WAVE_BINDINGS = 256
BINDING, QUEUED = "Binding", "Queued"
VOLUMES = "Volumes"
_OUR_OWN_WORK = (BINDING, QUEUED)

_GATE_REASONS = {"GangScheduling": "MembersMissing", "SchedulingGates": "SchedulingGated"}


class Wait(NamedTuple):
    """What an entity waits for: a word for machines and a sentence for people."""

    reason: str
    message: str


_TURN = Wait(QUEUED, "waits for its turn to be tried")


def find_wait(books: Books, entity: EntityKey) -> Wait | None:
    """What the entity waits for; None when it waits for nothing."""
    cast = books.members.cast(entity)
    entry = books.queue.find(entity)
    if entry is None:
        if volumes := describe(books, entity):
            return Wait(VOLUMES, volumes)
        on_the_wire = cast.count(Stage.ASSUMED)
        if not on_the_wire:
            return _TURN if entity in books.arrivals else None
        return Wait(BINDING, f"waits for {on_the_wire} bindings to be accepted, {cast.accepted_count} are")
    if entry.place is Place.INCOMPLETE:
        return Wait(GROUP_MISSING, f"waits for {title_of(entity)}, which does not exist")
    if entry.place is Place.GATED and entry.gate is not None:
        return Wait(_GATE_REASONS.get(entry.gate.plugin, entry.gate.plugin), entry.gate.message)
    if entry.place is Place.SEARCHING:
        return Wait(
            "Searching",
            "waits for the search of a placement: its members did not fit when tried one after the other",
        )
    if entry.refusal is not None:
        return Wait(entry.refusal.reason, entry.refusal.message)
    return _TURN


def title_of(entity: EntityKey) -> str:
    """The entity as a sentence names it."""
    kind = {"podgroup": "pod group", "compositepodgroup": "composite pod group"}.get(entity.kind, "pod")
    return f"{kind} {entity.key}"


def waiting_condition(wait: Wait) -> Condition:
    """The condition that says it on a group."""
    return Condition(type=WAITING, status="True", reason=wait.reason, message=shorten(wait.message))


def speak(books: Books, entity: EntityKey, now_s: float) -> list[Effect]:
    """Say what the entity waits for, where that is not what its objects say already."""
    cast = books.members.cast(entity)
    wait = find_wait(books, entity)
    effects: list[Effect] = []
    if wait is not None and wait.reason in _OUR_OWN_WORK and len(books.inflight) > WAVE_BINDINGS:
        books.speech.arm(entity, now_s)
        return []
    for leaf in cast.leaves():
        own = group_entity(leaf.group.key) if leaf.group is not None else None
        if leaf.group is not None and own is not None and not books.speech.rests(entity, own, now_s):
            scheduled = say_scheduled(books, leaf, now_s)
            effects += scheduled
            effects += _say_on_group(books, leaf.group, wait, now_s)
            if own in books.gangs.unwritten and not scheduled:
                effects += say_counts(books, own, now_s)
    if wait is not None and wait.reason == VOLUMES:
        effects += _say_on_unready(books, entity, now_s)
    entry = books.queue.find(entity)
    if wait is not None and entry is not None and entry.place in (Place.GATED, Place.INCOMPLETE):
        effects += _say_on_members(books, entity, cast, wait, now_s)
    return effects


def say_scheduled(books: Books, cast: Cast, now_s: float) -> list[Effect]:
    """Say PodGroupInitiallyScheduled=True once the API has accepted the bindings of the minimum.

    A group none of whose placed members is ours is another scheduler's to speak about, and one that
    contradicts itself was not placed by us.
    """
    group = cast.group
    if group is None or cast.accepted_count < group.needed:
        return []
    if says_started(books, group) if group.is_gang else books.conditions.has_been_scheduled(group):
        return []
    if group.is_gang and count(books, cast).bound < group.needed:
        return []  # the node of a binding is gone: it was accepted, and void
    if not any(books.members.is_ours(member.pod) for member in cast.of(Stage.BOUND, Stage.SUCCEEDED)):
        return []
    root = books.root(group_entity(group.key))
    if find_contradiction(root, root.waiting()) is not None:
        return []
    for each in (cast, root):
        has_keys = each.group is not None and each.group.topology_keys
        if has_keys and find_split(each, books.state.snapshot(), books.runner) is not None:
            return []
    # a first start says all there is to say; where the gang had been given up, that is taken back as well,
    # and of a tree that is under way a new leader could not tell that it is
    is_news = books.conditions.of_group(group, WHOLE) is not None or not tree_has_started(books, cast)
    whole = whole_condition(books, cast, starts=True) if is_news else None
    said = [_scheduled()] if whole is None else [_scheduled(), whole]
    patch = books.conditions.patch_group(group, said, remove=[WAITING], now_s=now_s)
    if patch is None:
        return []
    gang = books.gangs.find(group_entity(group.key))
    if group.is_gang and (gang is None or gang.started_s is None):
        books.metrics.count(GANGS_STARTED)
    return [patch]


def insist_scheduled(books: Books, group: Group, now_s: float) -> list[Effect]:
    """Say again what was True and an older write, landing late, has taken back."""
    patch = books.conditions.patch_group(group, [_scheduled()], remove=[WAITING], now_s=now_s)
    return [] if patch is None else [patch]


def _scheduled() -> Condition:
    return Condition(type=INITIALLY_SCHEDULED, status="True", reason="Scheduled", message="")


def _say_on_group(books: Books, group: Group, wait: Wait | None, now_s: float) -> list[Effect]:
    if wait is None or books.conditions.has_been_scheduled(group):
        patch = books.conditions.patch_group(group, (), remove=[WAITING], now_s=now_s)
    else:
        patch = books.conditions.patch_group(group, [waiting_condition(wait)], now_s=now_s)
    return [] if patch is None else [patch]


def _say_on_unready(books: Books, entity: EntityKey, now_s: float) -> list[Effect]:
    """Tell up to ten placed members what keeps them from being bound."""
    effects: list[Effect] = []
    unready = [each for each in books.preparations.of(entity) if not each.status.ok]
    for preparation in unready[:NOT_READY_MEMBERS_MAX]:
        member = books.members.find(preparation.key)
        if member is not None:
            text = f"waits on node {preparation.node_name} for {preparation.status.message}"
            patch = books.conditions.patch_pod(member.pod, reason=NOT_READY, message=text, now_s=now_s)
            effects += [] if patch is None else [patch]
    return effects


def _say_on_members(books: Books, entity: EntityKey, cast: Cast, wait: Wait, now_s: float) -> list[Effect]:
    """Tell up to ten members; those with scheduling gates have been told by the API server."""
    joint = " " if wait.message.startswith("waits ") else ": "
    who = "" if wait.reason == GROUP_MISSING or cast.group is None else title_of(entity) + joint
    text = who + wait.message
    effects: list[Effect] = []
    told = 0
    for member in cast.waiting():
        if told == NOT_READY_MEMBERS_MAX:
            break
        if member.pod.spec.scheduling_gates:
            continue
        told += 1
        patch = books.conditions.patch_pod(member.pod, reason=NOT_READY, message=text, now_s=now_s)
        if patch is not None:
            effects.append(patch)
    return effects
