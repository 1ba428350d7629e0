"""A gang from decided to started, or released: the binding of a group as one transaction.

The API binds one pod at a time, so a gang is *under way* until its minimum was bound at the same time.  One
that is not whole within its `bind-timeout` is released: whoever it has bound is marked and deleted, and it
waits a while before it is tried again.  After the start the group's `on-member-loss` says what becomes of it
when members are lost.  Nothing here is written down: members that are bound under a condition that is not
True are the record, and a new scheduler finds the same.

In comes a gang that something happened to; out go evictions, conditions and events.  Before: `tending.py`;
next: `gangs.py`, `standing.py`, `whole.py`.
"""

import math
from collections.abc import Iterable

from muster.api.meta import Condition
from muster.api.times import format_seconds, parse_seconds
from muster.framework.groups import Group, ObjectKey
from muster.framework.ports import Effect, EvictFailed, EvictPod, ObjectReference, RecordEvent
from muster.framework.status import Status, Verdict
from muster.scheduling.books import Books
from muster.scheduling.conditions import POD_SCHEDULED, WHOLE, shorten
from muster.scheduling.gangs import RELEASE, RELEASE_BACKOFF_S_MAX, RESTART, Gang
from muster.scheduling.kept import give_up_rooms
from muster.scheduling.members import Cast, EntityKey, Member, Stage, group_entity
from muster.scheduling.metrics import GANGS_RELEASED, MEMBER_LOSSES
from muster.scheduling.standing import (
    MEMBERS_LOST,
    READY,
    RELEASED,
    RELEASING,
    RESTARTING,
    Counts,
    bind_timeout_s,
    count,
    has_started,
    is_ours,
    tree_has_started,
)
from muster.scheduling.tally import is_ready
from muster.scheduling.whole import CURE, see_whole

DISRUPTION_TARGET = "DisruptionTarget"
RELEASED_BY_US = "ReleasedByScheduler"
ASK_AGAIN_S = 5.0  # after a deletion was refused

BIND_TIMEOUT, READY_TIMEOUT, MEMBER_LOSS = "bind-timeout", "ready-timeout", "member-loss"


def find_hold(books: Books, cast: Cast, now_s: float) -> Status | None:
    """Why nobody of this tree may be placed just now, though all its members are there."""
    for leaf in cast.leaves():
        gang = books.gangs.find(group_entity(leaf.group.key)) if leaf.group is not None else None
        if gang is None or leaf.group is None:
            continue
        name = f"gang {leaf.group.key}"
        if gang.ending:
            left = len(_holding(books, leaf))
            word = RELEASING if gang.ending == RELEASE else RESTARTING
            return _hold(word, f"{name} waits until {left} members that are being released are gone")
        if now_s < gang.not_before_s:
            at = format_seconds(gang.not_before_s)
            because = f" because {gang.cause}" if gang.cause else ""
            return _hold(RELEASED, f"{name} was released{because}; it is tried again at {at}")
        if gang.is_lost and leaf.group.terms.on_member_loss == "hold":
            return _hold(
                MEMBERS_LOST,
                f"{name} has lost members and muster.dev/on-member-loss is hold: nobody is placed until that "
                f"is changed",
            )
    return None


def is_short(books: Books, cast: Cast) -> bool:
    """Whether some of a gang hold room while its minimum is not placed: it goes before others."""
    return any(
        leaf.group is not None and leaf.group.is_gang and leaf.is_holding and leaf.missing_count > 0
        for leaf in cast.leaves()
    )


def fail_release(books: Books, event: EvictFailed, now_s: float) -> list[Effect]:
    """A member that was to be released stays; it is asked again after a while."""
    for entity, gang in books.gangs:
        if event.uid in gang.asked:
            gang.asked[event.uid] = now_s + ASK_AGAIN_S
            books.touch(entity)
            break
    return []


