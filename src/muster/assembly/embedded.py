"""The embedded cluster: API server, controllers and schedulers in one process, driven from outside.

`muster up` drives it on a real clock, the whole-product simulation on a virtual one: `request` answers a
client, `advance` does a bounded piece of what is due and says when to call again.  Everything happens in
one order: changes and outcomes as they came, effects as they were asked for, timers when nothing else is
left.  No clock, no threads, no I/O.  Next: `runtime` and `sim`, which own the clock.
"""

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple, Protocol

from muster.apiserver.exchange import Request, Response
from muster.apiserver.routing import Catalog
from muster.apiserver.store import Store
from muster.assembly.loopback import (
    WATCHED,
    Loopback,
    Reactor,
    SearchElsewhere,
    as_request,
    event_of_change,
    is_watched,
)
from muster.assembly.requests import Call, WireEffect, request_of_write
from muster.assembly.view import StoreView
from muster.base.errors import ObjectInvalid
from muster.controllers.device_claims import DeviceClaims
from muster.controllers.device_driver import SimulatedDeviceDriver
from muster.controllers.disruption import DisruptionStatus
from muster.controllers.event_expiry import EventExpiry
from muster.controllers.garbage import GarbageCollector
from muster.controllers.job import Jobs
from muster.controllers.kubelet import Kubelets
from muster.controllers.namespace import NamespaceDeletion
from muster.controllers.node_lifecycle import NodeLifecycle
from muster.controllers.objects import node_of, uid_of
from muster.controllers.pod_garbage import PodGarbage
from muster.controllers.ports import PODS, Ask, Controller, Kind, Seen, Wake
from muster.controllers.protection import GroupProtection
from muster.controllers.provisioner import SimulatedProvisioner
from muster.controllers.taint_eviction import TaintEviction
from muster.controllers.volume_binding import VolumeBinding
from muster.controllers.volume_protection import EphemeralVolumes, VolumeProtection
from muster.framework.ports import Event, Synced

WORK_PER_CALL = 200


class Server(Protocol):
    """What is needed of the API server."""

    store: Store
    catalog: Catalog

    def handle(self, request: Request, now_s: float) -> Response:
        """Answer a request."""
        ...


class _Change(NamedTuple):
    """Something happened to an object; controllers and schedulers are told."""

    seen: Seen
    revision: int


class _Listed(NamedTuple):
    """An object that was there when a scheduler came; only that one is told."""

    loopback: Loopback
    seen: Seen


class _Tell(NamedTuple):
    """An event for one scheduler."""

    loopback: Loopback
    event: Event


class _Perform(NamedTuple):
    """An effect of one scheduler."""

    loopback: Loopback
    effect: WireEffect


_Item = _Change | _Listed | _Tell | _Perform


def build_controllers(*, kubelets: bool) -> list[Controller]:
    """The controllers of an embedded cluster, in the order they are told of a change.

    Without kubelets nobody reports nodes, so nobody watches over them either.
    """
    always: list[Controller] = [
        GroupProtection(),
        Jobs(),
        DisruptionStatus(),
        VolumeBinding(),
        VolumeProtection(),
        EphemeralVolumes(),
        SimulatedProvisioner(),
        DeviceClaims(),
        SimulatedDeviceDriver(),
        GarbageCollector(),
        NamespaceDeletion(),
        PodGarbage(),
        EventExpiry(),
    ]
    return [*always, Kubelets(), NodeLifecycle(), TaintEviction()] if kubelets else always


