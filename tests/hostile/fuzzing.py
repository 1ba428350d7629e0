"""`scripts/fuzz`: feed targets with bytes that reach new lines of Muster, one target after the other.

    python -m tests.hostile.fuzzing [--seconds N] [TARGET ...]
    python -m tests.hostile.fuzzing TARGET FILE

Atheris (libFuzzer) looks for the bytes; each target runs in a process of its own, for libFuzzer ends the one
it lives in, and what is to be followed must not be loaded before.  Exit code 1 where a target had a fault.
"""

import argparse
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

FOLDER = Path("build/fuzz")
SECONDS = 30
BYTES_MAX = 2048
HANGS_S = 10


def main() -> int:
    """Read the options; feed each target, or play a file."""
    parser = argparse.ArgumentParser(prog="scripts/fuzz", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=int, default=SECONDS, metavar="N", help=f"for each [{SECONDS}]")
    parser.add_argument("names", nargs="*", metavar="TARGET", help="which; none: all")
    given = parser.parse_args()
    from tests.hostile.targets import TARGETS

    names, file = given.names or list(TARGETS), None
    if len(names) == 2 and Path(names[1]).is_file():
        names, file = names[:1], Path(names[1])
    unknown = [name for name in names if name not in TARGETS]
    if unknown:
        parser.error(f"no target {unknown[0]}: there are {', '.join(TARGETS)}")
    if file is not None:
        TARGETS[names[0]].feed(file.read_bytes())
        print(f"{names[0]}: {file} is no fault")
        return 0
    failed = [name for name in names if not _is_sound(name, TARGETS[name].begin, given.seconds)]
    print(f"{len(names)} targets fed, {len(failed)} with a fault {' '.join(failed)}".rstrip())
    return 1 if failed else 0


def _is_sound(name: str, begin: Iterable[bytes], seconds: int) -> bool:
    kept = FOLDER / "reached" / name
    kept.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(begin):
        (kept / f"begin-{number}").write_bytes(data)
    options = [
        f"-max_total_time={seconds}",
        f"-max_len={BYTES_MAX}",
        f"-timeout={HANGS_S}",
        "-seed=1",
        "-verbosity=0",
        "-print_final_stats=1",
        f"-artifact_prefix={FOLDER}/{name}-",
    ]
    code = "import sys; from tests.hostile.fuzzing import feed; feed(sys.argv[1], sys.argv[2:])"
    command = [sys.executable, "-c", code, name, str(kept), *options]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    said = done.stdout + done.stderr
    runs = [line.split()[-1] for line in said.splitlines() if "number_of_executed_units" in line]
    print(f"{name}: {runs[0] if runs else 'no'} inputs", flush=True)
    if done.returncode:
        print(said, file=sys.stderr)
    return done.returncode == 0


def feed(name: str, arguments: list[str]) -> None:
    """Hand over to libFuzzer, which ends the process.  `arguments`: a folder of bytes, its options."""
    import atheris  # type: ignore[import-not-found]  # installed by scripts/fuzz alone

    with atheris.instrument_imports(include=["muster"]):
        from tests.hostile.targets import TARGETS
    atheris.Setup([name, *arguments], TARGETS[name].feed)
    atheris.Fuzz()


if __name__ == "__main__":
    sys.exit(main())
