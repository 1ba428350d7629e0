"""The product in this process, on virtual time: a transport, a clock and somebody who restarts the scheduler.

Every request takes a few milliseconds of virtual time, in which the rest of the cluster works, as on a real
one.  No kubelets: cases say themselves what becomes of a pod.
"""

import numpy as np
from msgspec import Struct
from tests.conformance.case import Case
from tests.conformance.interpreter import Interpreter, Options
from tests.conformance.server import JSON, Answer, Api, Object

from muster.sim.faults import NO_FAULTS, Faults
from muster.sim.world import ProductWorld

START_S = 1_767_225_600.0


class Pace(Struct, frozen=True):
    """How fast a client is, and how well the scheduler is told: nothing that a case may depend on."""

    request_s: float = 0.002
    faults: Faults = NO_FAULTS


ORDINARY = Pace()


class SimulatedCluster:
    """One cluster without nodes or kubelets; serves as transport, as clock and as control."""

    def __init__(
        self, *, seed: int = 1, kubelets: bool = False, scheduler: bool = True, pace: Pace = ORDINARY
    ) -> None:
        streams = np.random.default_rng(seed).spawn(2)
        self._request_s = pace.request_s
        self.world = ProductWorld(
            now_s=START_S,
            server_generator=streams[0],
            line_generator=streams[1],
            kubelets=kubelets,
            faults=pace.faults,
        )
        if not scheduler:
            self.world.stop_scheduler()
        self.world.run_until(START_S)

    def call(self, method: str, path: str, body: Object | None = None, content_type: str = JSON) -> Answer:
        """Send, and let the cluster work for as long as a request takes."""
        code, found = self.world.call(method, path, body, content_type)
        self.pass_request()
        return Answer(code, found)

    def pass_request(self) -> None:
        """Let pass what a request takes; a client in no time at all leaves the cluster none to work in."""
        if self._request_s:
            self.sleep(self._request_s)

    def now_s(self) -> float:
        return self.world.now_s

    def sleep(self, seconds: float) -> None:
        self.world.run_until(self.world.now_s + seconds)

    def control(self, order: str, /) -> None:
        """`stop` and `start` as `--scheduler-control` has them."""
        {"stop": self.world.stop_scheduler, "start": self.world.start_scheduler}[order]()
        self.pass_request()


def run_in_simulation(
    case: Case, options: Options | None = None, *, seed: int = 1, pace: Pace = ORDINARY
) -> None:
    """Play one case on a cluster of its own; raises CaseFailed."""
    cluster = SimulatedCluster(seed=seed, pace=pace)
    Interpreter(Api(cluster), cluster, options or Options(), cluster.control).run(case)
