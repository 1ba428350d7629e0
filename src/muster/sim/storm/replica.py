"""One scheduler process on virtual time: its clock, its watches, its candidacy, its wire, its scheduler.

The scheduler, the candidacy (`assembly/leadership.py`) and the translation of effects are the product's own;
the rest plays what `runtime/` does.  A process that is stopped, crashes or loses the lease is never used
again: the world starts another in its place.  Next: `world.py`.
"""

from collections.abc import Callable
from typing import Protocol

import msgspec

from muster.apiserver.kinds import Kind as Row
from muster.apiserver.store import Change
from muster.assembly.config import Config
from muster.assembly.leadership import FINISH_S, JITTER, RETRY_S, Candidacy, Lease
from muster.assembly.loopback import BRANCHES_PER_MS, SEARCH_S
from muster.assembly.profiles import build
from muster.assembly.requests import Call
from muster.framework.ports import (
    BindPod,
    Effect,
    Event,
    Search,
    SearchDone,
    Synced,
    TimeReached,
    WakeAt,
)
from muster.placement.exact import Limits, solve
from muster.sim.client import SCHEDULER_NAMES
from muster.sim.evictions import SoundEvictions
from muster.sim.storm.answers import LostIsAskedFor
from muster.sim.storm.informer import Informer, Source
from muster.sim.storm.line import Answer, Line, Server
from muster.sim.storm.outbox import Outbox
from muster.sim.storm.prepared import PreparedAsTold
from muster.sim.storm.releases import ReleasesBackOff
from muster.sim.storm.weather import Sky
from muster.sim.told import GangWhole, RoomAsTold, Told

LEASE_NAME = "muster"
_LOOK_S = 0.1
_CRASH_WEIGHT = {
    "BindPod": 2.0,
    "EvictPod": 6.0,
    "PatchGroupStatus": 2.0,
    "WriteClaim": 6.0,
    "SelectNode": 6.0,
}  # the rarer the effect


class Surroundings(Server, Source, Protocol):
    """The world as a process sees it."""

    @property
    def watched(self) -> dict[str, Row]:
        """The kinds to watch, by name of the store's rows, in the order they are listed."""
        ...

    def died(self, replica: "Replica", why: str) -> None:
        """The process has ended: "crashed", "stopped", the lease "lost", or the store "restored"."""
        ...

    def next_term(self) -> int:
        """The number of the leader that begins now."""
        ...


class ProcessClock:
    """Unix seconds of one process: off by `offset_s`, and faster by `drift`.

    It runs on while the process is paused, and stands still while the machine sleeps; `boot_s` does not.
    """

    def __init__(self, true_s: Callable[[], float], *, offset_s: float, drift: float) -> None:
        self._true_s = true_s
        self._start_s = true_s()
        self._offset_s = offset_s
        self._drift = drift
        self._slept_s = 0.0

    def now_s(self) -> float:
        """The time that this process believes it is."""
        return self.boot_s() - self._slept_s

    def boot_s(self) -> float:
        """The same, the time that the machine slept included (CLOCK_BOOTTIME)."""
        true_s = self._true_s()
        return true_s + self._offset_s + (true_s - self._start_s) * self._drift

    def sleep(self, seconds: float) -> None:
        """The machine sleeps for so long from now on."""
        self._slept_s += seconds

    def true_delay_s(self, at_s: float) -> float:
        """How long it truly is until this clock shows `at_s`."""
        return max(0.0, at_s - self.now_s()) / (1.0 + self._drift)


