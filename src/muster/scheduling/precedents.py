"""Telling those who were refused because others who asked the same had just been refused.

They have not been tried: the refusal of the others stands for them (`sleepers.py`).  It is told in the same
words, one entity a cycle, when nobody waits to be tried or the first has waited for a second.  Of 10,000
impossible gangs each so costs 0.2 ms, where a try costs 1.4.  In come the books; out go effects.
"""

from muster.framework.ports import Effect
from muster.scheduling.binding import refuse_group, refuse_members
from muster.scheduling.books import Books
from muster.scheduling.metrics import ALGORITHM_SECONDS, ATTEMPT_SECONDS, ATTEMPTS, POD_ATTEMPTS

UNTOLD_S_MAX = 1.0


def tell_next(books: Books, now_s: float, *, overdue: bool = False) -> list[Effect]:
    """Tell the first who was refused with others; `overdue`: only if it has waited for long."""
    since_s = books.queue.untold_since_s()
    if since_s is None or (overdue and now_s < since_s + UNTOLD_S_MAX):
        return []
    started_s = books.runner.stopwatch()
    entry = books.queue.take_untold()
    if entry is None or entry.refusal is None:
        return []
    refusal, cast = entry.refusal, books.members.cast(entry.key)
    algorithm_s = books.runner.stopwatch() - started_s
    waiting = cast.waiting()
    others = refusal.message if cast.group is None else refusal.plain
    texts = refusal.own_texts
    own = {member.key: texts[index] for index, member in enumerate(waiting) if index in texts}
    effects = refuse_members(books, waiting, own, refusal.reason, others, now_s)
    if cast.group is not None and waiting:
        effects += refuse_group(
            books, waiting[0], reason=refusal.reason, message=refusal.message, now_s=now_s
        )
    profile = waiting[0].pod.spec.scheduler_name if waiting else ""
    if cast.group is None:
        books.metrics.count(POD_ATTEMPTS, result="unschedulable", profile=profile)
        return effects
    seconds = books.runner.stopwatch() - started_s
    books.metrics.count(ATTEMPTS, result="unschedulable", profile=profile)
    books.metrics.observe(ATTEMPT_SECONDS, seconds, result="unschedulable", profile=profile)
    books.metrics.observe(ALGORITHM_SECONDS, algorithm_s)
    return effects
