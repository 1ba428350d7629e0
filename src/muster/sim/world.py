"""The whole product in one process on virtual time: API store, controllers, kubelets and scheduler.

The scheduler sits behind a `FaultyLink`, so that what passes between it and the API can be watched and
spoiled.  The world owns no clock: `loop.py` tells it the time.  Next: `scenarios.py`, which acts on it.
"""

import json
import urllib.parse
from collections.abc import Callable, Iterable

import numpy as np

from muster.apiserver.exchange import Request, Response
from muster.apiserver.server import ApiServer
from muster.assembly.config import Config
from muster.assembly.embedded import EmbeddedCluster, build_controllers
from muster.assembly.profiles import build
from muster.scheduling.report import Report
from muster.scheduling.scheduler import Scheduler
from muster.sim.client import SCHEDULER_NAMES, Client
from muster.sim.faults import NO_FAULTS, Faults, FaultyLink, Observer
from muster.sim.view import ClusterView, Object

_PIECES_PER_STEP = 50  # of the product's work between two looks of the checkers


class ProductWorld:
    """One cluster with everything in it."""

    scheduler_name = SCHEDULER_NAMES[0]

    def __init__(
        self,
        *,
        now_s: float,
        server_generator: np.random.Generator,
        line_generator: np.random.Generator,
        faults: Faults = NO_FAULTS,
        observers: Iterable[Observer] = (),
        count: Callable[[str], None] = lambda name: None,
        kubelets: bool = True,
    ) -> None:
        self.now_s = now_s
        self._faults = faults
        self._line_generator = line_generator
        self._observers = tuple(observers)
        self.count = count
        self.cluster = EmbeddedCluster(
            ApiServer(server_generator, now_s=now_s), controllers=build_controllers(kubelets=kubelets)
        )
        self.client = Client(self.call)
        self._link: FaultyLink | None = None
        self._scheduler: Scheduler | None = None
        self._due_s: float | None = now_s
        self._seen: tuple[int, ClusterView] | None = None
        self.start_scheduler()

    # ── time ─────────────────────────────────────────────────────────────────────────────────────

    def advance(self, now_s: float) -> float | None:
        """Do a bounded piece of what is due; `now_s` again when there is more."""
        self.now_s = now_s
        self._due_s = self.cluster.advance(now_s, _PIECES_PER_STEP)
        return self._due_s

    def run_until(self, time_s: float) -> None:
        """Do everything due up to this time, jumping from one due moment to the next."""
        while self._due_s is not None and self._due_s <= time_s:
            self.advance(max(self.now_s, self._due_s))
        self.now_s = max(self.now_s, time_s)

    @property
    def is_settled(self) -> bool:
        """Whether all that was due has been done."""
        return self._due_s is None or self._due_s > self.now_s

    # ── requests ─────────────────────────────────────────────────────────────────────────────────

    def request(self, request: Request) -> Response:
        """Send a request as a user would; what follows from it happens as time goes on."""
        revision = self.cluster.server.store.revision
        response = self.cluster.request(request, self.now_s)
        if self.cluster.server.store.revision != revision:
            self._due_s = self.now_s
        return response

    def call(self, method: str, path: str, body: Object | None, content_type: str) -> tuple[int, Object]:
        """The same in short: status code and object (bytes that are no JSON come under `message`)."""
        path, _, query = path.partition("?")
        response = self.request(
            Request(
                method=method,
                path=urllib.parse.unquote(path),
                query=tuple(urllib.parse.parse_qsl(query, keep_blank_values=True)),
                headers={"accept": "application/json", "content-type": content_type},
                body=body if body is not None else b"",
            )
        )
        return response.status, object_of(response)

    def view(self) -> ClusterView:
        """Nodes, pods and groups as the API lists them now."""
        revision = self.cluster.server.store.revision
        if self._seen is None or self._seen[0] != revision:
            lists = (self.client.list(kind) for kind in ("node", "pod", "group"))
            self._seen = (revision, ClusterView(*lists))
        return self._seen[1]

    # ── the scheduler ────────────────────────────────────────────────────────────────────────────

    def start_scheduler(self) -> None:
        """Have a fresh scheduler work, from what the API holds."""
        self.scheduler_started_s = self.now_s
        for observer in self._observers:
            observer.reset()
        self._scheduler = build(Config(scheduler_names=SCHEDULER_NAMES))
        self._link = FaultyLink(
            self._scheduler, lambda: self._faults, self._line_generator, self._observers, self.count
        )
        self.cluster.attach(self._link)
        self._due_s = self.now_s

    def stop_scheduler(self) -> None:
        """Drop the scheduler; the API and the controllers live on."""
        if self._link is not None:
            self.cluster.detach(self._link)
        self._link = self._scheduler = None

    def restart_scheduler(self) -> None:
        """Both, one after the other."""
        self.count("scheduler restarted")
        self.stop_scheduler()
        self.start_scheduler()

    @property
    def scheduler(self) -> Scheduler | None:
        """The scheduler at work, to be looked at; None while it is stopped."""
        return self._scheduler

    def scheduler_report(self) -> Report | None:
        """What the scheduler says is pending and on the wire."""
        return None if self._scheduler is None else self._scheduler.report()

    def end_faults(self) -> None:
        """From now on nothing goes wrong; what is late already still is."""
        self._faults = NO_FAULTS

    @property
    def is_quiet(self) -> bool:
        """Whether nothing is due, nothing is late and no binding is on the wire."""
        report = self.scheduler_report()
        on_line = self._link is not None and self._link.is_carrying
        return self.is_settled and not on_line and (report is None or not report.bindings)


def object_of(response: Response) -> Object:
    """The object of an answer."""
    if response.object is not None:
        return response.object
    if response.raw is None:
        return {}
    try:
        found = json.loads(response.raw)
    except ValueError:
        return {"message": response.raw.decode(errors="replace")}
    return found if isinstance(found, dict) else {"message": str(found)}
