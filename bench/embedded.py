"""The embedded cluster under load: `muster up` is API server and scheduler in one process.

In comes a load; out comes a row like that of an end-to-end run, without what only a stock API server tells.
Pods stream in, groups first; nothing runs on the nodes.  Next: `end_to_end.py`, which measures `muster run`.
"""

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import uvloop

from bench import contenders
from bench.checks import find_faults
from bench.end_to_end import EVENT_SILENCE_S
from bench.loads import NODE_CPU_MILLI, NODE_PODS, Load, create, group_calls, pod_calls
from bench.measures import speed
from bench.observer import Observer
from bench.processes import usage_of
from bench.wire import Api


def run(load: Load, *, patience_s: float) -> dict[str, Any]:
    """Measure one load; `patience_s` bounds the wait for binds."""
    shape = f"cpu={NODE_CPU_MILLI}m,memory=32Gi,pods={NODE_PODS}"
    with tempfile.TemporaryDirectory(prefix="muster-bench-") as folder:
        kubeconfig = Path(folder) / "kubeconfig"
        command = [str(Path(sys.executable).with_name("muster")), "up", "--json", "--no-kubelets"]
        command += ["--nodes", str(load.nodes), "--node-shape", shape, "--kubeconfig-out", str(kubeconfig)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            try:
                assert process.stdout is not None
                if not process.stdout.readline():  # one line when it is ready
                    raise RuntimeError("muster up did not start")
                return uvloop.run(_measure(kubeconfig, process.pid, load, patience_s))
            finally:
                process.terminate()


async def _measure(kubeconfig: Path, process_id: int, load: Load, patience_s: float) -> dict[str, Any]:
    async with Api(kubeconfig) as api, Observer(api) as observer:
        before = usage_of(process_id)
        await create(api, group_calls(load))
        await create(api, pod_calls(load, contenders.SCHEDULER_NAMES["muster"]))
        await observer.wait_for_binds(load.pods, patience_s)
        await observer.wait_for_events(load.pods, EVENT_SILENCE_S)
        used = usage_of(process_id)
        return speed(load, observer.seen, is_backlog=False) | {
            "cpu_s": {"muster up": round(used.cpu_s - before.cpu_s, 2)},
            "peak_mb": {"scheduler": round(used.peak_mb)},
            "wrong": find_faults(load, observer.seen),
        }
