"""Where an entity belongs after something about it changed: gated, incomplete, active, or nowhere.

In come the entities touched since the last cycle; the queue is brought up to date and what became sayable
is said.  Newcomers wait until their turn to be tried is near (`arrivals.py`).  Next: `queue.py`.
"""

from collections.abc import Hashable, Iterable
from operator import itemgetter

from muster.api.times import parse_seconds
from muster.base.errors import PluginError
from muster.framework.events import Change, Rejected
from muster.framework.groups import Subgroup
from muster.framework.ports import Effect
from muster.scheduling.arrivals import Arrival
from muster.scheduling.asks import is_untouched, priority_of
from muster.scheduling.books import Books
from muster.scheduling.conditions import WAITING, WHOLE
from muster.scheduling.contradictions import find_fault
from muster.scheduling.idle_annotations import tell_idle
from muster.scheduling.members import Cast, EntityKey, Stage
from muster.scheduling.queue import Place
from muster.scheduling.sleepers import Refusal
from muster.scheduling.tending import tend_gangs
from muster.scheduling.transaction import find_hold, is_short
from muster.scheduling.waiting import say_scheduled

_NEVER_S = float("inf")

LOOKS_PER_STEP_MAX = 256  # newcomers; who binds and who decides is not kept waiting by thousands of them
LOOKS_ASIDE_PER_STEP = 4  # of those who would be refused with others, a second after they came
ASIDE_S_MAX = 1.0


def review_touched(books: Books, now_s: float, *, restored: bool = False) -> list[Effect]:
    """Review every touched entity, those complete first first, and newcomers until one is there to be tried.

    `restored`: everything was just listed, so that who could have been tried first is told by the objects'
    times.
    """
    touched = _roots(books, now_s)
    effects: list[Effect] = []
    for entity, cast, completed_s in _in_order(books, touched, by_time=restored):
        wake = touched[entity]
        queued_s = min(now_s, completed_s) if restored else None
        arrival = books.arrivals.take(entity)
        if arrival is not None:
            effects += _look_at(books, arrival, now_s)
        elif completed_s < _NEVER_S and wake is not None and _is_newcomer(books, entity, cast):
            came_s = now_s if queued_s is None else queued_s
            turn, rank = books.queue.take_turn(entity, priority_of(cast), came_s)
            books.arrivals.put(Arrival(rank, turn, entity, wake, came_s, now_s))
            books.speech.arm(entity, now_s)
        else:
            effects += _review(books, entity, wake, queued_s, now_s)
    return effects + _look_at_newcomers(books, now_s)


def _in_order(
    books: Books, touched: Iterable[EntityKey], *, by_time: bool
) -> list[tuple[EntityKey, Cast, float]]:
    """The entities with their casts in the order in which they had all they need, and when that was."""
    casts = [(entity, books.members.cast(entity)) for entity in touched]
    if len(casts) == 1 and not by_time and not _is_newcomer(books, *casts[0]):
        return [(*casts[0], _NEVER_S)]  # of a gang of thousands it is a sort, at every pod that was bound
    completed = [(_completed(cast, by_time=by_time), entity, cast) for entity, cast in casts]
    completed.sort(key=itemgetter(0))
    return [(entity, cast, key[0]) for key, entity, cast in completed]


def _is_newcomer(books: Books, entity: EntityKey, cast: Cast) -> bool:
    """Whether nothing is to be done about it but to let it be tried, if it may."""
    group = cast.group
    if cast.is_composite or cast.parent is not None or (group is None and entity.kind != "pod"):
        return False
    if books.queue.remembers(entity) or books.gangs.find(entity) is not None or not is_untouched(cast):
        return False
    if group is None or books.conditions.says_nothing_of(group):
        return True
    return not (books.conditions.has_been_scheduled(group) or books.conditions.of_group(group, WHOLE))


