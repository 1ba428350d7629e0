"""Two `muster run` under one lease and a stream of gangs, and the leader is taken away, round after round.

    python -m tests.reliability failover [--rounds N] [--full] [--embedded] [--results FILE]

By turns the leader is killed (SIGKILL), terminated (SIGTERM), or paused for longer than the lease (SIGSTOP,
later SIGCONT).  A round is good when no node has more than its own, no pod was bound twice, every gang became
whole, and a leader that was paused wrote nothing more.  The longest time without a binding after each is
printed beside its goal, never judged: it depends on the machine.
"""

import argparse
import asyncio
import contextlib
import itertools
import json
import signal
import time
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from tests.reliability.record import Record, add_options
from tests.reliability.stage import Late, Scheduler, Stage, open_stage, until

NODES, CORES, GANG_SIZE = 10, 8, 4
GANGS_THERE_MAX = 14  # of the twenty that fit
EVERY_S = 0.4
QUICK_ROUNDS, FULL_ROUNDS = 5, 50
LEASE_S = 15.0
GOALS_S = {"killed": LEASE_S + 7.0, "paused": LEASE_S + 7.0, "terminated": 2.0}
BINDS_AFTER = 3 * GANG_SIZE
PAUSE_LEFT_S = 3.0  # a paused leader sleeps on after the other one has begun


class Stream:
    """Gangs that come one after another, and go once they were whole, oldest first."""

    def __init__(self, stage: Stage, *, every_s: float = EVERY_S, there_max: int = GANGS_THERE_MAX) -> None:
        self.made = 0
        self._stage = stage
        self._every_s = every_s
        self._there_max = there_max
        self._there: list[str] = []
        self._numbers: Iterator[int] = itertools.count()

    async def flow(self) -> None:
        """Create and delete until cancelled."""
        while True:
            if len(self._there) < self._there_max:
                await self._create()
            else:
                await self._delete_oldest_whole()
            await asyncio.sleep(self._every_s)

    async def settle(self) -> list[str]:
        """Wait for all that is there to be whole, remove it, and give those that never were."""
        ledger = self._stage.ledger
        with contextlib.suppress(Late):
            await until(lambda: all(map(ledger.was_whole, self._there)), "every gang is whole")
        lost = [name for name in self._there if not ledger.was_whole(name)]
        for name in self._there:
            await self._stage.delete_gang(name)
        await until(lambda: not any(map(ledger.there, self._there)), "every pod is gone")
        self._there = []
        return lost

    async def _create(self) -> None:
        name = f"g{next(self._numbers):05}"
        self._there.append(name)  # before: what a cancellation leaves half made must be seen to go
        self.made += 1
        await self._stage.create_gang(name, GANG_SIZE)

    async def _delete_oldest_whole(self) -> None:
        for name in self._there:
            if self._stage.ledger.was_whole(name):
                await self._stage.delete_gang(name)
                self._there.remove(name)
                return


class Round(NamedTuple):
    """What came of one: how the leader went, the longest silence after it, and what was broken."""

    how: str
    silence_s: float
    broken: list[str]


