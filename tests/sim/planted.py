"""The bugs that `mutants.py` plants: each a few lines patched over the product or what plays the runtime.

A name says what the bug is.  Add one by a function that gives the patches, and a line in `MUTANTS`.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple
from unittest.mock import patch

from msgspec.structs import replace

import muster.assembly.requests as requests
import muster.plugins.dynamic_resources as dynamic_resources
import muster.scheduling.preparation as preparation
import muster.scheduling.scheduler as scheduler
import muster.scheduling.standing as standing
import muster.scheduling.tending as tending
import muster.scheduling.torn as torn
import muster.scheduling.transaction as transaction
from muster.api.times import parse_seconds
from muster.assembly.leadership import LEASE_S, Candidacy, Lease
from muster.assembly.requests import Call
from muster.cluster.device_takings import Takings
from muster.cluster.devices import DeviceBook
from muster.cluster.state import ClusterState
from muster.framework.groups import Group
from muster.framework.ports import BindFailed, BindPod, PodSeen
from muster.framework.status import Status
from muster.plugins.dynamic_resources import DynamicResources
from muster.plugins.gang_scheduling import GangScheduling
from muster.plugins.volume_binding import VolumeBinding
from muster.scheduling.gangs import Gang
from muster.scheduling.members import Cast, Stage
from muster.scheduling.scheduler import Scheduler
from muster.sim.storm.informer import Informer
from muster.sim.storm.outbox import Outbox
from muster.sim.storm.replica import Replica

Patches = Iterable[Any]  # of unittest.mock


class Mutant(NamedTuple):
    """One bug."""

    patches: Callable[[], Patches]

    @contextmanager
    def planted(self) -> Iterator[None]:
        """The bug is there while this lasts."""
        with ExitStack() as stack:
            for each in self.patches():
                stack.enter_context(each)
            yield


def forget_on_timeout() -> Patches:
    """An answer that never came is taken for a refusal."""
    fail_binding = scheduler.fail_binding

    def fail(books: Any, event: BindFailed, now_s: float) -> Any:
        return fail_binding(books, replace(event, code=500) if event.code == 0 else event, now_s)

    yield patch.object(scheduler, "fail_binding", fail)


def no_precondition() -> Patches:
    """A binding names a pod by its name only."""
    binding = requests._binding

    def bind(effect: BindPod) -> Call:
        call = binding(effect)
        metadata = {key: call.body["metadata"][key] for key in ("name", "namespace")}
        return call._replace(body={**call.body, "metadata": metadata})

    yield patch.object(requests, "_binding", bind)


def true_before_binds() -> Patches:
    """A gang is said to be scheduled by what was decided, not by what was accepted."""

    def placed(cast: Cast) -> int:
        return cast.count(Stage.ASSUMED, Stage.BOUND, Stage.SUCCEEDED)

    yield patch.object(Cast, "placed_count", property(placed))
    yield patch.object(Cast, "accepted_count", property(placed))


def stale_list_believed() -> Patches:
    """A new leader decides on what its watches had shown it, and lists nothing afresh."""
    yield patch.object(Replica, "_list_afresh", lambda self: self.later(self._begin, 0.0))


def old_list_believed() -> Patches:
    """A list comes from a cache that is behind."""
    ask = Informer._ask

    def ask_a_cache(self: Informer, attempt: int) -> None:
        source = self._source

        class Behind:
            store = _StoreBehind(source.store)
            is_up = source.is_up
            now_s = source.now_s
            event_of = source.event_of
            count = source.count

        self._source = Behind()  # type: ignore[assignment]
        try:
            ask(self, attempt)
        finally:
            self._source = source

    yield patch.object(Informer, "_ask", ask_a_cache)


class _StoreBehind:
    """A store as it was some writes ago."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.revision = max(store.forgotten, store._opened_at, store.revision - 60)

    def list(self, row: Any) -> list[Any]:
        return list(self._store.at(row, None, self.revision).values())


def retry_after_ignored() -> Patches:
    """The server's wish is not heard."""
    pause_s = Outbox._pause_s
    yield patch.object(
        Outbox,
        "_pause_s",
        lambda self, answer, tried: pause_s(self, answer._replace(retry_after_s=None), tried),
    )