def _look_at_newcomers(books: Books, now_s: float) -> list[Effect]:
    """Review those whose turn is before all that may be tried; who would be refused untried is set aside.

    Those have their turn, one a step, when nobody is to be tried, and some a step when a second is over.
    """
    effects: list[Effect] = []
    line, queue = books.arrivals, books.queue
    for ask in queue.take_reopened():
        line.reopen(ask)
    are_refused: dict[Hashable, bool] = {}
    for _ in range(LOOKS_PER_STEP_MAX):
        first = line.first()
        if first is None or queue.is_ahead_of(first.rank):
            break
        ask = books.ask_of(first.entity) if queue.knows_asks else None
        if ask not in are_refused:
            are_refused[ask] = ask is not None and queue.is_refused(first.entity, ask, now_s)
        if are_refused[ask]:
            line.set_aside(first, ask)
        else:
            effects += _look_at(books, first, now_s)
    for _ in range(LOOKS_ASIDE_PER_STEP):
        aside = line.first_aside()
        is_idle = not queue.has_active and line.first() is None
        if aside is None or not (is_idle or now_s >= aside.since_s + ASIDE_S_MAX):
            break
        effects += _look_at(books, aside, now_s)
    return effects


def _look_at(books: Books, arrival: Arrival, now_s: float) -> list[Effect]:
    books.arrivals.take(arrival.entity)
    books.queue.keep_turn(arrival.entity, arrival.turn, arrival.queued_s)
    return _review(books, arrival.entity, arrival.wake, arrival.queued_s, now_s)


def _roots(books: Books, now_s: float) -> dict[EntityKey, Change | None]:
    """What was touched, by the root it belongs to now; who is no root has no place in the queue."""
    touched, books.touched = books.touched, {}
    roots: dict[EntityKey, Change | None] = {}
    for entity, wake in touched.items():
        root = books.members.root_of(entity)
        if root != entity:
            books.forget(entity, now_s)
        roots[root] = wake or roots.get(root)
    return roots


def _review(
    books: Books, entity: EntityKey, wake: Change | None, queued_s: float | None, now_s: float
) -> list[Effect]:
    cast = books.members.cast(entity)
    if cast.is_empty:
        books.forget(entity, now_s)
        books.gangs.lose(entity)
        return []
    effects: list[Effect] = []
    for leaf in cast.leaves():
        effects += say_scheduled(books, leaf, now_s)
        if leaf.untold:
            effects += tell_idle(books, leaf)
    effects += tend_gangs(books, entity, cast, now_s)
    books.preparations.touch(entity)  # who is in preparation gives up if the gang is held now
    if not cast.count(Stage.WAITING):
        books.queue.drop(entity, now_s)
    elif entity.kind != "pod" and cast.group is None:
        books.queue.set_incomplete(entity, now_s)
    else:
        _admit(books, entity, cast, wake, queued_s, now_s)
    if _may_speak(books, entity, cast):
        books.speech.arm(entity, now_s)
    return effects


def _admit(
    books: Books, entity: EntityKey, cast: Cast, wake: Change | None, queued_s: float | None, now_s: float
) -> None:
    """Ask PreEnqueue, and let the entity be tried if it may and that is news."""
    fault = find_fault(cast)
    if fault is not None:
        books.queue.gate(entity, fault, now_s)
        return
    hold = find_hold(books, cast, now_s)
    if hold is not None:
        books.queue.gate(entity, hold, now_s)
        return
    pods = tuple([member.pod for leaf in cast.leaves() for member in leaf.stages[Stage.WAITING].values()])
    try:
        status = books.runner.pre_enqueue(
            str(entity),
            cast.group,
            waiting=pods,
            placed=cast.placed_count if cast.group else 0,
            children=_subgroups(cast),
        )
        if status.ok and any(pod.spec.resource_claims for pod in pods):
            status = books.runner.check_claims(str(entity), pods, books.state.devices.freeze())
    except PluginError as error:
        _refuse_by_error(books, entity, cast, error, now_s)
        return
    if not status.ok:
        books.queue.gate(entity, status, now_s)
        return
    entry = books.queue.find(entity)
    if entry is None or wake is not None or entry.place in (Place.GATED, Place.INCOMPLETE):
        books.queue.activate(
            entity,
            priority=priority_of(cast),
            queued_s=queued_s,
            now_s=now_s,
            event=wake.name if wake is not None else Change.POD_ADDED.name,
            goes_first=is_short(books, cast),
        )


