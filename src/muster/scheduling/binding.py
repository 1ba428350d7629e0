"""From a decision to bound pods: asking for bindings, and what becomes of them.

Members are assumed when the binding is asked for, confirmed when the API accepts it, and forgotten when it
refuses (only the refused member; the others stay).  In come placements of a cycle and outcomes; out go
`BindPod`, events and conditions.  Next: `scheduler.py`.
"""

from collections.abc import Mapping, Sequence

from muster.api.core import Pod
from muster.api.meta import Condition
from muster.framework.events import Change, ClusterEvent, Rejected
from muster.framework.groups import ObjectKey, PodKey
from muster.framework.ports import (
    OVERDUE,
    BindDone,
    BindFailed,
    BindPod,
    Effect,
    ObjectReference,
    RecordEvent,
)
from muster.scheduling.books import Books
from muster.scheduling.conditions import INITIALLY_SCHEDULED, shorten
from muster.scheduling.inflight import UNCONFIRMED_S_MAX, Binding
from muster.scheduling.kept import explain_lost_room, give_up_room, has_room_still, keep_room
from muster.scheduling.members import Member, Seen, Stage
from muster.scheduling.metrics import BIND_FAILURES
from muster.scheduling.preparation import begin, member_of, needs_preparation, tend_preparations
from muster.scheduling.sleepers import Refusal
from muster.scheduling.standing import bind_timeout_s
from muster.scheduling.waiting import Wait, say_scheduled, waiting_condition

SCHEDULER_ERROR = "SchedulerError"
EVENTS_PER_ATTEMPT_MAX = 10

UNKNOWN, STALE, REFUSED, FORBIDDEN = "unknown", "stale", "refused", "forbidden"
REFUSED_SLOWNESS = 5.0  # a webhook's no is not a moment's: five times the usual wait
_CAUSES = {0: UNKNOWN, 404: "gone", 409: "conflict", 429: "throttled"}
_VERSION_DIFFERS = "ResourceVersion in precondition"


def bind(
    books: Books,
    placements: Sequence[tuple[Member, str]],
    devices: Mapping[PodKey, tuple[int, ...]],
    attempt: int,
    now_s: float,
) -> list[Effect]:
    """Assume the members on nodes and GPUs; ask for their bindings, or first for what must precede them.

    Raises   PluginError, before anything has been changed.
    """
    needs = needs_preparation(books, placements)
    root = books.members.root_of(placements[0][0].entity) if placements else None
    effects: list[Effect] = []
    for member, node_name in placements:
        books.state.assume(member.pod, node_name, devices.get(member.key, ()))
        books.members.assume(member, node_name)
        give_up_room(books, member.pod.metadata.uid, now_s)
        promised = books.nominations.end(member.pod.metadata.uid)
        if promised != node_name:
            books.free_promise(promised, member.pod, now_s)
    if root is not None and (needs or books.preparations.of(root)):
        return begin(books, placements, needs, attempt, now_s)
    for member, node_name in placements:
        effects += _begin_binding(books, member, node_name, attempt, now_s)
    return effects


def tell_placed(books: Books, placements: Sequence[tuple[Member, str]], now_s: float) -> None:
    """Wake whom the company of these members helps; those left of their own entity, too, once they sleep."""
    for member, node_name in placements:
        node = books.state.node(node_name)
        books.tell(ClusterEvent(Change.POD_ASSIGNED, pod=member.pod, node=node), now_s)


def bind_prepared(books: Books, now_s: float) -> list[Effect]:
    """Ask for the bindings of members whose volumes are there now, and their gangs' with them."""
    tended = tend_preparations(books, now_s)
    effects = tended.effects
    for member, text in tended.lost:
        effects += refuse_pod(books, member.pod, reason=SCHEDULER_ERROR, message=text, now_s=now_s)
        effects += refuse_group(books, member, reason=SCHEDULER_ERROR, message=text, now_s=now_s)
    for preparation in tended.ready:
        books.preparations.end(preparation.uid)
        prepared = member_of(books, preparation)
        if prepared is not None:
            effects += _begin_binding(books, prepared, preparation.node_name, preparation.attempt, now_s)
    return effects


def _begin_binding(books: Books, member: Member, node_name: str, attempt: int, now_s: float) -> list[Effect]:
    binding = Binding(
        key=member.key,
        uid=member.pod.metadata.uid,
        node_name=node_name,
        scheduler_name=member.pod.spec.scheduler_name,
        group=member.group,
        devices=books.state.devices_of(member.key),
        attempt=attempt,
        since_s=now_s,
        version=member.pod.metadata.resource_version,
    )
    books.inflight.add(binding)
    for entity in dict.fromkeys((member.entity, books.members.root_of(member.entity))):
        cast = books.members.cast(entity)
        if cast.group is not None and (cast.group.is_gang or cast.is_composite):
            books.gangs.begin(entity, bind_timeout_s(books, cast), now_s)
    return [_ask(binding)]


