"""A queue that does not fit: thousands of pods pending, room for a tenth of their gangs.

All gangs are alike and the nodes have room for exactly so many, so what can be bound is known.  Then one gang
after another goes, and each time one of those that wait must take the room.
"""

import asyncio
import time
from typing import Any

from tests.reliability.figures import cpu_s, resident_mib, waits_of
from tests.reliability.stage import Scheduler, open_stage, until

NODES, CORES, SIZE = 200, 10, 10
ROOM_FOR = NODES * CORES // SIZE
TURNS = 50
CREATORS = 8
PATIENCE_S = 600.0
CALM_S = 3.0  # after the last binding that is due: one too many would come now


async def play(gangs: int) -> tuple[dict[str, Any], list[str]]:
    """Create so many gangs, then take gangs away one by one; figures, and what was broken."""
    broken: list[str] = []
    async with open_stage(nodes=NODES, cores=CORES) as stage:
        ledger = stage.ledger
        async with Scheduler(stage.folder, kubeconfig=stage.server.kubeconfig) as scheduler:
            began_s = time.monotonic()
            names = iter([f"g{number:04}" for number in range(gangs)])

            async def create() -> None:
                for name in names:
                    await stage.create_gang(name, SIZE)

            await asyncio.gather(*(create() for _ in range(CREATORS)))
            created_s = time.monotonic()
            room_for = min(gangs, ROOM_FOR)
            await until(lambda: len(ledger.whole_s) >= room_for, f"{room_for} gangs are whole", PATIENCE_S)
            filled_s = max(ledger.whole_s.values())
            await asyncio.sleep(CALM_S)
            waits_s = []
            for _ in range(min(TURNS, gangs - room_for)):
                there = [name for name in ledger.whole_s if ledger.there(name)]
                count = len(ledger.whole_s)
                gone_s = time.monotonic()
                await stage.delete_gang(there[0])
                await until(lambda: len(ledger.whole_s) > count, "a gang takes the room", PATIENCE_S)  # noqa: B023
                waits_s.append(max(ledger.whole_s.values()) - gone_s)
            await asyncio.sleep(CALM_S)
            whole = sum(ledger.bound(name) == SIZE for name in ledger.whole_s)
            if whole != room_for:
                broken.append(f"{whole} gangs hold room for {room_for}")
            broken += [f"{name} holds {ledger.bound(name)} of {SIZE}" for name in ledger.halves]
            figures = {
                "pods": gangs * SIZE,
                "gangs": gangs,
                "room_for": room_for,
                "created_a_s": round(gangs * SIZE / (created_s - began_s)),
                "filled_after_s": round(filled_s - began_s, 1),
                "refill": waits_of(waits_s)._asdict(),
                "longest_half_s": round(ledger.longest_half_s(time.monotonic()), 2),
                "resident_mib": round(resident_mib(scheduler.process_id)),
                "cpu_s": round(cpu_s(scheduler.process_id), 1),
            }
        return figures, broken + ledger.broken