class EmbeddedCluster:
    """One cluster.  Call `advance` after every request and whenever the time it gave has come."""

    def __init__(
        self,
        server: Server,
        *,
        controllers: Iterable[Controller] = (),
        schedulers: Iterable[Reactor] = (),
    ) -> None:
        self.server = server
        self.unreadable: dict[str, str] = {}  # objects no scheduler could be told of, and why
        self._controllers = tuple(controllers)
        self._controller_wake_s: list[float | None] = [None for _ in self._controllers]
        self._told_of: dict[Kind, tuple[int, ...]] = {}
        self._view = StoreView(server.store, server.catalog)
        self._revision = 0
        self._work: deque[_Item] = deque()
        self._loopbacks: list[Loopback] = []
        self._spent = 0
        self._drain()
        for scheduler in schedulers:
            self.attach(scheduler)

    # ── schedulers come and go ──

    @property
    def schedulers(self) -> tuple[Reactor, ...]:
        """Those attached now."""
        return tuple(loopback.scheduler for loopback in self._loopbacks)

    @property
    def dropped_events(self) -> int:
        """Events that schedulers attached now wanted written and the server refused."""
        return sum(loopback.dropped_events for loopback in self._loopbacks)

    def attach(self, scheduler: Reactor) -> None:
        """Have a (new) scheduler work from the next `advance` on; it is first shown all that exists."""
        self._drain()
        loopback = Loopback(
            scheduler, self._send, self._whereabouts, listed_revision=self.server.store.revision
        )
        self._loopbacks.append(loopback)
        for kind in WATCHED:
            for obj in self._view.list(kind):
                self._work.append(_Listed(loopback, Seen(kind, None, obj)))
        self._work.append(_Tell(loopback, Synced()))

    def search_with(self, search_elsewhere: SearchElsewhere) -> None:
        """Have searches of the schedulers attached so far done elsewhere, not in the driving thread."""
        for loopback in self._loopbacks:
            loopback.search_elsewhere = search_elsewhere

    def detach(self, scheduler: Reactor) -> None:
        """Have a scheduler do nothing any more; what it asked for and is not done yet never happens."""
        gone = [loopback for loopback in self._loopbacks if loopback.scheduler is scheduler]
        self._loopbacks = [loopback for loopback in self._loopbacks if loopback not in gone]
        self._work = deque(
            item for item in self._work if isinstance(item, _Change) or item.loopback not in gone
        )

    # ── working ──

    def request(self, request: Request, now_s: float) -> Response:
        """Answer a client's request; its consequences are work for `advance`."""
        response = self.server.handle(request, now_s)
        self._drain()
        return response

    def advance(self, now_s: float, budget_changes: int = WORK_PER_CALL) -> float | None:
        """Do at most about `budget_changes` pieces of the work that is due.

        A piece is a change told, a request made, or a timer run; one scheduling cycle is one piece.
        Returns  when to call again: `now_s` if work is left, else a later time; None if nothing ever is due.
        """
        self._spent = 0
        self._drain()
        while self._spent < budget_changes:
            if self._work:
                self._do(self._work.popleft(), now_s)
            elif not self._run_timer(now_s):
                return self._next_due_s()
            self._spent += 1
        return now_s if self._work else self._next_due_s()

    def _do(self, item: _Item, now_s: float) -> None:
        if isinstance(item, _Change):
            self._tell_all(item, now_s)
        elif isinstance(item, _Listed):
            event = self._event_of(item.seen)
            if event is not None:
                self._deliver(item.loopback, event, now_s)
        elif isinstance(item, _Tell):
            self._deliver(item.loopback, item.event, now_s)
        else:
            outcome = item.loopback.perform(item.effect, now_s)
            if outcome is not None:
                self._work.append(_Tell(item.loopback, outcome))

    def _tell_all(self, change: _Change, now_s: float) -> None:
        interested = [loop for loop in self._loopbacks if loop.listed_revision < change.revision]
        if interested and is_watched(change.seen.kind):
            event = self._event_of(change.seen)
            for loopback in interested if event is not None else ():
                self._deliver(loopback, event, now_s)  # type: ignore[arg-type]
        for index in self._controllers_told_of(change.seen.kind):
            asks = self._controllers[index].seen(change.seen, self._view, now_s)
            self._obey(index, asks, now_s)

    def _controllers_told_of(self, kind: Kind) -> tuple[int, ...]:
        """Who wants to know of changes of this kind, in order."""
        known = self._told_of.get(kind)
        if known is None:
            wanting = enumerate(controller.kinds for controller in self._controllers)
            known = tuple(index for index, kinds in wanting if kinds is None or kind in kinds)
            self._told_of[kind] = known
        return known

    def _deliver(self, loopback: Loopback, event: Event, now_s: float) -> None:
        for effect in loopback.deliver(event, now_s):
            self._work.append(_Perform(loopback, effect))

    def _event_of(self, seen: Seen) -> Event | None:
        try:
            return event_of_change(seen)
        except ObjectInvalid as error:
            metadata = seen.object["metadata"]
            name = f"{seen.kind.resource} {metadata.get('namespace', '')}/{metadata['name']}"
            self.unreadable[name] = str(error)
            return None

    # ── timers ──

    def _run_timer(self, now_s: float) -> bool:
        """Run one timer that is due, schedulers' first; False when none is."""
        for loopback in self._loopbacks:
            event = loopback.take_due(now_s)
            if event is not None:
                self._deliver(loopback, event, now_s)
                return True
        for index, controller in enumerate(self._controllers):
            wake_s = self._controller_wake_s[index]
            if wake_s is not None and wake_s <= now_s:
                self._controller_wake_s[index] = None
                self._obey(index, controller.due(self._view, now_s), now_s)
                return True
        return False

    def _next_due_s(self) -> float | None:
        times = [*self._controller_wake_s, *(loopback.next_due_s() for loopback in self._loopbacks)]
        return min((at_s for at_s in times if at_s is not None), default=None)

    # ── requests of our own ──

    def _obey(self, index: int, asks: Iterable[Ask], now_s: float) -> None:
        """Perform what a controller asks, each write before the next is asked for."""
        controller = self._controllers[index]
        for ask in asks:
            if isinstance(ask, Wake):
                known_s = self._controller_wake_s[index]
                self._controller_wake_s[index] = ask.at_s if known_s is None else min(known_s, ask.at_s)
                continue
            user = f"system:serviceaccount:kube-system:{controller.name}"
            response = self._send(request_of_write(ask), user, now_s)
            if response.status >= 400:
                message = str((response.object or {}).get("message") or "")
                refused = controller.failed(ask, response.status, message, self._view, now_s)
                self._obey(index, refused, now_s)

    def _send(self, call: Call, user: str, now_s: float) -> Response:
        response = self.server.handle(as_request(call, user), now_s)
        self._spent += 1
        self._drain()
        return response

    def _drain(self) -> None:
        """Take what was written since the last time into the view, and note it as work."""
        store = self.server.store
        if store.revision == self._revision:
            return
        for change in store.changes_after(self._revision):
            self._work.append(_Change(self._view.apply(change), change.revision))
        self._revision = store.revision

    def _whereabouts(self, namespace: str, name: str) -> tuple[str, str] | None:
        pod = self._view.get(PODS, namespace, name)
        return None if pod is None else (uid_of(pod), node_of(pod))
