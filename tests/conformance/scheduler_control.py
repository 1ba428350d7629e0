"""Stop and start `muster run` for the conformance cases that restart the scheduler.

    python -m tests.conformance.scheduler_control DIRECTORY stop|start

DIRECTORY holds `scheduler.json` (what to run and how to reach it, written by `ProcessControl.write`), the
process id while one runs, and its log.  `stop` returns when the process is gone and its lease is released,
`start` when /readyz answers 200.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

from tests.conformance.https import HttpsTransport

PATIENCE_S = 60.0
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"


class ControlError(Exception):
    """The scheduler did not do as it was told in time; the text names its log."""


class ProcessControl:
    """One scheduler process, known by the files of a directory, so that two commands can share it."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._settings = json.loads((directory / "scheduler.json").read_text())

    @classmethod
    def write(
        cls, directory: Path, *, command: list[str], health: str, kubeconfig: Path, leases: list[str]
    ) -> "ProcessControl":
        """Note how to run the scheduler; nothing is started yet."""
        settings = {"command": command, "health": health, "kubeconfig": str(kubeconfig), "leases": leases}
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "scheduler.json").write_text(json.dumps(settings, indent=1))
        return cls(directory)

    @property
    def log(self) -> Path:
        """What the scheduler says, over all its starts."""
        return self._directory / "scheduler.log"

    @property
    def is_running(self) -> bool:
        """Whether a process of it is there."""
        return self._find_process() is not None

    def start(self) -> None:
        """Start it unless it runs, and wait until it is ready.  Raises ControlError."""
        if self._find_process() is None:
            with self.log.open("ab") as log:
                process = subprocess.Popen(
                    self._settings["command"], stdout=log, stderr=log, start_new_session=True
                )
            self._pid_file.write_text(str(process.pid))
        self._wait(self._is_ready, "become ready")

    def stop(self) -> None:
        """Stop it if it runs, and wait until it is gone and holds no lease.  Raises ControlError."""
        if (pid := self._find_process()) is not None:
            os.kill(pid, signal.SIGTERM)
            self._wait(lambda: self._find_process() is None, "end")
        self._pid_file.unlink(missing_ok=True)
        self._wait(self._is_released, "release its lease")

    @property
    def _pid_file(self) -> Path:
        return self._directory / "scheduler.pid"

    def _find_process(self) -> int | None:
        """The process id if it still runs; one that has ended and waits for its parent does not."""
        try:
            pid = int(self._pid_file.read_text())
            os.kill(pid, 0)
        except (FileNotFoundError, ProcessLookupError):
            return None
        with contextlib.suppress(FileNotFoundError):
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return None
        return pid

    def _is_ready(self) -> bool:
        if self._find_process() is None:
            raise ControlError(f"the scheduler ended as soon as it was started; see {self.log}")
        try:
            with urllib.request.urlopen(f"{self._settings['health']}/readyz", timeout=2) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def _is_released(self) -> bool:
        transport = HttpsTransport(Path(self._settings["kubeconfig"]))
        for name in self._settings["leases"]:
            answer = transport.call("GET", f"{LEASES}/{name}")
            if answer.status == 200 and answer.object["spec"].get("holderIdentity"):
                return False
        return True

    def _wait(self, is_done: Callable[[], bool], what: str) -> None:
        until = time.monotonic() + PATIENCE_S
        while not is_done():
            if time.monotonic() > until:
                raise ControlError(f"the scheduler did not {what} in {PATIENCE_S:.0f} s; see {self.log}")
            time.sleep(0.05)


def main() -> None:
    """Do what the command line says."""
    if len(sys.argv) != 3 or sys.argv[2] not in ("stop", "start"):
        sys.exit(f"usage: {Path(__file__).name} DIRECTORY stop|start")
    control = ProcessControl(Path(sys.argv[1]))
    try:
        control.stop() if sys.argv[2] == "stop" else control.start()
    except ControlError as error:
        sys.exit(f"scheduler_control: {error}")


if __name__ == "__main__":
    main()
