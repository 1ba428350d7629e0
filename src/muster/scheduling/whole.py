"""The condition `muster.dev/Whole`: how many members of a gang are created, bound and running, at all times.

Stock's condition turns True once and then says nothing of what becomes of the gang.  This one stands on a
gang from its first bound member on.  It is written at once where its reason changes in a way that somebody
must know of, five seconds after it has become untrue otherwise, else half a minute after (that its minimum is
bound is said by stock's), and where only numbers change every half minute at most.  In come the books and a
gang; out goes a patch, or nothing where nothing is new.
"""

from collections.abc import Iterator

from muster.api.meta import Condition
from muster.api.times import format_seconds
from muster.framework.groups import explain_missing
from muster.framework.ports import Effect
from muster.scheduling import standing
from muster.scheduling.books import Books
from muster.scheduling.conditions import WHOLE, shorten
from muster.scheduling.gangs import RELEASE, Gang
from muster.scheduling.members import Cast, EntityKey, Seen, Stage, group_entity
from muster.scheduling.standing import Counts

CORRECTED_S = 5.0  # for what is untrue: leaders that last for half a minute each would never come to say it
QUIET_S = 30.0  # by then most pods run: their start costs no second write
COUNT_AGAIN_S = 30.0

_AT_ONCE = frozenset(
    {
        standing.HALF_HELD,
        standing.RELEASING,
        standing.RELEASED,
        standing.RESTARTING,
        standing.MEMBERS_LOST,
        standing.NOTHING_BOUND,
        standing.READY,
    }
)
_TRUE = frozenset({standing.BOUND, standing.RUNNING, standing.READY})
_LACKING = frozenset(
    {standing.UNDER_WAY, standing.HALF_HELD, standing.MEMBERS_LOST}
)  # more members would help
CURE = (
    "pods without a controller are not deleted, for nobody would make them again: delete them yourself, "
    'create what is missing, or set the annotation muster.dev/release-bare-pods: "true"'
)


def whole_condition(books: Books, leaf: Cast, *, starts: bool = False) -> Condition | None:
    """The condition as it ought to be; None while nothing of the gang was ever bound, or it is not ours.

    `starts`: its minimum is bound at this very moment, which the objects do not say yet.
    """
    group = leaf.group
    if group is None or not group.is_gang:
        return None
    said = books.conditions.of_group(group, WHOLE)
    counts = standing.count(books, leaf)
    if said is None and not counts.bound and not books.conditions.has_been_scheduled(group):
        return None
    if not standing.is_ours(books, leaf):
        return None
    gang = books.gangs.find(group_entity(group.key))
    starts = starts and standing.tree_has_started(books, leaf)
    reason = standing.BOUND if starts else _reason(books, leaf, gang, counts, said)
    if starts and counts.running + counts.succeeded >= counts.needed:
        reason = standing.RUNNING
    if not reason:
        return None
    return Condition(
        type=WHOLE,
        status="True" if reason in _TRUE else "False",
        reason=reason,
        message=shorten("; ".join(filter(None, _clauses(books, leaf, gang, reason, counts)))),
        observed_generation=group.generation,
    )


def say_counts(books: Books, entity: EntityKey, now_s: float) -> list[Effect]:
    """Say how far the gang is, where that is news and not said too lately."""
    leaf = books.members.cast(entity)
    if leaf.group is None:
        return []
    wanted = whole_condition(books, leaf)
    if wanted is None:
        return []
    known = books.conditions.of_group(leaf.group, WHOLE)
    again_s = books.gangs.counted_s(entity) + COUNT_AGAIN_S
    if known is not None and known.reason == wanted.reason and now_s < again_s:
        if known.message != wanted.message:
            books.gangs.count_at(entity, again_s)
        return []
    return write_whole(books, leaf, wanted, now_s)


def write_whole(books: Books, leaf: Cast, wanted: Condition, now_s: float) -> list[Effect]:
    """The patch that makes the condition so."""
    group = leaf.group
    assert group is not None
    patch = books.conditions.patch_group(group, [wanted], now_s=now_s)
    if patch is None:
        return []
    books.gangs.note_counted(group_entity(group.key), now_s)
    return [patch]


def see_whole(books: Books, leaf: Cast, now_s: float) -> list[Effect]:
    """Say at once what must be known at once, and arrange that the rest is said soon."""
    group = leaf.group
    wanted = whole_condition(books, leaf)
    if group is None or wanted is None:
        return []
    known = books.conditions.of_group(group, WHOLE)
    if known is not None and (known.reason, known.message) == (wanted.reason, wanted.message):
        return []
    is_other = known is None or known.reason != wanted.reason
    is_over = wanted.reason == standing.NOTHING_BOUND and not leaf.stages[Stage.WAITING]
    if is_other and wanted.reason in _AT_ONCE and not is_over:
        return write_whole(books, leaf, wanted, now_s)
    wait_s = QUIET_S if is_other else COUNT_AGAIN_S
    if known is not None and known.status != wanted.status and wanted.reason != standing.FINISHED:
        wait_s = CORRECTED_S
    books.gangs.count_at(group_entity(group.key), now_s + wait_s)
    return []


