"""When members of unlike shapes did not fit one after the other: have a placement searched for exactly.

The greedy try comes first; where it fails, a search may still find a placement or prove that there is none.
The search itself runs beside the scheduler (effect `Search`, answer `SearchDone`), and its group waits in a
place of the queue of its own.  When the answer is in, the group is tried again: greedily first, then with the
answer, which is checked against the cluster as it is by then.  What was proved is remembered for as long as
nothing has become easier.  In comes a failed attempt; out comes a better one, a search, or the same one with
what is known about it.  Next: `seating.py` and `cycle.py`.
"""

from msgspec.structs import replace

from muster.base.errors import PluginError
from muster.cluster.snapshot import Snapshot
from muster.framework.events import Rejected
from muster.framework.ports import Effect, SearchDone
from muster.framework.runner import Runner
from muster.placement.awaited_volumes import as_if_there, find_awaited, name_claims
from muster.placement.packing import Verdict, may_hold
from muster.scheduling.attempt import UNSCHEDULABLE, Attempt, conclude
from muster.scheduling.backtracking import backtrack, is_small_enough, judge
from muster.scheduling.board import Outcome
from muster.scheduling.books import Books
from muster.scheduling.members import Cast, EntityKey
from muster.scheduling.questions import SHAPES_MAX, find_question, too_many
from muster.scheduling.queue import Entry, Place
from muster.scheduling.rejectors import widen
from muster.scheduling.searches import WAIT_S_MAX, Known, Question, Searches
from muster.scheduling.seating import seat, try_other_orders
from muster.scheduling.sleepers import Refusal
from muster.scheduling.stale_claims import find_stale

TIME_MS_FIRST, TIME_MS_MAX = 250, 4000
TRIES_MAX = 5


def search(
    books: Books, entry: Entry, cast: Cast, snapshot: Snapshot, decision: Attempt, now_s: float
) -> Attempt | list[Effect]:
    """Say or do more than the greedy attempt; effects where the entity has been put aside for a search."""
    searches, runner = books.searches, books.runner
    question: Question | str | None = None
    outcome = None
    try:
        if decision.reason == UNSCHEDULABLE:
            question = find_question(cast, snapshot, runner)
        if isinstance(question, Question) and not question.problem.is_exact:
            outcome, question = _try_at_once(question, cast, snapshot, books)
        if isinstance(question, Question) and outcome is None:
            outcome = _seat_known(searches.find(entry.key), question, cast, snapshot, runner)
    except PluginError:  # on a member that was not tried; the next attempt may come to it
        question = None
    if question is None or outcome is not None:
        searches.forget(entry.key)
        return decision if outcome is None else conclude(cast, snapshot, runner, outcome)
    said = question if isinstance(question, str) else _search_or_say(searches, entry.key, question, now_s)
    if isinstance(said, str):
        return _tell(decision, said)
    put_aside(books, entry, cast, widen(cast, snapshot, runner, decision), now_s)
    return said


def _try_at_once(
    question: Question, cast: Cast, snapshot: Snapshot, books: Books
) -> tuple[Outcome | None, Question | str]:
    """What the integer program does not know of: tried here, to the end or for a while.

    An outcome, and the question that is left; a sentence where nothing is left to be asked.
    """
    runner = books.runner
    if not question.narrows:
        outcome = try_other_orders(question, cast, snapshot, runner)
    elif is_small_enough(question.members, question.rows):
        found = backtrack(question, cast, snapshot, runner)
        if found is Verdict.IMPOSSIBLE and (said := _say_impossible(question, snapshot, books)):
            return None, said
        outcome = found if isinstance(found, Outcome) else None
    else:
        outcome = None
    shapes = len(question.problem.packing.need)
    return outcome, too_many(shapes) if shapes > SHAPES_MAX else question


def _say_impossible(question: Question, snapshot: Snapshot, books: Books) -> str:
    """What those are told that have no placement as volumes and devices are; "" where it may be no proof.

    It is none where devices may be given back, nor where a volume that is yet to come might do.
    """
    members = [member for alike in question.members for member in alike]
    stale = sorted(set(find_stale(books, members)))
    if stale:
        return f"no placement as long as {name_claims(stale)} keeps devices that nobody uses who is placed"
    awaited = find_awaited([member.pod for member in members], snapshot)
    if not awaited.claims:
        return _proved(question)
    at_best = judge(question, as_if_there(snapshot, awaited.claims), books.runner)
    if at_best is Verdict.GAVE_UP:
        return ""
    return _proved(question) if at_best is Verdict.IMPOSSIBLE else awaited.sentence()