def finish_binding(books: Books, event: BindDone, now_s: float) -> list[Effect]:
    """The API accepted a binding; an answer to a binding that is over already says nothing new."""
    binding = books.inflight.find(event.uid)
    if binding is None or event.node_name != binding.node_name:  # where an older one landed shows the watch
        return []
    return accept(books, binding, now_s)


def accept(books: Books, binding: Binding, now_s: float) -> list[Effect]:
    """The member is where it was assumed to be, by the API's answer or by what the watch shows."""
    books.inflight.end(binding.uid)
    books.state.confirm(binding.key, binding.uid)
    books.conditions.lose_pod(binding.uid)
    member = books.members.find(binding.key)
    if member is None or member.pod.metadata.uid != binding.uid:
        return []
    if member.stage is Stage.ASSUMED:
        books.members.accept(member)
    books.queue.clear_errors(books.members.root_of(member.entity), binding.attempt)
    note = f"Successfully assigned {binding.key} to {binding.node_name}"
    effects: list[Effect] = [_record(member.pod, "Normal", "Scheduled", "Binding", note)]
    effects += say_scheduled(books, books.members.cast(member.entity), now_s)
    books.touch(member.entity)
    return effects


def fail_binding(books: Books, event: BindFailed, now_s: float) -> list[Effect]:
    """The API refused a binding, or nobody knows what became of it."""
    binding = books.inflight.find(event.uid)
    if binding is None or event.node_name != binding.node_name or event.reason == OVERDUE:
        return []
    cause = cause_of(event)
    books.metrics.count(BIND_FAILURES, cause=cause)
    if cause == STALE:
        return _await_change(books, binding, now_s)
    if cause == UNKNOWN:
        binding.is_stale = False
        books.inflight.lose_answer(binding, now_s)
        return []
    gone = event.code == 404 and event.reason == "NotFound"
    text = f"binding to node {binding.node_name} was refused: {event.message or event.reason or event.code}"
    return _undo(
        books,
        binding,
        "" if gone else text,
        now_s,
        retry_after_s=event.retry_after_s or 0.0,
        slowness=REFUSED_SLOWNESS if cause in (REFUSED, FORBIDDEN) else 1.0,
    )


def cause_of(event: BindFailed) -> str:
    """Why a binding failed, in one word: what is done about it depends on that."""
    if event.code == 409 and _VERSION_DIFFERS in event.message:
        return STALE
    if event.code == 403:
        is_denied = "admission webhook" in event.message or "denied" in event.message
        return REFUSED if is_denied else FORBIDDEN
    if event.code in _CAUSES:
        return _CAUSES[event.code]
    return "server" if event.code >= 500 else REFUSED


def see_changed(books: Books, binding: Binding, seen: Seen, now_s: float) -> list[Effect]:
    """The pod of a binding on the wire is seen unbound and changed.

    Where the API has refused the binding for that, it is asked for again; where the change may mean another
    node, it is decided on anew.
    """
    pod = seen.member.pod
    if pod.metadata.resource_version == binding.version:
        return []
    if seen.asks_anew or pod.is_terminating:
        binding.asks_anew = True
    return _go_on_changed(books, binding, now_s) if binding.is_stale else []


def _await_change(books: Books, binding: Binding, now_s: float) -> list[Effect]:
    """The API knows a later version: often one that we wrote ourselves, and have seen before this answer."""
    pod = books.state.pod(binding.key)
    if (
        pod is not None
        and pod.metadata.uid == binding.uid
        and pod.metadata.resource_version != binding.version
    ):
        return _go_on_changed(books, binding, now_s)
    binding.is_stale = True
    books.inflight.lose_answer(binding, now_s)
    return []


def _go_on_changed(books: Books, binding: Binding, now_s: float) -> list[Effect]:
    """Ask for the binding of the pod as it is now, or decide anew."""
    if binding.asks_anew:
        return _undo(books, binding, "", now_s)
    binding.is_stale = True
    books.inflight.ask_anew(binding, now_s)
    return []


def tend_bindings(books: Books, now_s: float) -> list[Effect]:
    """Ask again for bindings without an answer, and give up those unconfirmed for too long."""
    again, given_up = books.inflight.tick(now_s)
    effects: list[Effect] = []
    for binding in again:
        if books.state.node(binding.node_name) is None:
            text = f"node {binding.node_name} is gone, and nobody knows whether the binding to it was taken"
            effects += _undo(books, binding, text, now_s)
        elif binding.is_stale and not has_room_still(books, binding.key, binding.node_name):
            effects += _undo(books, binding, explain_lost_room(binding.node_name), now_s)
        else:
            binding.is_stale = False
            pod = books.state.pod(binding.key)
            if pod is not None and pod.metadata.uid == binding.uid and not binding.asks_anew:
                binding.version = pod.metadata.resource_version
            effects.append(_ask(binding))
    for binding in given_up:
        text = f"binding to node {binding.node_name} was not confirmed within {UNCONFIRMED_S_MAX:.0f} s"
        effects += _undo(books, binding, text, now_s)
    return effects