def end_gang(
    books: Books, leaf: Cast, group: Group, *, ending: str, kind: str, cause: str, now_s: float
) -> list[Effect]:
    """Give a gang up whole: to be released, or restarted at once (`ending`).

    `kind` is the cause for machines, `cause` for people.  Pods that nobody would make again stay unless the
    group says otherwise.
    """
    gang = books.gangs.make(group_entity(group.key))
    if gang.ending:
        return []
    going = [member for member in _holding(books, leaf) if not _stays(books, group, member)]
    effects: list[Effect] = []
    if len(going) < len(_holding(books, leaf)) and not gang.has_bare:
        gang.has_bare = True
        text = _half_held(books, leaf, group, cause)
        effects.append(_record(group, _holding(books, leaf), "GangHalfHeld", text))
    if going:
        gang.ending, gang.cause = ending, cause
        books.touch(group_entity(group.key))  # who waits of it is held before anybody is decided on again
        give_up_rooms(books, group_entity(group.key), now_s)
        if ending == RELEASE:
            gang.release(now_s)
        books.metrics.count(GANGS_RELEASED, cause=kind)
        text = f"{len(going)} bound members are deleted: {cause}"
        effects.append(_record(group, going, "GangReleased", text))
        effects += _ask(gang, group, going, now_s)
    return effects + see_whole(books, leaf, now_s)


# ── one gang ─────────────────────────────────────────────────────────────────────────────────────


def tend_gang(books: Books, leaf: Cast, group: Group, now_s: float) -> list[Effect]:
    """See how far a gang is, and do what is due."""
    entity = group_entity(group.key)
    gang = books.gangs.find(entity)
    if gang is None:
        was_bound = books.conditions.has_been_scheduled(group) or books.conditions.of_group(group, WHOLE)
        if not leaf.is_holding and not was_bound:
            return []
        if not is_ours(books, leaf):
            return []
        gang = _restore(books, entity, leaf, group, now_s)
    counts = count(books, leaf)
    effects: list[Effect] = []
    if gang.ending:
        effects += go_on_ending(books, entity, gang, leaf, group, now_s)
    elif has_started(books, leaf):
        effects += _tend_started(books, entity, gang, leaf, group, counts, now_s)
    elif counts.held:
        effects += _tend_under_way(books, entity, gang, leaf, group, counts, now_s)
    else:
        gang.since_s, gang.has_bare, gang.is_lost = None, False, False
        give_up_rooms(books, entity, now_s)
        books.gangs.look_at(entity, None)
    if gang.not_before_s > now_s:  # who waits after a release is tried again then, however far the gang is
        books.gangs.look_by(entity, gang.not_before_s)
    return effects + see_whole(books, leaf, now_s)


def _restore(books: Books, entity: EntityKey, leaf: Cast, group: Group, now_s: float) -> Gang:
    """What is to be remembered of a gang that another scheduler has left, by what it has said on it."""
    gang = books.gangs.make(entity)
    said = books.conditions.of_group(group, WHOLE)
    if said is None:
        return gang
    gang.is_lost = said.reason == MEMBERS_LOST
    gang.was_ready = said.reason == READY
    again_s = gang.read_releases(said.message or "")
    has_run = (
        said.status == "True" and now_s - parse_seconds(said.last_transition_time) > RELEASE_BACKOFF_S_MAX
    )
    if has_run:
        gang.releases = 0
    if said.reason in (RELEASING, RESTARTING):
        gang.cause = "it could not be kept whole"
    if leaf.is_holding:
        if said.reason in (RELEASING, RESTARTING):
            gang.ending = RELEASE if said.reason == RELEASING else RESTART
    elif said.reason in (RELEASING, RELEASED):
        gang.releases = max(gang.releases, 1)
        gang.not_before_s = min(again_s or math.inf, now_s + gang.backoff_s)
    return gang


def _tend_under_way(
    books: Books, entity: EntityKey, gang: Gang, leaf: Cast, group: Group, counts: Counts, now_s: float
) -> list[Effect]:
    """Wait for the rest, or give up."""
    gang.is_lost = False
    if not is_late(books, entity, gang, leaf, group, now_s):
        return []
    within = f"{bind_timeout_s(books, leaf):.0f} s"
    cause = f"it was not whole within {within}: {counts.bound} of {counts.needed} members were bound"
    return end_gang(books, leaf, group, ending=RELEASE, kind=BIND_TIMEOUT, cause=cause, now_s=now_s)


def is_late(books: Books, entity: EntityKey, gang: Gang, cast: Cast, group: Group, now_s: float) -> bool:
    """Whether a gang or tree holds room longer than it may before its start; else it is looked at then."""
    if gang.since_s is None:
        gang.since_s = _held_since(cast, group, now_s)
    due_s = gang.since_s + bind_timeout_s(books, cast)
    books.gangs.look_at(entity, due_s if now_s < due_s else None)
    return now_s >= due_s


