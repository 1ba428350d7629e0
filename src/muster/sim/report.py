"""What a simulated run was like: how full the cluster was and how long gangs waited.  Plain data.

`Meter` takes part in the run as a checker that never complains; `Report` is what it has measured.
"""

from collections.abc import Callable, Iterable

from msgspec import Struct

from muster.sim.view import (
    ClusterView,
    amount,
    is_placed,
    is_waiting,
    min_count_of,
    node_of,
    uid_of,
)


class Report(Struct, frozen=True):
    """One run.

    `utilisation` is bound CPU over allocatable CPU, as a mean over time.  Waiting runs from the moment a gang
    has minCount members until minCount of them are placed; `gangs_waiting` never were.  Times are seconds of
    virtual time.
    """

    seed: int
    scenario: str
    steps: int
    virtual_s: float
    utilisation: float
    gangs_placed: int
    gangs_waiting: int
    wait_s_median: float
    wait_s_max: float
    pods_bound: int
    counts: dict[str, int]
    violation: str = ""
    replay: str = ""


class Meter:
    """Measures as the run goes on."""

    name = "meter"

    def __init__(self, look: Callable[[], ClusterView]) -> None:
        self._look = look
        self._last_s: float | None = None
        self._share = 0.0
        self._share_s = 0.0
        self._measured_s = 0.0
        self._complete_s: dict[str, float] = {}
        self._waits_s: dict[str, float] = {}
        self._bound: set[str] = set()

    def check(self, now_s: float) -> Iterable[str]:
        """Take the measures of this moment; never complains."""
        view = self._look()
        if self._last_s is not None:
            self._share_s += self._share * (now_s - self._last_s)
            self._measured_s += now_s - self._last_s
        self._last_s = now_s
        self._share = _cpu_share(view)
        self._bound |= {uid_of(pod) for pod in view.pods.values() if node_of(pod)}
        for name, group in view.groups.items():
            self._measure_gang(uid_of(group), name, min_count_of(group), view, now_s)
        return ()

    def report(self, *, seed: int, scenario: str, steps: int, counts: dict[str, int]) -> Report:
        """What has been measured so far."""
        waits_s = sorted(self._waits_s.values())
        return Report(
            seed=seed,
            scenario=scenario,
            steps=steps,
            virtual_s=round(self._measured_s, 3),
            utilisation=round(self._share_s / self._measured_s, 4) if self._measured_s else 0.0,
            gangs_placed=len(waits_s),
            gangs_waiting=len(self._complete_s.keys() - self._waits_s.keys()),
            wait_s_median=round(waits_s[len(waits_s) // 2], 3) if waits_s else 0.0,
            wait_s_max=round(waits_s[-1], 3) if waits_s else 0.0,
            pods_bound=len(self._bound),
            counts=counts,
        )

    def _measure_gang(
        self, uid: str, name: str, min_count: int | None, view: ClusterView, now_s: float
    ) -> None:
        if min_count is None or uid in self._waits_s:
            return
        members = view.members(name)
        placed = sum(is_placed(pod) for pod in members)
        if placed + sum(is_waiting(pod) for pod in members) >= min_count:
            self._complete_s.setdefault(uid, now_s)
        if placed >= min_count:
            self._waits_s[uid] = now_s - self._complete_s.get(uid, now_s)


def _cpu_share(view: ClusterView) -> float:
    room = sum(amount(node["status"]["allocatable"].get("cpu", 0)) for node in view.nodes.values())
    left = sum(left.get("cpu", 0) for left in view.room_left.values())
    return (room - left) / room if room else 0.0