def lose_binding(books: Books, uid: str) -> None:
    """The pod is gone, or on another node: its binding is nobody's any more."""
    books.inflight.end(uid)


def refuse_pod(books: Books, pod: Pod, *, reason: str, message: str, now_s: float) -> list[Effect]:
    """Say PodScheduled=False on a pod, with the event that goes with it; nothing if it says so already."""
    patch = books.conditions.patch_pod(pod, reason=reason, message=message, now_s=now_s)
    if patch is None:
        return []
    return [patch, _record(pod, "Warning", "FailedScheduling", "Scheduling", message)]


def refuse_members(
    books: Books,
    left: Sequence[Member],
    own_texts: Mapping[PodKey, str],
    reason: str,
    message: str,
    now_s: float,
) -> list[Effect]:
    """Every member gets the condition; ten the event too, those refused on their own account first."""
    effects: list[Effect] = []
    events: list[Effect] = []
    for member in sorted(left, key=lambda member: member.key not in own_texts):
        text = own_texts.get(member.key, message)
        said = refuse_pod(books, member.pod, reason=reason, message=text, now_s=now_s)
        effects += said[:1]
        events += said[1:]
    return effects + events[:EVENTS_PER_ATTEMPT_MAX]


def refuse_group(books: Books, member: Member, *, reason: str, message: str, now_s: float) -> list[Effect]:
    """Say on the member's group that its minimum is not placed, and what it waits for; never over True."""
    group = books.members.cast(member.entity).group
    if group is None or books.conditions.has_been_scheduled(group):
        return []
    refused = Condition(type=INITIALLY_SCHEDULED, status="False", reason=reason, message=shorten(message))
    waits = waiting_condition(Wait(reason, message))
    patch = books.conditions.patch_group(group, [refused, waits], now_s=now_s)
    return [] if patch is None else [patch]


def _undo(
    books: Books,
    binding: Binding,
    text: str,
    now_s: float,
    *,
    retry_after_s: float = 0.0,
    slowness: float = 1.0,
) -> list[Effect]:
    """Give the room back and let the member be tried again; its siblings stay where they are."""
    lose_binding(books, binding.uid)
    books.state.forget(binding.key, binding.uid)
    member = books.members.find(binding.key)
    effects: list[Effect] = []
    if member is not None and member.pod.metadata.uid == binding.uid and member.stage is Stage.ASSUMED:
        books.members.forget(member)
        effects += _put_back(books, member, binding, text, retry_after_s, slowness, now_s)
        books.touch(member.entity)
    freed = ClusterEvent(
        Change.POD_FREED,
        node=books.state.node(binding.node_name),
        pod=member.pod if member is not None else None,
    )
    books.tell(freed, now_s)
    return effects


def _put_back(
    books: Books,
    member: Member,
    binding: Binding,
    text: str,
    retry_after_s: float,
    slowness: float,
    now_s: float,
) -> list[Effect]:
    """Say what went wrong (nothing where the pod is gone anyway) and let the entity wait for its next try."""
    root = books.members.root_of(member.entity)
    cast = books.members.cast(root)
    if member.stage is not Stage.WAITING:
        return []
    books.nominations.see_pod(member.pod, is_waiting=True)
    effects: list[Effect] = []
    if text:
        keep_room(books, member, binding.node_name)
        effects += refuse_pod(books, member.pod, reason=SCHEDULER_ERROR, message=text, now_s=now_s)
        text = f"{cast.accepted_count} members are bound; pod {member.key.name}: {text}"
        effects += refuse_group(books, member, reason=SCHEDULER_ERROR, message=text, now_s=now_s)
    refusal = Refusal(
        rejectors=frozenset(),
        rejected=Rejected(cast.group.key if cast.group else member.group, cast.group, (member.pod,)),
        reason=SCHEDULER_ERROR,
        message=text,
        member_count=cast.count(Stage.WAITING) if cast.group is not None else 1,
        error=True,
        error_round=binding.attempt,
        retry_after_s=retry_after_s,
        slowness=slowness,
    )
    books.queue.refuse(root, refusal, now_s)
    return effects


def _ask(binding: Binding) -> BindPod:
    return BindPod(
        key=binding.key,
        uid=binding.uid,
        node_name=binding.node_name,
        scheduler_name=binding.scheduler_name,
        group=binding.group,
        version=binding.version,
        devices=binding.devices,
        until_s=binding.since_s + UNCONFIRMED_S_MAX,
    )


def _record(pod: Pod, type_: str, reason: str, action: str, note: str) -> RecordEvent:
    return RecordEvent(
        regarding=ObjectReference(
            "v1", "Pod", ObjectKey(pod.metadata.namespace, pod.metadata.name), pod.metadata.uid
        ),
        type=type_,
        reason=reason,
        action=action,
        note=shorten(note),
        scheduler_name=pod.spec.scheduler_name,
    )
