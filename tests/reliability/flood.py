"""Ten thousand watch lines of 4 KB a second: how long gangs wait beside that, and how long without.

The server is a stub, for no stock one sends so much from two cores.  Quiet and loud times take turns, so that
a machine which others use as well is as busy in the one as in the other.
"""

import asyncio
import contextlib
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from tests.reliability.figures import cpu_s, resident_mib, waits_of
from tests.reliability.stage import Scheduler, kubeconfig_for, until
from tests.reliability.stub import StubServer

NODES, CORES, SIZE = 200, 16, 8
LINES_A_S = 10_000
PHASE_S = 10.0
EVERY_S = 0.2
GOAL = 2.0


async def play(phases: int) -> tuple[dict[str, Any], list[str]]:
    """Measure so many quiet times and as many loud ones; figures, and what was broken."""
    with tempfile.TemporaryDirectory(prefix="muster-flood-") as folder:
        async with StubServer(NODES, CORES) as server:
            kubeconfig = kubeconfig_for(Path(folder), server.address)
            async with Scheduler(Path(folder), kubeconfig=kubeconfig) as scheduler:
                await until(lambda: server.is_watched, "pods and groups are watched")
                waits_s: dict[bool, list[float]] = {False: [], True: []}
                for phase in range(2 * phases):
                    is_loud = phase % 2 == 1
                    waits_s[is_loud] += await _measure(server, f"g{phase:02}", is_loud)
                used = {
                    "resident_mib": round(resident_mib(scheduler.process_id)),
                    "cpu_s": round(cpu_s(scheduler.process_id), 1),
                }
    quiet, loud = waits_of(waits_s[False]), waits_of(waits_s[True])
    broken = [*server.ledger.broken, *(f"{name} holds a part" for name in server.ledger.halves)]
    return {
        "lines_a_s": round(server.taken / (phases * PHASE_S)),
        "quiet": quiet._asdict(),
        "flood": loud._asdict(),
        "p99_ratio": round(loud.p99_ms / max(quiet.p99_ms, 0.1), 2),
        "goal": GOAL,
        **used,
    }, broken


async def _measure(server: StubServer, name: str, is_loud: bool) -> list[float]:
    """The waits of the gangs of one phase; they are gone at its end."""
    ledger = server.ledger
    names: list[str] = []
    async with _flooded(server, LINES_A_S if is_loud else 0):
        end_s = time.monotonic() + PHASE_S
        while time.monotonic() < end_s:
            names.append(f"{name}-{len(names):03}")
            await server.create_gang(names[-1], SIZE)
            await asyncio.sleep(EVERY_S)
            await _delete_whole(server, names)
        await until(lambda: all(map(ledger.was_whole, names)), "every gang is whole")
    await server.create_gang(
        f"{name}-last", SIZE
    )  # told after all of the flood: it ends what that left to read
    await until(lambda: ledger.was_whole(f"{name}-last"), "the flood is read")
    await server.delete_gang(f"{name}-last")
    await _delete_whole(server, names)
    return [ledger.wait_s(each) for each in names]


async def _delete_whole(server: StubServer, names: list[str]) -> None:
    for name in names:
        if server.ledger.was_whole(name) and server.ledger.there(name):
            await server.delete_gang(name)


@contextlib.asynccontextmanager
async def _flooded(server: StubServer, lines_a_s: int) -> AsyncIterator[None]:
    flooding = asyncio.create_task(server.flood(lines_a_s)) if lines_a_s else None
    try:
        yield
    finally:
        if flooding is not None:
            flooding.cancel()
            await asyncio.wait([flooding])