def lease_not_checked() -> Patches:
    """Whoever has been the leader writes on."""
    yield patch.object(Candidacy, "may_write", lambda self, boot_s: self.leads)


def clock_stops_while_asleep() -> Patches:
    """The lease is judged by a clock that stands still while the machine sleeps."""

    def by_its_own_clock(self: Replica) -> bool:
        return self.candidacy.leads and self.candidacy.left_s(self.clock.now_s()) > 0.0

    yield patch.object(Replica, "may_write", property(by_its_own_clock))


def lease_judged_by_its_text() -> Patches:
    """Whether a lease has run out is read off the time that its holder has written."""
    bid = Candidacy.bid

    def judge(self: Candidacy, lease: Lease | None, now_s: float) -> Call | None:
        if lease is not None and lease.spec.renew_time:
            self._seen = lease
            self._seen_s = parse_seconds(lease.spec.renew_time)
        return bid(self, lease, now_s)

    yield patch.object(Candidacy, "bid", judge)


def lease_taken_by_force() -> Patches:
    """A standby takes the lease after one second without news."""
    bid = Candidacy.bid

    def hurry(self: Candidacy, lease: Lease | None, now_s: float) -> Call | None:
        self._seen_s -= LEASE_S - 1.0
        return bid(self, lease, now_s)

    yield patch.object(Candidacy, "bid", hurry)


def two_leaders() -> Patches:
    """Everybody who runs decides."""
    yield patch.object(Candidacy, "may_write", lambda self, boot_s: True)
    yield patch.object(Candidacy, "leads", property(lambda self: True))


def void_binding_counts() -> Patches:
    """A member that the kubelet has refused counts as placed."""
    yield patch.object(
        Cast,
        "accepted_count",
        property(lambda cast: cast.count(Stage.BOUND, Stage.SUCCEEDED, Stage.FAILED)),
    )


def gone_not_told_after_410() -> Patches:
    """What vanished while a watch was broken stays."""
    listed = Informer._listed

    def keep(self: Informer, attempt: int, objects: Any, revision: int) -> None:
        known = dict(self._known)
        self._known = {}
        listed(self, attempt, objects, revision)
        self._known = {**known, **self._known}

    yield patch.object(Informer, "_listed", keep)


def restored_store_unnoticed() -> Patches:
    """Revisions that went back are taken for old news."""
    yield patch.object(Replica, "_check_restored", lambda self: None)


def gang_in_part() -> Patches:
    """A gang is placed as far as it goes."""
    yield patch.object(GangScheduling, "placement_feasible", lambda *_, **__: Status.success())


def room_not_kept() -> Patches:
    """The room of a member is free again as soon as its binding is answered, until the watch shows it."""
    confirm = ClusterState.confirm

    def give_up(self: ClusterState, key: Any, uid: str) -> None:
        self.forget(key, uid)
        confirm(self, key, uid)

    yield patch.object(ClusterState, "confirm", give_up)


def room_never_given_back() -> Patches:
    """A refused member keeps its room."""
    yield patch.object(ClusterState, "forget", lambda *_: None)


def failed_write_forgotten() -> Patches:
    """A condition that could not be written is never said again."""
    yield patch.object(Scheduler, "_write_failed", lambda *_: [])


def lost_binding_given_up() -> Patches:
    """A binding without an answer is never asked for again."""

    def look_away(books: Any, now_s: float) -> Any:
        books.inflight.tick(now_s)
        return []

    yield patch.object(scheduler, "tend_bindings", look_away)


def release_skipped() -> Patches:
    """A gang that cannot be made whole is left as it is."""
    for module in (transaction, tending, torn):
        yield patch.object(module, "end_gang", lambda *_, **__: [])


def gang_never_released() -> Patches:
    """A gang that was not whole in time keeps what it has."""
    yield patch.object(transaction, "is_late", lambda *_: False)


