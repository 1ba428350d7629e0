"""Making room: what found no place may drive out what is weaker (KEP-5710).

The plugins say who should leave (`PostFilter`); here is what stands around that: who is asked, who counts as
weaker, what is promised meanwhile, and that nobody asks for more victims while the first are still leaving.
In comes a refused attempt; out go nominations and evictions, and words for the condition.  The victims' end
is seen as that of any pod, and wakes the preemptor.  Next: `nominations.py`.
"""

from typing import NamedTuple

from msgspec.structs import replace

from muster.api.core import Pod
from muster.api.meta import Condition
from muster.api.times import format_seconds
from muster.base.arrays import Int32
from muster.base.errors import PluginError
from muster.cluster.budgets import Budget
from muster.cluster.snapshot import Snapshot
from muster.framework.events import Change
from muster.framework.groups import ObjectKey, PodKey
from muster.framework.points import Preemptor, Rescue
from muster.framework.ports import Effect, EvictDone, EvictFailed, EvictPod, ObjectReference, RecordEvent
from muster.framework.runner import Runner
from muster.framework.status import Verdict
from muster.placement.domains import Placements
from muster.placement.eviction import Eviction, Trial, Try
from muster.scheduling.asks import policy_of, priority_of
from muster.scheduling.attempt import UNSCHEDULABLE, Attempt
from muster.scheduling.binding import refuse_group
from muster.scheduling.books import Books
from muster.scheduling.conditions import shorten
from muster.scheduling.contradictions import pinned_members
from muster.scheduling.kept import without_kept
from muster.scheduling.members import Cast, EntityKey, Member, Stage
from muster.scheduling.metrics import (
    GROUP_PREEMPTIONS,
    GROUP_VICTIMS,
    PDB_VIOLATIONS,
    POD_PREEMPTIONS,
    POD_VICTIMS,
    PREEMPTION_SECONDS,
)
from muster.scheduling.preparation import drive_out
from muster.scheduling.queue import Place
from muster.scheduling.rescues import WORK_PER_CYCLE
from muster.scheduling.torn import as_wholes, release_torn, tears
from muster.scheduling.trials import trial_of, work_of
from muster.scheduling.units import OVERDUE_S, Victim, is_overdue

DISRUPTION_TARGET = "DisruptionTarget"
PREEMPTED = "PreemptionByScheduler"
DOMAINS_MAX = 64
GRACE_S = 30.0  # of a pod that says nothing

# Results as stock names them in its metrics.
_RESULTS = {
    Verdict.SUCCESS: "Success",
    Verdict.WAIT: "Wait",
    Verdict.UNSCHEDULABLE: "Unschedulable",
    Verdict.UNRESOLVABLE: "UnschedulableAndUnresolvable",
    Verdict.ERROR: "Error",
}
_WORDS = {"pod": " preemption: ", "podgroup": ", pod group preemption: "}
_API_OF_KIND = {
    "podgroup": ("scheduling.k8s.io/v1beta1", "PodGroup"),
    "compositepodgroup": ("scheduling.k8s.io/v1alpha3", "CompositePodGroup"),
}


class Rescued(NamedTuple):
    """What came of asking for room: words to add to the refusal, and what is to be done.

    `found`: it gets room, once those have left who must; `is_underway`: that, or earlier ones are leaving.
    `is_put_off`: whom to drive out takes longer to say; nothing is said or done before.  `refused`: what
    is in the way even when all are gone who may be driven out, None where nobody may.  `may_pass`: it would
    find room if it could take a part of a gang that is under way.
    """

    text: str = ""
    effects: tuple[Effect, ...] = ()
    found: bool = False
    is_underway: bool = False
    is_put_off: bool = False
    refused: Trial | None = None
    may_pass: bool = False


def with_promises(books: Books, entity: EntityKey, cast: Cast, snapshot: Snapshot) -> Snapshot:
    """The snapshot as the entity may use it: room promised to others that it must not take is taken.

    Those are the more important, and of equals those promised earlier than to the entity itself.
    """
    snapshot = without_kept(books, entity, snapshot)
    promises = books.nominations.promises()
    if not promises:
        return snapshot
    priority = priority_of(cast)
    owners = {promised.uid: _owner_of(books, promised.key, promised.uid) for promised in promises}
    own_turn = min((p.turn for p in promises if owners[p.uid] == entity), default=None)
    fork = snapshot.fork()
    for promised in promises:
        owner = owners[promised.uid]
        row = snapshot.row_of_node.get(promised.node_name)
        if owner is None or owner == entity or row is None:
            continue
        theirs = priority_of(books.members.cast(owner))
        is_earlier = own_turn is None or promised.turn < own_turn
        member = books.members.find(promised.key)
        if member is not None and (theirs > priority or (theirs == priority and is_earlier)):
            fork.place(member.pod, row)
    return fork


