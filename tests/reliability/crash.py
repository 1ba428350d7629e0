"""`muster run` behind a proxy that does to its requests what networks do, and kills it at each of them.

    python -m tests.reliability crash [--full] [--embedded] [--results FILE]

A gang of twenty pods is bound, and at one of its requests something happens: the request or its answer is
lost, late, doubled or refused; or `muster run` is killed before the server saw the request, or after it did
it, and a fresh one takes over.  Where the room of those left over is gone by then, it must release the gang.
Judged: the gang is whole or holds nothing in the end, and its group says which; no node has more than its
own, no pod is bound twice, and nothing is held half for longer than `muster.dev/bind-timeout` and the slack
below.
"""

import argparse
import asyncio
import json
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from tests.reliability.proxy import BINDING, DELETION, FOR_EVER, Fault, FaultProxy, Rule
from tests.reliability.record import Record, add_options
from tests.reliability.stage import (
    LOOK_S,
    Late,
    Scheduler,
    Stage,
    kubeconfig_for,
    open_stage,
    until,
)

NODES, CORES, GANG_SIZE = 5, 8, 20
BIND_TIMEOUT_S = 10.0  # the least that Muster takes
IN_TIME_S = (
    BIND_TIMEOUT_S / 2.0
)  # a fresh process that is ready by then must finish; one that is not may release
SLACK_S = 30.0  # a fresh process begins, and a busy machine does what it was told
SCHEDULED = "PodGroupInitiallyScheduled"
LATE_S = 7.0  # the client gives up after five
# What `muster run` asks of the server for a gang: method and path.  At a release member 00 was never bound.
REQUESTS = {
    "binding": ("POST", BINDING),
    "group status": ("PATCH", r"/podgroups/[^/]+/status$"),
    "event": ("POST", r"/events$"),
    "mark": ("PATCH", r"/pods/[^/]+-(?!00)\d+/status$"),
    "deletion": ("DELETE", DELETION),
}
AT_RELEASE = ("mark", "deletion")
QUICK_TURNS, FULL_TURNS = (1, 10, 20), tuple(range(1, GANG_SIZE + 1))
QUICK_DEATHS = {"group status": (1,), "mark": (1,), "deletion": (1,)}  # besides those at bindings
FULL_DEATHS = {
    "group status": (1,),
    "event": FULL_TURNS,
    "mark": tuple(range(1, GANG_SIZE)),
    "deletion": tuple(range(1, GANG_SIZE)),
}
AWAY, AWAY_TURN, AWAY_S = "server away", 10, 20.0  # longer than a gang may hold a part
DEATHS = {"before": Fault.LOSE_REQUEST, "after": Fault.LOSE_ANSWER}
FAULTS: dict[str, Rule] = {
    "request lost": Rule("POST", BINDING, Fault.LOSE_REQUEST),
    "answer lost": Rule("POST", BINDING, Fault.LOSE_ANSWER),
    "doubled": Rule("POST", BINDING, Fault.DUPLICATE),
    "late": Rule("POST", BINDING, Fault.DELAY, delay_s=LATE_S),
    "throttled": Rule("POST", BINDING, Fault.REFUSE, status=429, retry_after_s=2),
    "failed": Rule("POST", BINDING, Fault.REFUSE, status=500),
    "forbidden": Rule("POST", BINDING, Fault.REFUSE, status=403),
}


class Point(NamedTuple):
    """One thing that happens at the `turn`-th request of a kind: a fault, or a death.

    `is_full`: the room of those that were not bound is gone before the next process begins.
    """

    what: str
    turn: int
    is_death: bool = False
    is_full: bool = False
    request: str = "binding"

    @property
    def at_release(self) -> bool:
        """Whether one member is refused for ever, and the death is in the midst of the release."""
        return self.request in AT_RELEASE

    @property
    def bound_before(self) -> int:
        """How many members are bound when a process dies before it releases anything."""
        return self.turn - (self.what == "before") if self.request == "binding" else GANG_SIZE

    def __str__(self) -> str:
        if not self.is_death:
            return f"{self.request} {self.turn} {self.what}"
        return f"killed {self.what} {self.request} {self.turn}{', room gone' if self.is_full else ''}"


