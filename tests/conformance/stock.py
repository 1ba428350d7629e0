"""The suite against the stock control plane 1.37.2 (no kube-scheduler) with `muster run` beside it.

    python -m tests.conformance.stock [FILE…] [--only IDS] [--smoke] [--kube-scheduler]

With --kube-scheduler the stock scheduler stands in Muster's place and the cases are checked as recorded: the
proof that they are true.  Needs Go (`tests/controlplane/build.py`).
"""

import sys
import tempfile
from argparse import Namespace
from pathlib import Path

from tests.conformance.forms import control_of, find_free_port, parser_of, play
from tests.controlplane.build import BuildError
from tests.controlplane.start import PORT_OFFSETS, ControlPlane, StartError

# The stock Job controller errs here (stock-1.37.2, WorkloadWithJob), whatever the scheduler does.
JOB_CONTROLLER_FAULTS = "J-05b,J-25,J-26,J-27"


def main() -> int:
    """Start the cluster, play the cases, stop everything."""
    parser = parser_of(__doc__)
    parser.add_argument(
        "--kube-scheduler", action="store_true", help="check the cases on the stock scheduler instead"
    )
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="muster-stock-") as folder:
        directory = Path(folder)
        try:
            plane = ControlPlane(
                directory / "controlplane",
                find_free_port(PORT_OFFSETS),
                manager=True,
                scheduler=arguments.kube_scheduler,
            )
            with plane:
                if arguments.kube_scheduler:
                    name = "default-scheduler"
                    return play(plane.kubeconfig, arguments, "--stock", scheduler_name=name)
                return _play_with_muster(plane.kubeconfig, directory / "muster", arguments)
        except (BuildError, StartError) as error:
            print(f"stock: {error}", file=sys.stderr)
            return 2


def _play_with_muster(kubeconfig: Path, directory: Path, arguments: Namespace) -> int:
    control = control_of(directory, kubeconfig)
    control.start()
    try:
        return play(kubeconfig, arguments, "--without-right", JOB_CONTROLLER_FAULTS, control=directory)
    finally:
        control.stop()


if __name__ == "__main__":
    sys.exit(main())
