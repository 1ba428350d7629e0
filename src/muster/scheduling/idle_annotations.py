"""Annotations of pods that say nothing there: they hold nobody, and each group is told of them once.

In come pods with what their dialect found (`PodSeen.idle`); it waits on the cast of their group until that
is reviewed, and goes out as a warning on the first pod that carries it.  Next: `review.py`.
"""

from muster.framework.groups import UnsupportedField, annotation_path
from muster.framework.ports import Effect, ObjectReference, RecordEvent
from muster.scheduling.books import Books
from muster.scheduling.conditions import shorten
from muster.scheduling.contradictions import LEVELS_MAX
from muster.scheduling.members import Cast, Idle, Member, Seen, Stage

ANNOTATION_IGNORED = "AnnotationIgnored"
PATHS_MAX = 16  # of a group, though each of its pods may carry others


def note_idle(books: Books, seen: Seen, fields: tuple[UnsupportedField, ...]) -> None:
    """Have its group told of what none of its pods carried before, if it waits or was written on just now."""
    member, old = seen.member, seen.old_pod
    waits = seen.after is Stage.WAITING
    is_written_on = old is not None and old.metadata.annotations != member.pod.metadata.annotations
    if not books.members.is_ours(member.pod) or not (waits or is_written_on):
        return
    cast = books.members.cast(member.entity)
    news = [field for field in fields if field.path not in cast.idle_paths]
    news = news[: PATHS_MAX - len(cast.idle_paths)]
    if news:
        cast.idle_paths |= {field.path for field in news}
        cast.untold += (Idle(member, tuple(news), waits),)
        books.touch(member.entity)


def tell_idle(books: Books, cast: Cast) -> list[Effect]:
    """Warn of what was noted; of pods whose groups are not all known later, for one may read it as a rank."""
    rank_key = _rank_key(books, cast) if cast.untold[0].member.group is not None else ""
    if rank_key is None:
        return []
    noted, cast.untold = cast.untold, ()
    return [
        _warn(idle.member, field)
        for idle in noted
        if not (idle.waited and idle.member.node_name)  # who led before us has placed it, and told
        for field in idle.fields
        if field.path != annotation_path(rank_key)
    ]


def _rank_key(books: Books, cast: Cast) -> str | None:
    """What a group or one above it reads as ranks, "" if none does; None while one of them is not known."""
    key = ""
    for _ in range(LEVELS_MAX):  # a ring has no end
        if cast.group is None:
            return None
        key = key or cast.group.rank_key
        if cast.parent is None:
            break
        cast = books.members.cast(cast.parent)
    return key


def _warn(member: Member, field: UnsupportedField) -> RecordEvent:
    return RecordEvent(
        regarding=ObjectReference("v1", "Pod", member.key, member.pod.metadata.uid),
        type="Warning",
        reason=ANNOTATION_IGNORED,
        action="Scheduling",
        note=shorten(f"{field.path}: {field.why}"),
        scheduler_name=member.pod.spec.scheduler_name,
    )
