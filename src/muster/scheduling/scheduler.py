"""The state machine: `handle(event, now_s)` takes what was seen and answers with what should be done.

Dispatch, and nothing else: pods, nodes and groups go to the books, outcomes to `binding.py`, time to the
queue and one cycle.  Nothing but `TimeReached` runs a cycle, and at most one `WakeAt` is outstanding, so a
thousand new pods lead to one cycle, not to a thousand.  Next: `review.py` and `cycle.py`.
"""

from collections.abc import Callable, Iterable

from msgspec.structs import replace

from muster.api.meta import is_earlier
from muster.cluster.changes import NodeChange
from muster.cluster.state import ClusterState
from muster.framework.events import Change, ClusterEvent
from muster.framework.groups import Group, ObjectKey
from muster.framework.ports import (
    BindDone,
    BindFailed,
    CompositeGone,
    CompositeSeen,
    DevicesGone,
    DevicesSeen,
    Effect,
    Event,
    EvictDone,
    EvictFailed,
    GroupGone,
    GroupSeen,
    NamespaceGone,
    NamespaceSeen,
    NodeGone,
    NodeSeen,
    PatchGroupStatus,
    PatchPodStatus,
    PdbGone,
    PdbSeen,
    PodGone,
    PodSeen,
    PrepareDone,
    PrepareFailed,
    SearchDone,
    StorageGone,
    StorageSeen,
    Synced,
    TimeReached,
    WakeAt,
    WriteFailed,
)
from muster.framework.runner import Runner
from muster.scheduling.binding import (
    accept,
    bind_prepared,
    fail_binding,
    finish_binding,
    lose_binding,
    see_changed,
    tend_bindings,
)
from muster.scheduling.books import Books
from muster.scheduling.collision import is_landed, see_landed
from muster.scheduling.conditions import WHOLE, Words, words_of
from muster.scheduling.cycle import run_cycle
from muster.scheduling.idle_annotations import note_idle
from muster.scheduling.idle_claims import next_look_s, watch_claims
from muster.scheduling.kept import give_up_room, give_up_rooms
from muster.scheduling.members import (
    EntityKey,
    Member,
    Seen,
    Stage,
    composite_entity,
    entity_of,
    group_entity,
)
from muster.scheduling.metrics import Metrics
from muster.scheduling.preemption import fail_eviction, finish_eviction, go_on_choosing, lose_victim
from muster.scheduling.preparation import fail_preparation, lose_preparation, see_devices, see_storage
from muster.scheduling.queue import QueueTimes
from muster.scheduling.report import Report, make_report
from muster.scheduling.review import review_touched
from muster.scheduling.search import take_answer
from muster.scheduling.transaction import fail_release
from muster.scheduling.waiting import insist_scheduled, speak
from muster.scheduling.whole import note_progress, say_counts