def make_room(
    books: Books, entity: EntityKey, cast: Cast, refused: Attempt, snapshot: Snapshot, now_s: float
) -> Rescued:
    """Ask the plugins for room, and have done what they say.  Nothing is evicted without a seat for it."""
    runner = books.runner
    waiting = cast.waiting()
    may_help = refused.reason == UNSCHEDULABLE and refused.rejectors and not refused.never
    if not may_help or not runner.makes_room or not waiting:
        return Rescued("", tuple(_promise(books, {}, waiting)))
    if books.rescues.is_out(entity):
        return Rescued(is_put_off=True)
    preemptor = _preemptor(books, entity, cast, waiting, snapshot, now_s)
    words = _WORDS["pod" if entity.kind == "pod" else "podgroup"]
    started_s = runner.stopwatch()
    try:
        rescue, may_pass = _choose(books, preemptor)
    except PluginError as error:
        _measure(books, entity.kind, None, runner.stopwatch() - started_s)
        return Rescued(f"{words}{error}")
    if rescue is None or rescue.search is None:
        _measure(books, entity.kind, rescue, runner.stopwatch() - started_s)
    if rescue is None:
        return Rescued()
    if rescue.search is not None:
        books.rescues.put_off(entity, rescue.search)
        return Rescued(is_put_off=True)
    effects: list[Effect] = []
    if rescue.eviction is not None and rescue.status.ok:
        effects = _carry_out(books, entity, cast, waiting, rescue.eviction, snapshot, now_s)
    elif preemptor.is_draining:
        effects = _promise(books, {m.pod.metadata.uid: _nominated(books, m) for m in waiting}, waiting)
    else:
        effects = _promise(books, {}, waiting)
    text = f"{words}{rescue.status.message}" if rescue.status.message else ""
    found = rescue.status.ok
    text += "; a gang that is under way goes whole or not at all" if may_pass else ""
    is_underway = found or preemptor.is_draining
    return Rescued(text, tuple(effects), found, is_underway, refused=rescue.refused, may_pass=may_pass)


def _choose(books: Books, preemptor: Preemptor) -> tuple[Rescue | None, bool]:
    """What the plugins say, and whether nothing of it is done, for a gang under way would be torn in vain.

    What is left of one that is torn is released: the preemptor must find room without any of it.
    """
    rescue = books.runner.post_filter(preemptor)
    if rescue is None or rescue.eviction is None or not tears(books, rescue.eviction.victims):
        return rescue, False
    whole = books.runner.post_filter(replace(preemptor, units=as_wholes(books, preemptor.units)))
    if whole is None or whole.status.ok or whole.search is not None:
        return rescue, False
    return whole, True


def _measure(books: Books, kind: str, rescue: Rescue | None, seconds: float) -> None:
    """Count as the stock scheduler does; `rescue` None: a plugin raised, or there is none."""
    result = "Error" if rescue is None else _RESULTS[rescue.status.verdict]
    metrics, is_pod = books.metrics, kind == "pod"
    metrics.observe(PREEMPTION_SECONDS, seconds, preemptor=kind, result=result)
    if is_pod:
        metrics.count(POD_PREEMPTIONS)
    else:
        metrics.count(GROUP_PREEMPTIONS, result=result)
    if rescue is not None and rescue.eviction is not None and rescue.status.ok:
        cost = rescue.eviction.cost
        if cost.pods:
            metrics.observe(POD_VICTIMS if is_pod else GROUP_VICTIMS, cost.pods)
        if cost.violations:
            metrics.count(PDB_VIOLATIONS, cost.violations, preemptor=kind)


def end_promises(books: Books, entity: EntityKey, cast: Cast, now_s: float) -> list[Effect]:
    """Take back what those left over were promised, unless somebody is still leaving for them."""
    waiting = cast.waiting()
    if not waiting or _is_draining(books, entity, waiting, priority_of(cast), now_s):
        return []
    return _promise(books, {}, waiting)


def go_on_choosing(books: Books, entity: EntityKey, now_s: float) -> None:
    """Do a cycle's share of a search for victims that was put off; its entity is tried again at the end."""
    rescues = books.rescues
    entry = books.queue.find(entity)
    if entry is None or entry.place not in (Place.SEARCHING, Place.ACTIVE):
        rescues.forget(entity)  # placed, or gone
    elif rescues.is_out(entity) and rescues.advance(entity) and entry.place is Place.SEARCHING:
        books.queue.activate(
            entity, priority=entry.priority, queued_s=None, now_s=now_s, event="VictimsChosen"
        )


