"""One `muster run`: the parts of `runtime/` put together around one scheduler, from start to good-bye.

In come `RunSettings` and a scheduler (`assembly/profiles.py`); out comes an exit code.  The order: reach the
server, watch, be the leader, schedule; on SIGTERM stop deciding, finish what is on the wire, give the lease
back.  A standby watches too, but hears `Synced`, and so decides, only when it leads.
"""

import asyncio
import gc
import logging
import signal
import socket
import uuid
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from muster.assembly.config import Config
from muster.assembly.leadership import FINISH_S, NAMESPACE
from muster.assembly.profiles import build
from muster.base.errors import ApiError, ConfigError
from muster.framework.ports import Search, Synced
from muster.runtime.client import ApiClient
from muster.runtime.clock import Clock
from muster.runtime.connections import Dial
from muster.runtime.dialing import dial
from muster.runtime.executor import Executor
from muster.runtime.inspection import judge_clock
from muster.runtime.kinds import KINDS
from muster.runtime.kubeconfig import Access
from muster.runtime.leader import LeaderElector
from muster.runtime.loop import SchedulerLoop
from muster.runtime.memory import find_trim, keep_trimmed
from muster.runtime.metrics import (
    Address,
    Key,
    MetricsPage,
    RequestCounts,
    listen,
    queue_counters,
    queue_gauges,
)
from muster.runtime.searcher import Searcher
from muster.runtime.watch import ListWatch, WatchedKind
from muster.scheduling.scheduler import Scheduler

if TYPE_CHECKING:
    from muster.runtime.health import HealthServer

STALE_LEADER_S = 20.0
HOST_NAME_MAX = 64  # an Event takes an instance of 128 characters at most
YOUNG_OBJECTS_BEFORE_COLLECTION = 50_000

log = logging.getLogger("muster.run")


class RunSettings(Struct, frozen=True):
    """What `muster run` was told; `config` is the scheduler's own part."""

    config: Config
    elects_leader: bool = True
    lease_namespace: str = NAMESPACE
    lease_name: str | None = None
    metrics_address: Address | None = None


def lease_names(settings: RunSettings) -> tuple[str, ...]:
    """The leases to hold: one a scheduler name, so that no two processes ever share a name, and before those
    the one that was asked for.

    Always in this order, else two processes with two names each could wait for each other.
    """
    names = sorted(set(settings.config.scheduler_names))
    first = [] if settings.lease_name is None else [settings.lease_name]
    return tuple(dict.fromkeys((*first, *names)))