def _tend_started(
    books: Books, entity: EntityKey, gang: Gang, leaf: Cast, group: Group, counts: Counts, now_s: float
) -> list[Effect]:
    """See whether members were lost, and whether it has become ready in time."""
    if gang.started_s is None:  # just now, if we have seen it under way
        gang.started_s = now_s if gang.since_s is not None else _held_since(leaf, group, now_s)
    gang.since_s = None
    give_up_rooms(books, entity, now_s)
    effects: list[Effect] = []
    if not counts.held and not counts.succeeded and leaf.stages[Stage.WAITING]:
        gang.end_run(now_s)  # it begins anew
        gang.is_lost = gang.was_ready = gang.has_bare = False
        books.gangs.look_at(entity, None)
        return []
    if counts.bound >= counts.needed:
        gang.whole_generation = group.generation
    if counts.bound + counts.assumed >= counts.needed:
        gang.is_lost = False
    elif not gang.is_lost and (counts.held or leaf.stages[Stage.WAITING]) and _is_loss(books, gang, group):
        gang.is_lost = True
        books.metrics.count(MEMBER_LOSSES, policy=group.terms.on_member_loss)
        text = f"{counts.bound} of {counts.needed} members are left"
        effects.append(_record(group, _anybody(leaf), "GangMembersLost", text))
    if gang.is_lost and counts.held:
        cause = f"members were lost: {counts.bound} of {counts.needed} were left"
        policy = group.terms.on_member_loss
        if policy in (RESTART, RELEASE):
            effects += end_gang(books, leaf, group, ending=policy, kind=MEMBER_LOSS, cause=cause, now_s=now_s)
    if not gang.ending:
        effects += _tend_readiness(books, entity, gang, leaf, group, counts, now_s)
    gang.has_bare = gang.has_bare and bool(counts.held) and _is_given_up(books, gang, leaf, group)
    return effects


def _is_given_up(books: Books, gang: Gang, leaf: Cast, group: Group) -> bool:
    """Whether a gang that has started would be deleted if it were not for pods without a controller."""
    if not tree_has_started(books, leaf):
        return True
    is_unready = group.terms.ready_timeout_s is not None and not gang.was_ready
    return group.terms.on_member_loss in (RESTART, RELEASE) and (gang.is_lost or is_unready)


def _is_loss(books: Books, gang: Gang, group: Group) -> bool:
    """Whether fewer members are bound because some were lost, not because the spec asks for more now."""
    if gang.whole_generation is not None:
        return gang.whole_generation >= group.generation
    said = books.conditions.of_group(group, WHOLE)
    return said is None or said.status != "True" or (said.observed_generation or 0) >= group.generation


def _tend_readiness(
    books: Books, entity: EntityKey, gang: Gang, leaf: Cast, group: Group, counts: Counts, now_s: float
) -> list[Effect]:
    """Apply the same policy to a gang that does not become ready; who is replaced are those not ready.

    One that is to be restarted waits like a released one: nothing says that it will be ready the next time.
    """
    timeout_s = group.terms.ready_timeout_s
    if timeout_s is None or gang.was_ready or gang.started_s is None:
        books.gangs.look_at(entity, None)
        return []
    if counts.ready >= counts.needed:
        gang.was_ready = True
        books.gangs.look_at(entity, None)
        return []
    due_s = gang.started_s + timeout_s
    if now_s < due_s:
        books.gangs.look_at(entity, due_s)
        return []
    cause = f"{counts.ready} of {counts.needed} members were ready within {timeout_s:.0f} s"
    gang.started_s = now_s  # the next patience begins
    books.gangs.look_at(entity, now_s + timeout_s)
    if group.terms.on_member_loss in (RESTART, RELEASE):
        return end_gang(books, leaf, group, ending=RELEASE, kind=READY_TIMEOUT, cause=cause, now_s=now_s)
    if group.terms.on_member_loss == "hold":
        return []
    late = [
        member
        for member in leaf.stages[Stage.BOUND].values()
        if not _stays(books, group, member) and not is_ready(member.pod) and not member.pod.is_terminating
    ]
    if not late:
        return []
    books.metrics.count(GANGS_RELEASED, cause=READY_TIMEOUT)
    text = f"{len(late)} members that are not ready are deleted: {cause}"
    return [_record(group, late, "GangReleased", text), *_evictions(group, late, cause, now_s)]


# ── the end of one ───────────────────────────────────────────────────────────────────────────────