def finish_eviction(books: Books, event: EvictDone) -> list[Effect]:
    """The API has taken the deletion: tell of it on the victim, which may be gone by now."""
    told = books.told_when_done.pop(event.uid, None)
    return [] if told is None or event.is_gone else [told]


def fail_eviction(books: Books, event: EvictFailed, now_s: float) -> list[Effect]:
    """The victim stays; its preemptor is tried again after a while."""
    books.told_when_done.pop(event.uid, None)
    victim = books.victims.pop(event.uid, None)
    if victim is None:
        return []
    text = f"evicting pod {event.key} was refused: {event.message or event.code}"
    entry = books.queue.find(victim.entity)
    if entry is None or entry.refusal is None or entry.place is Place.ACTIVE:
        return []
    words = _WORDS["pod" if victim.entity.kind == "pod" else "podgroup"]
    refusal = replace(
        entry.refusal,
        message=f"{entry.refusal.plain}{words}{text}",
        error=True,
        error_round=entry.attempts,
    )
    books.queue.refuse(victim.entity, refusal, now_s)
    effects: list[Effect] = []
    for leaf in books.members.cast(victim.entity).leaves():
        for member in leaf.waiting()[:1]:
            effects += refuse_group(
                books, member, reason=refusal.reason, message=refusal.message, now_s=now_s
            )
    return effects


def lose_victim(books: Books, uid: str) -> None:
    """The pod is gone; whoever drove it out is tried again when it was the last one leaving for it."""
    victim = books.victims.pop(uid, None)
    if victim is not None and not any(other.entity == victim.entity for other in books.victims.values()):
        books.touch(victim.entity, Change.POD_FREED)


# ── who asks, and for what ───────────────────────────────────────────────────────────────────────


def _preemptor(
    books: Books, entity: EntityKey, cast: Cast, waiting: list[Member], snapshot: Snapshot, now_s: float
) -> Preemptor:
    priority = priority_of(cast)
    placements = _placements(cast, books.runner, snapshot)
    return Preemptor(
        kind=entity.kind,
        priority=priority,
        policy=policy_of(cast, waiting),
        is_draining=_is_draining(books, entity, waiting, priority, now_s),
        units=books.units.find_weaker(
            snapshot, priority=priority, root=entity, asked=books.victims, now_s=now_s
        ),
        budgets=tuple(books.budgets.values()),
        snapshot=snapshot,
        judge=books.runner,
        trial=Try(
            on=trial_of(cast, books.runner),
            members=len(waiting),
            work=work_of(cast, books.runner, snapshot),
            domains=_domains(placements),
            rows=None if placements is None else placements.all_rows(),
        ),
        work=WORK_PER_CYCLE,
        found=books.rescues.take_answer(entity),
    )


def _placements(cast: Cast, runner: Runner, snapshot: Snapshot) -> Placements | None:
    """Where the group as a whole may be; None where that is not told, or any row will do."""
    if cast.group is None:
        return None
    try:
        placements = runner.placements(
            cast.group, snapshot, snapshot.live_rows(), pinned=pinned_members(cast, snapshot)
        )
    except PluginError:
        return None
    return placements if isinstance(placements, Placements) else None


def _domains(placements: Placements | None) -> tuple[Int32, ...]:
    """The rows of each placement, where there are several to choose from."""
    if placements is None or placements.count < 2:
        return ()
    return tuple(placements.rows_of(index) for index in range(min(placements.count, DOMAINS_MAX)))


def _is_draining(books: Books, entity: EntityKey, waiting: list[Member], priority: int, now_s: float) -> bool:
    """Whether pods preempted for it are still leaving, by what we asked for or by what the objects say."""
    for uid, victim in books.victims.items():
        if victim.entity == entity and _is_placed(books, victim, uid, now_s):
            return True
    nominated = {_nominated(books, member) for member in waiting} - {""}
    snapshot = books.state.snapshot()
    rows = [snapshot.row_of_node[node] for node in nominated if node in snapshot.row_of_node]
    return any(
        _was_preempted(pod) and books.rank_of(pod) < priority and not is_overdue(pod, now_s)
        for row in rows
        for pod in snapshot.pods_on(row)
    )


def _is_placed(books: Books, victim: Victim, uid: str, now_s: float) -> bool:
    """Whether it is still there and may be counted on to go: a minute after its grace it is not."""
    pod = books.state.pod(victim.key)
    if pod is None or pod.metadata.uid != uid or books.state.node_of(victim.key) is None:
        return False
    asked, own = pod.metadata.deletion_grace_period_seconds, pod.spec.termination_grace_period_seconds
    grace_s = next((seconds for seconds in (asked, own) if seconds is not None), GRACE_S)
    return now_s <= victim.asked_s + grace_s + OVERDUE_S


