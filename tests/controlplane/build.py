"""Build the stock control plane once and keep the binary outside the tree, under the hash of its sources.

In come main.go, go.mod and go.sum beside this file; out comes the path of one binary that is etcd,
kube-apiserver, kube-scheduler or kube-controller-manager by its first argument.  A cold Go build cache costs
some six minutes on two cores and three gigabytes of disk, a warm one seconds, a kept binary nothing.  Run as
a script it prints the path.  Next: `start.py`, which runs it.

The place is $MUSTER_CACHE, else $XDG_CACHE_HOME/muster, else ~/.cache/muster.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCES = ("go.mod", "go.sum", "main.go")
GO_NEEDED = (1, 26)
VERSION = "v1.37.2"
LINKER = (
    "-s -w"
    f" -X k8s.io/component-base/version.gitVersion={VERSION}"
    " -X k8s.io/component-base/version.gitMajor=1"
    " -X k8s.io/component-base/version.gitMinor=37"
)


class BuildError(Exception):
    """The binary could not be made; the text says what to do."""


def cache_directory() -> Path:
    """Where binaries are kept."""
    if named := os.environ.get("MUSTER_CACHE"):
        return Path(named) / "controlplane"
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "muster" / "controlplane"


def content_hash(go_version: str) -> str:
    """Name a build by everything that goes into it."""
    digest = hashlib.sha256(f"{go_version}\n{LINKER}\n".encode())
    for name in SOURCES:
        digest.update(f"{name}\n".encode() + (HERE / name).read_bytes())
    return digest.hexdigest()[:24]


def find_go() -> tuple[str, str]:
    """The Go command and its version text.  Raises BuildError where there is none, or an old one."""
    go = shutil.which("go")
    if go is None:
        raise BuildError("no go command found; install Go 1.26 or newer to build the stock control plane")
    answer = subprocess.run([go, "env", "GOVERSION"], capture_output=True, text=True, check=True, cwd="/")
    version = answer.stdout.strip()
    try:
        found = tuple(int(part) for part in version.removeprefix("go").split(".")[:2])
    except ValueError:
        found = GO_NEEDED  # a development version names no number
    if found < GO_NEEDED:
        raise BuildError(f"{go} is {version}; the stock control plane needs Go 1.26 or newer")
    return go, version


def find_binary() -> Path:
    """Give the binary, building it first where it is not kept yet.  Raises BuildError."""
    go, version = find_go()
    place = cache_directory() / content_hash(version)
    binary = place / "controlplane"
    if binary.exists():
        return binary
    place.mkdir(parents=True, exist_ok=True)
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # a second test run waits for the first one's build
        if not binary.exists():
            _build(go, binary)
    return binary


def _build(go: str, binary: Path) -> None:
    print("building the stock control plane (minutes with a cold cache)", file=sys.stderr, flush=True)
    unfinished = binary.with_suffix(".new")
    command = [go, "build", "-trimpath", "-ldflags", LINKER, "-o", str(unfinished), "."]
    environment = {**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": "-buildvcs=false"}
    if subprocess.run(command, cwd=HERE, env=environment).returncode != 0:
        raise BuildError(f"go build failed in {HERE}; what it says is above")
    unfinished.rename(binary)


if __name__ == "__main__":
    try:
        print(find_binary())
    except BuildError as error:
        sys.exit(f"build.py: {error}")
