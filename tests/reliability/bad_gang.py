"""One gang whose bindings are always refused: how long the others wait beside it, and how long without."""

import asyncio
from typing import Any

from tests.reliability.figures import waits_of
from tests.reliability.proxy import FOR_EVER, Fault, Rule
from tests.reliability.stage import Scheduler, Stage, kubeconfig_for, open_stage, until

NODES, CORES, SIZE = 10, 8, 4
BAD_SIZE = 20
GANGS_A_PHASE = 40
EVERY_S = 0.15
GOAL = 1.1


async def play(phases: int) -> tuple[dict[str, Any], list[str]]:
    """So many times without it and as many beside it, by turns; figures, and what was broken."""
    waits_s: dict[bool, list[float]] = {False: [], True: []}
    refused = Rule("POST", r"/pods/bad[^/]*/binding$", Fault.REFUSE, status=403, count=FOR_EVER)
    async with open_stage(nodes=NODES, cores=CORES) as stage:
        async with stage.proxy() as proxy:
            proxy.rules = [refused]
            kubeconfig = kubeconfig_for(stage.folder, proxy.address)
            async with Scheduler(stage.folder, kubeconfig=kubeconfig):
                await _measure(stage, "warm")
                for phase in range(phases):
                    waits_s[False] += await _measure(stage, f"a{phase}")
                    hits = refused.hits
                    await stage.create_gang(f"bad{phase}", BAD_SIZE)
                    await until(lambda: refused.hits >= hits + BAD_SIZE, "the bad gang is refused")  # noqa: B023
                    waits_s[True] += await _measure(stage, f"b{phase}")
                    await stage.delete_gang(f"bad{phase}")
        broken = [*stage.ledger.broken, *(f"{name} holds a part" for name in stage.ledger.halves)]
    without, beside = waits_of(waits_s[False]), waits_of(waits_s[True])
    return {
        "refusals": refused.hits,
        "without": without._asdict(),
        "beside": beside._asdict(),
        "p99_ratio": round(beside.p99_ms / max(without.p99_ms, 0.1), 2),
        "p50_ratio": round(beside.p50_ms / max(without.p50_ms, 0.1), 2),
        "goal": GOAL,
    }, broken


async def _measure(stage: Stage, name: str) -> list[float]:
    """The waits of some gangs that come one after another; they are gone at its end."""
    ledger = stage.ledger
    names = [f"{name}-{number:03}" for number in range(GANGS_A_PHASE)]
    for each in names:
        await stage.create_gang(each, SIZE)
        await until(lambda: ledger.was_whole(each), f"{each} is whole")  # noqa: B023
        await stage.delete_gang(each)
        await asyncio.sleep(EVERY_S)
    await until(lambda: not any(map(ledger.there, names)), "every pod is gone")
    return [ledger.wait_s(each) for each in names]
