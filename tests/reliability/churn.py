"""Gangs come and go for a long time, beside some that never fit: what is kept of them must not grow."""

import asyncio
import contextlib
import statistics
import time
from typing import Any

from tests.reliability.failover import GANG_SIZE, Stream
from tests.reliability.figures import cpu_s, resident_mib
from tests.reliability.stage import Scheduler, open_stage

NODES, CORES = 20, 8
GANGS_THERE = 30  # of the forty that fit
NEVER_FIT = 20
EVERY_S = 0.1
SAMPLE_S = 5.0
STEADY_FROM_MIN = 10.0
GROWTH_MAX = 0.02


async def play(minutes: float) -> tuple[dict[str, Any], list[str]]:
    """Let gangs come and go for so many minutes; figures, and what was broken.

    Growth is counted from minute ten on, of a shorter run from its middle on, and judged of the former only.
    """
    async with open_stage(nodes=NODES, cores=CORES) as stage:
        async with Scheduler(stage.folder, kubeconfig=stage.server.kubeconfig) as scheduler:
            for number in range(NEVER_FIT):
                await stage.create_gang(f"never{number:02}", GANG_SIZE, cores=CORES + 1)
            stream = Stream(stage, every_s=EVERY_S, there_max=GANGS_THERE)
            flowing = asyncio.create_task(stream.flow())
            samples = await _sample(scheduler.process_id, flowing, minutes)
            flowing.cancel()
            await asyncio.wait([flowing])
            if not flowing.cancelled() and (error := flowing.exception()) is not None:
                raise error
            broken = [f"gang {name} was never whole" for name in await stream.settle()]
            broken += [f"{name} holds {stage.ledger.bound(name)}" for name in stage.ledger.halves]
            used_s = cpu_s(scheduler.process_id)
        broken += stage.ledger.broken
    from_min = min(STEADY_FROM_MIN, minutes / 2)
    growth = growth_of(samples, from_min)
    if minutes >= 2 * STEADY_FROM_MIN and growth > GROWTH_MAX:
        broken.append(f"memory grew by {growth:.1%} from minute {from_min:.0f} on")
    return {
        "minutes": minutes,
        "gangs": stream.made,
        "growth": round(growth, 4),
        "growth_from_min": from_min,
        "mib_by_minute": by_minute(samples),
        "cpu_s": round(used_s, 1),
        "longest_half_s": round(stage.ledger.longest_half_s(time.monotonic()), 2),
    }, broken


async def _sample(process_id: int, flowing: asyncio.Task[None], minutes: float) -> list[tuple[float, float]]:
    """Minutes since the start and memory in MiB, until the time is over or the stream broke."""
    began_s = time.monotonic()
    samples = []
    while (passed_s := time.monotonic() - began_s) < minutes * 60.0 and not flowing.done():
        samples.append((passed_s / 60.0, resident_mib(process_id)))
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(flowing), SAMPLE_S)
    return samples


def by_minute(samples: list[tuple[float, float]]) -> list[float]:
    """The median of each minute."""
    minutes = sorted({int(at) for at, _ in samples})
    return [round(statistics.median(mib for at, mib in samples if int(at) == each), 1) for each in minutes]


def growth_of(samples: list[tuple[float, float]], from_min: float) -> float:
    """From the minute that begins then to the last one, by medians: 0.02 is two parts in a hundred."""
    end_min = samples[-1][0]
    first = statistics.median(mib for at, mib in samples if from_min <= at < from_min + 1.0)
    last = statistics.median(mib for at, mib in samples if at > end_min - 1.0)
    return last / first - 1.0
