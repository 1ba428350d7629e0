"""What the stock and the embedded form of the suite share: ports, the scheduler under test, the run itself.

`stock.py` and `embedded.py` start a cluster and hand it over; here `muster run` is put beside it and
`python -m tests.conformance` plays the cases.
"""

import argparse
import fcntl
import os
import shlex
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.conformance.case import CASE_FILES
from tests.conformance.scheduler_control import ProcessControl

NAME = "muster"
MUSTER = [sys.executable, "-c", "from muster.cli.main import main; main()"]

FIRST_PORT, BLOCK_PORTS, BLOCKS = 20_000, 20, 600

# One case of each kind, for every commit: the whole suite takes half an hour of real time.
SMOKE = (
    *("G-01", "G-02", "G-04", "G-06", "G-09", "G-12"),
    *("Q-01", "Q-05", "F-01", "B-01", "B-05", "S-01"),
    *("J-01", "J-03", "J-06"),
)


def parser_of(description: str) -> argparse.ArgumentParser:
    """The options of both forms."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("files", type=Path, nargs="*", default=sorted(CASE_FILES.glob("*.yaml")))
    parser.add_argument("--only", default="", help="ids of cases, comma between them")
    parser.add_argument("--smoke", action="store_true", help="only the fixed few that CI runs")
    return parser


def find_free_port(offsets: tuple[int, ...] = (0,)) -> int:
    """A port of 127.0.0.1 that is free with those at these distances (below 20).

    Nobody else who asks here gets it while this process lives, and it is none that a client would be given.
    """
    for block in range(BLOCKS):
        port = FIRST_PORT + ((os.getpid() + block) % BLOCKS) * BLOCK_PORTS
        lock = _lock(port)
        if lock is None:
            continue
        if all(_is_free(port + offset) for offset in offsets):
            return port  # the lock stays: it goes with this process
        os.close(lock)
    raise RuntimeError(f"no free ports from {FIRST_PORT} on")


def _lock(port: int) -> int | None:
    """The file descriptor that keeps this block of ports from other starters; None if one of them has it."""
    folder = Path(tempfile.gettempdir()) / f"muster-ports-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    lock = os.open(folder / str(port), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return None
    return lock


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


def control_of(directory: Path, kubeconfig: Path, *, is_alone: bool = False) -> ProcessControl:
    """Put a `muster run` for the name `muster` beside the cluster; it is not started yet.

    `is_alone`: it holds no lease, so that a machine too busy to renew one cannot end it.
    """
    address = f"127.0.0.1:{find_free_port((0,))}"
    command = [*MUSTER, "run", "--kubeconfig", str(kubeconfig), "--scheduler-name", NAME]
    return ProcessControl.write(
        directory,
        command=[
            *command,
            "--metrics-bind-address",
            address,
            *(["--leader-elect=false"] if is_alone else []),
        ],
        health=f"http://{address}",
        kubeconfig=kubeconfig,
        leases=[] if is_alone else [NAME],
    )


def play(
    kubeconfig: Path,
    arguments: argparse.Namespace,
    *options: str,
    control: Path | None = None,
    scheduler_name: str = NAME,
) -> int:
    """Play the chosen cases against a cluster; give the exit code."""
    only = ",".join(SMOKE) if arguments.smoke else arguments.only
    command = [sys.executable, "-m", "tests.conformance", str(kubeconfig)]
    command += [str(file) for file in arguments.files]
    command += ["--scheduler-name", scheduler_name, *options]
    if only:
        command += ["--only", only]
    if control is not None:
        restart = [sys.executable, "-m", "tests.conformance.scheduler_control", str(control)]
        command += ["--scheduler-control", shlex.join(restart)]
    return subprocess.run(command, check=False).returncode
