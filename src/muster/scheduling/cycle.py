"""The pod-group cycle, in six numbered steps: one try at one entity.

In comes the head of the queue; out go bindings to ask for, or reasons.  Next: `binding.py`.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

from msgspec.structs import replace

from muster.base.errors import PluginError
from muster.cluster.snapshot import Snapshot
from muster.framework.events import Change, Rejected
from muster.framework.ports import Effect
from muster.placement.eviction import Trial
from muster.scheduling.asks import may_preempt, priority_of
from muster.scheduling.attempt import SCHEDULER_ERROR, UNSCHEDULABLE, Attempt, attempt
from muster.scheduling.binding import bind, refuse_group, refuse_members, tell_placed
from muster.scheduling.board import name_first
from muster.scheduling.books import Books
from muster.scheduling.device_seats import shares_a_device
from muster.scheduling.members import Cast, Member
from muster.scheduling.metrics import (
    ALGORITHM_SECONDS,
    ATTEMPT_SECONDS,
    ATTEMPTS,
    POD_ATTEMPT_SECONDS,
    POD_ATTEMPTS,
)
from muster.scheduling.precedents import tell_next
from muster.scheduling.preemption import Rescued, end_promises, make_room, with_promises
from muster.scheduling.queue import Entry
from muster.scheduling.rejectors import widen
from muster.scheduling.search import put_aside, search
from muster.scheduling.sleepers import Refusal
from muster.scheduling.stale_claims import free_stale

EXPLAIN_AGAIN_S = 10.0
_RESULTS = {"": "scheduled", SCHEDULER_ERROR: "error"}  # by reason, as stock names them in its metrics


def run_cycle(books: Books, now_s: float) -> list[Effect]:
    """Try the first active entity; nothing happens when none is active."""
    stopwatch = books.runner.stopwatch
    # 1. pop
    entry = books.queue.pop(now_s)
    if entry is None:
        return tell_next(books, now_s)
    started_s = stopwatch()
    cast = books.members.cast(entry.key)
    waiting = cast.waiting()
    # 2. take the snapshot that everything below is decided on
    snapshot = with_promises(books, entry.key, cast, books.state.snapshot())
    # 3. validate, 4. leave out who is dying or assumed (they are no waiting members), 5. assign
    decision = attempt(cast, snapshot, books.runner)
    algorithm_s = stopwatch() - started_s
    decision = _despair(books, entry, cast, snapshot, decision)
    # 5b. where greed has failed: is there a placement nevertheless?
    searched = decision if decision.never else search(books, entry, cast, snapshot, decision, now_s)
    if not isinstance(searched, Attempt):
        return searched
    decision = searched
    # 6. commit, or give reasons
    effects = bind(books, decision.placements, decision.devices, entry.attempts, now_s)
    is_rescued = False
    if decision.reason:
        rescued = make_room(books, entry.key, cast, decision, snapshot, now_s)
        if rescued.is_put_off:
            put_aside(books, entry, cast, decision, now_s)
            return effects
        decision = widen(cast, snapshot, books.runner, decision)
        said = _explain(books, entry, cast, waiting, decision, snapshot, now_s, rescued.is_underway)
        effects += _refuse(books, entry, cast, waiting, decision, said, rescued, now_s)
        effects += rescued.effects
        if not rescued.found:
            effects += free_stale(books, waiting, decision)
        is_rescued = rescued.found and cast.group is not None
    else:
        effects += _leave(books, entry, cast, decision, snapshot, now_s)
        tell_placed(books, decision.placements, now_s)
    effects += tell_next(books, now_s, overdue=True)
    result = _RESULTS.get(decision.reason, "waiting_on_preemption" if is_rescued else "unschedulable")
    _measure(books, entry, waiting, result, algorithm_s, stopwatch() - started_s)
    return effects


def _despair(books: Books, entry: Entry, cast: Cast, snapshot: Snapshot, decision: Attempt) -> Attempt:
    """Note where not even the empty cluster has room: then nobody need be asked for any."""
    if decision.reason != UNSCHEDULABLE or any(shortfall.by_fields for shortfall in decision.shortfalls):
        return decision
    try:
        never = books.hopes.why_never(entry.key, cast, snapshot)
    except PluginError:  # on a member that was not tried
        return decision
    return replace(decision, never=never.text, missing=never.missing) if never.text else decision


def _leave(
    books: Books, entry: Entry, cast: Cast, decision: Attempt, snapshot: Snapshot, now_s: float
) -> list[Effect]:
    """The minimum is placed: who is left over is told why and waits on, its group's condition untouched."""
    left = cast.waiting()
    if not left:
        books.queue.drop(entry.key, now_s)
        return []
    plain = next(iter(decision.own_texts.values()), name_first(decision.group_texts))
    said = _say(books, entry, plain, decision, snapshot, now_s)
    effects = _refuse(books, entry, cast, left, decision, said, Rescued(), now_s)
    effects += free_stale(books, left, decision)
    if books.may_drive_out(entry.key, now_s):  # the next attempt asks for it
        books.queue.activate(
            entry.key, priority=entry.priority, queued_s=None, now_s=now_s, event=Change.POD_ADDED.name
        )
    else:
        effects += end_promises(books, entry.key, cast, now_s)
    return effects