def points_of(turns: tuple[int, ...], deaths: dict[str, tuple[int, ...]]) -> Iterator[Point]:
    """Everything that happens at these bindings, and the deaths at these other requests."""
    for turn in turns:
        yield from (Point(what, turn) for what in FAULTS)
        if turn == AWAY_TURN:
            yield Point(AWAY, turn)
        for what in DEATHS:
            death = Point(what, turn, is_death=True)
            yield death
            if 0 < death.bound_before < GANG_SIZE:
                yield death._replace(is_full=True)
    for request, times in deaths.items():
        for turn in times:
            yield from (Point(what, turn, is_death=True, request=request) for what in DEATHS)


class Outcome(NamedTuple):
    """How a gang ended (whole, released, unfinished), how long it held a part, and what was broken."""

    end: str
    held_s: float
    broken: list[str]


class Bench:
    """A stage, the proxy, and the scheduler behind it; a fresh one for each that was killed."""

    def __init__(self, stage: Stage, proxy: FaultProxy) -> None:
        self._stage = stage
        self._proxy = proxy
        kubeconfig = kubeconfig_for(stage.folder, proxy.address)
        self.scheduler = Scheduler(stage.folder, kubeconfig=kubeconfig)

    async def play(self, name: str, point: Point) -> Outcome:
        """Let it happen to a new gang and wait for the end of it."""
        stage, ledger = self._stage, self._stage.ledger
        told = len(ledger.broken)
        if not self.scheduler.is_running:
            await self.scheduler.start()
        rule = self._arm(name, point)
        broken = []
        is_late = False
        await stage.create_gang(
            name, GANG_SIZE, bind_timeout=f"{BIND_TIMEOUT_S:.0f}", release_bare_pods="true"
        )
        try:
            await until(lambda: rule.hits > 0, "the request that was waited for")
            if point.what == AWAY:
                await asyncio.sleep(AWAY_S)
                self._proxy.restore()
                is_late = True
            elif point.is_death:
                await self._replace(name, point)
                held_s = max(ledger.held_for_s(name, time.monotonic()), ledger.half_s.get(name, 0.0))
                is_late = held_s > IN_TIME_S
            await until(lambda: ledger.was_whole(name) or self._is_empty(name), "whole or empty")
            await self._hear(name)
        except Late as error:
            broken.append(str(error))
        self._proxy.rules.clear()
        broken += ledger.broken[told:]
        outcome = self._judge(name, point, broken, is_late=is_late)
        await stage.delete_gang(name)
        await stage.delete_fillers()
        await until(lambda: ledger.there(name) == 0, "every pod is gone")
        return outcome

    def _arm(self, name: str, point: Point) -> Rule:
        """Set the rules; the one that is given is hit when the thing happens."""
        if point.what == AWAY:
            rule = Rule("POST", BINDING, Fault.LOSE_REQUEST, skip=point.turn - 1, on_hit=self._proxy.cut)
            self._proxy.rules = [rule]
            return rule
        if not point.is_death:
            known = FAULTS[point.what]
            rule = Rule(
                "POST",
                BINDING,
                known.fault,
                skip=point.turn - 1,
                status=known.status,
                retry_after_s=known.retry_after_s,
                delay_s=known.delay_s,
            )
            self._proxy.rules = [rule]
            return rule
        rule = Rule(
            *REQUESTS[point.request],
            DEATHS[point.what],
            skip=point.turn - 1,
            one_at_a_time=True,
            on_hit=self._kill,
        )
        refused = Rule("POST", rf"/{name}-00/binding$", Fault.REFUSE, status=403, count=FOR_EVER)
        self._proxy.rules = [refused, rule] if point.at_release else [rule]
        return rule

    def _kill(self) -> None:
        """What `kill -9` does; nothing that was still to leave reaches the server."""
        os.kill(self.scheduler.process_id, signal.SIGKILL)
        self._proxy.cut()

    async def _replace(self, name: str, point: Point) -> None:
        await self.scheduler.ended()
        bound = self._stage.ledger.bound
        if not point.at_release:
            await until(lambda: bound(name) == point.bound_before, f"{point.bound_before} bound when it died")
        if point.is_full:
            await self._stage.fill()
        self._proxy.rules = [each for each in self._proxy.rules if each.fault is Fault.REFUSE]
        self._proxy.restore()
        await self.scheduler.start()

    async def _hear(self, name: str) -> None:
        """Wait until the group says what is so.  Raises Late."""
        end_s = time.monotonic() + SLACK_S
        while (said := await self._says_whole(name)) != self._stage.ledger.was_whole(name):
            if time.monotonic() > end_s:
                raise Late(f"{name} says {'True' if said else 'nothing or False'}, which is not so")
            await asyncio.sleep(LOOK_S)

    async def _says_whole(self, name: str) -> bool:
        conditions = (await self._stage.group(name)).get("status", {}).get("conditions", [])
        return any(each["type"] == SCHEDULED and each["status"] == "True" for each in conditions)

    def _is_empty(self, name: str) -> bool:
        """Whether it held a part and holds nothing now; those that were never bound may wait on."""
        return name in self._stage.ledger.half_s and self._stage.ledger.bound(name) == 0

    def _judge(self, name: str, point: Point, seen: list[str], *, is_late: bool) -> Outcome:
        ledger = self._stage.ledger
        is_whole = ledger.was_whole(name) and ledger.bound(name) == GANG_SIZE
        end = "whole" if is_whole else "released" if self._is_empty(name) else "unfinished"
        held_s = ledger.half_s.get(name, 0.0)
        broken = list(seen)
        if 0 < ledger.bound(name) < GANG_SIZE:
            broken.append(f"it holds {ledger.bound(name)} of {GANG_SIZE}")
        if held_s > BIND_TIMEOUT_S + SLACK_S:
            broken.append(f"it held a part for {held_s:.0f} s")
        wanted = "released" if point.is_full or point.at_release else "whole"
        if end != wanted and not (is_late and end == "released"):
            broken.append(f"it should have ended {wanted} and is {end}")
        broken += [f"accepted twice: {path}" for path in self._proxy.bound_twice(name)]
        return Outcome(end, held_s, broken)