def _proved(question: Question) -> str:
    count = len(question.node_names)
    return f"proved impossible on the {count} nodes as they are" if count > 1 else "proved impossible"


def _tell(decision: Attempt, said: str) -> Attempt:
    """The attempt with what is known of a search, told to the root and to groups with words of their own."""
    message = "; ".join(filter(None, (decision.message, said)))
    texts = {key: text if said in text else f"{text}; {said}" for key, text in decision.group_texts.items()}
    return replace(decision, message=message, group_texts=texts)


def take_answer(books: Books, event: SearchDone, now_s: float) -> list[Effect]:
    """The answer is in: have its entity tried again, if it still waits for it."""
    entity = books.searches.finish(event.ticket, event.answer)
    entry = books.queue.find(entity) if entity is not None else None
    if entry is not None and entry.place is Place.SEARCHING:
        books.queue.activate(
            entry.key, priority=entry.priority, queued_s=None, now_s=now_s, event="SearchDone"
        )
    return []


def _seat_known(
    known: Known | None, question: Question, cast: Cast, snapshot: Snapshot, runner: Runner
) -> Outcome | None:
    """Place the group as the last search found, if that is still possible."""
    if known is None or known.answer is None or known.answer.counts is None:
        return None
    if not question.has_axes_of(known.question):
        return None
    return seat(question, known.answer.counts, cast, snapshot, runner)


def _search_or_say(
    searches: Searches, entity: EntityKey, question: Question, now_s: float
) -> str | list[Effect]:
    """What is known of this question, in words; or a search (none where one for it is out already)."""
    problem, known, proved = question.problem, searches.find(entity), _proved(question)
    if not any(may_hold(problem, domain) for domain in range(len(problem.root.domains))):
        searches.forget(entity)
        return proved
    if known is not None and known.answer is None and question.is_same(known.question):
        if now_s < known.begun_s + WAIT_S_MAX:
            return []
        searches.give_up(entity)
    if known is None or known.answer is None:
        return [searches.begin(entity, question, now_s, time_ms=TIME_MS_FIRST)]
    if known.answer.verdict is Verdict.IMPOSSIBLE and question.is_no_easier(known.question):
        return proved
    if not question.is_same(known.question):
        was_late = known.answer.verdict is Verdict.FOUND
        if was_late and known.tries >= TRIES_MAX:
            searches.forget(entity)
            return f"gave up the search for a placement: {TRIES_MAX} were found and taken by others meanwhile"
        tries = known.tries + 1 if was_late else 1
        return [searches.begin(entity, question, now_s, time_ms=TIME_MS_FIRST, tries=tries)]
    if known.answer.verdict is Verdict.FOUND:
        return (
            "gave up the search for a placement: what resources allow, the rules between members do not; "
            "tried again when nodes or members change"
        )
    if known.time_ms < TIME_MS_MAX:
        return [searches.begin(entity, question, now_s, time_ms=min(4 * known.time_ms, TIME_MS_MAX))]
    return (
        f"gave up the search for a placement after {known.answer.effort}; "
        "tried again when nodes or members change"
    )


def put_aside(books: Books, entry: Entry, cast: Cast, decision: Attempt, now_s: float) -> None:
    """Let the entity wait for the answer of a search, or for an event that helps it before."""
    waiting = cast.waiting()
    rejected = Rejected(entry.key.key, cast.group, decision.unplaced or (waiting[0].pod,))
    before = entry.refusal or Refusal(
        rejectors=frozenset(), rejected=rejected, reason=UNSCHEDULABLE, message=""
    )
    refusal = replace(
        before, rejectors=decision.rejectors, rejected=rejected, missing=0, error=False, ask=None
    )
    books.queue.search(entry.key, refusal, until_s=now_s + WAIT_S_MAX, now_s=now_s)
