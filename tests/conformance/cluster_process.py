"""`muster up` as a process of its own, and kubectl pointed at it: how a user meets the embedded cluster."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, NamedTuple

START_S = 60.0
COMMAND_S = 120.0
MUSTER = [sys.executable, "-c", "from muster.cli.main import main; main()"]


class Ran(NamedTuple):
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str


def run(
    command: list[str], *, text: str | None = None, timeout_s: float = COMMAND_S, **environment: str
) -> Ran:
    """Run a command to its end, with `text` on its standard input."""
    done = subprocess.run(
        command,
        input=text,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        env=os.environ | environment,
        check=False,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


class ClusterProcess:
    """A running `muster up`; a context manager that stops it with SIGTERM."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder
        self.kubeconfig = folder / "kubeconfig"
        self.ready: dict[str, Any] = {}
        self._options = options
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> "ClusterProcess":
        command = [*MUSTER, "up", "--json", "--kubeconfig-out", str(self.kubeconfig), *self._options]
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.folder
        )
        late = threading.Timer(START_S, self._process.kill)
        late.start()
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        late.cancel()
        if not line:
            raise RuntimeError(f"muster up did not start: {self._process.communicate()[1]}")
        self.ready = json.loads(line)
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def process(self) -> "subprocess.Popen[str]":
        """The process of `muster up`."""
        assert self._process is not None
        return self._process

    @property
    def is_alive(self) -> bool:
        """Whether it still runs."""
        return self.process.poll() is None

    def stop(self) -> Ran:
        """End it as a user would, and give what it left behind."""
        if self.is_alive:
            self.process.send_signal(signal.SIGTERM)
        out, err = self.process.communicate(timeout=COMMAND_S)
        return Ran(self.process.returncode, out, err)

    def kubectl(self, *words: str, text: str | None = None) -> Ran:
        """Run kubectl 1.37 against it, with a cache of its own."""
        return run(self._kubectl_command(words), text=text, HOME=str(self.folder))

    def start_kubectl(self, *words: str) -> "subprocess.Popen[str]":
        """Start kubectl and leave it running."""
        return subprocess.Popen(
            self._kubectl_command(words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def _kubectl_command(self, words: tuple[str, ...]) -> list[str]:
        binary = Path(sys.executable).with_name("kubectl")
        cache = str(self.folder / "kubectl-cache")
        return [str(binary), "--kubeconfig", str(self.kubeconfig), "--cache-dir", cache, *words]

    def muster(self, *words: str) -> Ran:
        """Run another muster command against it."""
        return run([*MUSTER, *words, "--kubeconfig", str(self.kubeconfig)])
