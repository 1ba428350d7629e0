"""Rights that `muster run` lacks, an API that is not served, deletions that fail: said, never half done.

    python -m tests.reliability refusals

One right after another is refused by a proxy in front of the stock API server, in the words of the server.
Judged: the gang of four is whole, or holds nothing and the process says why by name (in its log, with which
it may end); where pods may not be deleted, a gang that cannot be whole is named as half-held.  What needs
what is in `RIGHTS`; those of `deploy/muster.yaml` that only volumes and devices use are not played.
"""

import argparse
import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable
from functools import partial
from typing import NamedTuple

from tests.conformance.manifests import pod_manifest
from tests.conformance.server import PODS
from tests.reliability.proxy import DELETION, FOR_EVER, Fault, FaultProxy, Rule
from tests.reliability.stage import LOOK_S, Scheduler, Stage, kubeconfig_for, open_stage, until

NODES, CORES, GANG_SIZE = 2, 4, 4
PATIENCE_S = 40.0
BIND_TIMEOUT = "10"  # seconds, the least that Muster takes
FAILURES = 3  # deletions that fail before one does not
WHOLE, NOTHING, HALF = "whole", "nothing", "half"


class Right(NamedTuple):
    """A right, the requests that need it (method and path), and what becomes of a gang without it."""

    verb: str
    resource: str
    group: str
    method: str
    path: str
    end: str
    elects_leader: bool = False
    is_refused_once_bound: bool = False  # one member is refused, so that the gang must be released

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}"

    @property
    def message(self) -> str:
        """What an API server says that refuses it."""
        where = f'in API group "{self.group}" at the cluster scope'
        return f'{self.resource} is forbidden: User "u" cannot {self.verb} resource "{self.resource}" {where}'


def _read(resource: str, group: str, end: str = WHOLE) -> Right:
    return Right("list", resource, group, "GET", rf"/{resource}$", end)


LEASES = ("leases", "coordination.k8s.io")
RIGHTS = (
    _read("pods", "", NOTHING),
    _read("nodes", "", NOTHING),
    _read("podgroups", "scheduling.k8s.io", NOTHING),
    _read("compositepodgroups", "scheduling.k8s.io"),
    _read("namespaces", ""),
    _read("poddisruptionbudgets", "policy"),
    *(_read(name, "") for name in ("persistentvolumes", "persistentvolumeclaims")),
    *(_read(name, "storage.k8s.io") for name in ("storageclasses", "csinodes", "csidrivers")),
    *(_read(name, "storage.k8s.io") for name in ("csistoragecapacities", "volumeattachments")),
    *(_read(name, "resource.k8s.io") for name in ("deviceclasses", "devicetaintrules", "resourceslices")),
    _read("resourceclaims", "resource.k8s.io"),
    Right("create", "pods/binding", "", "POST", r"/binding$", NOTHING),
    Right("patch", "pods/status", "", "PATCH", r"/pods/[^/]+/status$", NOTHING, is_refused_once_bound=True),
    Right("patch", "podgroups/status", "scheduling.k8s.io", "PATCH", r"/podgroups/[^/]+/status$", WHOLE),
    Right("create", "events", "events.k8s.io", "POST", r"/events$", WHOLE),
    Right("get", *LEASES, "GET", r"/leases/", NOTHING, elects_leader=True),
    Right("create", *LEASES, "POST", r"/leases$", NOTHING, elects_leader=True),
    Right("update", *LEASES, "PUT", r"/leases/", WHOLE, elects_leader=True),  # it leads until it must renew
    Right("delete", "pods", "", "DELETE", DELETION, HALF, is_refused_once_bound=True),
)


