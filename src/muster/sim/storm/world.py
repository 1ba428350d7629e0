"""The whole product on one virtual clock: API store, controllers, kubelets, two replicas of the scheduler.

The API server can be away, and can be restored from a backup; replicas crash, stand still and are started
again.  Comes in: a loop that owns the time.  Next: `users.py` and `outages.py`, which act on it.
"""

import urllib.parse
from collections.abc import Callable
from functools import partial

import numpy as np

from muster.apiserver.exchange import Request, Response
from muster.apiserver.kinds import Kind as Row
from muster.apiserver.server import ApiServer
from muster.apiserver.store import Backup, Store
from muster.assembly.embedded import EmbeddedCluster, build_controllers
from muster.assembly.loopback import WATCHED
from muster.assembly.view import kind_of
from muster.controllers.kubelet import Kubelets
from muster.controllers.ports import Controller
from muster.dialects.native import event_of
from muster.framework.ports import Event
from muster.sim.client import Client
from muster.sim.loop import Simulation
from muster.sim.storm.door import FrontDoor, Landed
from muster.sim.storm.ledger import Ledger
from muster.sim.storm.replica import ProcessClock, Replica
from muster.sim.storm.weather import Sky
from muster.sim.view import Object, uid_of
from muster.sim.world import object_of

REPLICAS = ("a", "b")
_PIECES_PER_STEP = 50  # of the controllers' work between two looks of the checkers
_EVENTS_KEPT = 20_000
_AGAIN_S = 5.0  # between two looks whether the API server is there again
_OFFSETS_S = (0.0, 0.0, 0.4, -0.4, 30.0, -30.0, 3600.0)
_DRIFT_MAX = 2e-4
_RESTART_S = (1.0, 8.0)
_RESTORED_S = (1.0, 15.0)
_RESTARTED_AFTER_RESTORE = 0.3
_NOTICEABLE_WRITES = 100
_HEARTBEAT_S = 20.0  # kubelets speak half as often as real ones: a seed is half heartbeats otherwise