def _refuse(
    books: Books,
    entry: Entry,
    cast: Cast,
    left: list[Member],
    decision: Attempt,
    said: "_Said",
    rescued: Rescued,
    now_s: float,
) -> list[Effect]:
    """Tell members and group, and put the entity back; `rescued`: what preemption came to.

    It sleeps on what refuses it as things are, and on what would even if all the weaker were gone.
    """
    reason = decision.reason or UNSCHEDULABLE
    if cast.group is None:
        effects = refuse_members(books, left, {}, reason, said.message + rescued.text, now_s)
    else:
        own_texts = {key: said.shown.get(text, text) for key, text in decision.own_texts.items()}
        decision = replace(decision, own_texts=own_texts)
        effects = refuse_members(books, left, own_texts, reason, said.message, now_s)
    effects += _tell_groups(books, cast, decision, reason, said.message, rescued.text, now_s)
    unplaced = decision.unplaced or (left[0].pod,)
    without_weaker = rescued.refused or Trial(False, "", missing=decision.missing)
    unplaced += tuple(pod for pod in without_weaker.refused if pod not in unplaced)
    is_group = cast.group is not None
    refusal = Refusal(
        rejectors=decision.rejectors | without_weaker.rejectors,
        rejected=Rejected(entry.key.key if is_group else None, cast.group, unplaced),
        reason=reason,
        message=said.message + rescued.text,
        plain=said.message,
        short_of=said.short_of,
        explained_s=said.at_s,
        shown=said.shown,
        missing=without_weaker.missing,
        takes_below=priority_of(cast) if may_preempt(cast, left, books.runner) else -math.inf,
        never=bool(decision.never),
        shape=books.shape_of(left[0]),
        member_count=len(left) if is_group else 1,
        error=reason == SCHEDULER_ERROR or rescued.may_pass,
        error_round=entry.attempts,
        ask=None if rescued.found or books.may_drive_out(entry.key, now_s) else books.ask_of(entry.key),
        own_texts={
            index: decision.own_texts[member.key]
            for index, member in enumerate(left)
            if is_group and member.key in decision.own_texts
        },
        facts=(reason, decision.message, decision.never, *(short.text for short in decision.shortfalls)),
    )
    books.queue.refuse(entry.key, refusal, now_s)
    return effects


def _tell_groups(
    books: Books, cast: Cast, decision: Attempt, reason: str, message: str, rescued: str, now_s: float
) -> list[Effect]:
    """Every pod group with members left whose minimum is not placed is told why; one of a tree why itself."""
    effects: list[Effect] = []
    for leaf in cast.leaves():
        left = leaf.waiting()
        if leaf.group is None or not left or not (decision.reason or leaf.missing_count):
            continue
        text = message
        if cast.is_composite and leaf.group.key in decision.group_texts:
            own = next((decision.own_texts[m.key] for m in left if m.key in decision.own_texts), "")
            text = "; ".join(filter(None, (decision.never, decision.group_texts[leaf.group.key], own)))
        effects += refuse_group(books, left[0], reason=reason, message=text + rescued, now_s=now_s)
    return effects