class Bench:
    """A stage and the proxy; a fresh process for each right."""

    def __init__(self, stage: Stage, proxy: FaultProxy) -> None:
        self._stage = stage
        self._proxy = proxy
        self._kubeconfig = kubeconfig_for(stage.folder, proxy.address)

    def scheduler(self, name: str, *, elects_leader: bool = False) -> Scheduler:
        """A process that has not begun yet, with a log of its own."""
        return Scheduler(self._stage.folder, name, kubeconfig=self._kubeconfig, elects_leader=elects_leader)

    async def play(self, name: str, right: Right) -> list[str]:
        """Let a process without the right meet a gang; what was broken."""
        stage, ledger = self._stage, self._stage.ledger
        told = len(ledger.broken)
        refused = Rule(
            right.method, right.path, Fault.REFUSE, status=403, count=FOR_EVER, message=right.message
        )
        self._proxy.rules = [refused]
        if right.is_refused_once_bound:
            self._proxy.rules.append(Rule("POST", r"-00/binding$", Fault.REFUSE, status=403, count=FOR_EVER))
        scheduler = self.scheduler(name, elects_leader=right.elects_leader)
        await scheduler.launch()
        await stage.create_gang(name, GANG_SIZE, bind_timeout=BIND_TIMEOUT, release_bare_pods="true")
        try:
            await self._settle(name, right, scheduler, refused)
            log = scheduler.log.read_text()
        finally:
            await scheduler.stop()
        end = WHOLE if ledger.was_whole(name) else HALF if ledger.bound(name) else NOTHING
        broken = [] if end == right.end else [f"the gang holds {end}, not {right.end}"]
        if not refused.hits:
            broken.append("it was never asked for")
        elif right.resource not in log or "forbidden" not in log:
            broken.append(f"the log does not name it: {log[-500:]}")
        if right.end == HALF and "Releasing" not in json.dumps(await stage.group(name)):
            broken.append("the group does not say that it is being released")
        self._proxy.rules = []
        await stage.delete_gang(name)
        await until(lambda: ledger.there(name) == 0, "every pod is gone")
        return broken + ledger.broken[told:]

    async def _settle(self, name: str, right: Right, scheduler: Scheduler, refused: Rule) -> None:
        """Wait until the gang has come to its end and the refusal has been met, or the process has ended."""
        ledger = self._stage.ledger

        def is_done() -> bool:
            if not scheduler.is_running or (ledger.was_whole(name) and is_told()):
                return True
            was_released = name in ledger.half_s and not ledger.bound(name)
            never_moves = right.end == HALF or not right.is_refused_once_bound
            return was_released or (right.end != WHOLE and never_moves and refused.hits > FAILURES)

        def is_told() -> bool:
            return right.resource in scheduler.log.read_text()

        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_S):
                while not is_done():
                    await asyncio.sleep(LOOK_S)

    async def play_unserved(self, name: str) -> list[str]:
        """An API server without pod groups: the process ends and names them; with them a new one works."""
        groups = Rule("GET", r"^/apis/scheduling.k8s.io/", Fault.REFUSE, status=404, count=FOR_EVER)
        self._proxy.rules = [groups]
        scheduler = self.scheduler(name)
        await self._stage.create_gang(name, GANG_SIZE)
        await scheduler.launch()
        code = await scheduler.ended()
        log = scheduler.log.read_text()
        broken = [] if code == 2 else [f"it ended with {code}"]
        broken += [] if "scheduling.k8s.io/v1beta1" in log else [f"it does not say what is missing: {log}"]
        broken += [] if groups.hits <= FAILURES else [f"it asked {groups.hits} times"]
        self._proxy.rules = []
        async with scheduler:
            await until(lambda: self._stage.ledger.was_whole(name), "the gang is whole")
        await self._stage.delete_gang(name)
        return broken

    async def play_thrash(self, name: str) -> list[str]:
        """Deletions of a release fail, and an owner makes anew what went: all go, and few are made."""
        stage, ledger = self._stage, self._stage.ledger
        failing = Rule("DELETE", DELETION, Fault.REFUSE, status=500, count=FAILURES)
        self._proxy.rules = [
            Rule("POST", r"-00/binding$", Fault.REFUSE, status=403, count=FOR_EVER),
            failing,
        ]
        made = 0
        async with self.scheduler(name):
            await stage.create_gang(name, GANG_SIZE, bind_timeout=BIND_TIMEOUT, release_bare_pods="true")
            await until(lambda: name in ledger.half_s and not ledger.bound(name), "it was released")
            for _ in range(int(PATIENCE_S)):
                there = {pod["metadata"]["name"] for pod in (await stage.call("GET", PODS))["items"]}
                for number in range(GANG_SIZE):
                    if f"{name}-{number:02}" not in there:
                        made += 1
                        pod = pod_manifest(f"{name}-{number:02}", {"group": name}, scheduler="muster")
                        await stage.call("POST", PODS, pod)
                await asyncio.sleep(1.0)
        self._proxy.rules = []
        await stage.delete_gang(name)
        broken = [] if failing.hits == FAILURES else [f"{failing.hits} deletions failed"]
        return broken + ([] if made <= 3 * GANG_SIZE else [f"{made} pods were made again in {PATIENCE_S} s"])


async def play(only: str) -> int:
    """Play all whose name has this in it; 1 if something was broken."""
    all_broken, played = [], 0
    async with open_stage(nodes=NODES, cores=CORES) as stage, stage.proxy() as proxy:
        bench = Bench(stage, proxy)
        plays: list[tuple[str, Callable[[], Awaitable[list[str]]]]] = [
            *((f"may not {each}", partial(bench.play, f"g{n:02}", each)) for n, each in enumerate(RIGHTS)),
            ("pod groups are not served", partial(bench.play_unserved, "unserved")),
            ("deletions fail", partial(bench.play_thrash, "thrash")),
        ]
        for what, playing in plays:
            if only not in what:
                continue
            broken = await playing()
            played += 1
            print(f"{what}: {'; '.join(broken) or 'good'}", flush=True)
            all_broken += [f"{what}: {each}" for each in broken]
    for line in all_broken:
        print(f"BROKEN: {line}")
    print(json.dumps({"played": played, "broken": len(all_broken)}))
    return 1 if all_broken else 0


def main(words: list[str]) -> int:
    """Play."""
    reader = argparse.ArgumentParser(prog="scripts/reliability refusals")
    reader.add_argument("only", nargs="?", default="", help="play those with this in their name")
    return asyncio.run(play(reader.parse_args(words).only))