class StormWorld:
    """One cluster with everything in it; `simulation` is set before the first step."""

    def __init__(
        self,
        *,
        start_s: float,
        server_generator: np.random.Generator,
        generator: np.random.Generator,
        sky: Sky,
        count: Callable[[str], None],
    ) -> None:
        self.simulation: Simulation | None = None
        self.sky = sky
        self.count = count
        self.is_up = True
        self.terms = 0
        self.replicas: dict[str, Replica] = {}
        self.processes: dict[str, Replica] = {}  # all there ever were, by identity
        self._start_s = start_s
        self._generator = generator
        self._server = ApiServer(server_generator, now_s=start_s)
        self.door = FrontDoor(self._server, sky, count, self._note_landed)
        self.cluster = EmbeddedCluster(self.door, controllers=_controllers())
        self.ledger = Ledger(lambda: self._server.store)
        self.landing_readers: list[Callable[[Landed], None]] = []  # told of each binding as it is accepted
        self.client = Client(self.call)
        self.restored_s = 0.0
        self._restores: list[tuple[float, int]] = []  # when, and to which revision
        self._outdated: set[str] = set()  # identities
        self._rested_at = -1  # the revision up to which all work is done; until `_due_s` there is no other
        self._due_s: float | None = None
        rows = {kind_of(row): row for row in self._server.catalog.kinds if not row.stored_as}
        self.watched: dict[str, Row] = {rows[kind].name: rows[kind] for kind in WATCHED if kind in rows}
        self._events: dict[tuple[str, str, bool], Event] = {}
        self._processes = 0

    # ── time ─────────────────────────────────────────────────────────────────────────────────────

    def now_s(self) -> float:
        """True time."""
        return self._start_s if self.simulation is None else self.simulation.now_s

    def post(self, action: Callable[[], None], delay_s: float) -> None:
        """Have something done later."""
        assert self.simulation is not None
        self.simulation.post(action, delay_s=delay_s)

    def post_when_up(self, action: Callable[[], None], delay_s: float) -> None:
        """Have something done later, or as soon after that as the API server is there again."""

        def act() -> None:
            if self.is_up:
                action()
            else:
                self.post(act, _AGAIN_S)

        self.post(act, delay_s)

    def advance(self, now_s: float) -> float | None:
        """Let controllers and kubelets do a piece of what is due, and let everybody see what was written."""
        if not self.is_up:
            return None  # whoever brings it back acts, and this is asked again
        if self.store.revision == self._rested_at and (self._due_s is None or now_s < self._due_s):
            return self._due_s  # nothing was written, and nobody's time has come
        self._due_s = due_s = self.cluster.advance(now_s, _PIECES_PER_STEP)
        for change in self.ledger.take_changes():
            self.ledger.apply(change, now_s)
            for replica in list(self.replicas.values()):
                replica.see(change)
        self._rested_at = self.store.revision
        return due_s

    # ── requests ─────────────────────────────────────────────────────────────────────────────────

    @property
    def store(self) -> Store:
        """What the API server holds."""
        return self._server.store

    def serve(self, request: Request) -> Response:
        """Answer a request that has arrived; what follows from it happens as time goes on."""
        return self.cluster.request(request, self.now_s())

    def call(self, method: str, path: str, body: Object | None, content_type: str) -> tuple[int, Object]:
        """The same for users, in short: status code and object.  To be asked only while the server is up."""
        path, _, query = path.partition("?")
        headers = {"accept": "application/json", "content-type": content_type}
        pairs = tuple(urllib.parse.parse_qsl(query, keep_blank_values=True))
        response = self.serve(
            Request(method, path, query=pairs, headers=headers, body=body if body is not None else b"")
        )
        return response.status, object_of(response)

    def event_of(self, resource: str, obj: Object, *, gone: bool) -> Event:
        """The event that tells a scheduler of this state of an object; made once for all processes."""
        key = (uid_of(obj), str(obj["metadata"]["resourceVersion"]), gone)
        event = self._events.get(key)
        if event is None:
            if len(self._events) >= _EVENTS_KEPT:
                self._events.clear()
            event = self._events[key] = event_of(resource, obj, gone=gone)
        return event

    def is_outdated(self, process: Replica) -> bool:
        """Whether this process has seen something that a restored backup took back."""
        return process.identity in self._outdated

    def is_by_outdated(self, written: Object) -> bool:
        """Whether this state was written by a process that knows what never was."""
        writer = self.processes.get(self.door.writers.get(int(written["metadata"]["resourceVersion"]), ""))
        return writer is not None and self.is_outdated(writer)

    def _note_landed(self, landed: Landed) -> None:
        self.ledger.landed[uid_of(landed.pod)] = landed
        for reader in self.landing_readers:
            reader(landed)

    # ── the API server ───────────────────────────────────────────────────────────────────────────

    def go_away(self, seconds: float) -> None:
        """The API server takes no connections for a while; every watch breaks."""
        self.count("API server away")
        self.is_up = False
        for replica in self.replicas.values():
            replica.disconnect()
        self.post(self._come_back, seconds)

    def _come_back(self) -> None:
        self.is_up = True

    def limit_bindings(self, group: str, most: int, seconds: float) -> None:
        """A webhook lets at most so many members of this group be bound, for so long."""
        self.door.bound_max[group] = most
        self.post(partial(self._lift_limit, group), seconds)

    def _lift_limit(self, group: str) -> None:
        self.door.bound_max.pop(group, None)

    def restore(self, backup: Backup, taken_s: float | None = None) -> None:
        """The store is replaced by a backup that was taken then (now); every watch breaks.

        As the manual of Kubernetes says, everything that looks at the API is started anew: controllers and
        kubelets at once, schedulers within seconds.  Or nobody thinks of those, and whoever has seen what is
        taken back has to notice: that is played with processes that revisions cannot have caught up with
        before they look.
        """
        self.count("restored from a backup")
        self.restored_s = self.now_s()
        since = [revision for at_s, revision in self._restores if taken_s is not None and at_s > taken_s]
        common = min([backup.revision, *since])  # what came later was otherwise, or is taken back
        self._restores.append((self.restored_s, backup.revision))
        self._outdated |= {each.identity for each in self.processes.values() if each.seen > common}
        self._rested_at = -1
        self._events.clear()
        self.door.writers.clear()
        self.store.restore(backup, self._server.catalog.by_name, self.now_s())
        self.cluster = EmbeddedCluster(self.door, controllers=_controllers())
        self.ledger.restart(self.now_s())
        self._start_schedulers_anew(backup)

    def _start_schedulers_anew(self, backup: Backup) -> None:
        """All of them, or those that cannot notice by themselves."""
        are_thought_of = self._generator.random() < _RESTARTED_AFTER_RESTORE
        has_to_notice = False
        for replica in self.replicas.values():
            replica.disconnect()
            can_notice = replica.shown - backup.revision >= _NOTICEABLE_WRITES and not replica.is_paused
            if are_thought_of or (self.is_outdated(replica) and not can_notice):
                self.post(partial(replica.end, "restored"), float(self._generator.uniform(*_RESTORED_S)))
            else:
                has_to_notice = has_to_notice or can_notice
        if has_to_notice:
            self.count("restored, and nobody started the schedulers anew")

    # ── replicas ─────────────────────────────────────────────────────────────────────────────────

    def start(self, name: str) -> None:
        """Start a process for this replica, with a clock of its own."""
        self._processes += 1
        offset_s = float(self._generator.choice(_OFFSETS_S))
        drift = float(self._generator.uniform(-_DRIFT_MAX, _DRIFT_MAX))
        clock = ProcessClock(self.now_s, offset_s=offset_s, drift=drift)
        identity = f"muster-{name}-{self._processes}"
        replica = Replica(self, self.sky, name=name, identity=identity, clock=clock)
        self.replicas[name] = self.processes[identity] = replica

    def died(self, replica: Replica, why: str) -> None:
        """The process has ended; another is started in its place."""
        self.count(f"process {why}")
        self.replicas.pop(replica.name, None)
        self.post(lambda: self.start(replica.name), float(self._generator.uniform(*_RESTART_S)))

    def next_term(self) -> int:
        """The number of the leader that begins now."""
        self.terms += 1
        return self.terms

    @property
    def deciding(self) -> Replica | None:
        """The replica that decides, as far as it knows; None while there is none."""
        leaders = [replica for replica in self.replicas.values() if replica.is_deciding]
        return max(leaders, key=lambda replica: replica.term, default=None)


def _controllers() -> list[Controller]:
    built = build_controllers(kubelets=True)
    return [Kubelets(heartbeat_s=_HEARTBEAT_S) if isinstance(each, Kubelets) else each for each in built]