class Pair:
    """Two replicas; which of them leads is asked, never assumed."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        kubeconfig = stage.server.kubeconfig
        self._replicas = [
            Scheduler(stage.folder, name, kubeconfig=kubeconfig, elects_leader=True) for name in ("a", "b")
        ]

    async def start(self) -> None:
        """Start those that do not run."""
        for replica in self._replicas:
            if not replica.is_running:
                await replica.start()

    async def stop(self) -> None:
        """End both."""
        for replica in self._replicas:
            replica.send(signal.SIGCONT) if replica.is_running else None
            await replica.stop()

    async def leader(self) -> Scheduler:
        """The one that leads.  Raises Late."""
        end_s = time.monotonic() + 60.0
        while time.monotonic() < end_s:
            for replica in self._replicas:
                if replica.is_running and await replica.leads():
                    return replica
            await asyncio.sleep(0.2)
        raise Late("neither replica leads")


async def play_round(stage: Stage, pair: Pair, stream: Stream, how: str) -> Round:
    """Take the leader away under a stream, and bring it back."""
    ledger = stage.ledger
    told = len(ledger.broken)
    await pair.start()
    flowing = asyncio.create_task(stream.flow())
    try:
        await _binds_more(stage)
        leader = await pair.leader()
        gone_s = time.monotonic()
        broken = await _take_away(stage, leader, how)
        await _binds_more(stage)
        silence_s = ledger.longest_silence_s(gone_s, time.monotonic())
    finally:
        flowing.cancel()
        await asyncio.wait([flowing])
    if not flowing.cancelled() and (error := flowing.exception()) is not None:
        raise error
    broken += [f"gang {name} was never whole" for name in await stream.settle()]
    return Round(how, silence_s, broken + ledger.broken[told:])


async def _take_away(stage: Stage, leader: Scheduler, how: str) -> list[str]:
    """Do it; what is wrong about how the process went."""
    if how == "killed":
        leader.send(signal.SIGKILL)
        await leader.ended()
        return []
    if how == "terminated":
        leader.send(signal.SIGTERM)
        code = await leader.ended()
        return [] if code == 0 else [f"SIGTERM ended the leader with {code}"]
    leader.send(signal.SIGSTOP)
    try:
        await asyncio.sleep(LEASE_S)
        await _binds_more(stage)
        await asyncio.sleep(PAUSE_LEFT_S)
    finally:
        leader.send(signal.SIGCONT)
    code = await leader.ended()
    return [] if code == 1 else [f"a leader that lost its lease in a pause ended with {code}"]


async def _binds_more(stage: Stage) -> None:
    """Wait until some more pods were bound."""
    binds_s = stage.ledger.binds_s
    wanted = len(binds_s) + BINDS_AFTER
    await until(lambda: len(binds_s) >= wanted, f"{BINDS_AFTER} more pods are bound")


async def play(rounds: int, record: Record, *, is_embedded: bool) -> int:
    """Play those of so many rounds that are not in the record yet; 1 if something was broken."""
    hows = [f"round {number}, {how}" for number, how in zip(range(1, rounds + 1), itertools.cycle(GOALS_S))]
    stopped = ""
    async with open_stage(nodes=NODES, cores=CORES, is_embedded=is_embedded) as stage:
        pair, stream = Pair(stage), Stream(stage)
        try:
            for name in hows:
                if record.has(name):
                    continue
                made = stream.made
                played = await play_round(stage, pair, stream, name.split(", ")[1])
                record.add(
                    name,
                    played.broken,
                    how=played.how,
                    gap_s=round(played.silence_s, 1),
                    gangs=stream.made - made,
                )
                print(f"{name}: {played.silence_s:.1f} s without a binding", flush=True)
        except Late as error:
            stopped = str(error)
        finally:
            await pair.stop()
        if record.broken or stopped:
            for log in sorted(stage.folder.glob("*.log")):
                print(f"── {log.name}\n{log.read_text()[-4000:]}")
    return _tell(record, stopped, rounds)


def _tell(record: Record, stopped: str, rounds: int) -> int:
    broken = record.broken + ([stopped] if stopped else [])
    for line in broken:
        print(f"BROKEN: {line}")
    gaps_s: dict[str, list[float]] = defaultdict(list)
    for item in record.items:
        gaps_s[item["how"]].append(item["gap_s"])
    figures = {
        "rounds": len(record.items),
        "gangs": sum(item["gangs"] for item in record.items),
        "broken": len(broken),
        "gap_s": {how: {"max": max(all_s), "goal": GOALS_S[how]} for how, all_s in gaps_s.items()},
    }
    print(json.dumps(figures))
    return 1 if broken or len(record.items) < rounds else 0


def main(words: list[str]) -> int:
    """Read the options and play."""
    reader = argparse.ArgumentParser(prog="scripts/reliability failover")
    reader.add_argument("--rounds", type=int, default=QUICK_ROUNDS, help=f"how many (default {QUICK_ROUNDS})")
    reader.add_argument("--full", action="store_true", help=f"{FULL_ROUNDS} rounds")
    add_options(reader)
    asked = reader.parse_args(words)
    rounds = FULL_ROUNDS if asked.full else asked.rounds
    return asyncio.run(play(rounds, Record(asked.results), is_embedded=asked.embedded))
