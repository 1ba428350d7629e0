"""`scripts/reliability VERB`: the checks of this package, with real processes on a control plane."""

import signal
import sys
from collections.abc import Callable

from tests.controlplane.build import BuildError
from tests.controlplane.start import StartError
from tests.reliability import crash, failover, refusals, rotation, skew, soak

VERBS: dict[str, Callable[[list[str]], int]] = {
    "crash": crash.main,
    "failover": failover.main,
    "refusals": refusals.main,
    "rotation": rotation.main,
    "skew": skew.main,
    "soak": soak.main,
}


def main() -> int:
    """Do what the first word says; 2 where it cannot begin."""
    words = sys.argv[1:]
    if not words or words[0] not in VERBS:
        print(f"scripts/reliability: one of {', '.join(VERBS)}", file=sys.stderr)
        return 2
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)  # whoever stops this stops what it started
    try:
        return VERBS[words[0]](words[1:])
    except (BuildError, StartError) as error:
        print(f"scripts/reliability: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
