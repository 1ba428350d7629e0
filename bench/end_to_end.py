"""One end-to-end run: a fresh etcd and API server, one contender, one load, one clock.

In comes a load, a mode and a contender; out comes a row of figures, with what was wrong.  Numbered steps in
`_measure`.  Next: `rows.py`, which says what is run, and `results.py`, which keeps it.
"""

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import aiohttp
import uvloop
from tests.conformance.forms import find_free_port
from tests.controlplane.start import PORT_OFFSETS, ControlPlane

from bench import contenders
from bench.checks import find_faults
from bench.contenders import Running
from bench.loads import Load, create, group_calls, node_calls, pod_calls
from bench.measures import algorithm, speed, writes_by_resource
from bench.observer import Observer
from bench.processes import Usage, usage_of
from bench.wire import Api, Refused, Sample, read_metrics

READY_S = 60.0
SETTLE_S = 2.0  # watches catch up with the nodes, or with a backlog
EVENT_SILENCE_S = 10.0
PORTS = (*PORT_OFFSETS, contenders.MUSTER_METRICS_OFFSET)


def run(load: Load, mode: str, contender: str, *, patience_s: float) -> dict[str, Any]:
    """Measure one contender.  `mode` is streaming or backlog; `patience_s` bounds the wait for binds."""
    with tempfile.TemporaryDirectory(prefix="muster-bench-") as folder:
        plane = contenders.make_plane(Path(folder), find_free_port(PORTS), load)
        with plane:
            return uvloop.run(_measure(plane, load, mode, contender, patience_s))


async def _measure(
    plane: ControlPlane, load: Load, mode: str, contender: str, patience_s: float
) -> dict[str, Any]:
    async with Api(plane.kubeconfig) as api, aiohttp.ClientSession() as session:
        # 1. nodes, 2. the contender, watching
        await create(api, node_calls(load))
        running = contenders.start(contender, plane)
        try:
            await wait_until_ready(session, plane, running)
            await asyncio.sleep(SETTLE_S)
            # 3. the load, 4. until all is bound and told
            async with Observer(api) as observer:
                requests = await _requests(session, plane)
                used = _usage(plane, running)
                await _create_load(api, load, mode, contenders.SCHEDULER_NAMES[contender])
                await observer.wait_for_binds(load.pods, patience_s)
                await observer.wait_for_events(load.pods, EVENT_SILENCE_S)
            # 5. figures
            writes = writes_by_resource(requests, await _requests(session, plane))
            figures: dict[str, Any] = speed(load, observer.seen, is_backlog=mode == "backlog")
            if running.metrics_url:
                page = await read_metrics(session, running.metrics_url, plane.token)
                figures |= algorithm(load, page)
            figures |= _costs(load, used, _usage(plane, running), writes)
            keeps_racks = contender != "null"
            return figures | {"wrong": find_faults(load, observer.seen, keeps_racks=keeps_racks)}
        finally:
            running.stop()


async def _create_load(api: Api, load: Load, mode: str, scheduler_name: str) -> None:
    """Streaming: groups first, then pods at full speed.  Backlog: all pods first, then the groups."""
    if mode == "streaming":
        await create(api, group_calls(load))
        await create(api, pod_calls(load, scheduler_name))
        return
    await create(api, pod_calls(load, scheduler_name))
    await asyncio.sleep(SETTLE_S)
    await create(api, group_calls(load))


async def wait_until_ready(session: aiohttp.ClientSession, plane: ControlPlane, running: Running) -> None:
    """Wait until a contender says that it is.  Raises TimeoutError."""
    until_s = contenders.now_s() + READY_S
    while contenders.now_s() < until_s:
        try:
            if not running.metrics_url:
                if contenders.is_ready(running, plane.directory):
                    return
            else:
                ready = running.metrics_url.replace("/metrics", "/readyz")
                async with session.get(ready, ssl=False) as answer:
                    if answer.status == 200:
                        return
        except aiohttp.ClientError:
            pass
        await asyncio.sleep(0.1)
    raise TimeoutError(f"{running.name} was not ready in {READY_S:.0f} s")


async def _requests(session: aiohttp.ClientSession, plane: ControlPlane) -> list[Sample]:
    try:
        return await read_metrics(session, f"{plane.url}/metrics", plane.token)
    except Refused as error:
        raise RuntimeError("the API server shows no metrics") from error


def _usage(plane: ControlPlane, running: Running) -> dict[str, Usage]:
    """By name of process; the contender's own is "scheduler"."""
    ids = {name: number for name, number in plane.process_ids().items() if name != "kube-scheduler"}
    return {name: usage_of(number) for name, number in {**ids, "scheduler": running.process_id}.items()}


def _costs(
    load: Load, before: dict[str, Usage], after: dict[str, Usage], writes: dict[str, int]
) -> dict[str, Any]:
    created = load.pods + (load.gangs if load.size else 0)
    cpu = {name: after[name].cpu_s - before[name].cpu_s for name in after}
    return {
        "writes": writes,
        "writes_per_pod": (sum(writes.values()) - created) / load.pods,
        "cpu_s": {name: round(seconds, 2) for name, seconds in cpu.items()},
        "peak_mb": {name: round(usage.peak_mb) for name, usage in after.items()},
        "cpu_s_per_1000_pods": 1000.0 * after["scheduler"].cpu_s / load.pods,
    }
