"""The three that are measured beside each other: stock kube-scheduler, Muster, and the null gang binder.

Each is one process on the same control plane, with client limits that never bind.  In comes a control plane;
out comes a `Running` with the process and where its metrics are.  Next: `end_to_end.py`.
"""

import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from tests.controlplane.start import ControlPlane

from bench.loads import Load

NAMES = ("null", "muster", "stock")
QUERIES_PER_S = 5000  # stock's client limit; high enough to never bind
STOP_S = 10.0
MUSTER_METRICS_OFFSET = 12  # after the ports of the control plane

SCHEDULER_NAMES = {"stock": "default-scheduler", "muster": "muster", "null": "null"}
ALGORITHM = "scheduler_podgroup_scheduling_algorithm_duration_seconds"


class Running(NamedTuple):
    """A contender that works; no `metrics_url` where it has none, no `process` where the plane has it."""

    name: str
    process_id: int
    metrics_url: str
    process: subprocess.Popen[bytes] | None = None

    def stop(self) -> None:
        """End the process, if it is ours."""
        if self.process is None:
            return
        self.process.terminate()
        try:
            self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def make_plane(directory: Path, port: int, load: Load) -> ControlPlane:
    """A control plane for one run; topology is on only where there are racks: nobody else pays for it."""
    return ControlPlane(
        directory,
        port,
        gates="all" if load.racks else "basic",
        queries_per_s=QUERIES_PER_S,
        sync_to_disk=True,
    )


def start(name: str, plane: ControlPlane) -> Running:
    """Start a contender; it may need a moment before it works."""
    if name == "stock":
        plane.start_scheduler()
        url = f"https://127.0.0.1:{plane.port + 10}/metrics"
        return Running(name, plane.process_ids()["kube-scheduler"], url)
    if name == "muster":
        address = f"127.0.0.1:{plane.port + MUSTER_METRICS_OFFSET}"
        command = [
            str(Path(sys.executable).with_name("muster")),
            "run",
            "--kubeconfig",
            str(plane.kubeconfig),
        ]
        command += ["--leader-elect=false", f"--metrics-bind-address={address}"]
        return _spawn(name, command, plane.directory, f"http://{address}/metrics")
    command = [sys.executable, "-m", "bench.null_binder", str(plane.kubeconfig)]
    return _spawn(name, command, plane.directory, "")


def _spawn(name: str, command: list[str], directory: Path, metrics_url: str) -> Running:
    with (directory / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
    return Running(name, process.pid, metrics_url, process)


def is_ready(running: Running, directory: Path) -> bool:
    """Whether the null binder watches; the others are asked by their metrics page."""
    return "ready" in (directory / f"{running.name}.log").read_text()


def now_s() -> float:
    """The clock of the benchmark, that of the observer."""
    return time.monotonic()
