"""One gang whose bindings always fail: how long the others wait beside it, and how long without.

By turns its bindings are refused, or are not answered at all (as where a webhook hangs), and then it has more
members than there are places for requests.
"""

import asyncio
from typing import Any, NamedTuple

from tests.reliability.figures import waits_of
from tests.reliability.proxy import FOR_EVER, Fault, Rule
from tests.reliability.stage import Scheduler, Stage, kubeconfig_for, open_stage, until

NODES, CORES, SIZE = 16, 8, 4
GANGS_A_PHASE = 40
EVERY_S = 0.15
HANGS_S = 30.0  # the client gives up after five
FIRST_S = 1.5  # until its gang is known to be slow, an unanswered binding keeps its place
GOAL = 1.1


class Trouble(NamedTuple):
    """What is the matter with a gang of so many; `hits`: so many of its bindings have met it by then."""

    size: int
    hits: int
    rule: Rule


def _troubles() -> dict[str, Trouble]:
    def rule(name: str, fault: Fault, **how: Any) -> Rule:
        return Rule("POST", rf"/pods/{name}[^/]*/binding$", fault, count=FOR_EVER, **how)

    return {
        "refused": Trouble(20, 20, rule("refused", Fault.REFUSE, status=403)),
        "unanswered": Trouble(100, 64, rule("unanswered", Fault.HANG, delay_s=HANGS_S)),
    }


async def play(phases: int) -> tuple[dict[str, Any], list[str]]:
    """So many times without one and as many beside each, by turns; figures, and what was broken."""
    troubles = _troubles()
    waits_s: dict[str, list[float]] = {"without": [], **{name: [] for name in troubles}}
    async with open_stage(nodes=NODES, cores=CORES) as stage:
        async with stage.proxy() as proxy:
            proxy.rules = [trouble.rule for trouble in troubles.values()]
            kubeconfig = kubeconfig_for(stage.folder, proxy.address)
            async with Scheduler(stage.folder, kubeconfig=kubeconfig):
                await _measure(stage, "warm")
                for phase in range(phases):
                    waits_s["without"] += await _measure(stage, f"a{phase}")
                    for name, trouble in troubles.items():
                        await _begin(stage, f"{name}{phase}", trouble)
                        waits_s[name] += await _measure(stage, f"b{phase}-{name}")
                        await stage.delete_gang(f"{name}{phase}")
        broken = [*stage.ledger.broken, *(f"{name} holds a part" for name in stage.ledger.halves)]
    waits = {name: waits_of(seconds) for name, seconds in waits_s.items()}
    without = waits["without"]
    ratios = {
        name: {
            "p50": round(waits[name].p50_ms / max(without.p50_ms, 0.1), 2),
            "p99": round(waits[name].p99_ms / max(without.p99_ms, 0.1), 2),
        }
        for name in troubles
    }
    hits = {name: trouble.rule.hits for name, trouble in troubles.items()}
    return {
        "hits": hits,
        **{name: found._asdict() for name, found in waits.items()},
        "ratios": ratios,
        "goal_p99": GOAL,
    }, broken


async def _begin(stage: Stage, name: str, trouble: Trouble) -> None:
    """A gang in trouble, and time for it to show."""
    hits = trouble.rule.hits
    await stage.create_gang(name, trouble.size)
    await until(lambda: trouble.rule.hits >= hits + trouble.hits, f"the bindings of {name} fail")
    await asyncio.sleep(FIRST_S)


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
