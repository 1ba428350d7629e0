"""Cold start: from starting the process to the first bind, in a cluster that is full of running pods.

In come sizes and a contender; out comes a row.  The pods are created with a node already, as a restarted
scheduler finds them; one more waits.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import uvloop
from tests.conformance.forms import find_free_port
from tests.controlplane.start import ControlPlane

from bench import contenders
from bench.end_to_end import PORTS
from bench.loads import NAMESPACE, Call, Load, create, node_calls, pod_calls
from bench.observer import Observer
from bench.processes import usage_of
from bench.wire import Api

PATIENCE_S = 120.0


def run(nodes: int, pods: int, contender: str) -> dict[str, Any]:
    """Measure one contender on a control plane of its own."""
    load = Load(nodes, pods, 0)
    with (
        tempfile.TemporaryDirectory(prefix="muster-bench-") as folder,
        contenders.make_plane(Path(folder), find_free_port(PORTS), load) as plane,
    ):
        return uvloop.run(_measure(plane, load, contender))


async def _measure(plane: ControlPlane, load: Load, contender: str) -> dict[str, Any]:
    async with Api(plane.kubeconfig) as api:
        await create(api, node_calls(load))
        await create(api, running_pods(load))
        async with Observer(api) as observer:
            await create(api, pod_calls(Load(load.nodes, 1, 0), contenders.SCHEDULER_NAMES[contender]))
            began_s = contenders.now_s()
            running = contenders.start(contender, plane)
            try:
                is_bound = await observer.wait_for_binds(1, PATIENCE_S)
                used = usage_of(running.process_id)
            finally:
                running.stop()
            first_s = min(observer.seen.bound_s.values(), default=float("nan"))
            return {
                "first_bind_s": first_s - began_s,
                "cpu_s": {"scheduler": used.cpu_s},
                "peak_mb": {"scheduler": round(used.peak_mb)},
                "wrong": [] if is_bound else ["the waiting pod was not bound"],
            }


def running_pods(load: Load) -> Iterator[Call]:
    """Requests that make pods which are on nodes already, spread evenly."""
    path = f"/api/v1/namespaces/{NAMESPACE}/pods"
    resources = {"requests": {"cpu": "100m"}}
    container = {"name": "main", "image": "registry.example/app:1", "resources": resources}
    for number in range(load.pods):
        spec = {"nodeName": f"node-{number % load.nodes:05d}", "containers": [container]}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"run-{number:05d}"}, "spec": spec}
        yield path, msgspec.json.encode(pod)