class Scheduler:
    """Events in, effects out; everything it knows is in its books."""

    def __init__(
        self, *, runner: Runner, scheduler_names: Iterable[str], times: QueueTimes | None = None
    ) -> None:
        self._books = Books(
            runner=runner, scheduler_names=frozenset(scheduler_names), times=times or QueueTimes()
        )
        self._wake_at_s: float | None = None
        self._restoring = False
        self._handlers: dict[type, Callable[..., list[Effect]]] = {
            PodSeen: self._pod_seen,
            PodGone: self._pod_gone,
            NodeSeen: self._node_seen,
            NodeGone: self._node_gone,
            NamespaceSeen: self._namespace_seen,
            NamespaceGone: self._namespace_gone,
            GroupSeen: self._group_seen,
            GroupGone: self._group_gone,
            CompositeSeen: self._group_seen,
            CompositeGone: self._composite_gone,
            Synced: self._synced,
            TimeReached: self._time_reached,
            PdbSeen: self._pdb_seen,
            PdbGone: self._pdb_gone,
            StorageSeen: self._storage_seen,
            StorageGone: self._storage_seen,
            DevicesSeen: self._devices_seen,
            DevicesGone: self._devices_seen,
            PrepareDone: self._prepare_done,
            PrepareFailed: self._prepare_failed,
            EvictDone: self._evict_done,
            EvictFailed: self._evict_failed,
            BindDone: self._bind_done,
            BindFailed: self._bind_failed,
            WriteFailed: self._write_failed,
            SearchDone: self._search_done,
        }

    def handle(self, event: Event, now_s: float) -> list[Effect]:
        """Take one event and say what should be done about it, in order."""
        effects = self._handlers[type(event)](event, now_s)
        return effects + self._wake(now_s)

    def report(self) -> Report:
        """What is pending and why, who holds what."""
        return make_report(self._books)

    @property
    def metrics(self) -> Metrics:
        """What has been counted; grows, is never reset."""
        return self._books.metrics

    @property
    def state(self) -> ClusterState:
        """The cluster as the scheduler sees it; to be read only."""
        return self._books.state

    # ── pods ─────────────────────────────────────────────────────────────────────────────────────

    def _pod_seen(self, event: PodSeen, now_s: float) -> list[Effect]:
        books, pod = self._books, event.pod
        change = books.state.apply_pod(pod)
        if change.stale:
            return []
        effects: list[Effect] = []
        known = books.members.find(ObjectKey(pod.metadata.namespace, pod.metadata.name))
        if known is not None and known.pod.metadata.uid != pod.metadata.uid:
            self._lose(known, now_s)
        said = None if known is None else words_of(books.conditions.of_pod(known.pod))
        seen = books.members.see_pod(pod, event.group)
        books.conditions.see_pod(pod, now_s)
        ended = books.nominations.see_pod(pod, is_waiting=seen.after is Stage.WAITING)
        books.free_promise(ended, pod, now_s)
        if pod.spec.node_name:
            lose_preparation(books, pod.metadata.uid)  # somebody else has bound it
        books.preparations.see_pod(pod.metadata.uid)
        binding = books.inflight.find(pod.metadata.uid)
        if is_landed(books, seen):
            effects += see_landed(books, seen, now_s)
        if binding is not None and pod.spec.node_name:
            if pod.spec.node_name == binding.node_name:
                effects += accept(books, binding, now_s)
            else:
                lose_binding(books, binding.uid)
        elif binding is not None:
            effects += see_changed(books, binding, seen, now_s)
        if change.freed:
            node = books.state.node(change.node_name)
            books.tell(ClusterEvent(Change.POD_FREED, pod=change.old, node=node), now_s)
        if change.assigned:
            node = books.state.node(pod.spec.node_name)
            books.tell(ClusterEvent(Change.POD_ASSIGNED, pod=pod, node=node), now_s)
        if change.relabeled:
            books.tell(ClusterEvent(Change.POD_RELABELED, pod=pod), now_s)
        note_progress(books, seen, now_s)
        if event.idle:
            note_idle(books, seen, event.idle)
        if seen.before is not seen.after or seen.asks_anew:
            if seen.after is Stage.WAITING:
                books.shape_of(seen.member)
            self._touch(seen)
        elif said and seen.after is Stage.WAITING and words_of(books.conditions.of_pod(pod)) != said:
            books.touch(seen.member.entity, Change.POD_UPDATED)  # to be told again
        return effects

    def _touch(self, seen: Seen) -> None:
        """Have the pod's entity looked at, if it can mean anything to it."""
        before, after = seen.before, seen.after
        if after is Stage.FOREIGN and before in (None, Stage.FOREIGN):
            return
        if before is None and after is Stage.BOUND and seen.member.group is None:
            return  # a lone pod that runs already waits for nothing: 45,000 reviews less at a cold start
        wake: Change | None = None
        if after is Stage.WAITING:
            wake = Change.POD_UPDATED if before is Stage.WAITING else Change.POD_ADDED
        elif before in (Stage.WAITING, Stage.LEAVING, Stage.FOREIGN):
            wake = Change.POD_REMOVED if after is not Stage.BOUND else Change.POD_ADDED
        elif before is None and after is Stage.BOUND:
            wake = Change.POD_ADDED
        self._books.touch(seen.member.entity, wake)

    def _pod_gone(self, event: PodGone, now_s: float) -> list[Effect]:
        books = self._books
        change = books.state.remove_pod(event.key, event.uid)
        member = books.members.find(event.key)
        if member is not None and member.pod.metadata.uid == event.uid:
            self._lose(member, now_s)
        if change is not None and change.freed:
            node = books.state.node(change.node_name)
            books.tell(ClusterEvent(Change.POD_FREED, pod=change.old, node=node), now_s)
        return []

    def _lose(self, member: Member, now_s: float) -> None:
        """The pod is no more: its binding, what was said on it, its place in its group."""
        books = self._books
        lose_binding(books, member.pod.metadata.uid)
        lose_preparation(books, member.pod.metadata.uid)
        lose_victim(books, member.pod.metadata.uid)
        books.conditions.lose_pod(member.pod.metadata.uid)
        give_up_room(books, member.pod.metadata.uid, now_s)
        books.members.lose_pod(member.key)
        books.free_promise(books.nominations.end(member.pod.metadata.uid), member.pod, now_s)
        if member.stage is not Stage.FOREIGN:
            wake = Change.POD_REMOVED if member.stage in (Stage.WAITING, Stage.LEAVING) else None
            books.touch(member.entity, wake)

    # ── nodes ────────────────────────────────────────────────────────────────────────────────────

    def _node_seen(self, event: NodeSeen, now_s: float) -> list[Effect]:
        change = self._books.state.apply_node(event.node)
        if change.stale:
            return []
        if change.old is None:
            self._touch_members_on(event.node.metadata.name)
        for kind in _changes_of(change):
            self._books.tell(ClusterEvent(kind, node=change.new, old_node=change.old), now_s)
        return []

    def _node_gone(self, event: NodeGone, now_s: float) -> list[Effect]:
        node = self._books.state.remove_node(event.name)
        if node is not None:
            self._touch_members_on(event.name)
            self._books.tell(ClusterEvent(Change.NODE_REMOVED, node=node), now_s)
        return []

    def _touch_members_on(self, node_name: str) -> None:
        """Have gangs counted anew: a member counts as bound only while its node exists."""
        for pod in self._books.state.pods_on(node_name):
            member = self._books.members.find(ObjectKey(pod.metadata.namespace, pod.metadata.name))
            if member is not None and member.group is not None and member.stage is Stage.BOUND:
                self._books.touch(member.entity)

    # ── namespaces ───────────────────────────────────────────────────────────────────────────────

    def _namespace_seen(self, event: NamespaceSeen, now_s: float) -> list[Effect]:
        if self._books.state.apply_namespace(event.name, event.labels):
            self._books.tell(ClusterEvent(Change.NAMESPACE_CHANGED), now_s)
        return []

    def _namespace_gone(self, event: NamespaceGone, now_s: float) -> list[Effect]:
        self._books.state.remove_namespace(event.name)
        return []

    # ── groups ───────────────────────────────────────────────────────────────────────────────────

    def _group_seen(self, event: GroupSeen | CompositeSeen, now_s: float) -> list[Effect]:
        books, group = self._books, event.group
        entity = entity_of(group)
        known = books.members.cast(entity).group
        if known is not None and known.uid == group.uid and is_earlier(group.version, known.version):
            return []
        said = () if known is None else books.conditions.words_on(known)
        books.members.see_group(group)
        if not group.is_composite:
            if books.conditions.see_group(group, now_s):
                books.speech.end_rest(entity)
            books.state.devices.see_group(group.key, group.uid, group.claims)
        if known is None or known.uid != group.uid:
            books.queue.forget(entity, now_s)
            books.gangs.lose(entity)
            give_up_rooms(books, entity, now_s)
            books.speech.end_rest(entity)
            books.touch(entity, Change.GROUP_ADDED)
            return []
        if _without_status(known) != _without_status(group):
            only_count = replace(_without_status(known), min_count=group.min_count) == _without_status(group)
            asks_for_more = only_count and group.needed > known.needed
            books.touch(entity, None if asks_for_more else Change.GROUP_CHANGED)
        return self._see_words(entity, group, said, now_s)

    def _see_words(
        self, entity: EntityKey, group: Group, said: tuple[Words | None, ...], now_s: float
    ) -> list[Effect]:
        """Somebody has erased what was said, or an older write has landed late: what is so is said again.

        Who was refused is tried again, for that is said of an attempt.
        """
        books = self._books
        shown = books.conditions.words_on(group)
        if shown == said:
            return []
        was, became = said[0], shown[0]
        is_lost = was is not None and was != became and (became is None or became.status != "True")
        is_taken_back = is_lost and became is not None and was is not None and was.status == "True"
        books.touch(entity, Change.GROUP_CHANGED if is_lost and not is_taken_back else None)
        return insist_scheduled(books, group, now_s) if is_taken_back else []

    def _group_gone(self, event: GroupGone, now_s: float) -> list[Effect]:
        if self._lose_group(group_entity(event.key), event.uid, now_s):
            self._books.conditions.lose_group(event.key)
            self._books.state.devices.see_group(event.key, "", ())
        return []

    def _composite_gone(self, event: CompositeGone, now_s: float) -> list[Effect]:
        self._lose_group(composite_entity(event.key), event.uid, now_s)
        return []

    def _lose_group(self, entity: EntityKey, uid: str, now_s: float) -> bool:
        """The object is gone; what is left of its tree is looked at again.  False if it was not known."""
        books = self._books
        known = books.members.cast(entity).group
        if known is None or (uid and known.uid != uid):
            return False
        root = books.members.root_of(entity)
        books.members.lose_group(entity)
        books.forget(entity, now_s)
        books.gangs.lose(entity)
        give_up_rooms(books, entity, now_s)
        books.speech.end_rest(entity)
        books.touch(root, Change.GROUP_CHANGED if root != entity else None)
        books.touch(entity)
        return True

    # ── outcomes and time ────────────────────────────────────────────────────────────────────────

    def _bind_done(self, event: BindDone, now_s: float) -> list[Effect]:
        return finish_binding(self._books, event, now_s)

    def _bind_failed(self, event: BindFailed, now_s: float) -> list[Effect]:
        return fail_binding(self._books, event, now_s)

    def _pdb_seen(self, event: PdbSeen, now_s: float) -> list[Effect]:
        budget = event.budget
        self._books.budgets[ObjectKey(budget.namespace, budget.name)] = budget
        return []

    def _pdb_gone(self, event: PdbGone, now_s: float) -> list[Effect]:
        known = self._books.budgets.get(event.key)
        if known is not None and event.uid in ("", known.uid):
            del self._books.budgets[event.key]
        return []

    def _storage_seen(self, event: StorageSeen | StorageGone, now_s: float) -> list[Effect]:
        see_storage(self._books, event, now_s)
        return []

    def _devices_seen(self, event: DevicesSeen | DevicesGone, now_s: float) -> list[Effect]:
        return see_devices(self._books, event, now_s)

    def _prepare_done(self, event: PrepareDone, now_s: float) -> list[Effect]:
        return []  # what counts is what the watch shows

    def _prepare_failed(self, event: PrepareFailed, now_s: float) -> list[Effect]:
        return fail_preparation(self._books, event, now_s)

    def _evict_done(self, event: EvictDone, now_s: float) -> list[Effect]:
        return finish_eviction(self._books, event)

    def _evict_failed(self, event: EvictFailed, now_s: float) -> list[Effect]:
        return fail_release(self._books, event, now_s) or fail_eviction(self._books, event, now_s)

    def _write_failed(self, event: WriteFailed, now_s: float) -> list[Effect]:
        books = self._books
        books.conditions.unwrite(event.effect)
        if isinstance(event.effect, PatchPodStatus):
            books.nominations.unwrite(event.effect)
        if isinstance(event.effect, PatchGroupStatus) and event.code != 404:
            entity = group_entity(event.effect.key)
            books.speech.retry(books.members.root_of(entity), entity, now_s)
            if any(condition.type == WHOLE for condition in event.effect.set_conditions):
                books.gangs.unwritten.add(entity)
        return []

    def _search_done(self, event: SearchDone, now_s: float) -> list[Effect]:
        return take_answer(self._books, event, now_s)

    def _synced(self, event: Synced, now_s: float) -> list[Effect]:
        if not self._books.synced:
            self._books.synced = True
            self._restoring = True
            watch_claims(self._books, now_s)
        return []

    def _time_reached(self, event: TimeReached, now_s: float) -> list[Effect]:
        books = self._books
        self._wake_at_s = None
        if not books.synced:
            return []
        effects = tend_bindings(books, now_s)
        effects += bind_prepared(books, now_s)
        for entity in (*books.queue.tick(now_s), *books.gangs.tick(now_s)):
            books.touch(entity)
        for key in books.conditions.tick(now_s):
            group = books.members.find_group(key)
            effects += [] if group is None else self._group_seen(GroupSeen(group), now_s)
        effects += review_touched(books, now_s, restored=self._restoring)
        self._restoring = False
        for entity in books.speech.tick(now_s):
            words = speak(books, entity, now_s)
            books.speech.spend(len(words), now_s)
            effects += words
        for entity in books.gangs.tick_counts(now_s):
            effects += say_counts(books, entity, now_s)
        put_off = books.rescues.first()  # not what this very cycle puts off: others are decided on in between
        effects += run_cycle(books, now_s)
        if put_off is not None:
            go_on_choosing(books, put_off, now_s)
        return effects

    def _wake(self, now_s: float) -> list[Effect]:
        """Ask to be woken when the next thing is due, unless that has been asked for already."""
        books = self._books
        if not books.synced:
            return []
        due_now = (
            books.touched,
            books.arrivals,
            books.queue.has_active or books.queue.untold_since_s() is not None,
            books.preparations.touched,
            books.rescues,
        )
        if any(due_now):
            due_s: float | None = now_s
        else:
            due_s = min(
                (
                    at_s
                    for at_s in (
                        books.queue.next_due_s(),
                        books.inflight.next_due_s(),
                        books.preparations.next_due_s(),
                        books.speech.next_due_s(),
                        books.gangs.next_due_s(),
                        books.conditions.next_due_s(),
                        next_look_s(books),
                    )
                    if at_s is not None
                ),
                default=None,
            )
        if due_s is None or (self._wake_at_s is not None and self._wake_at_s <= due_s):
            return []
        self._wake_at_s = due_s
        return [WakeAt(due_s)]


def _changes_of(change: NodeChange) -> tuple[Change, ...]:
    """A new node is one change; a known one may have changed in several ways, or in none that matters."""
    if change.old is None:
        return (Change.NODE_ADDED,)
    named = (
        (change.allocatable_grew, Change.NODE_ALLOCATABLE_GREW),
        (change.labels_changed, Change.NODE_LABELS_CHANGED),
        (change.taints_changed, Change.NODE_TAINTS_CHANGED),
    )
    return tuple(kind for is_so, kind in named if is_so)


def _without_status(group: Group) -> Group:
    """The group without what changes when nobody asks for anything else."""
    return replace(group, version="", generation=0, conditions=(), annotations=(), deleting=False)