def tree_in_part() -> Patches:
    """The groups of a composite are placed as far as it goes."""
    feasible = GangScheduling.placement_feasible

    def always(self: GangScheduling, group: Group, **counts: int) -> Status:
        return Status.success() if group.is_composite else feasible(self, group, **counts)

    yield patch.object(GangScheduling, "placement_feasible", always)


def tree_never_released() -> Patches:
    """A composite that cannot be made whole keeps the groups that are."""
    yield patch.object(tending, "is_late", lambda *_: False)


def tree_said_whole_too_soon() -> Patches:
    """A group says that it is whole, whatever becomes of its tree."""
    yield patch.object(standing, "tree_has_started", lambda *_: True)


def no_backoff_after_a_release() -> Patches:
    """A released gang is tried again at once."""
    yield patch.object(Gang, "backoff_s", property(lambda self: 0.0))


def recovery_forgets_bound_members() -> Patches:
    """A new leader counts only the members whose binding it has seen itself."""
    pod_seen = Scheduler._pod_seen

    def look_away(self: Scheduler, event: PodSeen, now_s: float) -> Any:
        if not self._books.synced and event.pod.spec.node_name and event.group is not None:
            self._books.state.apply_pod(event.pod)
            return []
        return pod_seen(self, event, now_s)

    made = Scheduler.__init__

    def make(self: Scheduler, *args: Any, **kwargs: Any) -> None:
        made(self, *args, **kwargs)
        self._handlers[PodSeen] = self._pod_seen

    yield patch.object(Scheduler, "_pod_seen", look_away)
    yield patch.object(Scheduler, "__init__", make)


def counts_never_said() -> Patches:
    """The condition that counts members is written once and never again."""
    yield patch.object(scheduler, "say_counts", lambda *_: [])


def rival_unseen() -> Patches:
    """Pods of other schedulers take no room."""
    apply_pod = ClusterState.apply_pod

    def look_away(self: ClusterState, pod: Any) -> Any:
        if pod.spec.scheduler_name == "rival":
            pod = replace(pod, spec=replace(pod.spec, node_name=""))
        return apply_pod(self, pod)

    yield patch.object(ClusterState, "apply_pod", look_away)


def bound_before_claims_are_ready() -> Patches:
    """Members are bound as soon as they are placed, whatever their claims and volumes say."""
    for plugin in (DynamicResources, VolumeBinding):
        yield patch.object(plugin, "is_ready", lambda *_: Status.success())


def devices_of_others_believed_free() -> Patches:
    """What another claim has is free, too."""
    yield patch.object(Takings, "picture", lambda self: ({}, {}))


def rival_claim_unseen() -> Patches:
    """A claim that was written before with the same device does not count."""
    yield patch.object(dynamic_resources, "find_rival", lambda *_: None)


def double_claims_not_told() -> Patches:
    """A device that is in two claims is nobody's business."""
    yield patch.object(preparation, "tell_double", lambda *_: [])


def chosen_devices_forgotten() -> Patches:
    """What was given to a claim and is not seen written yet is free for the next."""
    yield patch.object(DeviceBook, "choose", lambda *_: None)


MUTANTS: dict[str, Mutant] = {
    make.__name__.replace("_", "-"): Mutant(make)
    for make in (
        forget_on_timeout,
        no_precondition,
        true_before_binds,
        stale_list_believed,
        old_list_believed,
        retry_after_ignored,
        lease_not_checked,
        clock_stops_while_asleep,
        lease_judged_by_its_text,
        lease_taken_by_force,
        two_leaders,
        void_binding_counts,
        gone_not_told_after_410,
        restored_store_unnoticed,
        gang_in_part,
        release_skipped,
        gang_never_released,
        tree_in_part,
        tree_never_released,
        tree_said_whole_too_soon,
        no_backoff_after_a_release,
        recovery_forgets_bound_members,
        counts_never_said,
        room_not_kept,
        room_never_given_back,
        failed_write_forgotten,
        lost_binding_given_up,
        rival_unseen,
        bound_before_claims_are_ready,
        devices_of_others_believed_free,
        rival_claim_unseen,
        double_claims_not_told,
        chosen_devices_forgotten,
    )
}