class SchedulerProcess:
    """Everything that lives while the scheduler runs."""

    def __init__(
        self,
        settings: RunSettings,
        access: Access,
        scheduler: Scheduler,
        *,
        clock: Clock,
        rng: np.random.Generator,
        dial: Dial = dial,
    ) -> None:
        self._settings = settings
        self._scheduler = scheduler
        self._now_s = clock.now_s
        self._boot_s = clock.boot_s
        self._rng = rng
        self._identity = f"{socket.gethostname()[:HOST_NAME_MAX]}_{uuid.uuid4()}"
        self._requests = RequestCounts()
        self._client = ApiClient(
            access, now_s=clock.now_s, count=self._requests.count, dial=dial, boot_s=clock.boot_s
        )
        self._loop = SchedulerLoop(scheduler, perform=self._perform, now_s=clock.now_s)
        self._executor = Executor(
            self._client,
            post=self._loop.post,
            now_s=clock.now_s,
            rng=rng,
            pause=asyncio.sleep,
            instance=self._identity,
            may_write=self._may_write,
        )
        self._searcher = Searcher(post=self._loop.post)
        self._watches = [self._watch_of(kind) for kind in KINDS]
        self._electors = [self._elector_of(name) for name in lease_names(settings)]
        self._page = MetricsPage(scheduler.metrics, counters=self._counters, gauges=self._gauges)
        self._health: HealthServer | None = None
        self._stopping = asyncio.Event()
        self._leads = False
        self._is_lost = False
        self._refusal: ConfigError | None = None
        self._watch_tasks: list[asyncio.Task[None]] = []

    async def run(self) -> int:
        """Run until a signal (0) or until the lease is lost (1).  Raises ConfigError if it cannot begin."""
        async with self._client:
            version, clock_ahead_s = await self._client.check_connection()
            await self._check_served()
            address = self._settings.metrics_address
            listener = None if address is None else listen(address)  # before anything is decided
            log.info(
                "connected to %s (%s) as %s, for pods of %s",
                self._client.server,
                version,
                self._identity,
                ", ".join(self._settings.config.scheduler_names),
            )
            for finding in judge_clock(clock_ahead_s):
                if finding.cure:
                    log.warning("%s: %s", finding.text, finding.cure)
            try:
                await self._run_tasks(listener)
            finally:
                await self._leave()
                if self._health is not None:
                    await self._health.stop()
                if listener is not None:
                    listener.close()
        if self._refusal is not None:
            raise self._refusal
        return 1 if self._is_lost else 0

    def heed_signals(self) -> None:
        """Let SIGTERM and Ctrl-C end this process in good order."""
        running = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            running.add_signal_handler(number, self._signalled, number)

    def stop(self) -> None:
        """Begin to go, in good order."""
        self._stopping.set()

    def make_health(self) -> "HealthServer":
        """What answers scrapes and probes."""
        from muster.runtime.health import HealthServer  # aiohttp: 0.2 s

        return HealthServer(
            self._page.text,
            alive={"leaderElection": self._check_leader},
            ready={"sync": self._check_sync, "lease": self._check_rights},
        )

    # ── life ─────────────────────────────────────────────────────────────────────────────────────

    async def _run_tasks(self, listener: socket.socket | None) -> None:
        """Keep watches, elections and the loop going; a task that raises takes everything down."""
        async with asyncio.TaskGroup() as group:
            self._watch_tasks = [group.create_task(watch.run()) for watch in self._watches]
            tasks = [group.create_task(self._loop.run()), group.create_task(self._lead(group))]
            if listener is not None:
                tasks.append(group.create_task(self._serve_health(listener)))
            if (trim := find_trim()) is not None:
                tasks.append(group.create_task(keep_trimmed(trim, now_s=self._now_s, pause=asyncio.sleep)))
            await self._stopping.wait()
            for task in (*tasks, *self._watch_tasks):
                task.cancel()

    async def _serve_health(self, listener: socket.socket) -> None:
        """Answer scrapes and probes; what serves them is loaded while the first lists are waited for."""
        self._health = await asyncio.to_thread(self.make_health)
        await self._health.start(listener)

    def _signalled(self, number: signal.Signals) -> None:
        """Go in good order; the same signal again is not caught any more."""
        log.info("%s: finishing what is on the wire", number.name)
        running = asyncio.get_running_loop()
        for each in (signal.SIGTERM, signal.SIGINT):
            running.remove_signal_handler(each)
        self.stop()

    async def _leave(self) -> None:
        self._searcher.stop()
        if self._is_lost:
            self._executor.stop()
            return
        if not await self._executor.finish(FINISH_S):
            # Some may land yet: the next leader has to wait for them, so the lease runs out by itself.
            log.warning("some requests had no answer in %.0f s; the lease is not given back", FINISH_S)
            return
        for elector in self._electors:
            if self._settings.elects_leader:
                await elector.release()

    async def _lead(self, watching: asyncio.TaskGroup) -> None:
        """Become the leader of every name, then let the scheduler decide; leave when a lease is lost.

        Who takes over waits until nothing of the other can be on its way any more, and then lists afresh.
        """
        if not self._settings.elects_leader:
            self._start_leading()
            return
        async with asyncio.TaskGroup() as group:
            looking = [group.create_task(elector.stand_by()) for elector in self._electors]
            for elector, look in zip(self._electors, looking, strict=True):
                look.cancel()
                try:
                    await elector.acquire()
                except ConfigError as error:
                    self._refusal = error
                    self.stop()
                    return
                group.create_task(self._hold(elector))
            wait_s = max(elector.candidacy.begins_s for elector in self._electors) - self._now_s()
            if wait_s > 0.0:
                log.info("taking over in %.1f s, when nothing of the other is on its way", wait_s)
                await asyncio.sleep(wait_s)
            if any(elector.candidacy.had_other for elector in self._electors):
                self._list_afresh(watching)
            self._start_leading()

    def _list_afresh(self, watching: asyncio.TaskGroup) -> None:
        """Begin all watches again with a list: what the other did last may not have been seen yet."""
        for task in self._watch_tasks:
            task.cancel()
        for watch in self._watches:
            watch.forget_place()
        self._watch_tasks = [watching.create_task(watch.run()) for watch in self._watches]

    async def _hold(self, elector: LeaderElector) -> None:
        await elector.hold()
        self._lose()

    def _end_restored(self, how: str) -> None:
        """What is remembered may never have happened; whoever is started next sees everything afresh."""
        log.error("the API server was restored from a backup, ending to begin afresh: %s", how)
        self._lose()

    def _lose(self) -> None:
        """End at once, with exit code 1, and send nothing more."""
        self._is_lost = True
        self._executor.stop()
        self.stop()

    def _start_leading(self) -> None:
        self._leads = True
        self._begin_when_ready()

    def _begin_when_ready(self) -> None:
        """Once everything is listed and we lead, let the scheduler decide."""
        if not all(watch.synced for watch in self._watches):
            return
        if not gc.isenabled():
            gc.freeze()  # to collect first took 0.36 s at 50,000 pods, and found 1,860 objects
            gc.set_threshold(YOUNG_OBJECTS_BEFORE_COLLECTION, 20, 100)
            gc.enable()
        if self._leads:
            self._loop.post(Synced())

    async def _check_served(self) -> None:
        """Say at once what would otherwise be a list that fails for ever."""
        for kind in KINDS:
            if kind.without:
                continue
            try:
                await self._client.call("GET", kind.path, query={"limit": "1"})
            except ApiError as error:
                if error.code == 404:
                    raise ConfigError(
                        f"{self._client.server} does not serve {kind.path}",
                        hint="`muster check` says what this cluster lacks and how to turn it on",
                    ) from error
                if error.code in (401, 403):
                    raise ConfigError(
                        f"may not list {kind.name}: {error}", hint="see `muster check`"
                    ) from error

    # ── parts ────────────────────────────────────────────────────────────────────────────────────

    def _watch_of(self, kind: WatchedKind[Any]) -> ListWatch[Any]:
        return ListWatch(
            kind,
            self._client,
            post=self._loop.post,
            has_room=self._loop.has_room,
            on_synced=self._begin_when_ready,
            on_went_back=self._end_restored,
            rng=self._rng,
            pause=asyncio.sleep,
            now_s=self._now_s,
        )

    def _elector_of(self, name: str) -> LeaderElector:
        return LeaderElector(
            self._client,
            name=name,
            namespace=self._settings.lease_namespace,
            identity=self._identity,
            boot_s=self._boot_s,
            led_under=(self._settings.lease_name or "") if name != self._settings.lease_name else "",
            now_s=self._now_s,
            rng=self._rng,
            pause=asyncio.sleep,
            on_went_back=self._end_restored,
        )

    def _may_write(self) -> bool:
        return not self._settings.elects_leader or all(elector.may_write for elector in self._electors)

    def _perform(self, effect: Any) -> None:
        if isinstance(effect, Search):
            self._searcher.perform(effect)
        else:
            self._executor.perform(effect)

    # ── what is shown ────────────────────────────────────────────────────────────────────────────

    def _check_leader(self) -> str:
        late = [
            elector.name
            for elector in self._electors
            if elector.leads and self._now_s() - elector.renewed_s > STALE_LEADER_S
        ]
        return f"lease not renewed: {', '.join(late)}" if late else ""

    def _check_rights(self) -> str:
        return "; ".join(elector.refusal for elector in self._electors if elector.refusal)

    def _check_sync(self) -> str:
        missing = [watch.kind.name for watch in self._watches if not watch.synced]
        return f"not listed yet: {', '.join(missing)}" if missing else ""

    def _counters(self) -> Iterable[tuple[Key, int]]:
        yield from self._requests.counters()
        yield from queue_counters(self._scheduler.report())
        done = self._executor.counts
        yield ("muster_bindings_total", (("result", "bound"),)), done.bound
        yield ("muster_bindings_total", (("result", "failed"),)), done.bind_failures
        yield ("muster_evictions_total", (("result", "done"),)), done.evicted
        yield ("muster_evictions_total", (("result", "failed"),)), done.evict_failures
        yield ("muster_status_writes_total", (("result", "written"),)), done.written
        yield ("muster_status_writes_total", (("result", "failed"),)), done.write_failures
        yield ("muster_events_total", (("result", "written"),)), done.events_written
        yield ("muster_events_total", (("result", "dropped"),)), done.events_dropped
        yield ("muster_retries_total", ()), done.retries
        yield ("muster_fenced_writes_total", ()), done.fenced
        yield ("muster_searches_total", ()), self._searcher.done
        for watch in self._watches:
            labels = (("resource", watch.kind.name),)
            yield ("muster_watch_lists_total", labels), watch.counts.lists
            yield ("muster_watch_streams_total", labels), watch.counts.watches
            yield ("muster_watch_events_total", labels), watch.counts.events
            yield ("muster_watch_failures_total", labels), watch.counts.failures
            yield ("muster_watch_unreadable_objects_total", labels), watch.counts.unreadable

    def _gauges(self) -> Iterable[tuple[Key, float]]:
        yield from queue_gauges(self._scheduler.report())
        yield ("muster_inbox_events", ()), self._loop.backlog
        yield ("muster_effects_waiting", ()), self._executor.waiting
        yield ("muster_searches_waiting", ()), self._searcher.waiting
        for elector in self._electors:
            yield ("leader_election_master_status", (("name", elector.name),)), float(elector.leads)


def run_process(settings: RunSettings, access: Access) -> int:
    """Run a scheduler with these settings until it is told to go; give the exit code."""
    import uvloop

    clock = Clock()
    rng = np.random.default_rng()  # noqa: TID251  jitter only: nothing that is decided draws on it

    async def serve() -> int:
        scheduler = build(settings.config, stopwatch=clock.now_s)
        process = SchedulerProcess(settings, access, scheduler, clock=clock, rng=rng)
        process.heed_signals()
        return await process.run()

    gc.disable()  # a first list makes a million objects and no garbage; see `_begin_when_ready`
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(serve())
