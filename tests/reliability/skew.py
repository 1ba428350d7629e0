"""What an earlier release of Muster left half done, and whether this one finishes it.

    python -m tests.reliability skew             this Muster finishes what each release in `left/` left
    python -m tests.reliability skew --record    write what this release leaves to `left/`

A release is killed in the midst of binding, after a gang has been under way for a while, in the midst of a
release, and after a started gang has lost a member; the objects that are on the stock API server then are
kept, a file a release.  To play, they are put on a fresh server as they were, their times moved to now, and
`muster run` must come to the end that the state asks for.
"""

import argparse
import asyncio
import json
import re
import signal
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.conformance.server import GROUPS, PODS
from tests.reliability.proxy import BINDING, DELETION, FOR_EVER, Fault, FaultProxy, Rule
from tests.reliability.stage import Late, Scheduler, Stage, kubeconfig_for, open_stage, until

from muster import __version__

Object = dict[str, Any]

LEFT = Path(__file__).parent / "left"
NODES, CORES, GANG_SIZE = 2, 4, 6
BOUND = 3  # of them, in the midst of a binding
WHOLE, RELEASED = "whole", "released"
# State → whether the rest of the room is gone when the other release begins, and the end it must come to.
PLAYS: tuple[tuple[str, bool, str], ...] = (
    ("binding", False, WHOLE),
    ("binding", True, RELEASED),
    ("under way", False, WHOLE),
    ("releasing", False, RELEASED),
    ("member lost", False, WHOLE),
)
REFUSED = r"/pods/[^/]+-00/binding$"
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_OF_THE_SERVER = ("uid", "resourceVersion", "managedFields", "creationTimestamp", "generation", "selfLink")


# ── what a release leaves ──


class Recorder:
    """A stage, and a scheduler behind a proxy that dies where it should."""

    def __init__(self, stage: Stage, proxy: FaultProxy) -> None:
        self._stage = stage
        self._proxy = proxy
        kubeconfig = kubeconfig_for(stage.folder, proxy.address)
        self.scheduler = Scheduler(stage.folder, kubeconfig=kubeconfig)

    async def record(self) -> dict[str, Object]:
        """What is left in each state, by its name."""
        states: dict[str, Callable[[str], Awaitable[None]]] = {
            "binding": self._binding,
            "under way": self._under_way,
            "releasing": self._releasing,
            "member lost": self._member_lost,
        }
        left = {}
        for number, (state, reach) in enumerate(states.items()):
            name = f"gang{number}"
            self._proxy.rules = []
            self._proxy.restore()
            await self.scheduler.start()
            await reach(name)
            left[state] = {"at": _text(datetime.now(UTC)), **await self._left(name)}
            await self._stage.delete_gang(name)
            await until(lambda: self._stage.ledger.there(name) == 0, "every pod is gone")  # noqa: B023
        return left

    async def _binding(self, name: str) -> None:
        self._die_at("POST", BINDING, turn=BOUND)
        await self._stage.create_gang(name, GANG_SIZE, bind_timeout="30", release_bare_pods="true")
        await self.scheduler.ended()

    async def _under_way(self, name: str) -> None:
        self._proxy.rules = [Rule("POST", REFUSED, Fault.REFUSE, status=403, count=FOR_EVER)]
        await self._stage.create_gang(name, GANG_SIZE)
        while "UnderWay" not in json.dumps(await self._stage.group(name)):
            await asyncio.sleep(1.0)
        self._die()
        await self.scheduler.ended()

    async def _releasing(self, name: str) -> None:
        self._die_at("DELETE", DELETION, turn=2)
        refused = Rule("POST", REFUSED, Fault.REFUSE, status=403, count=FOR_EVER)
        self._proxy.rules.insert(0, refused)
        await self._stage.create_gang(name, GANG_SIZE, bind_timeout="10", release_bare_pods="true")
        await self.scheduler.ended()

    async def _member_lost(self, name: str) -> None:
        await self._stage.create_gang(name, GANG_SIZE)
        while "Bound" not in json.dumps(await self._stage.group(name)):
            await asyncio.sleep(0.5)
        await self._stage.delete_pod(f"{name}-00")
        while "MembersLost" not in json.dumps(await self._stage.group(name)):
            await asyncio.sleep(0.5)
        self._die()
        await self.scheduler.ended()

    def _die_at(self, method: str, path: str, *, turn: int) -> None:
        rule = Rule(method, path, Fault.LOSE_ANSWER, skip=turn - 1, one_at_a_time=True, on_hit=self._die)
        self._proxy.rules = [rule]

    def _die(self) -> None:
        self.scheduler.send(signal.SIGKILL)
        self._proxy.cut()

    async def _left(self, name: str) -> Object:
        pods = (await self._stage.call("GET", PODS))["items"]
        return {
            "group": _bare(await self._stage.group(name)),
            "pods": [_bare(pod) for pod in pods if "deletionTimestamp" not in pod["metadata"]],
        }