def _subgroups(cast: Cast) -> tuple[Subgroup, ...]:
    """The tree below a composite as a quorum wants it."""
    return tuple(
        Subgroup(child.group, 0, _subgroups(child))
        if child.is_composite
        else Subgroup(child.group, child.known_count)
        for child in cast.sorted_children()
        if child.group is not None
    )


def _refuse_by_error(books: Books, entity: EntityKey, cast: Cast, error: PluginError, now_s: float) -> None:
    rejected = Rejected(entity.key if cast.group else None, cast.group, ())
    books.queue.refuse(
        entity,
        Refusal(
            rejectors=frozenset({error.plugin}),
            rejected=rejected,
            reason="SchedulerError",
            message=str(error),
            error=True,
        ),
        now_s,
    )


def _completed(cast: Cast, *, by_time: bool) -> tuple[float, float, int]:
    """When the entity first had all it needs: the time of that (0 unless asked for), then its arrival."""
    group = cast.group
    if cast.is_composite:
        return _tree_completed(cast, by_time=by_time)
    if cast.count(Stage.ASSUMED, Stage.BOUND, Stage.SUCCEEDED):
        known = cast.of(Stage.WAITING, Stage.ASSUMED, Stage.BOUND, Stage.SUCCEEDED)
        members = sorted(known, key=lambda member: member.order)
    else:
        members = cast.waiting()
    needed = group.needed if group is not None else 1
    if len(members) < needed:
        return (_NEVER_S, _NEVER_S, members[0].arrival if members else 0)
    last = members[needed - 1]
    time_s = 0.0
    if by_time:
        time_s = parse_seconds(last.pod.metadata.creation_timestamp)
        if group is not None:
            time_s = max(time_s, group.created_s)
    return (time_s, float(max(last.arrival, cast.group_arrival)), last.arrival)


def _tree_completed(cast: Cast, *, by_time: bool) -> tuple[float, float, int]:
    """When the last of the groups that a composite needs was complete; a ring never is."""
    group = cast.group
    if group is None or find_fault(cast) is not None:
        return (_NEVER_S, _NEVER_S, cast.group_arrival)
    parts = sorted(_completed(child, by_time=by_time) for child in cast.children.values())
    if len(parts) < group.needed:
        return (_NEVER_S, _NEVER_S, cast.group_arrival)
    time_s, arrival, last = parts[group.needed - 1]
    return (max(time_s, group.created_s if by_time else 0.0), max(arrival, float(cast.group_arrival)), last)


def _may_speak(books: Books, entity: EntityKey, cast: Cast) -> bool:
    """Whether there may be something to say of what the entity waits for, or to take back."""
    return any(_may_speak_of(books, entity, leaf) for leaf in cast.leaves())


def _may_speak_of(books: Books, entity: EntityKey, leaf: Cast) -> bool:
    if leaf.group is None:
        return leaf.count(Stage.WAITING, Stage.ASSUMED) > 0
    if books.conditions.of_group(leaf.group, WAITING) is not None:
        return True
    is_news = not books.conditions.has_been_scheduled(leaf.group) or _is_held(books, entity)
    return is_news and leaf.count(Stage.WAITING, Stage.ASSUMED) > 0


def _is_held(books: Books, entity: EntityKey) -> bool:
    entry = books.queue.find(entity)
    return entry is not None and entry.place in (Place.GATED, Place.INCOMPLETE)
