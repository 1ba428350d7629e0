"""The pods of the devices row, one by one on the stock scheduler: what it spends on the same devices.

A fresh control plane with the very nodes, devices and claims of `devices.py`; batches of pods instead of a
gang.  In come the sizes; out comes a row.  Next: `rows.py`.
"""

import asyncio
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import numpy as np
import uvloop
from tests.conformance.forms import find_free_port
from tests.controlplane.start import ControlPlane

from bench import contenders, devices
from bench.end_to_end import PORTS, SETTLE_S, wait_until_ready
from bench.loads import NAMESPACE, Call, Load, create, node_call, pod_call
from bench.observer import Observer
from bench.processes import usage_of
from bench.wire import Api, read_metrics, total
from muster.api.devices import DeviceClass, ResourceClaim, ResourceSlice

API = "/apis/resource.k8s.io/v1"
CLAIMS = f"{API}/namespaces/{NAMESPACE}/resourceclaims"
ALGORITHM = "scheduler_scheduling_algorithm_duration_seconds_sum"
BATCHES = 3  # the first is the cold one
PATIENCE_S = 120.0


def place_pods(nodes: int, pods: int) -> dict[str, Any]:
    """Place batch after batch; a figure is what all pods of a batch took together.

    The algorithm by the scheduler's own clock, `gang_ms` in processor time of its whole process.
    """
    with (
        tempfile.TemporaryDirectory(prefix="muster-bench-") as folder,
        contenders.make_plane(Path(folder), find_free_port(PORTS), Load(nodes, pods, 0)) as plane,
    ):
        return uvloop.run(_measure(plane, nodes, pods))


async def _measure(plane: ControlPlane, nodes: int, pods: int) -> dict[str, Any]:
    rng = np.random.default_rng(devices.SEED)
    taken = np.argwhere(rng.random((nodes, devices.DEVICES_PER_NODE)) < devices.TAKEN).tolist()
    claims = [devices.taken_claim(row, index) for row, index in taken]
    async with Api(plane.kubeconfig) as api, aiohttp.ClientSession() as session:
        await create(api, cluster_calls(nodes))
        await create(api, (claim_call(claim) for claim in claims))
        await asyncio.gather(*(_allocate(api, claim) for claim in claims))
        running = contenders.start("stock", plane)
        batches_ms, used_ms = [], []
        try:
            await wait_until_ready(session, plane, running)
            await asyncio.sleep(SETTLE_S)
            async with Observer(api) as observer:
                for batch in range(BATCHES):
                    before = await read_metrics(session, running.metrics_url, plane.token)
                    used = usage_of(running.process_id)
                    await create(api, pod_calls(batch, pods))
                    is_bound = await observer.wait_for_binds((batch + 1) * pods, PATIENCE_S)
                    await asyncio.sleep(SETTLE_S)
                    after = await read_metrics(session, running.metrics_url, plane.token)
                    batches_ms.append(1000.0 * (total(after, ALGORITHM) - total(before, ALGORITHM)))
                    used_ms.append(1000.0 * (usage_of(running.process_id).cpu_s - used.cpu_s))
                    if not is_bound:
                        break
            used = usage_of(running.process_id)
        finally:
            running.stop()
        bound = len(observer.seen.bound_s)
    missing = [] if bound == BATCHES * pods else [f"{bound} of {BATCHES * pods} pods bound"]
    return {
        "algorithm_ms": float(np.mean(batches_ms[1:])) if batches_ms[1:] else None,
        "cold_ms": batches_ms[0],
        "gang_ms": float(np.mean(used_ms[1:])) if used_ms[1:] else None,
        "peak_mb": {"scheduler": round(used.peak_mb)},
        "wrong": missing,
    }


async def _allocate(api: Api, claim: ResourceClaim) -> None:
    await api.call(
        "PUT", f"{CLAIMS}/{claim.metadata.name}/status", body_of("resource.k8s.io/v1", "ResourceClaim", claim)
    )


def cluster_calls(nodes: int) -> Iterator[Call]:
    """Requests that make the class, the nodes and their devices."""
    yield f"{API}/deviceclasses", body_of("resource.k8s.io/v1", "DeviceClass", devices.device_class())
    for row in range(nodes):
        node = devices.node_with_devices(row)
        yield node_call(node.metadata.name, node.metadata.labels, node.status.allocatable)
        slices = devices.slice_of(row)
        yield f"{API}/resourceslices", body_of("resource.k8s.io/v1", "ResourceSlice", slices)


def claim_call(claim: ResourceClaim) -> Call:
    """The request that makes a claim."""
    return CLAIMS, body_of("resource.k8s.io/v1", "ResourceClaim", claim)


def pod_calls(batch: int, pods: int) -> Iterator[Call]:
    """Requests that make the claims and pods of a batch."""
    for index in range(pods):
        name = f"p-{batch}-{index}"
        yield claim_call(devices.open_claim(name))
        yield pod_call(name, "1", {"resourceClaims": [{"name": "gpus", "resourceClaimName": name}]})


def body_of(api_version: str, kind: str, found: DeviceClass | ResourceClaim | ResourceSlice) -> bytes:
    """An object as a client writes it: without what the server gives it."""
    said = _filled(msgspec.to_builtins(found))
    for name in ("uid", "resourceVersion"):
        said["metadata"].pop(name, None)
    return msgspec.json.encode({"apiVersion": api_version, "kind": kind, **said})


def _filled(found: Any) -> Any:
    """Without fields that say nothing."""
    if isinstance(found, dict):
        kept = {name: _filled(value) for name, value in found.items() if value is not None}
        return {name: value for name, value in kept.items() if value not in ("", [], {}, False)}
    return [_filled(each) for each in found] if isinstance(found, list) else found