def note_progress(books: Books, seen: Seen, now_s: float) -> None:
    """A bound member may have begun to run, or be ready: its gang is counted in a while."""
    member, old = seen.member, seen.old_pod
    if seen.after is not Stage.BOUND or member.group is None or old is None:
        return
    status = member.pod.status
    is_same = status.phase == old.status.phase
    if is_same and status.conditions == old.status.conditions:
        return
    group = books.members.cast(member.entity).group
    if group is None or not group.is_gang:
        return
    if not is_same:
        books.gangs.count_at(member.entity, now_s + QUIET_S)
    if group.terms.ready_timeout_s is not None:
        books.touch(member.entity)


def _reason(books: Books, leaf: Cast, gang: Gang | None, counts: Counts, said: Condition | None) -> str:
    """One word for how it is."""
    if gang is not None and gang.ending:
        return standing.RELEASING if gang.ending == RELEASE else standing.RESTARTING
    if not standing.has_started(books, leaf):
        if gang is not None and gang.has_bare and counts.held:
            return standing.HALF_HELD
        if counts.held:
            return standing.UNDER_WAY
        reason = said.reason if said is not None else None
        if reason in (standing.RELEASING, standing.RELEASED):
            return standing.RELEASED if gang is not None and gang.cause else ""
        return standing.RESTARTING if reason == standing.RESTARTING else standing.NOTHING_BOUND
    if (counts.held or counts.succeeded) and not standing.tree_has_started(books, leaf):
        return standing.HALF_HELD if gang is not None and gang.has_bare else standing.UNDER_WAY
    if counts.bound < counts.needed:
        if not counts.held and not leaf.stages[Stage.WAITING]:
            # it is over: the pods of a finished job are cleared away
            return standing.FINISHED if counts.succeeded else standing.NOTHING_BOUND
        if not counts.held and not counts.succeeded:
            return standing.NOTHING_BOUND  # it begins anew
        return standing.MEMBERS_LOST if gang is not None and gang.is_lost else standing.MIN_COUNT_RAISED
    if gang is not None and gang.was_ready:
        return standing.READY
    return standing.RUNNING if counts.running + counts.succeeded >= counts.needed else standing.BOUND


def _clauses(books: Books, leaf: Cast, gang: Gang | None, reason: str, counts: Counts) -> Iterator[str]:
    """All that is said in this state."""
    yield _numbers(counts)
    if gang is not None:
        yield gang.write_releases(with_time=reason == standing.RELEASED)
    yield _words(books, leaf, gang, reason)
    if reason in _LACKING and counts.created < counts.needed:
        known = (member.pod for member in leaf.of(Stage.BOUND, Stage.ASSUMED, Stage.WAITING))
        yield explain_missing(counts.needed - counts.created, known)


def _numbers(counts: Counts) -> str:
    done = f", {counts.succeeded} succeeded" if counts.succeeded else ""
    running = f"{counts.running} running{done}"
    return f"{counts.created} created, {counts.bound} bound, {running} of {counts.needed} needed"


def _words(books: Books, leaf: Cast, gang: Gang | None, reason: str) -> str:
    """What else is to be said in this state."""
    terms = leaf.group.terms if leaf.group is not None else None
    if terms is None:
        return ""
    if reason == standing.HALF_HELD:
        return f"half-held for more than {standing.bind_timeout_s(books, leaf):.0f} s; {CURE}"
    if reason == standing.UNDER_WAY:
        return _deadline(books, leaf, gang)
    if reason in (standing.RELEASING, standing.RESTARTING) and gang is not None:
        return gang.cause
    if reason == standing.RELEASED and gang is not None and gang.cause:
        return f"the last because {gang.cause}"
    stays = CURE if gang is not None and gang.has_bare else ""
    if reason == standing.MEMBERS_LOST:
        return "; ".join(filter(None, (f"muster.dev/on-member-loss is {terms.on_member_loss}", stays)))
    return stays


def _deadline(books: Books, leaf: Cast, gang: Gang | None) -> str:
    """By when a gang under way is whole or released; one that is whole itself waits for its tree."""
    if gang is not None and gang.since_s is not None:
        return (
            f"released if not whole by {format_seconds(gang.since_s + standing.bind_timeout_s(books, leaf))}"
        )
    if leaf.parent is None:
        return ""
    root = books.members.root_of(leaf.parent)
    tree = books.gangs.find(root)
    if tree is None or tree.since_s is None:
        return ""
    by_s = tree.since_s + standing.bind_timeout_s(books, books.members.cast(root))
    return f"released if composite group {root.key} is not whole by {format_seconds(by_s)}"