def _bare(thing: Object) -> Object:
    metadata = {key: value for key, value in thing["metadata"].items() if key not in _OF_THE_SERVER}
    return {**thing, "metadata": metadata}


def _text(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


async def _record() -> int:
    async with open_stage(nodes=NODES, cores=CORES) as stage, stage.proxy() as proxy:
        recorder = Recorder(stage, proxy)
        try:
            left = await recorder.record()
        finally:
            await recorder.scheduler.stop()
    LEFT.mkdir(exist_ok=True)
    lines = ",\n".join(f"{json.dumps(state)}: {json.dumps(what)}" for state, what in left.items())
    (LEFT / f"{__version__}.json").write_text(f"{{\n{lines}\n}}\n")
    return 0


# ── whether this one finishes it ──


def moved_to(left: Object, now: datetime) -> Object:
    """What was left, with every time in it as if it had been left now."""
    since = now - datetime.fromisoformat(left["at"])

    def move(found: re.Match[str]) -> str:
        return _text(datetime.fromisoformat(found.group()) + since)

    moved: Object = json.loads(_TIME.sub(move, json.dumps(left)))
    return moved


async def _put(stage: Stage, left: Object) -> str:
    """Make the objects as they were; the name of the gang."""
    name: str = left["group"]["metadata"]["name"]
    stage.size_of[name] = GANG_SIZE
    await _put_one(stage, GROUPS, left["group"])
    for pod in left["pods"]:
        await _put_one(stage, PODS, pod)
    return name


async def _put_one(stage: Stage, path: str, thing: Object) -> None:
    made = await stage.call("POST", path, thing)
    status = {**made, "status": thing.get("status", {})}
    await stage.call("PUT", f"{path}/{thing['metadata']['name']}/status", status)


async def _finish(stage: Stage, left: Object, is_full: bool, end: str) -> list[str]:
    """Let this Muster finish one; what was broken."""
    ledger = stage.ledger
    told = len(ledger.broken)
    name = await _put(stage, left)
    there = {pod["metadata"]["name"] for pod in left["pods"]}
    bound_at = {pod["metadata"]["name"]: pod["spec"].get("nodeName") for pod in left["pods"]}
    await until(lambda: ledger.there(name) == len(there), "the watch shows what was left")
    if is_full:
        await stage.fill()
    broken = []
    async with Scheduler(stage.folder, kubeconfig=stage.server.kubeconfig):
        try:
            if end == WHOLE:
                for number in range(GANG_SIZE):
                    if f"{name}-{number:02}" not in there:
                        await stage.create_member(name, number)
                await until(lambda: ledger.was_whole(name), "whole")
                pods = (await stage.call("GET", PODS))["items"]
                node_of = {pod["metadata"]["name"]: pod["spec"].get("nodeName") for pod in pods}
                moved = [pod for pod, node in bound_at.items() if node and node_of.get(pod) != node]
                broken += [f"{pod} was on {bound_at[pod]} and is on {node_of.get(pod)}" for pod in moved]
            else:
                await until(lambda: ledger.bound(name) == 0, "nothing is held")
                broken += [f"{name} was whole before"] if ledger.was_whole(name) else []
        except Late as error:
            broken.append(f"{error}; it holds {ledger.bound(name)} of {GANG_SIZE}")
    await stage.delete_gang(name)
    await stage.delete_fillers()
    await until(lambda: ledger.there(name) == 0, "every pod is gone")
    return broken + ledger.broken[told:]


async def _play() -> int:
    broken = []
    releases = sorted(LEFT.glob("*.json"))
    plays = [(path, json.loads(path.read_text()), *play) for path in releases for play in PLAYS]
    for path, states, state, is_full, end in plays:
        async with open_stage(nodes=NODES, cores=CORES) as stage:
            what = f"{path.stem}, {state}{', room gone' if is_full else ''}"
            began_s = time.monotonic()
            found = await _finish(stage, moved_to(states[state], datetime.now(UTC)), is_full, end)
            took_s = time.monotonic() - began_s
            print(f"{what}: {took_s:.1f} s {'; '.join(found) or end}", flush=True)
            broken += [f"{what}: {each}" for each in found]
            if found:
                print((stage.folder / "muster.log").read_text()[-4000:])
    for line in broken:
        print(f"BROKEN: {line}")
    print(json.dumps({"releases": len(releases), "played": len(plays), "broken": len(broken)}))
    return 1 if broken or not plays else 0


def main(words: list[str]) -> int:
    """Read the options and play, or record."""
    reader = argparse.ArgumentParser(prog="scripts/reliability skew")
    reader.add_argument("--record", action="store_true", help="write what this release leaves")
    return asyncio.run(_record() if reader.parse_args(words).record else _play())
