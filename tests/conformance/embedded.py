"""The suite against the embedded cluster: `muster up` with its own scheduler, without nodes and kubelets.

    python -m tests.conformance.embedded [FILE…] [--only IDS] [--smoke]

Cases that restart the scheduler need one in a process of its own: they are played on a second cluster,
`muster up --no-scheduler` with `muster run` beside it.
"""

import sys
import tempfile
from argparse import Namespace
from pathlib import Path

from tests.conformance.case import load_cases
from tests.conformance.cluster_process import ClusterProcess
from tests.conformance.forms import NAME, SMOKE, control_of, parser_of, play

BARE = ("--nodes", "0", "--no-kubelets")


def main() -> int:
    """Play both halves; the exit code is 1 if either has a fault."""
    arguments = parser_of(__doc__).parse_args()
    together, restarting = _split(arguments)
    codes = []
    with tempfile.TemporaryDirectory(prefix="muster-embedded-") as folder:
        if together:
            codes.append(_play_together(Path(folder) / "together", _only(arguments, together)))
        if restarting:
            codes.append(_play_apart(Path(folder) / "apart", _only(arguments, restarting)))
    return max(codes, default=2)


def _split(arguments: Namespace) -> tuple[list[str], list[str]]:
    """Ids of the chosen cases: those that leave the scheduler alone, and those that restart it."""
    wanted = SMOKE if arguments.smoke else tuple(filter(None, arguments.only.split(",")))
    cases = [case for file in arguments.files for case in load_cases(file)]
    chosen = [case for case in cases if not wanted or case.id in wanted]
    return (
        [case.id for case in chosen if not case.restarts_scheduler],
        [case.id for case in chosen if case.restarts_scheduler],
    )


def _only(arguments: Namespace, ids: list[str]) -> Namespace:
    return Namespace(files=arguments.files, only=",".join(ids), smoke=False)


def _play_together(folder: Path, arguments: Namespace) -> int:
    folder.mkdir()
    with ClusterProcess(folder, *BARE, "--scheduler-name", NAME) as cluster:
        return play(cluster.kubeconfig, arguments)


def _play_apart(folder: Path, arguments: Namespace) -> int:
    folder.mkdir()
    with ClusterProcess(folder, *BARE, "--no-scheduler") as cluster:
        control = control_of(folder, cluster.kubeconfig)
        control.start()
        try:
            return play(cluster.kubeconfig, arguments, control=folder)
        finally:
            control.stop()


if __name__ == "__main__":
    sys.exit(main())