class Replica:
    """One process from its start to its end.

    `name` says which of the replicas it is, `identity` which process.  `term` is the number of the leader
    that it has become (0: it never led).  `decided` is where it has asked each pod (by uid) to be bound.
    `heard` counts what it was told; `has_decided` whether it answered something since that was set to False.
    """

    def __init__(
        self, world: Surroundings, sky: Sky, *, name: str, identity: str, clock: ProcessClock
    ) -> None:
        self.name = name
        self.identity = identity
        self.clock = clock
        self.term = 0
        self.is_dead = False
        self.is_deciding = False
        self.heard = 0
        self.has_decided = False
        self.decided: dict[str, set[str]] = {}
        self.candidacy = Candidacy(name=LEASE_NAME, identity=identity)
        self.scheduler = build(Config(scheduler_names=SCHEDULER_NAMES), third_party={})
        self.told = Told()
        self.whole = GangWhole(self.told)
        self.room = RoomAsTold(self.told)
        self.evictions = SoundEvictions(self.told)
        self.backoffs = ReleasesBackOff(self.told)
        self.questions = LostIsAskedFor(self.told)
        self.prepared = PreparedAsTold(self.told)
        self.judges = (self.whole, self.room, self.evictions, self.backoffs, self.prepared)
        self.line = Line(world, sky, identity)
        self._world = world
        self._sky = sky
        self._answered_at = 0  # the newest revision that there was when an effect had been answered
        self._paused_until_s = 0.0
        self._is_leaving = False
        self._is_asking = False  # for the lease
        self._wake_s: float | None = None
        self._outbox = Outbox(
            self.line,
            sky,
            tell=self._outcome,
            later=self.later,
            now_s=clock.now_s,
            may_write=lambda: self.may_write,
            lost=lambda: self.end("lost"),
        )
        self._informers = {
            row_name: Informer(row, world, sky, tell=self._tell, later=self.later)
            for row_name, row in world.watched.items()
        }
        for informer in self._informers.values():
            informer.list()
        self.later(self._campaign, sky.between(0, RETRY_S))

    # ── life ─────────────────────────────────────────────────────────────────────────────────────

    def later(self, action: Callable[[], None], delay_s: float) -> None:
        """Run an action of this process after a while: not while it is paused, never once it has ended."""

        def run() -> None:
            left_s = self._paused_until_s - self._world.now_s()
            if self.is_dead:
                return
            if left_s > 0:
                self._world.post(run, left_s)
                return
            action()
            self._check_restored()

        self._world.post(run, delay_s)

    def pause(self, seconds: float) -> None:
        """Let the process stand still; its clock goes on."""
        self._paused_until_s = max(self._paused_until_s, self._world.now_s() + seconds)

    def sleep(self, seconds: float) -> None:
        """Let the machine sleep: the process stands still, and so does its clock."""
        self.pause(seconds)
        self.clock.sleep(seconds)

    @property
    def may_write(self) -> bool:
        """Whether it renewed the lease in time: asked before each write."""
        return self.candidacy.may_write(self.clock.boot_s())

    @property
    def is_paused(self) -> bool:
        """Whether it stands still now."""
        return self._paused_until_s > self._world.now_s()

    def end(self, why: str) -> None:
        """The process is no more."""
        if not self.is_dead:
            self.is_dead = True
            self.is_deciding = False
            self._world.died(self, why)

    def stop(self) -> None:
        """SIGTERM: decide nothing more, finish what was decided, give the lease back and go."""
        if not self.is_dead and not self._is_leaving:
            self._is_leaving = True
            self.is_deciding = False
            self._leave(self.clock.now_s() + FINISH_S)

    def _leave(self, until_s: float) -> None:
        """What may land yet has to be waited for, or the lease runs out by itself."""
        now_s = self.clock.now_s()
        if self._outbox.is_over and not self._is_asking:
            call = self.candidacy.resignation(now_s)
            if call is not None:
                self.line.send(call, lambda answer: None, self.candidacy.timeout_s(now_s), may_wait=False)
            self.end("stopped")
        elif now_s < until_s:
            self.later(lambda: self._leave(until_s), _LOOK_S)
        else:
            self._world.count("lease not given back")
            self.end("stopped")

    def kill(self) -> None:
        """SIGKILL."""
        self.end("crashed")

    def lag(self, seconds: float) -> None:
        """The API server that serves its watches falls behind so far (0: not any more)."""
        for informer in self._informers.values():
            informer.lag_s = seconds

    def disconnect(self) -> None:
        """Every watch breaks."""
        for informer in self._informers.values():
            informer.disconnect()

    def see(self, change: Change) -> None:
        """The store took a write."""
        informer = self._informers.get(change.kind.name)
        if informer is not None and not self.is_dead:
            informer.see(change)

    def _check_restored(self) -> None:
        if self.candidacy.went_back or any(informer.went_back for informer in self._informers.values()):
            self.end("restored")

    @property
    def shown(self) -> int:
        """The newest revision of a watch or of the lease: an older one tells it of a restored backup."""
        return max(self.candidacy.version, *(informer.version for informer in self._informers.values()))

    @property
    def seen(self) -> int:
        """Nothing it knows, by watches or by answers, is of a newer revision."""
        return max(self.shown, self._answered_at)

    @property
    def is_settled(self) -> bool:
        """Whether it decides and has nothing left to do at this moment."""
        due = self._wake_s is not None and self._wake_s <= self.clock.now_s()
        return self.is_deciding and not due and not self.is_paused

    @property
    def is_informed(self) -> bool:
        """Whether it listens, and nothing that was written is still on its way to it."""
        return not self._is_leaving and not any(informer.is_carrying for informer in self._informers.values())

    @property
    def is_quiet(self) -> bool:
        """Whether nothing is on its way to or from it, either."""
        return self.is_settled and self._outbox.is_idle and self.is_informed

    # ── leading ──────────────────────────────────────────────────────────────────────────────────

    def _campaign(self) -> None:
        """Acquire or renew once, and again after a while."""
        candidacy = self.candidacy
        if self._is_leaving:
            return
        if candidacy.leads and not self.may_write:
            self.end("lost")
            return

        def read(answer: Answer) -> None:
            if answer.code not in (200, 404):
                self._campaign_later(answer.retry_after_s)
                return
            lease = msgspec.convert(answer.body, Lease) if answer.code == 200 else None
            asked_s, asked_boot_s, led = self.clock.now_s(), self.clock.boot_s(), candidacy.leads
            call = candidacy.bid(lease, asked_s)
            if led and not candidacy.leads:
                self.end("lost")
            elif call is None:
                self._campaign_later()
            else:
                self._ask(call, lambda reply: written(reply, asked_s, asked_boot_s))

        def written(answer: Answer, asked_s: float, asked_boot_s: float) -> None:
            if 0 < answer.code < 300:
                candidacy.won(msgspec.convert(answer.body, Lease), asked_s, asked_boot_s)
                self._lead()
            self._campaign_later(answer.retry_after_s)

        self._ask(candidacy.reading(), read)

    def _ask(self, call: Call, done: Callable[[Answer], None]) -> None:
        self._is_asking = True

        def answered(answer: Answer) -> None:
            self._is_asking = False
            done(answer)

        self.line.send(
            call,
            lambda answer: self.later(lambda: answered(answer), 0.0),
            self.candidacy.timeout_s(self.clock.now_s()),
            may_wait=not self.candidacy.leads,
        )

    def _campaign_later(self, asked_to_wait_s: float | None = None) -> None:
        """A renewal cannot wait for Retry-After; whoever does not lead does."""
        if self.candidacy.leads:
            self.later(self._campaign, RETRY_S)
        else:
            pause_s = RETRY_S * (1.0 + JITTER * self._sky.between(0, 1))
            self.later(self._campaign, max(pause_s, asked_to_wait_s or 0.0))

    def _lead(self) -> None:
        """The lease is ours: once nothing of another leader can be on the wire, list afresh, then decide."""
        if self.term:
            return
        self.term = -1
        self.later(self._list_afresh, self.clock.true_delay_s(self.candidacy.begins_s))

    def _list_afresh(self) -> None:
        for informer in self._informers.values():
            informer.list()
        self.later(self._begin, _LOOK_S)

    def _begin(self) -> None:
        if not all(informer.synced for informer in self._informers.values()):
            self.later(self._begin, _LOOK_S)
            return
        if self._is_leaving:
            return
        if not self.may_write:
            self.end("lost")
            return
        self.term = self._world.next_term()
        self.is_deciding = True
        self._world.count("leader began")
        self._tell(Synced())

    # ── deciding ─────────────────────────────────────────────────────────────────────────────────

    def _outcome(self, event: Event) -> None:
        """An effect has been answered."""
        if self._crashes(self._sky.weather.crash_untold, "before an answer was told"):
            return
        self._answered_at = self._world.store.revision
        self._tell(event)

    def _tell(self, event: Event) -> None:
        if self.is_dead or self._is_leaving:
            return
        now_s = self.clock.now_s()
        effects = tuple(self.scheduler.handle(event, now_s))
        self.heard += 1
        self.has_decided = self.has_decided or bool(effects)
        self.told.observe(event, effects, now_s)
        self.evictions.observe(event, effects, now_s)
        self.backoffs.observe(event, effects, now_s)
        self.questions.observe(event, effects, now_s)
        self.prepared.observe(event, effects, now_s)
        for effect in effects:
            if self.is_dead:
                return
            self._perform(effect)

    def _perform(self, effect: Effect) -> None:
        if isinstance(effect, WakeAt):
            self._wake_s = effect.at_s
            self.later(self._wake, self.clock.true_delay_s(effect.at_s))
        elif isinstance(effect, Search):
            answer = solve(effect.problem, Limits(branches=BRANCHES_PER_MS * effect.time_ms))
            self.later(lambda: self._tell(SearchDone(effect.ticket, answer)), SEARCH_S)
        else:
            if isinstance(effect, BindPod):
                self.decided.setdefault(effect.uid, set()).add(effect.node_name)
            name = type(effect).__name__
            weight = _CRASH_WEIGHT.get(name, 1.0)
            if self._crashes(self._sky.weather.crash_before * weight, f"before {name}"):
                return
            self._outbox.perform(effect)
            self._crashes(self._sky.weather.crash_after * weight, f"after {name}")

    def _wake(self) -> None:
        if self._wake_s is not None and self._wake_s <= self.clock.now_s() + 1e-6:
            self._wake_s = None
            self._tell(TimeReached())

    def _crashes(self, chance: float, where: str) -> bool:
        if self.is_dead or not self._sky.strikes(chance):
            return self.is_dead
        self._world.count(f"crash {where}")
        self.end("crashed")
        return True
