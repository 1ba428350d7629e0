"""Fill `muster up` with gangs from outside, and tell how fast they were bound and what it took.

One client with many connections creates every group, then its pods, over TLS, while one watch counts the
pods that get a node.  Prints pods a second from the first create to the last bind, and the largest resident
memory of the server.  Nothing here depends on how fast the machine is; it ends early only when nothing more
has been bound for as long as `--patience-s` says.
"""

import argparse
import asyncio
import json
import ssl
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import msgspec
from tests.conformance.cluster_process import ClusterProcess

GROUPS = "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups"
PODS = "/api/v1/namespaces/default/pods"
BOUND = f"{PODS}?watch=1&resourceVersion=0&fieldSelector=spec.nodeName!%3D"
SHAPE = "cpu=64,memory=512Gi,nvidia.com/gpu=16"
PATIENCE_S = 120.0
PIECE_BYTES = 1 << 20
JSON = {"Content-Type": "application/json"}


class Load(NamedTuple):
    """How much to create, and over how many connections."""

    gangs: int
    size: int
    connections: int
    patience_s: float


class Metadata(msgspec.Struct):
    """What tells one pod from another."""

    uid: str


class Pod(msgspec.Struct):
    """As much of a pod as is counted."""

    metadata: Metadata


class Change(msgspec.Struct):
    """One line of the watch."""

    type: str
    object: Pod


def gang_of(number: int, size: int) -> Iterator[tuple[str, bytes]]:
    """Where to post what, in order: a gang that needs all its pods, then the pods."""
    name = f"gang-{number:04}"
    group = {"metadata": {"name": name}, "spec": {"schedulingPolicy": {"gang": {"minCount": size}}}}
    yield GROUPS, json.dumps(group).encode()
    limits = {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1"}
    container = {"name": "worker", "image": "train", "resources": {"limits": limits}}
    for member in range(size):
        spec = {
            "schedulerName": "muster",
            "schedulingGroup": {"podGroupName": name},
            "containers": [container],
            "restartPolicy": "Never",
        }
        yield PODS, json.dumps({"metadata": {"name": f"{name}-{member:02}"}, "spec": spec}).encode()


class Run:
    """One load on one server."""

    def __init__(self, session: aiohttp.ClientSession, server: str, load: Load) -> None:
        self._session = session
        self._server = server
        self._load = load
        self._bound: set[str] = set()
        self._first_s = self._created_s = self._last_s = 0.0

    async def play(self) -> dict[str, Any]:
        """Create all, wait until all is bound or nothing more is, and give the figures."""
        watching = asyncio.create_task(self._count_bound())
        work = iter(range(self._load.gangs))
        await asyncio.sleep(0)
        self._first_s = self._last_s = time.monotonic()
        await asyncio.gather(*(self._create(work) for _ in range(self._load.connections)))
        self._created_s = time.monotonic()
        while not watching.done() and time.monotonic() - self._last_s < self._load.patience_s:
            await asyncio.wait([watching], timeout=1)
        watching.cancel()
        return self._figures()

    async def _create(self, work: Iterator[int]) -> None:
        for number in work:
            for path, body in gang_of(number, self._load.size):
                async with self._session.post(self._server + path, data=body, headers=JSON) as answer:
                    if answer.status != 201:
                        raise SystemExit(f"{path}: {answer.status} {await answer.text()}")
                    await answer.read()

    async def _count_bound(self) -> None:
        decode = msgspec.json.Decoder(Change).decode
        rest = b""
        async with self._session.get(self._server + BOUND) as answer:
            async for piece in answer.content.iter_any():
                *lines, rest = (rest + piece).split(b"\n")
                before = len(self._bound)
                self._bound.update(decode(line).object.metadata.uid for line in lines)
                if len(self._bound) > before:
                    self._last_s = time.monotonic()
                if len(self._bound) == self._load.gangs * self._load.size:
                    return

    def _figures(self) -> dict[str, Any]:
        took_s = self._last_s - self._first_s
        return {
            "pods": self._load.gangs * self._load.size,
            "bound": len(self._bound),
            "created_after_s": round(self._created_s - self._first_s, 1),
            "bound_after_s": round(took_s, 1),
            "pods_per_s": round(len(self._bound) / took_s) if took_s else 0,
        }


async def play(kubeconfig: Path, load: Load) -> dict[str, Any]:
    """Play one load on the server of a kubeconfig that `muster up` wrote."""
    config = json.loads(kubeconfig.read_text(encoding="utf-8"))
    headers = {"Authorization": f"Bearer {config['users'][0]['user']['token']}"}
    tls = ssl.create_default_context()
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE  # our own server, on this machine
    connector = aiohttp.TCPConnector(limit=load.connections + 1, ssl=tls)
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(
        connector=connector, headers=headers, timeout=timeout, read_bufsize=PIECE_BYTES
    ) as session:
        return await Run(session, config["clusters"][0]["cluster"]["server"], load).play()


def memory_most_bytes(process_id: int) -> int:
    """The largest resident memory of a process so far; 0 where the system does not say."""
    status = Path(f"/proc/{process_id}/status")
    if not status.exists():
        return 0
    lines = status.read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


def options() -> argparse.Namespace:
    """What the command line says."""
    reader = argparse.ArgumentParser(prog="scripts/load", description=(__doc__ or "").partition("\n")[0])
    reader.add_argument("--nodes", type=int, default=1000, help="how many (default 1000)")
    reader.add_argument("--gangs", type=int, default=500, help="how many (default 500)")
    reader.add_argument("--size", type=int, default=20, help="pods of a gang (default 20)")
    reader.add_argument("--connections", type=int, default=64, help="of the client (default 64)")
    reader.add_argument("--no-kubelets", action="store_true", help="bind the pods, but run nothing")
    reader.add_argument("--patience-s", type=float, default=PATIENCE_S, help="how long nothing may be bound")
    return reader.parse_args()


def main() -> int:
    """Start a cluster, load it, print the figures; 1 unless every pod was bound."""
    asked = options()
    load = Load(asked.gangs, asked.size, asked.connections, asked.patience_s)
    words = ["--nodes", str(asked.nodes), "--node-shape", SHAPE]
    words += ["--no-kubelets"] if asked.no_kubelets else []
    with (
        tempfile.TemporaryDirectory() as folder,
        ClusterProcess(Path(folder), *words) as cluster,
    ):
        figures = asyncio.run(play(cluster.kubeconfig, load))
        figures["memory_most_mib"] = memory_most_bytes(cluster.process.pid) >> 20
    print(json.dumps({"nodes": asked.nodes, **figures}))
    return 0 if figures["bound"] == figures["pods"] else 1


if __name__ == "__main__":
    sys.exit(main())