def _was_preempted(pod: Pod) -> bool:
    condition = pod.find_condition(DISRUPTION_TARGET)
    return (
        pod.is_terminating
        and condition is not None
        and condition.status == "True"
        and condition.reason == PREEMPTED
    )


def _owner_of(books: Books, key: PodKey, uid: str) -> EntityKey | None:
    member = books.members.find(key)
    if member is None or member.pod.metadata.uid != uid or member.stage is not Stage.WAITING:
        return None
    return books.members.root_of(member.entity)


def _nominated(books: Books, member: Member) -> str:
    return books.nominations.node_of(member.pod.metadata.uid)


# ── what is done ─────────────────────────────────────────────────────────────────────────────────


def _carry_out(
    books: Books,
    entity: EntityKey,
    cast: Cast,
    waiting: list[Member],
    eviction: Eviction,
    snapshot: Snapshot,
    now_s: float,
) -> list[Effect]:
    """Promise the seats, then ask the victims to leave; those that are leaving anyway are waited for."""
    names = {pod.metadata.uid: snapshot.node_names[row] for pod, row in eviction.seats}
    effects = _promise(books, names, waiting)
    scheduler_name = waiting[0].pod.spec.scheduler_name
    message = f"{scheduler_name}: preempting to accommodate a higher priority {entity.kind}"
    broken = _broken(books, eviction)
    leaving = [pod for unit in eviction.victims for pod, _ in unit.pods]
    victims = [pod for pod in leaving if not drive_out(books, pod, entity)]
    for pod in victims:
        key, uid = ObjectKey(pod.metadata.namespace, pod.metadata.name), pod.metadata.uid
        is_new = not pod.is_terminating
        if is_new or uid not in books.victims:
            books.victims[uid] = Victim(entity, key, now_s)
        if is_new:
            books.told_when_done[uid] = _told(entity, cast, waiting, pod, eviction, snapshot, broken)
            effects.append(EvictPod(key, uid, _condition(pod, message, now_s), *entity))
    return effects + release_torn(books, victims, entity, now_s)


def _broken(books: Books, eviction: Eviction) -> list[Budget]:
    """Budgets that allow less than this eviction takes of them."""
    leaving = [pod for unit in eviction.victims for pod in unit.staying]
    return [
        budget
        for _, budget in sorted(books.budgets.items())
        if sum(budget.counts(pod) for pod in leaving) > budget.allowed
    ]


def _promise(books: Books, names: dict[str, str], waiting: list[Member]) -> list[Effect]:
    """Nominate those with a node, and take back what was promised to the others."""
    effects: list[Effect] = []
    for member in waiting:
        node_name = names.get(member.pod.metadata.uid, "")
        if node_name:
            patch = books.nominations.nominate(member.pod, node_name)
        else:
            patch = books.nominations.withdraw(member.pod)
        if patch is not None:
            effects.append(patch)
    return effects


def _condition(pod: Pod, message: str, now_s: float) -> Condition:
    return Condition(
        type=DISRUPTION_TARGET,
        status="True",
        reason=PREEMPTED,
        message=message,
        last_transition_time=format_seconds(now_s),
        observed_generation=pod.metadata.generation,
    )


def _told(
    entity: EntityKey,
    cast: Cast,
    waiting: list[Member],
    victim: Pod,
    eviction: Eviction,
    snapshot: Snapshot,
    broken: list[Budget],
) -> RecordEvent:
    """`Preempted`, on the victim; a group is named as related, a pod only in the note, as stock does.

    A budget that the eviction breaks is named, too.
    """
    related = None
    where, uid = "cluster", waiting[0].pod.metadata.uid
    if cast.group is not None:
        uid = cast.group.uid
        related = ObjectReference(*_API_OF_KIND[entity.kind], entity.key, uid)
    elif eviction.seats:
        where = snapshot.node_names[eviction.seats[0][1]]
    meta = victim.metadata
    note = f"Preempted by {entity.kind} {uid} on node {where}"
    if names := " and ".join(budget.name for budget in broken if budget.counts(victim)):
        note += f", beyond what disruption budget {names} allows: nothing else would do"
    return RecordEvent(
        regarding=ObjectReference("v1", "Pod", ObjectKey(meta.namespace, meta.name), meta.uid),
        type="Normal",
        reason="Preempted",
        action="Preempting",
        note=shorten(note),
        scheduler_name=waiting[0].pod.spec.scheduler_name,
        related=related,
    )