def go_on_ending(
    books: Books, entity: EntityKey, gang: Gang, leaf: Cast, group: Group, now_s: float
) -> list[Effect]:
    """Ask those to leave that have not been asked, or refused a while ago; when all are gone it is over."""
    left = [member for member in _holding(books, leaf) if not _stays(books, group, member)]
    if left:
        effects = _ask(gang, group, left, now_s)
        staying = [member.pod.metadata.uid for member in left if not member.pod.is_terminating]
        again_s = min((gang.asked[uid] for uid in staying), default=math.inf)
        books.gangs.look_at(entity, again_s if again_s < math.inf else None)
        return effects
    if gang.ending == RELEASE:
        gang.not_before_s = now_s + gang.backoff_s
        books.gangs.look_at(entity, gang.not_before_s)
    gang.ending = ""
    gang.asked.clear()
    gang.is_lost = gang.was_ready = False
    gang.started_s = None
    gang.since_s = now_s if _holding(books, leaf) else None  # bare pods have another while
    return []


def _ask(gang: Gang, group: Group, going: Iterable[Member], now_s: float) -> list[Effect]:
    new = [
        member
        for member in going
        if gang.asked.get(member.pod.metadata.uid, now_s) <= now_s and not member.pod.is_terminating
    ]
    for member in new:
        gang.asked[member.pod.metadata.uid] = math.inf
    return _evictions(group, new, gang.cause, now_s)


def _evictions(group: Group, going: Iterable[Member], cause: str, now_s: float) -> list[Effect]:
    return [
        EvictPod(
            member.key,
            member.pod.metadata.uid,
            Condition(
                type=DISRUPTION_TARGET,
                status="True",
                reason=RELEASED_BY_US,
                message=shorten(f"{member.pod.spec.scheduler_name}: gang {group.key} is released: {cause}"),
                last_transition_time=format_seconds(now_s),
                observed_generation=member.pod.metadata.generation,
            ),
        )
        for member in going
    ]


def _holding(books: Books, leaf: Cast) -> list[Member]:
    """Members that are bound or on the wire; one whose volumes are being made is not."""
    on_the_wire = [m for m in leaf.of(Stage.ASSUMED) if books.inflight.find(m.pod.metadata.uid) is not None]
    return [*leaf.of(Stage.BOUND), *on_the_wire]


def _stays(books: Books, group: Group, member: Member) -> bool:
    """Whether nobody would make the pod again and its owner has not said that it may be deleted, or it is
    another scheduler's."""
    if not books.members.is_ours(member.pod):
        return True
    owners = member.pod.metadata.owner_references or ()
    return not group.terms.releases_bare_pods and not any(owner.controller for owner in owners)


def _half_held(books: Books, leaf: Cast, group: Group, cause: str) -> str:
    bare = sum(_stays(books, group, member) for member in _holding(books, leaf))
    cure = f"see the condition {WHOLE} for a cure" if group.is_gang else CURE
    return f"{bare} pods without a controller go on holding room: {cause}; {cure}"


# ── facts ────────────────────────────────────────────────────────────────────────────────────────


def _held_since(cast: Cast, group: Group, now_s: float) -> float:
    """When the first member that holds room now was bound, by what the API says on it."""
    times = [
        parse_seconds(condition.last_transition_time)
        for member in cast.of(Stage.BOUND)
        if (condition := member.pod.find_condition(POD_SCHEDULED)) is not None
        and condition.status == "True"
        and condition.last_transition_time
    ]
    return max(min([now_s, *times]), min(group.created_s, now_s))


def _anybody(leaf: Cast) -> list[Member]:
    return list(leaf.of(Stage.BOUND, Stage.ASSUMED, Stage.WAITING, Stage.FAILED, Stage.SUCCEEDED))


def _hold(reason: str, message: str) -> Status:
    return Status(Verdict.UNRESOLVABLE, message, reason)


def _record(group: Group, members: list[Member], reason: str, note: str) -> RecordEvent:
    """A warning on the group, in the name of its members' scheduler."""
    return RecordEvent(
        regarding=ObjectReference("scheduling.k8s.io/v1beta1", "PodGroup", ObjectKey(*group.key), group.uid),
        type="Warning",
        reason=reason,
        action="Releasing",
        note=shorten(f"gang {group.key}: {note}"),
        scheduler_name=members[0].pod.spec.scheduler_name if members else "muster",
    )