class _Said(NamedTuple):
    """What a group is told, the facts behind it (counts, filters' words, who holds room), and since when.

    `shown`: the filters' words → the same with examples.
    """

    message: str
    short_of: tuple[object, ...]
    at_s: float
    shown: Mapping[str, str]


def _say(books: Books, entry: Entry, text: str, decision: Attempt, snapshot: Snapshot, now_s: float) -> _Said:
    """Say one text; where filters said it, with examples, those that were given for it before if any were."""
    known = entry.refusal.shown if entry.refusal is not None else {}
    shown = books.explanations.show(decision.shortfalls, known, snapshot)
    return _Said(shown.get(text, text), (), now_s, shown)


def _explain(
    books: Books,
    entry: Entry,
    cast: Cast,
    waiting: list[Member],
    decision: Attempt,
    snapshot: Snapshot,
    now_s: float,
    is_rescued: bool,
) -> _Said:
    """Say what is short and the nearest fit (not where room is being made: who has to end is known then).

    The search for it is the costly part of a failed attempt.  It is made again when something else is short;
    when only others have come or gone, after ten seconds at the earliest.
    """
    if decision.never and cast.group is not None:
        said = _say(books, entry, decision.message, decision, snapshot, now_s)
        own = (said.shown.get(short.text, short.text) for short in decision.shortfalls[:1])
        return said._replace(message="; ".join(filter(None, (decision.never, decision.message, *own))))
    if decision.reason != UNSCHEDULABLE or not decision.shortfalls:
        return _say(books, entry, decision.message, decision, snapshot, now_s)
    if cast.group is None:
        return _say(books, entry, decision.shortfalls[0].text, decision, snapshot, now_s)
    if is_rescued:
        return _say(books, entry, decision.message, decision, snapshot, now_s)
    texts = tuple(shortfall.text for shortfall in decision.shortfalls)
    if any(shares_a_device(shortfall.pod, snapshot) for shortfall in decision.shortfalls):
        said = _say(books, entry, decision.message, decision, snapshot, now_s)  # sums say nothing of devices
        own = (said.shown.get(text, text) for text in texts)
        return said._replace(message="; ".join((decision.message, *own)))
    short_of = (decision.message, texts, books.members.holders_version)
    before = entry.refusal
    if before is not None and before.short_of[:2] == short_of[:2]:
        is_fresh = now_s - before.explained_s < EXPLAIN_AGAIN_S
        if is_fresh or before.short_of == short_of:
            return _Said(before.plain, before.short_of, before.explained_s, before.shown)
    shown = books.explanations.show(decision.shortfalls, {}, snapshot)
    try:
        message = books.explanations.explain(
            decision.message,
            decision.shortfalls,
            cast,
            waiting,
            snapshot,
            books.members,
            nearest=decision.nearest,
            shown=shown,
            fits=lambda fork: not attempt(cast, fork, books.runner).reason,
        )
    except PluginError:  # on a member that was not tried; the next attempt may come to it
        message = decision.message
    return _Said(message, short_of, now_s, shown)


def _measure(
    books: Books,
    entry: Entry,
    waiting: list[Member],
    result: str,
    algorithm_s: float,
    attempt_s: float,
) -> None:
    profile = waiting[0].pod.spec.scheduler_name if waiting else ""
    if entry.key.kind != "pod":
        books.metrics.count(ATTEMPTS, result=result, profile=profile)
        books.metrics.observe(ATTEMPT_SECONDS, attempt_s, result=result, profile=profile)
        books.metrics.observe(ALGORITHM_SECONDS, algorithm_s)
    else:
        books.metrics.count(POD_ATTEMPTS, result=result, profile=profile)
        books.metrics.observe(POD_ATTEMPT_SECONDS, attempt_s, result=result, profile=profile)