async def play(points: list[Point], record: Record, *, is_embedded: bool) -> int:
    """Play those that are not in the record yet; 1 if something was broken."""
    left = [point for point in points if not record.has(str(point))]
    stopped = ""
    async with open_stage(nodes=NODES, cores=CORES, is_embedded=is_embedded) as stage:
        async with stage.proxy() as proxy:
            bench = Bench(stage, proxy)
            try:
                for number, point in enumerate(left):
                    began_s = time.monotonic()
                    end, held_s, broken = await bench.play(f"g{number:03}", point)
                    took_s = time.monotonic() - began_s
                    print(f"{point}: {took_s:.1f} s {'; '.join(broken) or 'good'}", flush=True)
                    record.add(str(point), broken, end=end, held_s=round(held_s, 1))
            except Late as error:
                stopped = str(error)
            finally:
                await bench.scheduler.stop()
        if record.broken or stopped:
            print(bench.scheduler.log.read_text()[-6000:])
    all_broken = record.broken + ([stopped] if stopped else [])
    for line in all_broken:
        print(f"BROKEN: {line}")
    ends = Counter(item["end"] for item in record.items)
    longest_s = max((item["held_s"] for item in record.items), default=0.0)
    figures = {"points": len(record.items), "broken": len(all_broken), **ends, "longest_half_s": longest_s}
    print(json.dumps(figures))
    return 1 if all_broken else 0


def main(words: list[str]) -> int:
    """Read the options and play."""
    reader = argparse.ArgumentParser(prog="scripts/reliability crash")
    reader.add_argument("--full", action="store_true", help="at each request, not only at some")
    add_options(reader)
    asked = reader.parse_args(words)
    turns, deaths = (FULL_TURNS, FULL_DEATHS) if asked.full else (QUICK_TURNS, QUICK_DEATHS)
    points = list(points_of(turns, deaths))
    return asyncio.run(play(points, Record(asked.results), is_embedded=asked.embedded))
