"""Credentials and certificates that are replaced while a gang is being bound: it must be bound all the same.

    python -m tests.reliability rotation

`muster run` reaches the stock API server over TLS, through a proxy that wants a token.  At the tenth binding
of a gang of twenty the proxy wants another token, shows a certificate of another authority, or both; the
files are replaced some time before or after.  Judged: the gang is whole, holds a part no longer than its
`muster.dev/bind-timeout`, no binding is accepted twice, and the old credentials were indeed refused.
"""

import argparse
import asyncio
import json
import time
from pathlib import Path
from typing import NamedTuple

from tests.reliability.proxy import BINDING, Fault, Rule
from tests.reliability.stage import Late, Scheduler, Stage, open_stage, until

from muster.runtime.certificates import ServerIdentity, make_identity, write_private

NODES, CORES, GANG_SIZE = 5, 8, 20
TURN = 10
BIND_TIMEOUT_S = 60.0


class Point(NamedTuple):
    """What is replaced, and how much later than on the server it is in the files (less than 0: sooner)."""

    token: bool
    authority: bool
    late_s: float

    def __str__(self) -> str:
        what = " and ".join(name for name in ("token", "authority") if getattr(self, name))
        return f"{what}, {abs(self.late_s):g} s {'later' if self.late_s > 0 else 'sooner'} in the files"


POINTS = (
    Point(token=True, authority=False, late_s=-1.0),
    Point(token=True, authority=False, late_s=3.0),
    Point(token=False, authority=True, late_s=-1.0),
    Point(token=False, authority=True, late_s=3.0),
    Point(token=True, authority=True, late_s=3.0),
)


class Files:
    """A kubeconfig whose token and authority are in files of their own."""

    def __init__(self, folder: Path) -> None:
        self.kubeconfig = folder / "rotating"
        self._token = folder / "token"
        self._authority = folder / "ca.crt"

    def write(self, server: str, identity: ServerIdentity) -> None:
        """Make them lead to the server."""
        self.replace(identity)
        cluster = {"server": server, "certificate-authority": str(self._authority)}
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "c",
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": {"tokenFile": str(self._token)}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        }
        write_private(self.kubeconfig, json.dumps(content).encode())

    def replace(self, identity: ServerIdentity) -> None:
        """What the cluster's owner does, with each file in one step."""
        write_private(self._token, identity.token.encode())
        write_private(self._authority, identity.authority_pem)


class Rotation:
    """A stage, the proxy, and who is let in by it."""

    def __init__(self, stage: Stage, identity: ServerIdentity) -> None:
        self.proxy = stage.proxy(identity=identity, pause=self._hold)
        self.files = Files(stage.folder)
        self._stage = stage
        self._identity = identity
        self._reached = asyncio.Event()
        self._replaced = asyncio.Event()

    async def _hold(self, _delay_s: float) -> None:
        """At the binding in whose midst it happens: wait until it has."""
        self._reached.set()
        await self._replaced.wait()

    async def play(self, name: str, point: Point) -> tuple[float, list[str]]:
        """How long a gang held a part while it was bound, and what was broken."""
        stage, proxy, ledger = self._stage, self.proxy, self._stage.ledger
        told, refused = len(ledger.broken), proxy.unauthorized
        self._reached, self._replaced = asyncio.Event(), asyncio.Event()
        proxy.rules = [Rule("POST", BINDING, Fault.DELAY, skip=TURN - 1, one_at_a_time=True)]
        broken: list[str] = []
        await stage.create_gang(name, GANG_SIZE, bind_timeout=f"{BIND_TIMEOUT_S:.0f}")
        try:
            async with asyncio.timeout(BIND_TIMEOUT_S):
                await self._reached.wait()
                await self._replace(point)
            await until(lambda: ledger.was_whole(name), "the gang is whole")
        except (Late, TimeoutError) as error:
            broken.append(str(error) or "the gang was not begun")
        self._replaced.set()
        proxy.rules = []
        broken += ledger.broken[told:]
        held_s = (
            ledger.longest_half_s(time.monotonic()) if not ledger.was_whole(name) else ledger.half_s[name]
        )
        if held_s > BIND_TIMEOUT_S:
            broken.append(f"it held a part for {held_s:.0f} s")
        if not point.authority and proxy.unauthorized == refused:
            broken.append("the old token was never tried, so nothing was shown")
        broken += [f"accepted twice: {path}" for path in proxy.bound_twice(name)]
        await stage.delete_gang(name)
        await until(lambda: ledger.there(name) == 0, "every pod is gone")
        return held_s, broken

    async def _replace(self, point: Point) -> None:
        """Another token, another authority, or both: on the server, and in the files sooner or later."""
        new, old = make_identity(), self._identity
        if not point.token:
            new = new._replace(token=old.token)
        if not point.authority:
            new = new._replace(authority_pem=old.authority_pem, server_context=old.server_context)
        self._identity = new
        if point.late_s < 0.0:
            self.files.replace(new)
            await asyncio.sleep(-point.late_s)
        self.proxy.wanted_token = new.token
        if point.authority:
            await self.proxy.show(new)
        self._replaced.set()
        if point.late_s > 0.0:
            await asyncio.sleep(point.late_s)
            self.files.replace(new)


async def play() -> int:
    """Play every point; 1 if something was broken."""
    all_broken = []
    identity = make_identity()
    async with open_stage(nodes=NODES, cores=CORES) as stage:
        rotation = Rotation(stage, identity)
        async with rotation.proxy as proxy:
            proxy.wanted_token = identity.token
            rotation.files.write(proxy.address, identity)
            kubeconfig = rotation.files.kubeconfig
            async with Scheduler(stage.folder, kubeconfig=kubeconfig) as scheduler:
                for number, point in enumerate(POINTS):
                    held_s, broken = await rotation.play(f"g{number}", point)
                    print(f"{point}: held in part {held_s:.1f} s, {'; '.join(broken) or 'good'}", flush=True)
                    all_broken += [f"{point}: {each}" for each in broken]
            if all_broken:
                print(scheduler.log.read_text()[-6000:])
    for line in all_broken:
        print(f"BROKEN: {line}")
    print(json.dumps({"points": len(POINTS), "broken": len(all_broken), "refused": proxy.unauthorized}))
    return 1 if all_broken else 0


def main(words: list[str]) -> int:
    """Play."""
    argparse.ArgumentParser(prog="scripts/reliability rotation").parse_args(words)
    return asyncio.run(play())
